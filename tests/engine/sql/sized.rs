//! Sizes of blocks in groups: what the blocks of one statement sum up to is what the loaded sessions sum up to.

use pactql::inspect::{By, Part, Tokenizer, Top};
use pactql::store::StoreRoute;
use pactql::{Engine, Session, Store};

use super::differential::at;
use crate::store::place::Folder;
use crate::support::documents::Sample;
use crate::support::random::{Rng, share};
use crate::support::selector::{Edition, Time};
use crate::support::{selectors, text};

/// Blocks that are sent otherwise than as their content: calls and results by a field, by a key, by the id of a call, by
/// what no column holds; definitions, images, documents, parts that were kept as they came; blocks in blocks; a header with
/// U+0000.
const BLOCKS: &str = r#"{"cycle":1,"root":{"id":"r","children":[
{"id":"s","nodeType":"^sys","children":[
 {"id":"d1","nodeType":"cb","kind":"tool","key":"find","content":{"name":"other", "x": [1, 2]}},
 {"id":"d2","nodeType":"cb","kind":"tool","content":"{\"function\": {\"name\": \"look\"}}"},
 {"id":"d3","nodeType":"cb","role":"system","kind":"text","content":"Be\u0000 brief."}]},
{"id":"q","nodeType":"^seq","children":[
 {"id":"t1","nodeType":"mt","kind":"call","key":"no block","children":[
  {"id":"b1","nodeType":"cb","role":"assistant","kind":"call","data_call_name":"find","data_call_id":"c1","content":{"a": 1}},
  {"id":"b2","nodeType":"cb","role":"assistant","kind":"call","key":"look","content":"{}"},
  {"id":"b3","nodeType":"cb","role":"assistant","kind":"call","data_call_name":7,"content":"x"},
  {"id":"b4","nodeType":"cb","role":"assistant","kind":"call","data_call_name":["find"],"data_call_id":{"n":1},"content":null},
  {"id":"b5","nodeType":"cb","role":"assistant","kind":"call","data_call_name":"a\u0000b","data_call_id":"c5"}]},
 {"id":"t2","nodeType":"mt","children":[
  {"id":"e1","nodeType":"cb","role":"tool","kind":"result","data_call_id":"c1","content":"found"},
  {"id":"e2","nodeType":"cb","role":"tool","kind":"result","data_call_id":"b2","content":"seen"},
  {"id":"e3","nodeType":"cb","role":"tool","kind":"error","data_call_name":"named","data_call_id":"c1","content":"no"},
  {"id":"e4","nodeType":"cb","role":"tool","kind":"result","data_call_id":"c5","content":12.50},
  {"id":"e5","nodeType":"cb","role":"tool","kind":"result","data_call_id":"later","content":true},
  {"id":"e6","nodeType":"cb","role":"tool","kind":"result","data_call_id":7,"content":[1, "two"]}]},
 {"id":"t3","nodeType":"mt","children":[
  {"id":"f1","nodeType":"cb","kind":"image","content":"https://a.b/c.png"},
  {"id":"f2","nodeType":"cb","kind":"image","content":"no image"},
  {"id":"f3","nodeType":"cb","kind":"document","content":{"type":"text","data":"a text"}},
  {"id":"f4","nodeType":"cb","kind":"document","content":{"media_type":"application/pdf","data":"AA=="}},
  {"id":"f5","nodeType":"cb","data_verbatim":"part","content":{"type":"refusal","refusal":"I will not."}},
  {"id":"f6","nodeType":"cb","kind":"image","data_verbatim":"part","content":"kept"},
  {"id":"f7","nodeType":"cb","kind":"text","data_verbatim":["part"],"content":"kept"},
  {"id":"f8","nodeType":"cb","role":"us\u0000er","kind":"te\u0000xt","key":"k\u0000","content":"a","children":[
   {"id":"f9","nodeType":"cb","role":"user","content":"in it","children":[
    {"id":"g0","nodeType":"cb","kind":"call","key":"deep","data_call_id":"later","content":"{}"}]}]},
  {"id":"g1","nodeType":"cb","role":null,"kind":null,"content":"nothing said"}]},
 {"id":"l1","nodeType":"cb","role":"user","kind":"text","content":"in no turn"}]},
{"id":"h","nodeType":"^ah","children":[{"id":"h1","nodeType":"cb","role":"user","content":"draft","offset":1}]},
{"id":"o1","nodeType":"cb","kind":"call","key":"other","data_call_id":"7","content":"not sent"}]}}"#;

const ALL: [Option<By>; 8] = [
    None,
    Some(By::Region),
    Some(By::Role),
    Some(By::Kind),
    Some(By::Turn),
    Some(By::Tool),
    Some(By::Key),
    Some(By::Block),
];

fn label(name: &str) -> String {
    format!("x.db#{name}")
}

/// The sums by statement, if the route is that.
fn by_statement(store: &Store, glob: &str, by: Option<By>, part: &Part) -> Option<Top> {
    let mut top = Top::new(by, Tokenizer::default());
    let route = top.add_stored(store, glob, label, part).unwrap();
    if route != StoreRoute::Statement {
        assert_eq!(json(&top), json(&Top::new(by, Tokenizer::default())));
        return None;
    }
    Some(top)
}

