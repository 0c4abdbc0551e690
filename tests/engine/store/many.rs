//! Sessions that are asked together answer as each does alone (STORE §4).

use std::collections::BTreeMap;

use pactql::{Answer, Code, Message, Store};
use rusqlite::Connection;

use super::place::Folder;
use crate::support::documents::Sample;
use crate::support::engine::open;
use crate::support::random::{few, share};

/// Selectors that read the newest commit, parts of it, a working state where there is one, and history.
const SELECTORS: [&str; 14] = [
    "@t0 .cb",
    "@t0 .cb[role='user']",
    "@t0 ^seq .mt:depth(1) .cb",
    "@t0 ^seq .mt:depth(2,3)",
    "@t0 ^sys .cb",
    "@t0 ^ah .cb",
    "@t0 ^sys .cb, ^seq .mt:depth(1)",
    "^seq .cb:last",
    "^ah > *",
    "@t0 [key='k1']",
    "@t-1 .cb",
    "@t-2..@t0 .cb",
    "@* .mt",
    "@t0 ^root > *",
];

/// Selectors of one step that a store can answer by its indexes, and others that look like them.
const ONE_STEP: [&str; 17] = [
    "@t0 .cb[data_s='abc']",
    "[data_s='abc']",
    "@t0 [data_s='é']",
    "@t0 .mt[data_s='abc']",
    "@t0 .mc[data_s='ABC']",
    "@t0 .cb[data_l='abc']",
    "@t0 [data_s='abc'][data_l='abc']",
    "@t0 .cb[data_s='abc'][role='user']",
    "@t0 .cb[data_s='abc'][role!='user']",
    "@t0 .cb[data_s='abc']:first",
    "@t0 ^ah > [data_s='abc']",
    "@t0 [key='k1']",
    "[key='k1'][role='user']",
    "@t0 [key='k1'][role=null]",
    "@t0 [status='abc'], [key='k2']",
    "@t0 [key='k1'] @limit=2",
    "@t0 ^seq [key='k1']",
];

/// The ids of the answers of a store by name: those of the rows, and the ids alone.
fn both_ids(store: &Store, glob: &str, selector: &str) -> [Vec<(String, Vec<String>)>; 2] {
    let asked = store.select(selector).unwrap().sessions(glob);
    let rows = asked.answers().unwrap().map(|found| {
        let found = found.unwrap();
        let Answer::Rows(rows) = &found.answer else {
            panic!("{selector}");
        };
        let ids = rows.ids().map(str::to_owned).collect();
        (found.session, ids)
    });
    let ids = asked.ids().unwrap().map(|found| {
        let found = found.unwrap();
        assert_eq!(found.ids().len(), found.ids().count());
        let ids = found.ids().map(str::to_owned).collect();
        (found.session().to_owned(), ids)
    });
    [rows.collect(), ids.collect()]
}

/// The same, of each session by itself, which reads its whole snapshot.
fn each_ids(store: &Store, selector: &str) -> Vec<(String, Vec<String>)> {
    let sessions = store.sessions("").unwrap().into_iter();
    let found = sessions.filter_map(|info| {
        let session = store.session(&info.name).unwrap();
        session.history().fetch_all().unwrap();
        let ids = match store.engine().rows(&session, selector) {
            Err(error) if error.code() == Code::SnapshotNotFound => return None,
            rows => rows.unwrap().ids().map(str::to_owned).collect::<Vec<_>>(),
        };
        (!ids.is_empty()).then_some((info.name, ids))
    });
    found.collect()
}

/// The answers of a store by name, as text.
fn together(store: &Store, selector: &str) -> Vec<(String, String)> {
    let answers = store.select(selector).unwrap().answers().unwrap();
    let possible = answers.candidates();
    let found: Vec<_> = answers
        .map(|found| found.map(|found| (found.session, answered(&found.answer))))
        .collect::<Result<_, _>>()
        .unwrap();
    assert!(found.len() <= possible, "{selector}");
    found
}

