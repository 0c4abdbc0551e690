//! `pactql diff`: the differences of two snapshots. `pactql blame`: the history of one node.

use super::command::{Invocation, RunCommand, say};
use super::options::{EditionArgs, Paint, Tint, named, width};
use super::output::{self, Previews, escaped, printable};
use super::sessions;
use super::typed::ends;
use super::words::{address, not_one_argument, retyped, whole};
use super::words::{is_file, is_selector, quoted};
use crate::app::present::answer::{RunPair, SnapshotChanges, json, note_empty};
use crate::app::present::sessions::place;
use crate::app::present::{Exit, Failure, Result, counted};
use crate::engine::{EmptyAnswer, Engine, Node};
use crate::history::{
    Blame as Life, BlameKind, CameBy, ContentDiff, ContentMode, ContentOptions, DiffOptions,
    Session, WentBy, blame,
};
use crate::index::Snapshot;
use crate::inspect::{
    Across, Call, Divergence, Lone, Pair, PairedBy, ParameterChange, Parted, Run, RunEnd,
    StepEvent, across,
};
use crate::support::diag::nearest_at;
use crate::support::edits::{edits, words};
use clap::Args;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

/// What changed between two snapshots of a session, and where do two runs part?
///
/// The result lists what the newer of the two added, removed and changed, in whatever order they
/// are named: {"added":[…],"removed":[…],"changed":[{"id","fields"}]} as JSON, with the changed words of contents
/// as text. Lines are wrapped on a terminal, and whole in a pipe.
///
/// Of two runs or more, each is compared with the first, step by step: how many steps are equal, whether then the
/// requests differ or the answers to equal requests, at which block and in which words, where they meet again, and
/// how each ended. Ids and times are not compared.
///
/// Snapshots of two sessions have no ids in common. So their blocks are paired by key, then by what they say, then by
/// their place between neighbours; the result says which.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql diff [OPTIONS] <SESSION> <SNAPSHOT> <SNAPSHOT> [SELECTOR]
       pactql diff [OPTIONS] <SESSION> <SESSION>...
       pactql diff [OPTIONS] <SESSION@SNAPSHOT> <SESSION@SNAPSHOT>")]
pub(super) struct DiffArgs {
    /// A session and two snapshots, such as @t0, 3, latest or `working`, or their range, and maybe a selector
    /// without a time, which says which nodes to compare. Or sessions: files, directories, `STORE#name`, `-` for standard input.
    #[arg(value_name = "WHAT", required = true)]
    words: Vec<String>,
    /// Also list moves: nodes with another parent, nodes that were removed and added again with
    /// another id, and the children that each parent gained and lost.
    #[arg(long)]
    moves: bool,
    /// Also show the difference of each changed content, as `unified` unless a mode is given. With
    /// `jsonpatch`, contents that are not JSON are shown as `unified`.
    #[arg(long, value_name = "MODE", value_parser = named(&ContentMode::ALL, ContentMode::name))]
    #[arg(num_args = 0..=1, default_missing_value = "unified")]
    content: Option<ContentMode>,
    /// Lines around each change of a unified content diff.
    #[arg(long, value_name = "N", default_value_t = 3)]
    context_lines: usize,
    #[command(flatten)]
    edition: EditionArgs,
}

const TWO: &str = "`diff` takes two snapshots, or two sessions";

/// The command for two snapshots of a session.
fn of_two(session: &str) -> String {
    format!("pactql diff {} @t-1 @t0", quoted(session))
}