/// Those of the loaded sessions; `None` if one of them lacks the snapshot.
fn loaded(store: &Store, glob: &str, by: Option<By>, part: &Part) -> Option<Top> {
    let mut top = Top::new(by, Tokenizer::default());
    for info in store.sessions(glob).unwrap() {
        let session = store.session(&info.name).unwrap();
        top.add(&Engine::new(), &label(&info.name), &session, part)
            .ok()?;
    }
    Some(top)
}

fn json(top: &Top) -> String {
    serde_json::to_string(top).unwrap()
}

fn store_of(folder: &Folder, texts: &[String]) -> Store {
    let store = Store::open(folder.file("x.db")).unwrap();
    for (number, text) in texts.iter().enumerate() {
        let session = Session::from_slice(text.as_bytes()).unwrap();
        store
            .import(&format!("s/{number:02}"), &session, None)
            .unwrap();
    }
    store
}

#[test]
fn blocks_of_every_form_are_sized_alike() {
    let folder = Folder::quick();
    let one = BLOCKS.replace('\n', "") + "\n";
    // The same units again, and in another order of names.
    let store = store_of(&folder, &[one.clone(), one.replace("brief", "short"), one]);
    for selector in [
        ".cb",
        ".cb[kind='result']",
        ".cb[kind='result'], .cb[kind='call'] , .mt",
        ".cb .cb",
        "^sys",
        "^ah",
        ".mt:first",
        "[key='look']",
        "^sys *, .cb[role='user']",
        ".cb[kind='none']",
    ] {
        for time in ["", "@t0", "@c1"] {
            for by in ALL {
                for glob in ["", "s/*1"] {
                    let part = Part::default().at(time).only(selector);
                    let stated = by_statement(&store, glob, by, &part);
                    let stated = stated.unwrap_or_else(|| panic!("{selector} is loaded"));
                    let expected = loaded(&store, glob, by, &part).unwrap();
                    assert_eq!(json(&stated), json(&expected), "{selector} {time} {by:?}");
                }
            }
        }
    }
}

/// What lies in the root and in `^seq` is in other units, a page is one of the whole result, and a session without the
/// snapshot is an error.
#[test]
fn others_are_loaded() {
    let folder = Folder::quick();
    let one = BLOCKS.replace('\n', "") + "\n";
    let store = store_of(&folder, &[one]);
    let is_loaded = |selector: &str, time: &str| {
        let part = Part::default().at(time).only(selector);
        by_statement(&store, "", Some(By::Role), &part).is_none()
    };
    for selector in ["^root", "[id='q']", "*", ".cb @limit=2", ".cb @unique"] {
        assert!(is_loaded(selector, ""), "{selector}");
    }
    for time in ["@*", "@t0..@t-1", "@c2", "@t-1"] {
        assert!(is_loaded(".cb", time), "{time}");
    }
    let part = Part::default().over("@t0").only(".cb");
    assert!(by_statement(&store, "", None, &part).is_none());
    drop(store.write("empty").unwrap());
    let all = Part::default().only(".cb");
    assert_eq!(
        is_loaded(".cb", ""),
        loaded(&store, "", None, &all).is_none()
    );
    let timed = Part::default().only("@t0 .cb");
    let refused = Top::new(None, Tokenizer::Bytes4).add_stored(&store, "", label, &timed);
    assert!(refused.is_err());
}

#[test]
fn random_sessions_are_sized_alike() {
    let folder = Folder::quick();
    let samples: Vec<Sample> = (0..12).map(|seed| Sample::new(seed * 7001 + 5)).collect();
    let texts: Vec<String> = samples.iter().map(|sample| sample.text()).collect();
    let store = store_of(&folder, &texts);
    let mut rng = Rng::new(23);
    let (mut asked, mut stated) = (0, 0);
    while asked < share(400).max(8) {
        let sample = rng.pick(&samples);
        let sel = selectors::selector(&mut rng, &sample.session, Edition::Canonical);
        let mut sel = at(&mut rng, &sample.session, Edition::Canonical, &sel);
        let time = match sel.time {
            Time::Back(back) => format!("@t-{back}"),
            Time::Cycle(cycle) => format!("@c{cycle}"),
            _ => String::new(),
        };
        sel.time = Time::Omitted;
        let text = text::variant(&sel, Edition::Canonical, &mut rng);
        let part = Part::default().at(&*time).only(&*text);
        let by = *rng.pick(&ALL);
        let Some(expected) = loaded(&store, "", by, &part) else {
            // The selector is refused, or one of the sessions lacks the snapshot.
            let mut top = Top::new(by, Tokenizer::default());
            let route = top.add_stored(&store, "", label, &part);
            assert!(
                route.is_err() || route.is_ok_and(|route| route != StoreRoute::Statement),
                "{time} {text}"
            );
            continue;
        };
        asked += 1;
        if let Some(found) = by_statement(&store, "", by, &part) {
            stated += 1;
            assert_eq!(json(&found), json(&expected), "{time} {text} {by:?}");
        }
    }
    println!("{asked} selectors, {stated} by statement");
    assert!(stated * 3 > asked);
}
