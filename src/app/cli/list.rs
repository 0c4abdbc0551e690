//! `pactql sessions`: which sessions there are, and with `-v` what each contains.

use super::command::{Invocation, RunCommand, print, say};
use super::opened::Opened;
use super::options::rows;
use super::output::{clean, counted, snapshot_label};
use super::read_sessions::open_store;
use super::reports::Printed;
use super::session_args::SessionsArgs;
use super::sessions::{ending_of_session, ending_text};
use super::words::{self, quoted};
use crate::app::present::folders::{LogSource, newest_logs};
use crate::app::present::known::{KnownLogs, KnownSession};
use crate::app::present::stores::{
    Access, OfLog, StoreAddress, about_of, about_session, none_of, session_json, without_passwords,
};
use crate::app::present::{Exit, Failure, Result, sessions as opened};
use crate::history::Session;
use crate::index::{Segment, Snapshot};
use crate::inspect::time_of;
use crate::store::{ListedInfo, SessionInfo};
use crate::support::table::TextTable;
use crate::support::text::amount;
use crate::tree::NodeClass;
use crate::tree::seal::Ending;
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

const SHOWN_DEPTHS: usize = 12;

/// Which sessions are there, and what do they contain?
///
/// One line each: the name, the number of steps, the cycle of the newest one, whether there is a working
/// state; of a log its title, its project, the agent and the model; of a store also when the newest snapshot was
/// committed, the file it was imported from, and the session it was forked from. Those of a store are in byte order
/// of their names, and none is opened. `-v` counts the nodes of one snapshot by class, role, kind and depth, and says how large the session is.
#[derive(Args, Debug)]
#[command(mut_arg("sessions", |sessions| sessions.help("Sessions: files, directories, `STORE#name`, `STORE#glob`, \
    `STORE`, or `-` for standard input [default: the ten newest that agents keep on this machine, with what they used]")))]
#[command(args(rows([
    "name", "steps", "cycle", "when", "title", "project", "agent", "model", "source", "parent",
    "tokens", "cost", "session",
])))]
pub(super) struct ListArgs {
    #[command(flatten)]
    sessions: SessionsArgs,
    /// Open each session, and count what is in it.
    #[arg(short, long)]
    verbose: bool,
    /// With -v: the snapshot whose nodes to count, such as @t0 or @c12 [default: the working state, or else the
    /// newest].
    #[arg(long, value_name = "ADDRESS", requires = "verbose")]
    #[arg(allow_hyphen_values = true)]
    at: Option<String>,
    /// Exit with code 8 if there are none.
    #[arg(long)]
    fail_if_empty: bool,
}

impl RunCommand for ListArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        if self.verbose {
            let mut printed = Printed::new(with);
            self.sessions.each(with, &mut |opened| {
                let (json, text) = described(opened, self.at.as_deref())?;
                printed.add(opened, &[json], || text)
            })?;
            return printed.end("", true);
        }
        let words = &self.sessions.sessions;
        if words.is_empty() && !self.sessions.is_all() {
            let message = "`--since`, `--until` and `--meta` choose among sessions that are named";
            return Err(Failure::usage(message)
                .with_help("name a store, a folder or files: pactql sessions STORE"));
        }
        if words.is_empty() {
            return match newest_logs() {
                Err(_) if words::words().is_empty() => {
                    Err(Failure::usage("no agent keeps logs on this machine")
                        .with_help("name a session, a store or a folder: pactql PATH"))
                }
                files => recent(&files?, with),
            };
        }
        // Of a log also its branches and subagents, which have names here.
        let mut sessions = self.sessions.clone();
        sessions.whole = true;
        let mut listed = Vec::new();
        for word in words {
            match StoreAddress::parse(word) {
                Some(address) => self.of_store(address, with, &mut listed)?,
                None => {
                    let word = std::slice::from_ref(word);
                    sessions.each_of(word, None, with, &mut |opened| {
                        let history = opened.session.history();
                        let info = SessionInfo {
                            name: opened.name.clone(),
                            snapshots: history.committed().len(),
                            cycle: history.cycles().max(),
                            working: history.has_working(),
                            created_at_ns: 0,
                            committed_at_ns: None,
                            source: opened.log.clone(),
                            parent: None,
                        };
                        let of_log = OfLog {
                            when: history.latest().and_then(|newest| time_of(newest)),
                            used: Value::Null,
                        };
                        listed.push(session_json(&info, about_session(&history), of_log));
                        Ok(())
                    })?;
                }
            }
        }
        if listed.is_empty() {
            return Ok(Exit::of_empty(self.fail_if_empty));
        }
        print(&if with.is_json() {
            listed.iter().map(|one| format!("{one}\n")).collect()
        } else {
            table(&listed).text(with.paint())
        })
    }
}