impl RunCommand for DiffArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let is_bare = |word: &str| word == "working" || address(word).is_some();
        let is_snapshot = |word: &str| word.starts_with('@') || is_bare(word) && !is_file(word);
        let words = self.words.iter().flat_map(|word| match ends(word) {
            Some(ends) if !is_file(word) => ends.into(),
            _ => vec![word.clone()],
        });
        let mut words: Vec<String> = words.collect();
        if let [a, b, rest @ ..] = &words[..]
            && is_snapshot(a)
            && is_snapshot(b)
            && !rest.iter().any(|word| is_file(word))
        {
            words.splice(0..0, super::read_sessions::or_newest(&[], with.limits)?);
        }
        match &words[..] {
            [session, a, b, rest @ ..] if rest.len() < 2 && is_snapshot(a) | is_snapshot(b) => {
                self.snapshots([session, a, b], rest.first(), with)
            }
            [_, a, b, rest @ ..] if is_snapshot(a) && is_snapshot(b) => {
                Err(not_one_argument().with_help(retyped(rest, whole(rest))))
            }
            words if words.len() > 1 && !words.iter().all(|word| is_session(word)) => {
                let other = words[1..].iter().find(|word| !is_session(word));
                let other = printable(other.unwrap_or(&words[0]));
                let message = match words {
                    [_, only] if is_snapshot(only) => TWO.to_owned(),
                    _ => format!("expected a snapshot or a session, found `{other}`"),
                };
                Err(Failure::usage(message).with_help(of_two(&words[0])))
            }
            words if words.iter().any(|word| split(word).1.is_some()) => self.across(words, with),
            words => self.runs(words, with),
        }
    }
}

impl DiffArgs {
    fn contents(&self) -> ContentOptions {
        ContentOptions::default()
            .mode(self.content.unwrap_or_default())
            .context_lines(self.context_lines)
    }

    /// Two snapshots of one session.
    fn snapshots(
        &self,
        [session, a, b]: [&String; 3],
        selector: Option<&String>,
        with: &Invocation,
    ) -> Result<Exit> {
        let (a, b) = (place(a)?, place(b)?);
        let engine = self.edition.engine();
        if let Some(selector) = selector {
            // An invalid selector is reported before anything is read.
            engine.prepare(selector)?;
        }
        let json = with.is_json();
        // Text always shows changed contents.
        let options = DiffOptions {
            moves: self.moves,
            content: (!json || self.content.is_some()).then(|| self.contents()),
        };
        let session = sessions::open(session, with.limits)?;
        let diff = engine.diff(&session, a, b, selector.map(String::as_str), &options)?;
        super::read_sessions::note_reconstructed(Call::from_snapshot(&diff.newer.0).reconstructed);
        let selector = selector.map(String::as_str);
        if let Some(nothing) = EmptyAnswer::of_diff(&engine, &session, selector, &diff) {
            let (why, warnings) = (nothing.reasons(), nothing.warnings());
            say(&note_empty(&why, warnings, None, json));
        }
        let found = SnapshotChanges::from(diff);
        with.print(&found, || text(&found, with.paint()))
    }

    /// Snapshots of two sessions.
    fn across(&self, words: &[String], with: &Invocation) -> Result<Exit> {
        let [first, second] = words else {
            return Err(Failure::usage("snapshots of two sessions are compared")
                .with_help("pactql diff SESSION@ADDRESS SESSION@ADDRESS"));
        };
        self.without_moves()?;
        let (first, second) = (split(first), split(second));
        let open = |(name, address): (&str, Option<&str>)| {
            let address = address.filter(|address| *address != "@working");
            sessions::open_at(name, address, with.limits)
        };
        let (_, older) = open(first)?;
        let (_, newer) = open(second)?;
        let found = across(&older, &newer, &self.contents());
        let places = [(first.0, older), (second.0, newer)];
        with.print(&found, || text_across(&found, &places, with.paint()))
    }

    /// Runs, each compared with the first.
    fn runs(&self, words: &[String], with: &Invocation) -> Result<Exit> {
        self.without_moves()?;
        let mut opened = super::each_session::open_words(words, with)?.into_iter();
        let (Some(first), true) = (opened.next(), opened.len() > 0) else {
            return Err(Failure::usage(TWO).with_help(of_two(&words[0])));
        };
        let run = Run::new(&first.session)?;
        let mut out = String::new();
        for other in opened {
            let divergence = run.divergence(&Run::new(&other.session)?, &self.contents());
            let sessions = [&*first.name, &*other.name];
            if with.is_json() {
                let pair = RunPair {
                    sessions,
                    divergence,
                };
                out.extend([&*json(&pair)?, "\n"]);
            } else {
                if !out.is_empty() {
                    out.push('\n');
                }
                text_runs(&divergence, sessions, with.paint(), &mut out);
            }
        }
        with.show(&out, true)
    }

