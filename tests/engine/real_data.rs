//! Selectors over recorded logs: every session that can be imported, compared with the reference
//! interpreter.
//!
//! The logs are not part of the repository. They are read from `PACTQL_DATA`, or from
//! `../shared/data`; without them the test prints a line and passes.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use pactql::logs::{ImportOptions, MessageLocation, Pointer, import};

use crate::support::engine::{self, Engine};
use crate::support::selector::{Edition, Sel, Time};
use crate::support::tree::Session as Reference;
use crate::support::{eval, parse, range};

/// Selectors for a recorded agent run: the list that `pactql bench` is measured with.
const SELECTORS: &str = include_str!("../../benches/selectors.txt");

/// One in seven of the 200 conversations is compared, which are much alike. The 50 tasks come four times in turn, and other
/// tasks are taken each time.
const EVERY: usize = 7;

pub(crate) fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let root = std::env::var_os("PACTQL_DATA").map_or(beside, PathBuf::from);
    if !root.is_dir() {
        println!("no real data at {}: nothing compared", root.display());
        return None;
    }
    Some(root)
}

pub(crate) fn unpacked(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}

/// The recorded logs, of whatever form; empty where they are not.
pub(crate) fn logs() -> Vec<PathBuf> {
    let mut found = data().map_or_else(Vec::new, |root| below(&root));
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    found.retain(|path| !name(path).starts_with("LICENSE") && !name(path).ends_with(".md"));
    found
}

/// The files below a directory, in order.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The bytes of a file, unpacked.
pub(crate) fn contents(path: &Path) -> Vec<u8> {
    if path.extension().is_some_and(|extension| extension == "gz") {
        unpacked(path)
    } else {
        std::fs::read(path).unwrap()
    }
}

/// The sessions at a pointer, each as the lines that `import` writes; empty if there are none.
fn sessions(bytes: &[u8], place: MessageLocation) -> Vec<Vec<String>> {
    let options = ImportOptions {
        location: place,
        ..ImportOptions::default()
    };
    let Ok(imported) = import(bytes, &options) else {
        return Vec::new();
    };
    let lines = imported.sessions.iter().map(|session| {
        let mut text = Vec::new();
        session.recording.write_jsonl(&mut text, false).unwrap();
        String::from_utf8(text)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    });
    lines.collect()
}

fn compare(name: &str, all: &[Vec<String>]) -> usize {
    let engine = Engine::new(Edition::V01);
    let mut rows = 0;
    for (number, lines) in all.iter().enumerate() {
        let session = engine::open(&lines.join("\n"));
        let reference = Reference::from_lines(lines);
        for text in SELECTORS.lines() {
            let sel = parse::parse(text, Edition::V01);
            let expected = match sel.time {
                Time::BackRange(..) => {
                    range::diff(&reference, Edition::V01, &sel, text).map(|diff| vec![diff])
                }
                _ => eval::ids(&reference, Edition::V01, &sel),
            };
            let expected = expected.map_err(str::to_owned);
            rows += expected.as_ref().map_or(0, Vec::len);
            assert_eq!(
                engine.ids(&session, text),
                expected,
                "{name}, session {number}: {text}"
            );
        }
        // The whole history at once.
        for text in ["@t0..@t-* *", "@t0..@t-* .cb[role='assistant']"] {
            let sel = parse::parse(text, Edition::V01);
            let expected = range::diff(&reference, Edition::V01, &sel, text);
            let expected = expected.map(|diff| vec![diff]).map_err(str::to_owned);
            assert_eq!(
                engine.ids(&session, text),
                expected,
                "{name}, session {number}: {text}"
            );
        }
        // The most common selectors on every snapshot, not only the newest.
        for text in [".cb", "^seq .mt:depth(1) .mc > .cb", "^seq .mt .cb:first"] {
            for tree in &reference.committed {
                let sel = Sel {
                    time: Time::Cycle(tree.cycle),
                    ..parse::parse(text, Edition::V01)
                };
                let text = format!("@c{} {text}", tree.cycle);
                let expected = eval::ids(&reference, Edition::V01, &sel).unwrap();
                assert_eq!(
                    engine.ids(&session, &text).as_ref(),
                    Ok(&expected),
                    "{name}, session {number}: {text}"
                );
            }
        }
    }
    if !all.is_empty() {
        println!("{name}: {} sessions, {rows} rows", all.len());
    }
    all.len()
}

