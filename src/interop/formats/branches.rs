//! Logs whose lines name the line before them: a tree, of which each path to a leaf is a session.
//!
//! The path to the newest leaf is the session; every other leaf is one that was forked from it. This
//! file knows ids and parents of lines, not what they say.

use crate::interop::log::About;
use crate::interop::output::Output;
use std::collections::{HashMap, HashSet};

/// A line of a log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) raw: String,
    pub(super) id: Option<String>,
    parent: Option<String>,
}

/// The lines so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Branches {
    lines: Vec<Line>,
}

impl Branches {
    /// Adds a line. One without an id belongs to every path.
    pub(super) fn push(&mut self, raw: &str, id: Option<String>, parent: Option<String>) {
        self.lines.push(Line {
            raw: raw.to_owned(),
            id,
            parent,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Makes lines with one key, as `keys` gives it for each line, one path in the order of the log,
    /// where they are branches of each other.
    pub(super) fn join_siblings(&mut self, keys: impl Fn(&[Line]) -> Vec<Option<String>>) {
        let keys = keys(&self.lines);
        let mut by_id: HashMap<String, usize> = HashMap::new();
        let mut last: HashMap<&str, usize> = HashMap::new();
        for (at, key) in keys.iter().enumerate() {
            let parent = self.lines[at].parent.as_ref().and_then(|id| by_id.get(id));
            // A child of an earlier line of a key follows the last line of it.
            let of_key = |key: &Option<String>| last.get(key.as_deref()?).copied();
            let before = of_key(key).or_else(|| {
                let parent = *parent?;
                of_key(&keys[parent]).or(Some(parent))
            });
            self.lines[at].parent = before.and_then(|before| self.lines[before].id.clone());
            if let Some(id) = &self.lines[at].id {
                by_id.insert(id.clone(), at);
            }
            if let Some(key) = key {
                last.insert(key, at);
            }
        }
    }

    /// Reads each path. `read` begins the session of its lines and returns the number of cycles
    /// after each of them. What is counted is counted once a line.
    pub(super) fn read(
        &self,
        out: &mut Output,
        mut read: impl FnMut(&[&Line], About, &mut Output) -> Vec<usize>,
    ) {
        let paths = self.paths();
        let mut first: Option<(HashSet<usize>, HashMap<usize, usize>)> = None;
        for (at, path) in paths.iter().enumerate() {
            let lines: Vec<&Line> = path.iter().map(|at| &self.lines[*at]).collect();
            let mut about = About::default();
            let Some((main, cycles)) = &first else {
                let cycles = read(&lines, about, out);
                let cycles = path.iter().copied().zip(cycles).collect();
                first = Some((path.iter().copied().collect(), cycles));
                continue;
            };
            let shared = path.iter().rev().find(|at| main.contains(at));
            let cycle = shared.and_then(|at| cycles.get(at)).copied().unwrap_or(0);
            about.name = Some(format!("~{}", at + 1));
            about.meta.push(("forked_at".into(), cycle.to_string()));
            // Lines of the main path are counted there.
            let report = out.report.clone();
            read(&lines, about, out);
            out.report = report;
        }
    }

    /// The paths to the leaves, that to the newest first; each in the order of the log.
    fn paths(&self) -> Vec<Vec<usize>> {
        let mut by_id: HashMap<&str, usize> = HashMap::new();
        for (at, line) in self.lines.iter().enumerate() {
            if let Some(id) = &line.id {
                by_id.insert(id, at);
            }
        }
        let parent = |at: usize| {
            let parent = self.lines[at].parent.as_deref()?;
            by_id.get(parent).copied().filter(|parent| *parent < at)
        };
        let inner: HashSet<usize> = (0..self.lines.len()).filter_map(parent).collect();
        let leaves = (0..self.lines.len()).rev();
        let leaves = leaves.filter(|at| self.lines[*at].id.is_some() && !inner.contains(at));
        let everywhere: Vec<usize> = (0..self.lines.len())
            .filter(|at| self.lines[*at].id.is_none())
            .collect();
        let mut paths: Vec<Vec<usize>> = leaves
            .map(|leaf| {
                let path = std::iter::successors(Some(leaf), |at| parent(*at));
                let mut path: Vec<usize> = path.chain(everywhere.iter().copied()).collect();
                path.sort_unstable();
                path
            })
            .collect();
        if paths.is_empty() && !self.lines.is_empty() {
            paths.push(everywhere);
        }
        // Forks in the order in which they were begun.
        if let Some((_, forks)) = paths.split_first_mut() {
            forks.reverse();
        }
        paths
    }
}