    fn without_moves(&self) -> Result<()> {
        if self.moves {
            let message = "the moves of two sessions are always listed";
            return Err(Failure::usage(message).with_help("leave out --moves"));
        }
        Ok(())
    }
}

fn text_runs(found: &Divergence, names: [&str; 2], paint: Paint, out: &mut String) {
    let [a, b] = names.map(printable);
    let equal = counted(found.equal as u64, "equal step");
    let mut text = DiffText {
        out: String::new(),
        paint,
    };
    text.line(Tint::Place, &format!("{b} beside {a}: {equal}"));
    match &found.parted {
        None => text.line(Tint::Name, "the runs are equal to their ends"),
        Some(parting) => {
            let place = |cycle: Option<i64>, end: &RunEnd| match cycle {
                None => "end".to_owned(),
                Some(_) if end.working && end.cycle == cycle => "working".to_owned(),
                Some(cycle) => format!("@c{cycle}"),
            };
            let at_a = place(parting.cycle_a, &found.a);
            let at_b = place(parting.cycle_b, &found.b);
            let what = match parting.at {
                Parted::Request => "the requests differ".to_owned(),
                Parted::Answer => "the requests are equal, the answers differ".to_owned(),
                Parted::End if parting.cycle_a.is_some() => format!("{b} ends, {a} goes on"),
                Parted::End => format!("{a} ends, {b} goes on"),
            };
            let line = format!("step {} ({at_b} beside {at_a}): {what}", found.equal + 1);
            text.line(Tint::Changed, &line);
            if let (Some(difference), [Some(a), Some(b)]) =
                (&parting.difference, &parting.snapshots)
            {
                text.parameters(&difference.parameters);
                text.across(difference, [a, b]);
            }
        }
    }
    if let Some(meet) = &found.meet {
        let steps = match meet.steps {
            1 => "1 step adds the same and is answered the same".to_owned(),
            more => format!("{more} steps add the same and are answered the same"),
        };
        let (at_a, at_b) = (meet.cycle_a, meet.cycle_b);
        let line = format!("later, from @c{at_b} beside @c{at_a}, {steps}");
        text.line(Tint::Place, &line);
    }
    for (name, end) in [(&a, &found.a), (&b, &found.b)] {
        text.end(name, end);
    }
    out.push_str(&text.out);
}

/// Whether a word names a session, maybe with an address after it.
fn is_session(word: &str) -> bool {
    is_file(split(word).0)
}

fn split(word: &str) -> (&str, Option<&str>) {
    match word.rfind('@') {
        Some(at) if at > 0 && (address(&word[at..]).is_some() || &word[at..] == "@working") => {
            (&word[..at], Some(&word[at..]))
        }
        _ => (word, None),
    }
}

fn text_across(found: &Across, places: &[(&str, Arc<Snapshot>); 2], paint: Paint) -> String {
    let [(first, a), (second, b)] = places;
    let label = |name: &str, snapshot: &Snapshot| {
        format!("{} {}", printable(name), output::snapshot_label(snapshot))
    };
    let counts = [
        (found.same, "the same"),
        (found.moved.len(), "moved"),
        (found.changed.len(), "changed"),
        (found.only_a.len(), "removed"),
        (found.only_b.len(), "added"),
    ];
    let titles = [label(second, b), label(first, a)];
    let mut text = DiffText::new(titles, &counts, &found.parameters, paint);
    text.across(found, [a, b]);
    text.out
}