#[test]
fn every_recorded_session_answers_as_walking_does() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let Some(root) = data() else { return };
    let bytes = unpacked(&root.join("tau-bench-airline/gpt-4o-airline.json.gz"));
    let place = MessageLocation::Messages(Pointer::parse("/*/traj").unwrap());
    let airline = sessions(&bytes, place);
    assert_eq!(airline.len(), 200);
    let some: Vec<_> = airline.into_iter().step_by(EVERY).collect();
    assert!(compare("tau-bench-airline", &some) > 25);

    let mut histories = 0;
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join("swe-agent-trajectories"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "gz"))
        .collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = unpacked(&path);
        let history = MessageLocation::Messages(Pointer::parse("/history").unwrap());
        histories += compare(&name, &sessions(&bytes, history));
        let steps = Pointer::parse("/trajectory/*/messages").unwrap();
        for place in [
            MessageLocation::Messages(steps.clone()),
            MessageLocation::Steps(steps),
        ] {
            compare(&name, &sessions(&bytes, place));
        }
    }
    assert_eq!(histories, 7, "every trajectory has a history");
}

/// The inputs of the model, step by step: one agent rewrote an older tool result in each step
/// from the sixth on, the other only appended.
#[test]
fn a_recorded_history_shows_what_was_rewritten() {
    let Some(root) = data() else { return };
    let engine = Engine::new(Edition::V01);
    for (name, rewritten) in [
        (
            "marshmallow-1867__function_calling_replace_from_source",
            ["18", "16", "14", "12", "10", "8", "6", "4"].as_slice(),
        ),
        ("swe-smith__pandas-53652", &[]),
    ] {
        let path = root.join(format!("swe-agent-trajectories/{name}.traj.gz"));
        let steps = Pointer::parse("/trajectory/*/messages").unwrap();
        let all = sessions(&unpacked(&path), MessageLocation::Steps(steps));
        assert_eq!(all.len(), 1, "{name}");
        let session = engine::open(&all[0].join("\n"));
        let diff = engine.0.range(&session, "@t0..@t-* .cb").unwrap();
        let changed: Vec<&str> = diff
            .diffs
            .iter()
            .flat_map(|block| &block.changed)
            .map(|change| {
                assert_eq!(change.fields, ["content_hash"]);
                change.id.as_str()
            })
            .collect();
        let expected: Vec<String> = rewritten.iter().map(|at| format!("cb:{at}-1")).collect();
        assert_eq!(changed, expected, "{name}");
        for block in &diff.diffs {
            assert_eq!((block.added_ids.len(), block.removed_ids.len()), (3, 0));
        }
    }
}

/// Every recorded session, through a store, Parquet files, and another store.
#[cfg(feature = "parquet")]
#[test]
fn copies_of_recorded_sessions_give_the_same_bytes() {
    if crate::support::random::left_to_ci() {
        return;
    }
    use pactql::{Session, Store, store::ParquetExport};

    let Some(root) = data() else { return };
    let folder = std::env::temp_dir().join(format!("pactql-real-copy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let open = |name: &str| Store::open(folder.join(name).to_str().unwrap()).unwrap();
    let bytes = |store: &Store, name: &str| {
        let history = store.session(name).unwrap().history();
        history.fetch_all().unwrap();
        let mut bytes = Vec::new();
        pactql::logs::write_session(history.committed(), None, true, &mut bytes).unwrap();
        bytes
    };
    let store = open("in.db");
    let steps = Pointer::parse("/trajectory/*/messages").unwrap();
    let trajectories = std::fs::read_dir(root.join("swe-agent-trajectories")).unwrap();
    let mut files: Vec<PathBuf> = trajectories.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "gz"));
    files.sort();
    let mut all: Vec<Vec<String>> = Vec::new();
    for path in files {
        let steps = MessageLocation::Steps(steps.clone());
        all.extend(sessions(&unpacked(&path), steps));
    }
    let airline = unpacked(&root.join("tau-bench-airline/gpt-4o-airline.json.gz"));
    let place = MessageLocation::Messages(Pointer::parse("/*/traj").unwrap());
    all.extend(sessions(&airline, place).into_iter().step_by(EVERY));
    assert!(all.len() > 25);
    for (number, lines) in all.iter().enumerate() {
        let session = Session::from_slice(lines.join("\n").as_bytes()).unwrap();
        store.import(&format!("s{number}"), &session, None).unwrap();
    }
    let copy = folder.join("copy");
    let what = ParquetExport::default().buckets(8);
    store.export_parquet(&copy, &what).unwrap();
    let again = open("out.db");
    let imported = again.import_parquet(&copy).unwrap();
    assert_eq!(imported.sessions, all.len() as u64);
    for number in 0..all.len() {
        let name = format!("s{number}");
        assert!(bytes(&store, &name) == bytes(&again, &name), "{name}");
    }
    drop((store, again));
    std::fs::remove_dir_all(folder).unwrap();
}
