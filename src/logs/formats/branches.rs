//! Logs whose lines name the line before them: a tree, of which each path to a leaf is a session.
//!
//! The path to the newest leaf is the session; every other leaf is one that was forked from it. This
//! file knows ids and parents of lines, not what they say.

use super::prelude::*;
use crate::logs::output::SessionMark;
use crate::logs::recording::Recording;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const REPEATED: &str = "a line that is there already";

/// A line of a log. What it says is read again where it is needed: a log can be larger than memory.
#[derive(Clone, Debug)]
pub(super) struct BranchLine {
    pub(super) id: Option<Arc<str>>,
    pub(super) number: usize,
    /// What makes lines of several branches one.
    pub(super) key: Option<Arc<str>>,
    pub(super) is_reply: bool,
    parent: Option<usize>,
    told: Cell<bool>,
}

impl BranchLine {
    /// Whether it was told on a path before; from now on it was.
    pub(super) fn is_told(&self) -> bool {
        self.told.replace(true)
    }
}

/// What was read of the paths of a log, with a reader of one path as a `T`, so that a log that has grown is read on from there
/// and not from its first line. Copies of a reader share it.
pub(super) type ReadPaths<T> = Arc<Mutex<Vec<ReadPath<T>>>>;

pub(super) struct ReadPath<T> {
    lines: Vec<usize>,
    /// Which of the lines were read on a path before this one, and so are counted there.
    repeated: Vec<bool>,
    name: Option<String>,
    meta: Vec<LogField>,
    mark: Option<PathMark<T>>,
    session: (About, Recording),
    report: ImportReport,
    cycles: Vec<usize>,
}

/// A path before one of its lines. What is before it is not read again if the path is longer next time.
#[derive(Clone)]
pub(super) struct PathMark<T> {
    /// How many lines of the path were read.
    pub(super) at: usize,
    pub(super) reader: T,
    /// The number of cycles after each of them.
    pub(super) cycles: Vec<usize>,
    session: SessionMark,
    report: ImportReport,
}

/// From where a path is read, and how far the next reading can rely on it.
pub(super) struct PathMarks<T> {
    pub(super) before: Option<PathMark<T>>,
    pub(super) after: Option<PathMark<T>>,
    /// Whether there may be another reading.
    pub(super) is_kept: bool,
}

impl<T: Clone> PathMarks<T> {
    /// Marks the path after `cycles.len()` of its lines.
    pub(super) fn mark(
        &mut self,
        reader: &T,
        session: SessionId,
        cycles: &[usize],
        out: &mut Output,
    ) {
        if !self.is_kept {
            return;
        }
        self.after = out.mark(session).map(|session| PathMark {
            at: cycles.len(),
            reader: reader.clone(),
            cycles: cycles.to_vec(),
            session,
            report: out.report.clone(),
        });
    }

    /// Goes on from a mark that was made on these lines.
    pub(super) fn resume(
        &mut self,
        mark: &PathMark<T>,
        lines: &[&BranchLine],
        out: &mut Output,
    ) -> SessionId {
        for line in &lines[..mark.at] {
            line.told.set(true);
        }
        out.report = mark.report.clone();
        self.after = Some(mark.clone());
        out.resume(&mark.session)
    }
}