fn text(found: &SnapshotChanges, paint: Paint) -> String {
    let diff = &found.diff;
    let counts = [
        (diff.added.len(), "added"),
        (diff.removed.len(), "removed"),
        (diff.changed.len(), "changed"),
    ];
    let (newer, older) = (&diff.newer, &diff.older);
    let titles = [newer.1.to_string(), older.1.to_string()];
    let mut text = DiffText::new(titles, &counts, &found.parameters, paint);
    text.nodes(&diff.added, &newer.0, '+', Tint::Added);
    text.nodes(&diff.removed, &older.0, '-', Tint::Removed);
    for node in &diff.changed {
        let fields = output::fields(&node.fields, node.content_diff.as_ref());
        let title = format!("~ {} ({fields})", printable(&node.id));
        text.line(Tint::Changed, &title);
        output::values(&node.delta, &mut text.out);
        text.content(node.content_diff.as_ref());
    }
    for found in diff.moves.iter().flatten() {
        let parent = |id: &Option<String>| id.as_deref().map_or("nothing".to_owned(), printable);
        let [from, to] = [&found.previous_parent_id, &found.new_parent_id].map(parent);
        let previous = found.previous_id.as_deref();
        let previous = previous.map(|id| format!(", which was {},", printable(id)));
        let (id, previous) = (printable(&found.id), previous.unwrap_or_default());
        let _ = writeln!(text.out, "> {id}{previous} moved from {from} to {to}");
    }
    text.out
}

struct DiffText {
    out: String,
    paint: Paint,
}