/// The same of each session alone, in a store of its own.
fn alone(path: &str, selector: &str) -> Vec<(String, String)> {
    let names = Store::open(path).unwrap().sessions("").unwrap();
    let found = names.into_iter().filter_map(|info| {
        let store = Store::open(path).unwrap();
        let session = store.session(&info.name).unwrap();
        let answer = match store.engine().select(&session, selector) {
            Err(error) if error.code() == Code::SnapshotNotFound => return None,
            answer => answer.unwrap(),
        };
        let is_empty = match &answer {
            Answer::Rows(rows) => rows.count() == 0,
            Answer::Range(diff) => diff.diffs.iter().all(|pair| pair.is_empty()),
        };
        (!is_empty).then(|| (info.name, answered(&answer)))
    });
    found.collect()
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Rows(rows) => format!("{:?}", rows.nodes().collect::<Vec<_>>()),
        Answer::Range(diff) => serde_json::to_string(diff).unwrap(),
    }
}

#[test]
fn sessions_that_are_read_together_answer_as_alone() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    // More than are read together.
    for seed in 0..share(200).clamp(34, 50).into() {
        let session = open(&Sample::new(seed).text());
        store.import(&format!("s{seed}"), &session, None).unwrap();
    }
    store.fork("s7", "@t0", "fork/of s7").unwrap();
    // One without a commit, one with nothing but a working state, one with both.
    drop(store.write("empty").unwrap());
    for (name, commits) in [("unfinished", 0), ("written", 2)] {
        let mut context = store.write(name).unwrap();
        for text in ["one", "two"].iter().take(commits) {
            context.append(Message::user(text)).unwrap();
            context.reply(Message::assistant("yes")).unwrap();
            context.commit().unwrap();
        }
        context.append(Message::user("a draft")).unwrap();
        context.save().unwrap();
    }
    drop(store);

    let wanted: BTreeMap<&str, _> = SELECTORS
        .iter()
        .chain(&ONE_STEP)
        .map(|selector| (*selector, alone(&path, selector)))
        .collect();
    assert!(wanted.values().filter(|found| !found.is_empty()).count() > 10);
    let large = Store::open(&path).unwrap();
    let step = if few() { 4 } else { 1 };
    for (selector, wanted) in wanted.iter().step_by(step) {
        // From cold, with other parts in memory, and from memory.
        let cold = Store::builder().memory(0).open(&path).unwrap();
        for store in [&cold, &large, &large] {
            assert_eq!(&together(store, selector), wanted, "{selector}");
        }
        // What was read for ids alone is not given away as nodes.
        let after_ids = Store::open(&path).unwrap();
        if let Ok(ids) = after_ids.select(selector).unwrap().ids() {
            assert_eq!(ids.count(), wanted.len(), "{selector}");
        }
        assert_eq!(&together(&after_ids, selector), wanted, "{selector}");
    }

    // What another program writes is seen by the next selector.
    let other = Store::open(&path).unwrap();
    let mut context = other.write("written").unwrap();
    context.append(Message::user("news")).unwrap();
    context.commit().unwrap();
    drop(context);
    other.rename("s4", "renamed").unwrap();
    other.delete("s5").unwrap();
    for selector in SELECTORS.into_iter().step_by(step) {
        let found = together(&large, selector);
        assert_eq!(found, alone(&path, selector), "{selector}");
    }
    assert_ne!(together(&large, "@t0 .cb"), wanted["@t0 .cb"]);
}

/// A statement has the texts of a selector as literals.
#[test]
fn texts_of_any_signs_are_found() {
    const ODD: [&str; 12] = [
        "it's",
        "\\",
        "\\'",
        "?1",
        "$1",
        "%",
        "_a_",
        "--",
        "';",
        "E'a\\",
        "a\nb",
        "\u{1f600}é",
    ];
    let folder = Folder::quick();
    let store = Store::open(folder.file("x.db")).unwrap();
    for (at, odd) in ODD.iter().chain(&["a\0b"]).enumerate() {
        let [id, key, value] = ["i", "k", "v"].map(|head| format!("{head}{odd}"));
        // No store keeps this sign in an id.
        let id = id.replace('\0', "");
        let nodes = [
            serde_json::json!({"id": id, "key": key}),
            serde_json::json!({"id": format!("{at}"), "data_s": value}),
        ];
        let root = serde_json::json!({"cycle": 1, "root": {"children": nodes}});
        store
            .import(&format!("s{at}"), &open(&root.to_string()), None)
            .unwrap();
    }
    for (at, odd) in ODD.iter().enumerate() {
        let quoted = odd.replace('\\', r"\\").replace('\'', r"\'");
        let session = format!("s{at}");
        let expected = |id: String| vec![(session.clone(), vec![id])];
        for (selector, id) in [
            (format!("@t0 [id='i{quoted}']"), format!("i{odd}")),
            (format!("@t0 [key='k{quoted}']"), format!("i{odd}")),
            (format!("@t0 [data_s='v{quoted}']"), at.to_string()),
        ] {
            let [rows, ids] = both_ids(&store, "", &selector);
            assert_eq!(rows, expected(id.clone()), "{selector}");
            assert_eq!(ids, expected(id), "{selector}");
        }
    }
    // No statement has this one.
    for (selector, id) in [("@t0 [key='ka\0b']", "iab"), ("@t0 [data_s='va\0b']", "12")] {
        let expected = vec![("s12".to_owned(), vec![id.to_owned()])];
        assert_eq!(both_ids(&store, "", selector), [expected.clone(), expected]);
    }
}

