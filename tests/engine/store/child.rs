//! Another process that writes a store and says what was acknowledged: this test binary, run again with
//! one test that does nothing otherwise.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use pactql::{
    Code, Context, Message, NewNode, Store,
    store::{Durability, Retention},
};
use sha2::{Digest, Sha256};

use super::place::documents;
use crate::runtime::properties::document;

const MODE: &str = "PACTQL_STORE_CHILD";
const PATH: &str = "PACTQL_STORE_PATH";

/// A commit that was acknowledged: the session, the cycle, the hash of the document.
pub(super) type Acknowledged = (String, i64, String);

/// How long the leases of these processes last.
pub(super) const LEASE: Duration = Duration::from_millis(150);

/// Says a line to the process that started this one, at once.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever reads may be gone.
    let _ = writeln!(out, "\n{line}");
    let _ = out.flush();
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Opens a session once the lease of a dead process has run out.
fn wait_for(store: &Store, name: &str) -> Context {
    let started = Instant::now();
    loop {
        match store.write(name) {
            Ok(context) => return context,
            Err(error) if error.code() == Code::SessionBusy && started.elapsed() < LEASE * 20 => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Adds a turn and commits it.
fn turn(context: &mut Context) -> Result<(), pactql::Error> {
    let cycle = context.cycle();
    context.append(Message::user(&format!("question {cycle}")))?;
    let ttl = format!(r#"{{"offset":-1,"ttl":2,"content":{{"n":{cycle}}},"tags":["t"]}}"#);
    context.add("^ah", NewNode::json(&ttl)?)?;
    context.reply(Message::assistant(&format!("answer {cycle}")))?;
    context.commit().map(|_| ())
}

/// The last commit, as a line.
fn acknowledged(name: &str, context: &mut Context) -> String {
    let history = context.history();
    let last = history.committed().last().unwrap();
    format!("ok {name} {} {}", last.cycle(), hash(&document(last)))
}

/// Commits until it is killed.
fn forever(store: &Store, name: &str) -> ! {
    let mut context = wait_for(store, name);
    loop {
        turn(&mut context).unwrap();
        say(&acknowledged(name, &mut context));
        if context.cycle() % 5 == 0 {
            context.append(Message::user("unfinished")).unwrap();
            context.save().unwrap();
            context.discard();
        }
    }
}

/// Some of everything that writes, each with its result.
fn script(path: &str) {
    let result = |what: &str, result: Result<(), pactql::Error>| match result {
        Ok(()) => say(&format!("done {what}")),
        Err(error) => say(&format!("error {what} {}: {error}", error.code())),
    };
    let store = Store::builder().lease(LEASE).open(path);
    let store = match store {
        Ok(store) => store,
        Err(error) => return result("open", Err(error)),
    };
    for part in 0..2 {
        let mut context = match store.write("a") {
            Ok(context) => context,
            Err(error) => return result("write", Err(error)),
        };
        for number in 0..4 {
            let cycle = context.cycle();
            let turned = turn(&mut context);
            match turned {
                Ok(()) => say(&acknowledged("a", &mut context)),
                Err(_) => {
                    // What was to be committed is there, and can be committed again.
                    let texts = context.select("^ah .cb").unwrap().count();
                    assert!(context.is_changed() && context.cycle() == cycle && texts >= 3);
                    result("commit", turned);
                    match context.commit() {
                        Ok(_) => say(&acknowledged("a", &mut context)),
                        Err(error) => result("second commit", Err(error)),
                    }
                }
            }
            if number == 2 {
                context.append(Message::user("unfinished")).unwrap();
                result("save", context.save());
            }
        }
        drop(context);
        if part == 0 {
            say("doing prune");
            let keep = Retention::default().keep(2);
            result("prune", store.prune(&keep).map(|_| ()));
            result("fork", store.fork("a", "@t0", "b"));
            result("delete", store.delete("b"));
        }
    }
    // Nothing is open: closing copies the log into the file.
    drop(store);
    say("end");
}

/// What the other process does; as a test it does nothing.
#[test]
fn child() {
    let (Ok(mode), Ok(path)) = (std::env::var(MODE), std::env::var(PATH)) else {
        return;
    };
    match mode.as_str() {
        "one" => {
            let store = Store::builder().lease(LEASE).open(&path).unwrap();
            forever(&store, "a");
        }
        "batched" => {
            let store = Store::builder()
                .lease(LEASE)
                .durability(Durability::Batched)
                .open(&path)
                .unwrap();
            let store = &store;
            std::thread::scope(|scope| {
                for number in 0..8 {
                    scope.spawn(move || forever(store, &format!("s{number}")));
                }
            });
        }
        "script" => script(&path),
        "hold" => {
            let store = Store::builder().owner("the child").open(&path).unwrap();
            let _context = store.write("a").unwrap();
            say("held");
            std::thread::sleep(Duration::from_secs(60));
        }
        #[cfg(all(unix, feature = "postgres"))]
        "ask" => {
            let store = Store::connect(&path).unwrap();
            let _ = store
                .select("@t0 .cb")
                .map(|found| found.into_iter().count());
        }
        other => panic!("{other}"),
    }
}

/// A process that writes the store at a path.
pub(super) struct Writer {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Writer {
    pub(super) fn start(mode: &str, path: &str, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "store::child::child",
                "--exact",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(MODE, mode)
            .env(PATH, path)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next whole line that is not one of the test runner.
    pub(super) fn line(&mut self) -> Option<String> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
                return None;
            }
            let first = line.split(' ').next().unwrap_or("").trim();
            if ["ok", "done", "doing", "error", "end", "held"].contains(&first) {
                return Some(line.trim().to_owned());
            }
        }
    }

    /// `kill -9`.
    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end. Returns whether it was a good one.
    pub(super) fn wait(&mut self) -> bool {
        self.child.wait().unwrap().success()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of a commit.
pub(super) fn parse(line: &str) -> Option<Acknowledged> {
    let mut words = line.strip_prefix("ok ")?.split(' ');
    let (name, cycle, hash) = (words.next()?, words.next()?, words.next()?);
    Some((name.to_owned(), cycle.parse().ok()?, hash.to_owned()))
}

/// The newest commit of every session.
pub(super) fn newest(store: &Store) -> Vec<Acknowledged> {
    let mut found = Vec::new();
    for info in store.sessions("").unwrap() {
        let session = store.session(&info.name).unwrap();
        if let Some(last) = session.history().committed().last() {
            found.push((info.name, last.cycle(), hash(&document(last))));
        }
    }
    found
}

/// Every acknowledged commit is in a store, as it was, and nothing else but at most `more` later ones of
/// a session. `pruned` allows the oldest to be missing.
pub(super) fn check(
    store: &Store,
    acknowledged: &[Acknowledged],
    more: i64,
    pruned: bool,
) -> Result<(), String> {
    super::place::sound(store)?;
    let mut names: Vec<&String> = acknowledged.iter().map(|(name, ..)| name).collect();
    names.sort();
    names.dedup();
    for name in names {
        let session = store.session(name).map_err(|error| error.to_string())?;
        let (committed, _) = documents(&session)?;
        let history = session.history();
        let cycles: Vec<i64> = history.cycles().collect();
        let first = *cycles.first().ok_or("no commit is left")?;
        let own = acknowledged.iter().filter(|(of, ..)| of == name);
        let newest = own.clone().map(|(_, cycle, _)| *cycle).max().unwrap_or(0);
        let last = *cycles.last().ok_or("no commit is left")?;
        if last < newest || last > newest + more || !pruned && first != 1 {
            return Err(format!(
                "{name}: {first} to {last}, {newest} was acknowledged"
            ));
        }
        for (_, cycle, wanted) in own {
            let at = usize::try_from(cycle - first);
            match at.ok().and_then(|at| committed.get(at)) {
                Some(document) if hash(document) == *wanted => {}
                None if pruned && *cycle < first => {}
                other => return Err(format!("{name}: cycle {cycle} is {other:?}")),
            }
        }
    }
    Ok(())
}