impl DiffText {
    /// A line of what is compared with what, and of the counts; then the parameters that changed.
    fn new(
        [newer, older]: [String; 2],
        counts: &[(usize, &str)],
        parameters: &[ParameterChange],
        paint: Paint,
    ) -> Self {
        let counts = counts.iter().map(|(count, word)| format!("{count} {word}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let title = paint.tint(Tint::Place, &format!("{newer} after {older}"));
        let out = format!("{title}: {counts}\n");
        let mut text = Self { out, paint };
        text.parameters(parameters);
        text
    }

    fn parameters(&mut self, parameters: &[ParameterChange]) {
        let value = |value: &Option<String>| match value {
            Some(json) => escaped(json, false).into_owned(),
            None => "nothing".to_owned(),
        };
        for change in parameters {
            let (a, b) = (value(&change.a), value(&change.b));
            let name = printable(&change.name);
            self.line(Tint::Changed, &format!("~ parameter {name}: {a} → {b}"));
        }
    }

    /// The blocks in which two snapshots differ.
    fn across(&mut self, found: &Across, [a, b]: [&Snapshot; 2]) {
        let ids = |lone: &[Lone]| lone.iter().map(|lone| lone.id.clone()).collect::<Vec<_>>();
        self.nodes(&ids(&found.only_b), b, '+', Tint::Added);
        self.nodes(&ids(&found.only_a), a, '-', Tint::Removed);
        let was = |pair: &Pair, more: &str| {
            let by = match pair.by {
                PairedBy::Key => "by key",
                PairedBy::Content => "by content",
                PairedBy::Position => "by position",
            };
            let (b, a) = (printable(&pair.b), printable(&pair.a));
            format!("{b} was {a} ({more}{by})")
        };
        for pair in &found.moved {
            let _ = writeln!(self.out, "> {}", was(pair, ""));
        }
        for changed in &found.changed {
            let fields = changed.fields.join(", ") + "; ";
            let title = format!("~ {}", was(&changed.pair, &fields));
            self.line(Tint::Changed, &title);
            self.content(changed.content_diff.as_deref());
        }
    }

    /// How a run ended: the last step, and its last block.
    fn end(&mut self, name: &str, end: &RunEnd) {
        let Some(cycle) = end.cycle else {
            return self.line(Tint::Place, &format!("{name} has no step"));
        };
        let steps = counted(end.steps as u64, "step");
        let events: Vec<String> = end.events.iter().map(StepEvent::text).collect();
        let place = if end.working {
            "in the working state".to_owned()
        } else {
            format!("at @c{cycle}")
        };
        let mut line = format!("{name} ends {place} after {steps}");
        if !events.is_empty() {
            let _ = write!(line, ": {}", events.join("; "));
        }
        if let Some(reason) = &end.stop_reason {
            let _ = write!(line, " ({})", printable(reason));
        }
        self.line(Tint::Place, &line);
        let found = |snapshot: &Snapshot| {
            let node = snapshot.find(end.block.as_deref()?)?;
            Some(Previews::default().line(Node::new(node)))
        };
        if let Some(block) = end.snapshot.as_deref().and_then(found) {
            let _ = writeln!(self.out, "    {block}");
        }
    }

    fn line(&mut self, tint: Tint, line: &str) {
        let _ = writeln!(self.out, "{}", self.paint.tint(tint, line));
    }

    fn nodes(&mut self, ids: &[String], snapshot: &Snapshot, sign: char, tint: Tint) {
        // The whole line has a colour.
        let previews = Previews::default();
        for id in ids {
            let node = snapshot.find(id).map(|node| previews.line(Node::new(node)));
            let line = format!("{sign} {}", node.unwrap_or_default());
            // A preview is cut, not wrapped.
            let line = width().map_or(line.clone(), |width| output::cut(&line, width));
            self.line(tint, &line);
        }
    }

    fn content(&mut self, content: Option<&ContentDiff>) {
        let Some(content) = content else {
            return;
        };
        let (out, paint) = (&mut self.out, self.paint);
        if content.summary.truncated {
            let (newer, older) = (content.summary.bytes_newer, content.summary.bytes_older);
            let _ = writeln!(out, "    too long to compare: {newer} bytes after {older}");
        }
        // The names of both sides are printed already.
        for line in content.diff.iter().flat_map(|diff| lines(diff, paint)) {
            let _ = writeln!(out, "    {line}");
        }
        if let Some(patch) = &content.patch {
            let _ = writeln!(out, "    {}", escaped(&patch.to_string(), false));
        }
        for hunk in content.hunks.iter().flatten() {
            let _ = write!(out, "    {}:", hunk.newer.start);
            for (run, sign, tint) in [
                (&hunk.older, '-', Tint::Removed),
                (&hunk.newer, '+', Tint::Added),
            ] {
                if !run.text.is_empty() {
                    let text = format!("{sign}{}", output::quoted(&run.text));
                    let _ = write!(out, " {}", paint.tint(tint, &escaped(&text, false)));
                }
            }
            out.push('\n');
        }
    }
}

const WORDS: usize = 20_000;

/// The lines of a unified diff, without its two lines of names. Where lines were replaced by similar ones,
/// they are one line with `~`, in which removed words are in `[-…-]` and added ones in `{+…+}`, or in
/// colour.
fn lines(diff: &str, paint: Paint) -> Vec<String> {
    let mut all: Vec<&str> = diff.lines().skip(2).collect();
    // A mark that both texts have, or none needs, would part lines that belong together.
    let is_mark = |line: &str| line.starts_with('\\');
    let marks = all.iter().filter(|line| is_mark(line)).count();
    let before_last = all.iter().rev().nth(1);
    let is_common = before_last.is_some_and(|line| line.starts_with(' '));
    if marks == 2 || is_common {
        all.retain(|line| !is_mark(line));
    }
    let run = |from: usize, sign: char| {
        let lines = all[from..].iter();
        from..from + lines.take_while(|line| line.starts_with(sign)).count()
    };
    let bare = |run: Range<usize>| {
        let lines = all[run].iter();
        let lines = lines.map(|line| line.get(1..).unwrap_or_default());
        lines.collect::<Vec<_>>().join("\n")
    };
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(line) = all.get(at) {
        let removed = run(at, '-');
        let added = run(removed.end, '+');
        if !removed.is_empty() && !added.is_empty() {
            let end = added.end;
            if let Some(marked) = marked(&bare(removed), &bare(added), paint) {
                let sign = paint.tint(Tint::Changed, "~");
                out.extend(marked.lines().map(|line| format!("{sign} {line}")));
                at = end;
                continue;
            }
        }
        let line = escaped(line, false);
        out.push(match line.as_bytes().first() {
            Some(b'+') => paint.tint(Tint::Added, &line),
            Some(b'-') => paint.tint(Tint::Removed, &line),
            Some(b'@') => paint.tint(Tint::Place, &line),
            _ => line.into_owned(),
        });
        at += 1;
    }
    out
}

/// The newer text with what was removed and added in it; `None` if less than half is the same.
fn marked(older: &str, newer: &str, paint: Paint) -> Option<String> {
    let (old, new) = (words(older), words(newer));
    if old.len().max(new.len()) > WORDS {
        return None;
    }
    let edits = edits(&old, &new);
    let removed = edits.iter().flat_map(|edit| &old[edit.older.clone()]);
    let removed: usize = removed.map(|word| word.len()).sum();
    if (older.len() - removed) * 2 < older.len().max(newer.len()) {
        return None;
    }
    let plain = paint.tint(Tint::Added, "x") == "x";
    // A mark does not go past the end of a line.
    let add = |mark: Option<(Tint, [&str; 2])>, words: &[&str], out: &mut String| {
        for (index, line) in words.concat().split('\n').enumerate() {
            if index > 0 {
                out.push('\n');
            }
            let line = escaped(line, false);
            match mark {
                Some((_, [begin, end])) if plain && !line.is_empty() => {
                    out.extend([begin, &line, end]);
                }
                Some((tint, _)) => out.push_str(&paint.tint(tint, &line)),
                None => out.push_str(&line),
            }
        }
    };
    let (removed, added) = ((Tint::Removed, ["[-", "-]"]), (Tint::Added, ["{+", "+}"]));
    let (mut out, mut at) = (String::new(), 0);
    for edit in edits {
        add(None, &new[at..edit.newer.start], &mut out);
        add(Some(removed), &old[edit.older], &mut out);
        at = edit.newer.end;
        add(Some(added), &new[edit.newer], &mut out);
    }
    add(None, &new[at..], &mut out);
    Some(out)
}

/// When was a node added, changed and removed, by what, and why?
///
/// Prints one event a line, oldest first: by what the node came (the import, a reply, a mutation, a commit); the headers and
/// fields that changed and, if they are short, their values before and after; and why it went (expired, pruned, compacted into
/// which summary, removed, replaced, dropped by the client), as far as the session says. The working state comes last.
#[derive(Args, Debug)]
#[command(allow_missing_positional = true)]
pub(super) struct BlameArgs {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input [default: the newest, as of `show`].
    session: Option<String>,
    /// The id of the node.
    #[arg(allow_hyphen_values = true)]
    id: String,
}

impl RunCommand for BlameArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let id = &*self.id;
        if self.session.is_none() && is_file(id) {
            let ids = format!("pactql select {} \"@* *\" --format ids", quoted(id));
            return Err(Failure::usage("`blame` needs the id of a node").with_help(ids));
        }
        let name = super::read_sessions::one_or_newest(self.session.as_ref(), with.limits)?;
        let session = sessions::open(&name, with.limits)?;
        session.moment().fetch_all()?;
        let of = |id: &str| blame(&session.moment(), id);
        // As in a selector of the edition v0.1, an id may have a `#`.
        let plain = || id.strip_prefix('#').and_then(of);
        let life = of(id).or_else(plain);
        let life = life.ok_or_else(|| unknown(&name, id, &session))?;
        with.print(&life, || events(&life, with.paint()))
    }
}

