//! The text index finds every session that has a match, whatever was written, removed or erased since
//! (INSPECT §4).

use std::fmt::Write as _;

use pactql::inspect::{GrepReport, Part, Report, ReportOptions, Search};
use pactql::{Answer, Code, Message, NewNode, Prepared, Store, store::Retention};

use super::place::{Folder, sound};
use crate::support::documents::Sample;
use crate::support::engine::open;
use crate::support::random::{self, Rng};

const WORDS: [&str; 21] = [
    "a\u{FFFE}\u{FFFF}b",
    "refund",
    "Refund",
    "REFUND",
    "error",
    "Straße",
    "STRAẞE",
    "Kelvin",
    "\u{212A}elvin",
    "größe",
    "naïve",
    "日本語テキスト",
    "it's",
    "a\"b\\c",
    "x",
    "ab",
    "42",
    "rm -rf",
    "line\nbreak",
    "🦜🦩🦤",
    "İstanbul",
];

/// Patterns beside those that are cut out of the texts.
const PATTERNS: [&str; 24] = [
    "refund",
    "(?i)refund",
    "kelvin",
    "straße",
    r"\w+ error",
    "error|größe",
    "error|x",
    r"\d{2} ",
    "gr[öo]ße",
    "(error ?){2}",
    ".*",
    "",
    "nowhere at all",
    r#"a"b\\c"#,
    "it's",
    "日本語",
    "get_order .*refund",
    "get_order|lookup",
    r#"\{"q":"#,
    "🦜🦩",
    "^Refund",
    "x$",
    "abc",
    "(?i)ABC",
];

fn text(rng: &mut Rng) -> String {
    let mut text = String::new();
    for _ in 0..=rng.below(5) {
        let _ = write!(text, "{} ", WORDS[rng.below(WORDS.len())]);
    }
    text.trim_end().to_owned()
}

