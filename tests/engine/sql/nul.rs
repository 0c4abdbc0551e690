//! Texts with U+0000, which no column has: where a selector compares them, the sessions with one are loaded (STORE §4).

use pactql::inspect::Fields;
use pactql::store::StoreRoute;
use pactql::{Code, Engine, Session, Store};

use crate::store::place::Folder;

/// Names, and a block of each. Of the last two, one spells the letters `\u0000`.
const SESSIONS: [(&str, &str); 9] = [
    (
        "a",
        r#""kind":"note","role":"user","key":"k","data_x":"a","tags":["a"],"content":"start refund here""#,
    ),
    (
        "b headers",
        r#""kind":"no\u0000te","nodeType":"cb:note","role":"us\u0000er","key":"k\u0000","data_x":"a\u0000b","data_l":["a\u0000b","c"],"tags":["a\u0000","b"],"content":"refund""#,
    ),
    (
        "c text",
        r#""kind":"note","content":"start\u0000 refund here""#,
    ),
    (
        "d list",
        r#""kind":"note","content":["a\u0000b refund","x"]"#,
    ),
    (
        "e object",
        r#""kind":"note","content":{"deep":["\u0000\u0000 refund"]}"#,
    ),
    ("f type", r#""nodeType":"cb:no\u0000te","content":"other""#),
    ("g tag", r#""kind":"note","tags":["\u0000a"],"content":7"#),
    (
        "h spelled",
        r#""kind":"note","data_l":["a\\u0000b"],"content":["a\\u0000b refund","x"]"#,
    ),
    ("i", r#""kind":"note","content":["x","refund"]"#),
];

/// How many sessions have a text with U+0000 where a selector compares one.
const SELECTORS: [(&str, usize); 34] = [
    ("[content~'refund']", 3),
    ("[content~'start']", 3),
    ("[content~'(?i)B re']", 3),
    ("[content>'a']", 3),
    ("[content='x']", 3),
    ("[content!='x']", 3),
    ("[content=['x','refund']]", 3),
    ("[content~'u0000']", 3),
    ("[role='user'], .cb:has([content~'refund'])", 3),
    (":not([content~'refund'])", 3),
    ("[data_x~'a']", 3),
    ("[data_x>'A']", 3),
    ("[data_l~'b']", 3),
    ("[kind]", 3),
    ("[kind=null]", 3),
    ("[kind~'no']", 3),
    ("[kind>'a']", 3),
    ("[kind!='note']", 3),
    ("[role=null]", 3),
    ("[role!='user']", 3),
    ("[key~'k']", 3),
    ("[tags=null]", 3),
    ("[tags~'a']", 3),
    ("[nodeType='cb']", 3),
    (":has-result", 3),
    ("[kind='note']", 1),
    ("[kind='note'][data_x~'a'][content~'refund']", 6),
    ("", 0),
    ("[role='user']", 0),
    ("[key='k']", 0),
    ("[data_x='a']", 0),
    ("[data_x!='a']", 0),
    ("[data_l='c']", 0),
    ("+a", 0),
];

fn texts() -> Vec<(&'static str, Session)> {
    let read = |(name, block): &(&'static str, &str)| {
        let model = if *name == "c text" {
            r"m\u0000\u0000"
        } else {
            "m"
        };
        let node = if block.contains("nodeType") {
            block.to_string()
        } else {
            format!(r#""nodeType":"cb",{block}"#)
        };
        let text = format!(
            r#"{{"cycle":1,"meta":{{"request":{{"model":"{model}"}}}},"root":{{"id":"r","children":[{{"id":"q","nodeType":"^seq","children":[{{"id":"t","nodeType":"mt","children":[{{"id":"n",{node}}}]}}]}},{{"id":"h","nodeType":"^ah"}}]}}}}"#
        );
        (*name, Session::from_slice(text.as_bytes()).unwrap())
    };
    SESSIONS.iter().map(read).collect()
}

fn filled(url: &str) -> Store {
    let store = Store::connect(url).unwrap();
    for (name, session) in &texts() {
        store.import(name, session, None).unwrap();
    }
    store
}

fn compare(store: &Store) {
    let sessions = texts();
    for (selector, loaded) in SELECTORS {
        let selector = format!("@t0 .cb{selector}");
        let found = |(name, session): &(&'static str, Session)| {
            let rows = Engine::new().rows(session, &selector).unwrap();
            (rows.count() > 0).then(|| ((*name).to_owned(), rows.count()))
        };
        let expected: Vec<(String, usize)> = sessions.iter().filter_map(found).collect();
        let selection = store.select(&selector).unwrap();
        let route = selection.route().unwrap();
        // Those that cannot match at all are not loaded.
        let is_narrow = selector.contains('~') && route == StoreRoute::Statement;
        match route {
            StoreRoute::Both(some) => assert!(some <= loaded, "{selector}: {some}"),
            route => {
                assert_eq!(route, StoreRoute::Statement, "{selector}");
                assert!(loaded == 0 || is_narrow, "{selector}");
            }
        }
        let counts: Result<Vec<_>, _> = selection.counts().unwrap().collect();
        assert_eq!(counts.unwrap(), expected, "{selector}");
        let ids = selection.ids().unwrap();
        assert_eq!(ids.route(), route, "{selector}");
        let ids = ids.map(|found| {
            let found = found.unwrap();
            (found.session().to_owned(), found.ids().len())
        });
        assert_eq!(ids.collect::<Vec<_>>(), expected, "{selector}");

        // A statement alone has them, or says why not.
        let mut rows = 0;
        match selection.rows(|_| rows += 1) {
            Ok(()) => assert_eq!((rows, loaded), (expected.len(), 0), "{selector}"),
            Err(error) => {
                assert_eq!((error.code(), rows), (Code::Sql, 0), "{error}");
                assert!(error.to_string().contains("U+0000"), "{error}");
                assert!(loaded > 0, "{selector}");
            }
        }
        let other = store.select(&selector).unwrap().sessions("a*");
        assert_eq!(other.route().unwrap(), StoreRoute::Statement);
    }
}

fn fields(store: &Store) {
    let (mut counted, mut read) = (Fields::default(), Fields::default());
    assert_eq!(counted.add_store(store, "").unwrap(), SESSIONS.len());
    for (_, session) in &texts() {
        read.add(session).unwrap();
    }
    assert_eq!(counted.report(), read.report());
}

#[test]
fn texts_with_nul_are_compared_as_they_are() {
    let folder = Folder::quick();
    let store = filled(&folder.file("x.db"));
    compare(&store);
    fields(&store);
    store.index_text().unwrap();
    compare(&store);
}

/// PostgreSQL refuses to read JSON that has one.
#[cfg(all(unix, feature = "postgres"))]
#[test]
fn postgresql_reads_json_with_nul() {
    use crate::store::server::Server;

    let server = match Server::start() {
        Ok(server) => server,
        Err(reason) => return println!("SKIPPED: {reason}"),
    };
    let url = server.url("nul");
    let store = filled(&url);
    compare(&store);
    fields(&store);
    store.index_text().unwrap();
    compare(&store);
    // The statement alone, and the view, as one may run them by hand.
    let plain = url.split("&schema").next().unwrap();
    let mut client = postgres::Client::connect(plain, postgres::NoTls).unwrap();
    client.batch_execute("set search_path to nul").unwrap();
    let statement = store.select("@t0 .cb[content~'refund']").unwrap();
    let statement = statement.statement().unwrap();
    let rows = client.query(statement.text(), &[]).unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let listed = ["a", "b headers", "d list", "e object", "h spelled", "i"];
    assert_eq!(names, listed);
    let models = "select session, model from step order by session";
    let rows = client.query(models, &[]).unwrap();
    assert_eq!(rows.len(), SESSIONS.len());
    for row in rows {
        let (name, model): (String, String) = (row.get(0), row.get(1));
        let expected = if name == "c text" {
            "m\u{FFFD}\u{FFFD}"
        } else {
            "m"
        };
        assert_eq!(model, expected, "{name}");
    }
}