fn unknown(name: &str, id: &str, session: &Session) -> Failure {
    let name = quoted(name);
    let found = Engine::new().rows(session, "@* *").ok();
    let ids = found.iter().flat_map(|found| found.nodes());
    let ids: Vec<&str> = ids.take(MOST_IDS).map(|node| node.id()).collect();
    let failure = if is_selector(id) {
        Failure::usage("`blame` takes the id of a node, not a selector")
    } else {
        let id = output::printable(id);
        Failure::value(format!("no snapshot has a node with the id `{id}`"))
    };
    let ending = format!(":{id}");
    let ends = ids.iter().find(|id| id.ends_with(&ending)).copied();
    let failure = failure.with_help(format!("pactql select {name} \"@* *\" --format ids"));
    failure.near(ends.or_else(|| nearest_at(LIKENESS, id, ids)))
}

const MOST_IDS: usize = 10_000;

/// How like an id a mistyped one is: short ids are alike by chance.
const LIKENESS: f64 = 0.6;

fn came(by: &CameBy) -> String {
    match by {
        CameBy::Import => "imported".to_owned(),
        CameBy::Reply => "by reply".to_owned(),
        CameBy::Append => "by append".to_owned(),
        CameBy::Add => "by add".to_owned(),
        CameBy::Replace { of } => format!("by replace, in the place of {}", printable(of)),
        CameBy::Move { of } => format!("by move, as the copy of {}", printable(of)),
        CameBy::Compact => "by compact, as the summary".to_owned(),
        CameBy::SetSystem => "by set_system".to_owned(),
        CameBy::SetTools => "by set_tools".to_owned(),
        CameBy::Commit => "by commit".to_owned(),
    }
}