/// A node of any kind that is sent otherwise than as its text.
fn node(rng: &mut Rng) -> NewNode {
    let text = serde_json::to_string(&text(rng)).unwrap();
    let json = match rng.below(6) {
        0 => format!(
            r#"{{"kind":"call","content":{{ "q" : {text} }},"data_call_name":"get_order","data_call_id":"c"}}"#
        ),
        1 => r#"{"kind":"call","content":"{}","data_call_name":"lookup","data_call_id":"c"}"#
            .to_owned(),
        2 => format!(r#"{{"kind":"call","data_call_name":{text},"data_call_id":"c"}}"#),
        3 => format!(
            r#"{{"kind":"document","content":{{"media_type":"text/plain","text":{text}}}}}"#
        ),
        4 => {
            format!(r#"{{"kind":"text","content":[1, {{"deep": {text}}}, "\u00e9\u0000\u00c9"]}}"#)
        }
        _ => format!(r#"{{"kind":"text","content":{text}}}"#),
    };
    NewNode::json(&json).unwrap()
}

/// Changes a store in some way.
fn change(store: &Store, rng: &mut Rng) {
    let names: Vec<String> = store
        .sessions("")
        .unwrap()
        .into_iter()
        .map(|info| info.name)
        .collect();
    let some = |rng: &mut Rng| names.get(rng.below(names.len().max(1))).cloned();
    let fresh = format!("s{}", rng.below(1_000_000));
    match (rng.below(12), some(rng)) {
        (0, Some(name)) => store.delete(&name).unwrap(),
        (1, Some(name)) => store.rename(&name, &fresh).unwrap(),
        (2, Some(name)) => {
            let forked = store.fork(&name, "@t0", &fresh);
            // A session may have no commit.
            let code = forked.err().map(|error| error.code());
            assert!(
                matches!(code, None | Some(Code::SnapshotNotFound)),
                "{code:?}"
            );
        }
        (3, _) => {
            store.prune(&Retention::default().keep(1)).unwrap();
        }
        (4, Some(name)) => {
            let session = store.session(&name).unwrap();
            let ids = store.engine().rows(&session, "@* .cb").unwrap();
            let id = ids.ids().next().map(str::to_owned);
            drop(ids);
            if let Some(id) = id {
                store.erase(&name, [&*id]).unwrap();
            }
        }
        (5, _) => drop(store.drop_text_index().unwrap()),
        (6 | 7, _) => drop(store.index_text().unwrap()),
        (8, _) => {
            let seed = rng.below(1_000) as u64;
            let sample = open(&Sample::new(seed).text());
            drop(store.import(&fresh, &sample, None));
        }
        (at, name) => {
            let name = name.filter(|_| at > 9).unwrap_or(fresh);
            // Not every document can be gone on with.
            let Ok(mut context) = store.write(&name) else {
                return;
            };
            for _ in 0..=rng.below(3) {
                match rng.below(4) {
                    0 => drop(context.add("^sys", node(rng)).unwrap()),
                    1 | 2 => drop(context.add("^ah", node(rng)).unwrap()),
                    _ => drop(context.append(Message::user(&text(rng))).unwrap()),
                }
                if rng.chance(80) {
                    drop(context.commit().unwrap())
                } else {
                    context.save().unwrap()
                }
            }
        }
    }
}

/// That the sessions with a match are among those that the index finds. Returns how many it left out.
fn agrees(store: &Store, rng: &mut Rng) -> usize {
    let cut = text(rng);
    let mut letters = cut.char_indices().map(|(at, _)| at);
    let from = letters.nth(rng.below(4)).unwrap_or(0);
    let cut = regex::escape(&cut[from..]);
    let mut left_out = 0;
    for pattern in PATTERNS.iter().copied().chain([&*cut]) {
        let search = Search::new(pattern, rng.chance(50)).unwrap();
        let glob = if rng.chance(20) { "s1*" } else { "" };
        let Some(found) = search.sessions(store, glob).unwrap() else {
            continue;
        };
        assert!(found.is_sorted(), "{found:?}");
        let options = ReportOptions::new(Part::all()).search(search.clone());
        for info in store.sessions(glob).unwrap() {
            let session = store.session(&info.name).unwrap();
            let lines = GrepReport::new(store.engine(), &session, &options)
                .unwrap()
                .lines;
            if !found.contains(&info.name) {
                assert_eq!(lines, 0, "{pattern:?} in {}", info.name);
                left_out += 1;
            }
        }
    }
    left_out
}

/// Selectors with a pattern for the content, beside tests that an index of nodes answers.
const SELECTORS: [&str; 6] = [
    "@t0 [content~$p]",
    "@t0 .cb[role='user'][content~$p]",
    "@t0 .cb[content~$p], .cb[kind='call']",
    "@t0 .cb[content~$p], .cb[content~$q]",
    "@t0 ^seq .mt[content~$p] .cb",
    "@t-1..@t0 .cb[content~$p]",
];

/// What a selector finds in each session that has something, as texts.
fn answers(store: &Store, asked: &Prepared, glob: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for info in store.sessions(glob).unwrap() {
        let session = store.session(&info.name).unwrap();
        // A session may not have the snapshot.
        let Ok(answer) = asked.select(&session) else {
            continue;
        };
        if answer.count() > 0 {
            all.push((info.name, shown(&answer)));
        }
    }
    all
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Rows(rows) => rows.ids().collect::<Vec<_>>().join(" "),
        Answer::Range(diff) => diff.rows().to_string(),
    }
}

/// That a selector with a pattern finds in the store what it finds in each session by itself. Returns how many sessions with
/// the index were left out.
fn selects_agree(store: &Store, rng: &mut Rng) -> usize {
    let mut left_out = 0;
    for selector in SELECTORS {
        let prepared = store.engine().prepare(selector).unwrap();
        let mut pattern = || PATTERNS[rng.below(PATTERNS.len())];
        let (first, second) = (pattern(), pattern());
        let mut values = vec![("p", first.into())];
        if selector.contains("$q") {
            values.push(("q", second.into()));
        }
        let asked = prepared.bind(values).unwrap();
        let glob = if rng.chance(20) { "s1*" } else { "" };
        let found = store.select_prepared(&asked).sessions(glob);
        let found = found.answers().unwrap();
        left_out += found.sessions().unwrap() - found.candidates();
        let found = found.map(|found| {
            let found = found.unwrap();
            let shown = shown(&found.answer);
            (found.session, shown)
        });
        let found: Vec<(String, String)> = found.collect();
        let wanted = answers(store, &asked, glob);
        assert_eq!(found, wanted, "{selector} {first:?} {second:?}");
    }
    left_out
}

fn agrees_in(url: &str, rounds: u32, seed: u64) {
    let store = Store::connect(url).unwrap();
    let mut rng = Rng::new(seed);
    let (mut left_out, mut narrowed) = (0, 0);
    for _ in 0..rounds {
        for _ in 0..=rng.below(4) {
            change(&store, &mut rng);
        }
        left_out += agrees(&store, &mut rng);
        narrowed += selects_agree(&store, &mut rng);
        assert_eq!(sound(&store), Ok(()));
    }
    store.index_text().unwrap();
    assert_eq!(store.index_text().unwrap(), 0);
    assert_eq!(store.text_index().unwrap().unwrap().behind, 0);
    left_out += agrees(&store, &mut rng);
    narrowed += selects_agree(&store, &mut rng);
    assert!(left_out > 0 && narrowed > 0);
}

#[test]
fn every_session_with_a_match_is_found() {
    let folder = Folder::quick();
    for seed in 0..u64::from(random::share(40)) {
        agrees_in(&folder.file(&format!("{seed}.db")), 12, seed);
    }
}

#[cfg(all(unix, feature = "postgres"))]
#[test]
fn every_session_with_a_match_is_found_on_a_server() {
    let server = match super::server::Server::start() {
        Ok(server) => server,
        Err(why) => return println!("SKIPPED: {why}"),
    };
    for seed in 0..u64::from(random::share(20)) {
        agrees_in(&server.url(&format!("texts_{seed}")), 8, seed);
    }
}

/// Also where JSON spells a letter by its number, where another letter folds to it, and in names of calls.
#[test]
fn a_store_without_an_index_leaves_sessions_out_too() {
    let folder = Folder::new();
    let store = Store::open(folder.file("x.db")).unwrap();
    for (name, node) in [
        (
            "call",
            r#"{"kind":"call","content":{},"data_call_name":"Find_Kite"}"#,
        ),
        ("escaped", r#"{"content":{"q":["kit\u0065s"]}}"#),
        (
            "folded",
            r#"{"content":"K\u0131tes, ſails and \u212Aites"}"#,
        ),
        ("key", r#"{"kind":"call","content":"1","key":"kite"}"#),
        ("other", r#"{"content":"a boat of 1800","data_x":"2e3"}"#),
        ("text", r#"{"content":"two KITES"}"#),
    ] {
        let mut context = store.write(name).unwrap();
        context.add("^ah", NewNode::json(node).unwrap()).unwrap();
        context.commit().unwrap();
    }
    let found = |pattern: &str| {
        Search::new(pattern, true)
            .unwrap()
            .sessions(&store, "")
            .unwrap()
    };
    let all = ["call", "escaped", "folded", "key", "text"];
    assert_eq!(found("kite").unwrap(), all);
    assert_eq!(found("(red|blue) kites?").unwrap(), all);
    assert_eq!(found("boat|yacht").unwrap(), ["escaped", "other"]);
    // What may be spelled otherwise, or is too short, is looked for in every session.
    for pattern in ["1800", "2000|boat", "unknown", "a b"] {
        assert_eq!(found(pattern), None, "{pattern}");
    }
}

/// Letters that no other text here has, so that their bytes in the files are those of the secret.
const SECRET: &str = "ψωξφχθΔΛΠΣ";

/// How often the files of a store have the bytes of three neighbouring letters of the secret.
fn traces(path: &str) -> usize {
    let folded = SECRET.to_lowercase();
    let mut count = 0;
    for secret in [SECRET, &*folded] {
        let letters: Vec<char> = secret.chars().collect();
        for run in letters.windows(3) {
            let run: String = run.iter().collect();
            for end in ["", "-wal"] {
                let bytes = std::fs::read(format!("{path}{end}")).unwrap_or_default();
                let found = bytes
                    .windows(run.len())
                    .filter(|window| *window == run.as_bytes());
                count += found.count();
            }
        }
    }
    count
}

/// How often the index has the bytes of a letter of the secret: FTS5 keeps of a run only what differs from the
/// one before.
fn letters(path: &str) -> usize {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut statement = connection
        .prepare("select block from text_gram_data")
        .unwrap();
    let blocks = statement
        .query_map([], |row| row.get::<_, Vec<u8>>(0))
        .unwrap();
    let bytes: Vec<u8> = blocks.flat_map(Result::unwrap).collect();
    let folded = SECRET.to_lowercase();
    let each = folded.chars().map(|letter| {
        let letter = letter.to_string();
        let found = bytes
            .windows(letter.len())
            .filter(|window| *window == letter.as_bytes());
        found.count()
    });
    each.sum()
}

#[test]
fn an_erased_text_is_not_in_the_index() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let folder = Folder::new();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let mut ids = Vec::new();
    for name in ["a", "b"] {
        let mut context = store.write(name).unwrap();
        for number in 0..40 {
            context
                .append(Message::user(&format!("What is {number} of {name}?")))
                .unwrap();
            if number == 20 {
                ids.push(context.add("^ah", NewNode::text(SECRET)).unwrap());
            }
            context.commit().unwrap();
            if number % 10 == 5 {
                store.index_text().unwrap();
            }
        }
    }
    store.index_text().unwrap();
    let search = Search::new(SECRET, true).unwrap();
    assert_eq!(search.sessions(&store, "").unwrap().unwrap(), ["a", "b"]);
    assert!(traces(&path) > 0 && letters(&path) > 0);
    store.erase("a", [&*ids[0]]).unwrap();
    assert_eq!(
        search.sessions(&store, "").unwrap().unwrap(),
        ["a", "b"],
        "what was erased came later"
    );
    store.index_text().unwrap();
    assert_eq!(search.sessions(&store, "").unwrap().unwrap(), ["b"]);
    store.erase("b", [&*ids[1]]).unwrap();
    assert_eq!((traces(&path), letters(&path)), (0, 0));
    assert_eq!(sound(&store), Ok(()));
    store.index_text().unwrap();
    assert_eq!(search.sessions(&store, "").unwrap().unwrap(), [""; 0]);
}

#[test]
fn a_copy_has_the_index() {
    let folder = Folder::quick();
    let store = Store::open(folder.file("x.db")).unwrap();
    let mut context = store.write("a").unwrap();
    context
        .append(Message::user("Where is my refund?"))
        .unwrap();
    context.commit().unwrap();
    assert_eq!(store.text_index().unwrap(), None);
    assert!(!store.drop_text_index().unwrap());
    assert!(store.index_text().unwrap() > 0);
    let copy = folder.file("copy.db");
    store.backup(&copy).unwrap();
    let builder = Store::builder().must_exist().read_only();
    let copy = builder.open(&copy).unwrap();
    assert_eq!(copy.text_index().unwrap(), store.text_index().unwrap());
    let found = Search::new("refund", false)
        .unwrap()
        .sessions(&copy, "")
        .unwrap();
    assert_eq!(found.unwrap(), ["a"]);
    assert_eq!(sound(&copy), Ok(()));
    assert!(copy.index_text().is_err());
    assert!(store.drop_text_index().unwrap());
    assert_eq!(store.text_index().unwrap(), None);
    assert_eq!(sound(&store), Ok(()));
}

/// `verify` names an index that is not of the texts, whatever was done to it.
#[test]
fn an_index_that_lies_is_noticed() {
    for damage in [
        "delete from text_unit where rowid_is_first",
        "update text_unit set unit_id = unit_id + 1000",
        "delete from text_gram where rowid = 1",
        "insert into text_gram (rowid, text) values (77, 'more text')",
        "update text_doc set hash = zeroblob(16) where text_id = 1",
        "insert into text_doc (hash) values (zeroblob(16))",
        "update text_index set through = 1000",
    ] {
        let folder = Folder::quick();
        let path = folder.file("x.db");
        let store = Store::open(&path).unwrap();
        let mut context = store.write("a").unwrap();
        for text in ["Where is my refund?", "And my order?"] {
            context.append(Message::user(text)).unwrap();
            context.commit().unwrap();
        }
        store.index_text().unwrap();
        context.append(Message::user("Later, then.")).unwrap();
        context.commit().unwrap();
        assert_eq!(sound(&store), Ok(()));
        let connection = rusqlite::Connection::open(&path).unwrap();
        let first = "text_id = (select min(text_id) from text_unit)";
        connection
            .execute_batch(&damage.replace("rowid_is_first", first))
            .unwrap();
        let found = store.verify().unwrap();
        assert_eq!(found.len(), 1, "{damage}: {found:?}");
        assert!(found[0].what.contains("text index"), "{damage}: {found:?}");
        store.drop_text_index().unwrap();
        store.index_text().unwrap();
        assert_eq!(sound(&store), Ok(()), "{damage}");
    }
}