impl<T> ReadPath<T> {
    /// Whether the first `count` of some lines are those that were told, counted in the same way.
    fn is_same(&self, count: usize, lines: &[usize], repeated: &[bool]) -> bool {
        let is_same = self.lines.get(..count) == lines.get(..count);
        is_same && count <= lines.len() && self.repeated.get(..count) == repeated.get(..count)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Branches {
    lines: Vec<BranchLine>,
    /// The newest line of each id.
    by_id: HashMap<Arc<str>, usize>,
    /// The parents of lines that say nothing of their own.
    passed: HashMap<String, Option<usize>>,
    /// The lines that a compaction kept, each with that and the id of the line that what follows comes after.
    kept: HashMap<usize, (usize, Arc<str>)>,
}

impl Branches {
    /// Whether a line so far has this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.by_id.contains_key(id) || self.passed.contains_key(id)
    }

    /// Adds a line. One without an id belongs to every path that has its parent; one without either, to all.
    /// Returns false if the line is there already: a session that was resumed repeats lines.
    pub(super) fn push(
        &mut self,
        record: &LogRecord<'_>,
        id: Option<&str>,
        parent: Option<&str>,
        records: &dyn Records,
    ) -> bool {
        let at = self.lines.len();
        // A parent is the newest line of its id so far: an id that is repeated later cuts nothing.
        let parent = self.parent(parent);
        let parent = parent.map(|at| self.after_kept(at).unwrap_or(at));
        let id: Option<Arc<str>> = id.map(Arc::from);
        if let Some(id) = &id {
            let earlier = self.by_id.get(id).and_then(|at| self.lines.get(*at));
            let is_same =
                |line: &BranchLine| records.read(line.number, |line| line.raw == record.raw);
            let is_kept = self
                .by_id
                .get(id)
                .is_some_and(|at| self.kept.contains_key(at));
            if is_kept || earlier.and_then(is_same) == Some(true) {
                return false;
            }
            self.by_id.insert(Arc::clone(id), at);
        }
        self.lines.push(BranchLine {
            id,
            number: record.number,
            key: None,
            is_reply: false,
            parent,
            told: Cell::new(false),
        });
        true
    }

    /// Knows a line that says nothing of its own: what follows it comes after its parent.
    pub(super) fn pass(&mut self, id: &str, parent: Option<&str>) {
        let parent = self.parent(parent);
        self.passed.insert(id.to_owned(), parent);
    }

    /// The line of an id. One that is not in the log, such as that of a bad line, was the line before.
    fn parent(&self, id: Option<&str>) -> Option<usize> {
        let id = id?;
        let known = self.by_id.get(id).copied().map(Some);
        let known = known.or_else(|| self.passed.get(id).copied());
        known.unwrap_or_else(|| self.lines.iter().rposition(|line| line.id.is_some()))
    }

    pub(super) fn set_key(&mut self, key: Option<Arc<str>>, is_reply: bool) {
        if let Some(line) = self.lines.last_mut() {
            (line.key, line.is_reply) = (key, is_reply);
        }
    }

    /// Says that the last line is a compaction which kept the lines from `head` to `tail`: what follows one of
    /// them from now on comes after `anchor`, or after the compaction until that line is there.
    pub(super) fn keep(&mut self, head: &str, tail: &str, anchor: &str) {
        let Some(last) = self.lines.len().checked_sub(1) else {
            return;
        };
        let find = |id: &str| self.by_id.get(id).copied();
        let (Some(head), Some(tail)) = (find(head), find(tail)) else {
            return;
        };
        let anchor: Arc<str> = Arc::from(anchor);
        let parent = |at: &usize| self.lines[*at].parent.filter(|_| *at != head);
        let kept: Vec<usize> = std::iter::successors(Some(tail), parent).collect();
        if kept.last() == Some(&head) {
            let kept = kept.into_iter();
            self.kept = kept.map(|at| (at, (last, Arc::clone(&anchor)))).collect();
        }
    }

    fn after_kept(&self, parent: usize) -> Option<usize> {
        let (boundary, anchor) = self.kept.get(&parent)?;
        let anchor = self.by_id.get(anchor).filter(|at| *at > boundary);
        Some(*anchor.unwrap_or(boundary))
    }

    /// The id of the newest line that has one.
    pub(super) fn last_id(&self) -> Option<Arc<str>> {
        self.lines.iter().rev().find_map(|line| line.id.clone())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn lines(&self) -> &[BranchLine] {
        &self.lines
    }

    /// Makes lines with one key one path in the order of the log, where they are branches of each other.
    pub(super) fn join_siblings(&mut self) {
        let mut last: HashMap<Arc<str>, usize> = HashMap::new();
        for at in 0..self.lines.len() {
            // A child of an earlier line of a key follows the last line of it.
            let of_key = |at: usize| {
                let key = self.lines.get(at)?.key.as_deref()?;
                last.get(key).copied()
            };
            let before = of_key(at).or_else(|| {
                let parent = self.lines.get(at)?.parent?;
                of_key(parent).or(Some(parent))
            });
            if let Some(line) = self.lines.get_mut(at) {
                line.parent = before;
                if let Some(key) = &line.key {
                    last.insert(Arc::clone(key), at);
                }
            }
        }
    }

    /// Reads each path. `read` begins the session of its lines, or goes on with it, and returns the number of cycles after
    /// each line. A path that was `told` as it is, is not read again.
    pub(super) fn read<T: Clone>(
        &self,
        told: Option<&ReadPaths<T>>,
        out: &mut Output,
        mut read: impl FnMut(&[&BranchLine], About, &mut PathMarks<T>, &mut Output) -> Vec<usize>,
    ) {
        let mut told = told.map(|told| told.lock().unwrap_or_else(PoisonError::into_inner));
        let mut before = told
            .as_deref_mut()
            .map(std::mem::take)
            .unwrap_or_default()
            .into_iter();
        let mut first: Option<(HashSet<usize>, HashMap<usize, usize>)> = None;
        for (at, path) in self.paths().into_iter().enumerate() {
            let mut about = About::default();
            if let Some((main, cycles)) = &first {
                let shared = path.iter().rev().find(|at| main.contains(at));
                let cycle = shared.and_then(|at| cycles.get(at)).copied().unwrap_or(0);
                about.name = Some(format!("~{}", at + 1));
                about.meta.push(("forked_at".into(), cycle.to_string()));
            }
            let before = before.next();
            let before = before.filter(|told| told.name == about.name && told.meta == about.meta);
            // A report of its own, which is added when the path stays as it was.
            let all = std::mem::take(&mut out.report);
            let now = self.read_path((before, told.is_some()), path, about, out, &mut read);
            let own = std::mem::replace(&mut out.report, all);
            out.report.add(&own);
            if first.is_none() {
                let main = || now.lines.iter().copied();
                let cycles = now.cycles.iter().copied();
                first = Some((main().collect(), main().zip(cycles).collect()));
            }
            if let Some(told) = told.as_deref_mut() {
                told.push(now);
            }
        }
    }

    /// Reads one path; `before` is how it was told the last time, and whether there may be another time.
    fn read_path<T: Clone>(
        &self,
        (before, is_kept): (Option<ReadPath<T>>, bool),
        path: Vec<usize>,
        about: About,
        out: &mut Output,
        read: &mut impl FnMut(&[&BranchLine], About, &mut PathMarks<T>, &mut Output) -> Vec<usize>,
    ) -> ReadPath<T> {
        let lines: Vec<&BranchLine> = path.iter().map(|at| &self.lines[*at]).collect();
        let repeated: Vec<bool> = lines.iter().map(|line| line.told.get()).collect();
        let is_same = |told: &ReadPath<T>, count: usize| told.is_same(count, &path, &repeated);
        let mut marks = PathMarks {
            before: None,
            after: None,
            is_kept,
        };
        if let Some(told) = before {
            if told.lines.len() == path.len() && is_same(&told, path.len()) {
                lines.iter().for_each(|line| line.told.set(true));
                let (about, recording) = told.session.clone();
                out.whole(about, recording);
                out.report = told.report.clone();
                return told;
            }
            let mark = told.mark.as_ref().filter(|mark| is_same(&told, mark.at));
            marks.before = mark.cloned();
        }
        let (name, meta) = (about.name.clone(), about.meta.clone());
        let cycles = read(&lines, about, &mut marks, out);
        ReadPath {
            lines: path,
            repeated,
            name,
            meta,
            mark: marks.after,
            session: out.closed().filter(|_| is_kept).unwrap_or_default(),
            report: out.report.clone(),
            cycles,
        }
    }

    /// The paths to the leaves, that to the newest first; each in the order of the log.
    fn paths(&self) -> Vec<Vec<usize>> {
        let parent = |at: usize| self.lines[at].parent;
        let has_id = |at: &usize| self.lines[*at].id.is_some();
        let inner = (0..self.lines.len()).filter(has_id).filter_map(parent);
        let inner: HashSet<usize> = inner.collect();
        let leaves = (0..self.lines.len()).rev();
        let leaves = leaves.filter(|at| has_id(at) && !inner.contains(at));
        let without: Vec<usize> = (0..self.lines.len()).filter(|at| !has_id(at)).collect();
        let mut paths: Vec<Vec<usize>> = leaves
            .map(|leaf| {
                let path: HashSet<usize> =
                    std::iter::successors(Some(leaf), |at| parent(*at)).collect();
                let is_on = |at: &usize| parent(*at).is_none_or(|parent| path.contains(&parent));
                let without = without.iter().copied().filter(is_on);
                let mut path: Vec<usize> = path.iter().copied().chain(without).collect();
                path.sort_unstable();
                path
            })
            .collect();
        if paths.is_empty() && !self.lines.is_empty() {
            paths.push(without);
        }
        // Forks in the order in which they were begun.
        if let Some((_, forks)) = paths.split_first_mut() {
            forks.reverse();
        }
        paths
    }
}