fn went(why: &WentBy) -> String {
    match why {
        WentBy::Expired => "expired".to_owned(),
        WentBy::Pruned => "pruned".to_owned(),
        WentBy::Compacted { into: None } => "compacted".to_owned(),
        WentBy::Compacted { into: Some(id) } => format!("compacted into {}", printable(id)),
        WentBy::Removed => "removed".to_owned(),
        WentBy::Replaced { successor } => format!("replaced by {}", printable(successor)),
        WentBy::Moved { successor } => format!("moved, and is {} now", printable(successor)),
        WentBy::Emptied => "empty, and removable".to_owned(),
        WentBy::Dropped => "dropped by the client".to_owned(),
    }
}

fn events(life: &Life, paint: Paint) -> String {
    let mut out = String::new();
    let widths = life.events.iter().map(|event| event.snapshot.len());
    let width = widths.max().unwrap_or(0);
    let said = |word: &str, more: [Option<String>; 2]| {
        word.to_owned() + &more.map(Option::unwrap_or_default).concat()
    };
    for event in &life.events {
        let place = paint.tint(Tint::Place, &format!("{:width$}", event.snapshot));
        let (tint, words) = match &event.kind {
            BlameKind::Appeared { parent, by } => {
                let parent = parent.as_deref();
                let parent = parent.map(|id| format!(" under {}", printable(id)));
                let by = by.as_ref().map(|by| format!(", {}", came(by)));
                (Tint::Added, said("appeared", [parent, by]))
            }
            BlameKind::Went { why, with } => {
                let with = with.as_deref().map(|id| format!(" with {}", printable(id)));
                let why = why.as_ref().map(|why| format!(": {}", went(why)));
                (Tint::Removed, said("went", [with, why]))
            }
            BlameKind::Changed { fields, .. } => {
                let fields = output::fields(fields, None);
                (Tint::Changed, format!("changed {fields}"))
            }
        };
        let _ = writeln!(out, "{place}  {}", paint.tint(tint, &words));
        if let BlameKind::Changed { delta, .. } = &event.kind {
            output::values(delta, &mut out);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Paint, lines};

    #[test]
    fn similar_lines_become_one_and_others_stay() {
        for (older, newer, expected) in [
            (
                "-the quick brown fox",
                "+the quick red fox",
                "~ the quick [-brown-]{+red+} fox",
            ),
            ("-n = 1", "+n = 2", "~ n = [-1-]{+2+}"),
            ("-yes", "+certainly not", "-yes\n+certainly not"),
            (
                "-one two three\n-four five six",
                "+one two three four five six",
                "~ one two three\n~ {+ +}four five six",
            ),
        ] {
            let diff = format!("--- a\n+++ b\n@@\n{older}\n{newer}");
            let found = lines(&diff, Paint::default())[1..].join("\n");
            assert_eq!(found, expected);
        }
    }
}