impl ListArgs {
    fn of_store(
        &self,
        address: StoreAddress<'_>,
        with: &Invocation,
        listed: &mut Vec<Value>,
    ) -> Result<()> {
        if !address.is_several() {
            address.one()?;
        }
        let store = open_store(address.store, Access::Read)?;
        // The first rows of the table are the first by name, unless it is sorted.
        let is_sorted = with.order.by.is_some() || with.order.is_reversed;
        let most = with.order.most.filter(|_| !is_sorted);
        let most = most.map_or(usize::MAX, |most| most.max(1));
        let found = self.sessions.chosen(&store, address, most)?;
        if found.is_empty() {
            if store.count(address.glob())? == 0 {
                say(&format!("note: {}\n", none_of(address)));
            }
            return Ok(());
        }
        if let Some(index) = store.text_index()? {
            let state = match index.behind {
                0 => ", which is up to date".to_owned(),
                behind => {
                    let units = counted(behind, "unit");
                    format!("; {units} came later, and `pactql store index` adds them")
                }
            };
            say(&format!("note: the store has a text index{state}\n"));
        }
        for ListedInfo { mut info, meta } in found {
            if self.sessions.sessions.len() > 1 {
                let store = without_passwords(address.store);
                info.name = format!("{store}#{}", info.name);
            }
            let about = about_of(meta.as_deref());
            listed.push(session_json(&info, about, OfLog::default()));
        }
        Ok(())
    }
}

const RECENT: usize = 10;

/// The newest sessions of the agents of this machine, with what they used.
fn recent(files: &[LogSource], with: &Invocation) -> Result<Exit> {
    let most = with.order.most.unwrap_or(RECENT);
    let mut logs = KnownLogs::new(with.limits);
    let mut known = Vec::new();
    for some in files.chunks(RECENT) {
        if known.len() >= most {
            break;
        }
        known.extend(some.iter().zip(logs.of(some)));
    }
    logs.keep(files);
    let found = known.iter();
    let found = found.flat_map(|(file, all)| all.iter().map(|one| (&file.path, one)));
    let found = found.filter(|(_, one)| !one.belongs);
    let mut found: Vec<(&String, &KnownSession)> = found.collect();
    found.sort_by_key(|(path, one)| (Reverse(&one.when), *path));
    found.truncate(most);
    if with.is_json() {
        let lines = found.iter();
        let lines = lines.map(|(path, one)| format!("{}\n", one.json(path)));
        return print(&lines.collect::<String>());
    }
    let rows = found.iter().map(|(path, one)| {
        let when = one.when.iter().flat_map(|when| when.chars().take(16));
        json!({
            "when": when.collect::<String>().replace('T', " "),
            "project": one.project,
            "title": one.title.as_ref().map(|title| clean(title, 40)),
            "steps": one.steps,
            "tokens": one.tokens.map(amount),
            "cost": one.cost,
            "session": path,
        })
    });
    let table = TextTable::of(
        rows,
        "when(UTC)=when project title steps tokens cost session",
    );
    let table = table.words([1, 2, 6]).numbers([0]).hide_empty();
    let path = found.first();
    let path = path.map_or_else(String::new, |(path, _)| quoted(path));
    print(&format!(
        "{}\npactql steps {path}\npactql show {path} latest\npactql usage --by project\n",
        table.text(with.paint())
    ))
}

/// The sessions as a table. A column in which nothing is said is left out.
fn table(listed: &[Value]) -> TextTable {
    let shown = listed.iter().map(|one| {
        let mut row = one.clone();
        let time = one["committed"].as_str().unwrap_or_default();
        if let Some((seconds, _)) = time.split_once('.') {
            row["committed"] = format!("{seconds}Z").into();
        }
        if let Some(cycle) = one["cycle"].as_i64() {
            row["cycle"] = format!("@c{cycle}").into();
        }
        row
    });
    let titles =
        "name steps=snapshots cycle working when=committed title project agent model source parent";
    let table = TextTable::of(shown, titles).words(2..11);
    table.optional(&[9, 10, 3, 2, 7, 8, 4, 6]).hide_empty()
}