#[test]
fn ids_are_those_of_the_rows() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    for seed in 0..share(480).clamp(40, 120).into() {
        let session = open(&Sample::new(seed).text());
        let name = format!("{}/s{seed}", ["a", "b"][seed as usize % 2]);
        store.import(&name, &session, None).unwrap();
    }
    store.fork("a/s8", "@t0", "a/fork").unwrap();
    // No column holds these headers, and one of the attributes.
    let odd = concat!(
        r#"{"cycle":1,"root":{"children":[{"id":"o1","role":"a\u0000b","key":"k1"},"#,
        r#"{"id":"o2","role":"user","key":"k\u00001","data_s":"abc"},"#,
        r#"{"id":"o3","key":"k1","data_s":"abc","data_l":["abc"]},"#,
        r#"{"id":"o4","data_s":["abc","abc"]},{"id":"o5","data_s":"a\u0000b"}]}}"#
    );
    store.import("a/odd", &open(odd), None).unwrap();
    // A working state with a node that the newest commit does not have, and without one that it has.
    let mut context = store.write("a/s8").unwrap();
    context.add("^ah", "cb:text {data_s='abc'} 'new'").unwrap();
    context.save().unwrap();
    drop(context);
    drop(store);

    let id = format!("@t0 [id='{}']", "o2");
    let selectors = SELECTORS
        .iter()
        .chain(&ONE_STEP)
        .filter(|selector| !selector.contains(".."));
    let (large, apart) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
    let mut several = 0;
    let step = if few() { 4 } else { 1 };
    for selector in selectors.copied().chain([&*id]).step_by(step) {
        assert_eq!(
            both_ids(&Store::open(&path).unwrap(), "", selector)[0],
            each_ids(&apart, selector),
            "{selector}"
        );
        for glob in ["", "a/*", "nobody"] {
            let cold = Store::builder().memory(0).open(&path).unwrap();
            for store in [&cold, &large, &large] {
                let [rows, ids] = both_ids(store, glob, selector);
                assert_eq!(rows, ids, "{selector} {glob}");
                several += usize::from(ids.len() > 1 && ids.len() < 100);
            }
        }
    }
    assert!(several > 50 / step, "{several}");
    let range = large.select("@t-2..@t0 .cb").unwrap().ids().unwrap_err();
    assert_eq!(range.code(), Code::SelectorInvalid);
    // Sessions change while they are listed in memory.
    drop(large.select("@t0 .cb").unwrap().ids().unwrap().next());
    large.delete("a/s0").unwrap();
    let [rows, ids] = both_ids(&large, "", "@t0 .cb");
    assert_eq!(rows, ids);
    assert!(!ids.iter().any(|(name, _)| name == "a/s0"));
}