/// A session, and the nodes of one of its snapshots, in numbers: as JSON, and as text.
fn described(opened: &Opened, at: Option<&str>) -> Result<(Value, String)> {
    let session = &opened.session;
    let snapshot = opened::at(session, at)?;
    session.moment().fetch_all()?;
    let history = session.history();
    let snapshots = history.committed().iter().chain(history.working());
    let seen: u64 = snapshots.map(|snapshot| snapshot.len() as u64).sum();
    let (oldest, newest) = (history.cycles().min(), history.cycles().max());
    let (committed, working) = (history.committed().len(), history.working().is_some());
    let index = Sizes::measure(std::slice::from_ref(session));
    let end = ending_of_session(&opened.name)?;
    let and_working = if working { " and a working state" } else { "" };
    let mut text = format!("snapshots    {committed}{and_working}\n");
    if let (Some(oldest), Some(newest)) = (oldest, newest) {
        let _ = writeln!(text, "cycles       {oldest} to {newest}");
    }
    let share = if index.nodes == 0 {
        1.0
    } else {
        seen as f64 / index.nodes as f64
    };
    let _ = write!(
        text,
        "sharing      {} nodes in all snapshots, {} stored ({share:.1} to 1), {}\n\
         index        {} bytes ({:.1} a node); payloads {} bytes\n",
        amount(seen),
        amount(index.nodes),
        counted(index.segments as u64, "segment"),
        amount(index.index_bytes as u64),
        index.index_bytes_per_node,
        amount(index.payload_bytes as u64)
    );
    if let Some(end) = end {
        let _ = write!(text, "end          {}", ending_text(end));
    }
    let label = snapshot_label(&snapshot);
    let size = counted(snapshot.len() as u64, "node");
    let _ = writeln!(text, "\n{label} has {size}");
    let nodes = nodes_of(&snapshot, &mut text);
    let json = json!({
        "snapshot": label,
        "nodes": nodes,
        "session": {
            "snapshots": committed,
            "working": working,
            "oldest_cycle": oldest,
            "newest_cycle": newest,
            "nodes_in_snapshots": seen,
            "index": index,
        },
        "end": end.map(Ending::as_str),
    });
    Ok((json, text))
}

fn nodes_of(snapshot: &Snapshot, text: &mut String) -> Value {
    let mut named: [BTreeMap<&str, u64>; 3] = Default::default();
    let mut depths: BTreeMap<Option<i64>, u64> = BTreeMap::new();
    for node in snapshot.nodes() {
        let names = [Some(class_name(node.class())), node.role(), node.kind()];
        for (counts, name) in named.iter_mut().zip(names) {
            if let Some(name) = name {
                *counts.entry(name).or_default() += 1;
            }
        }
        *depths.entry(node.depth()).or_default() += 1;
    }
    for (title, counts) in ["class", "role", "kind"].iter().zip(&named) {
        let count =
            |(name, count): (&&str, &u64)| format!("{} {}", clean(name, 40), amount(*count));
        let counts: Vec<String> = counts.iter().map(count).collect();
        if !counts.is_empty() {
            let _ = writeln!(text, "  by {title:<6} {}", counts.join(", "));
        }
    }
    let shown = depths.iter().take(SHOWN_DEPTHS).map(|(depth, nodes)| {
        let depth = depth.map_or("none".to_owned(), |depth| depth.to_string());
        format!("{depth}: {nodes}")
    });
    let mut shown: Vec<String> = shown.collect();
    if let more @ 1.. = depths.len() - shown.len() {
        shown.push(format!("{more} more depths"));
    }
    let _ = writeln!(text, "  by depth  {}", shown.join(", "));
    let [by_class, by_role, by_kind] = &named;
    let by_depth = depths.iter();
    let by_depth = by_depth.map(|(depth, nodes)| json!({"depth": depth, "nodes": nodes}));
    json!({
        "total": snapshot.len(),
        "by_class": by_class,
        "by_role": by_role,
        "by_kind": by_kind,
        "by_depth": by_depth.collect::<Vec<_>>(),
    })
}

fn class_name(class: NodeClass) -> &'static str {
    match class {
        NodeClass::Root => "root",
        NodeClass::Sys => "sys",
        NodeClass::Seq => "seq",
        NodeClass::Head => "ah",
        NodeClass::Turn => "turn",
        NodeClass::Container => "container",
        NodeClass::Block => "block",
    }
}

/// The sizes of the indexes of some sessions. A node that snapshots share counts once.
#[derive(Serialize)]
pub(super) struct Sizes {
    pub(super) nodes: u64,
    segments: usize,
    index_bytes: usize,
    pub(super) index_bytes_per_node: f64,
    payload_bytes: usize,
}

impl Sizes {
    pub(super) fn measure(sessions: &[Arc<Session>]) -> Self {
        let mut segments: Vec<Arc<Segment>> = Vec::new();
        for session in sessions {
            let history = session.history();
            for snapshot in history.committed().iter().chain(history.working()) {
                let pieces = snapshot.pieces().iter();
                segments.extend(pieces.map(|piece| Arc::clone(piece.segment())));
            }
        }
        segments.sort_unstable_by_key(Arc::as_ptr);
        segments.dedup_by_key(|segment| Arc::as_ptr(segment));
        let nodes = segments.iter().map(|segment| u64::from(segment.nodes()));
        let nodes: u64 = nodes.sum();
        let index_bytes = segments.iter().map(|segment| segment.index_bytes()).sum();
        Self {
            nodes,
            segments: segments.len(),
            index_bytes,
            index_bytes_per_node: match nodes {
                0 => 0.0,
                nodes => index_bytes as f64 / nodes as f64,
            },
            payload_bytes: segments.iter().map(|segment| segment.payload_bytes()).sum(),
        }
    }
}