#[test]
fn a_long_list_comes_in_order_and_may_be_left() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let line = |at: usize| {
        let text = r#"{"cycle":1,"root":{"children":[{"id":"ID","nodeType":"cb"}]}}"#;
        let session = open(&text.replace("ID", &format!("n{at}")));
        (format!("s{at:04}"), session, None)
    };
    store.import_all((0..1_200).map(line)).unwrap();
    drop(store);
    let wanted: Vec<String> = (0..1_200).map(|at| format!("s{at:04}")).collect();
    let large = Store::open(&path).unwrap();
    let small = Store::builder().memory(1 << 20).open(&path).unwrap();
    let names = |store: &Store| -> [Vec<String>; 2] {
        let answers = store.select("@t0 .cb").unwrap().answers().unwrap();
        let ids = store.select("@t0 .cb").unwrap().ids().unwrap();
        [
            answers.map(|found| found.unwrap().session).collect(),
            ids.map(|found| found.unwrap().session().to_owned())
                .collect(),
        ]
    };
    for store in [&large, &large, &small, &small] {
        assert_eq!(names(store), [wanted.clone(), wanted.clone()]);
    }
    // A reader that is slower than what it reads: after the first chunks one thread asks the rest.
    let slow = |name: String| {
        if name.ends_with("00") {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        name
    };
    for store in [&large, &small] {
        let answers = store.select("@t0 .cb").unwrap().answers().unwrap();
        let answers = answers.map(|found| slow(found.unwrap().session));
        assert_eq!(answers.collect::<Vec<_>>(), wanted);
        let ids = store.select("@t0 .cb").unwrap().ids().unwrap();
        let ids = ids.map(|found| slow(found.unwrap().session().to_owned()));
        assert_eq!(ids.collect::<Vec<_>>(), wanted);
    }
    // On a thread that others may be waiting for.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let found = pool.unwrap().install(|| names(&large));
    assert_eq!(found[0], wanted);
    for count in [1, 300, 700] {
        let mut answers = Store::open(&path).unwrap();
        assert_eq!(
            answers
                .select("@t0 .cb")
                .unwrap()
                .into_iter()
                .take(count)
                .count(),
            count
        );
        answers = Store::open(&path).unwrap();
        let ids = answers.select("@t0 .cb").unwrap().ids().unwrap();
        assert_eq!(ids.take(count).count(), count);
    }
    // What another program writes is in the list of the next selector.
    let other = Store::open(&path).unwrap();
    other.delete("s0007").unwrap();
    let [answers, ids] = names(&large);
    assert_eq!((answers.len(), ids.len()), (1_199, 1_199));
    assert!(!ids.contains(&"s0007".to_owned()));
}

#[test]
fn a_damaged_session_is_an_error_of_its_own() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    for name in ["a", "b", "c", "d"] {
        let mut context = store.write(name).unwrap();
        let text = format!("the text of {name}");
        context.append(Message::user(&text)).unwrap();
        context.commit().unwrap();
    }
    drop(store);
    let database = Connection::open(&path).unwrap();
    let damage = "delete from node where unit_id in (select unit_id from placement p \
         join session s on s.session_id = p.session_id where s.name = 'c' and p.rank = 1)";
    assert!(database.execute(damage, []).unwrap() > 0);
    drop(database);

    let store = Store::open(&path).unwrap();
    let found: Vec<_> = store.select("@t0 .cb").unwrap().into_iter().collect();
    let names = found.iter().map(|found| match found {
        Ok(found) => found.session.clone(),
        Err(error) => error.code().to_string(),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "E_STORE", "d"]);
    // A statement reads the rows that are there, and no sums.
    let found: Vec<_> = store.select("@t0 .cb").unwrap().ids().unwrap().collect();
    let names = found.iter().map(|found| match found {
        Ok(found) => found.session().to_owned(),
        Err(error) => error.code().to_string(),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "d"]);
}

/// Of rows and of diffs: what no session has, or else why the first has nothing.
#[test]
fn an_answer_of_no_session_has_reasons() {
    let folder = Folder::quick();
    let store = Store::open(folder.0.join("a.db")).unwrap();
    let session = pactql::Session::open("fixtures/support-agent.jsonl").unwrap();
    for name in ["a", "b"] {
        store.import(name, &session, None).unwrap();
    }
    let why = |selector: &str| store.select(selector).unwrap().why_empty().unwrap();
    let unknown = ["no node has `rol`; did you mean `role`?"];
    assert_eq!(why("@t0 .cb[rol='user']"), unknown);
    assert_eq!(why("@t-1..@t0 .cb[rol='user']"), unknown);
    let unchanged =
        "in a, 3 nodes match, and none of 2 snapshots changes any; `@mode=union` lists them";
    assert_eq!(why("@t0..@t-1 ^sys .cb"), [unchanged]);
    for found in ["@t0 .cb", "@t-1..@t0 .cb"] {
        assert_eq!(why(found), <[&str; 0]>::default(), "{found}");
    }
}
