//! The page of `pactql share --html` in a browser: what it shows, by which keys, and that it asks for
//! nothing. Without Chromium the tests print `SKIPPED: reason`.

#[path = "../support/chromium.rs"]
mod chromium;

use crate::cli::{Scratch, answer};
use chromium::{Chromium, address};
use serde_json::{Value, json};

/// A text that would do harm as markup, and one that would turn the direction of what follows.
const HOSTILE: &str =
    "</script><script>window.harmed = 1</script><img src=x onerror='window.harmed = 2'>\0";
const TURNED: &str = "a\u{202e}b\u{200b}c";

/// A session of four steps: the prompt has the time in it, and the third step loses a message.
fn session() -> String {
    let tool = json!({"id": "tool", "nodeType": "cb", "kind": "tool", "key": "find", "offset": 1,
        "content": "{\"name\":\"find\",\"description\":\"Finds.\",\"input_schema\":{\"type\":\"object\"}}"});
    let turn = |cycle: i64| {
        let texts = match cycle {
            1 => ("Where is the key?".to_owned(), "find"),
            2 => (format!("{HOSTILE} {}", "words ".repeat(9)), "look"),
            3 => (TURNED.to_owned(), "find"),
            _ => ("the \"last\" question".to_owned(), "find"),
        };
        json!({"id": format!("t{cycle}"), "nodeType": "mt", "created_at_ns": cycle, "children": [
            {"id": format!("u{cycle}"), "nodeType": "cb", "role": "user", "kind": "text", "content": texts.0,
             "created_at_iso": format!("2026-03-02T10:0{cycle}:00Z")},
            {"id": format!("a{cycle}"), "nodeType": "cb", "offset": 1, "role": "assistant", "kind": "call",
             "data_call_id": format!("call_{cycle}"), "data_call_name": texts.1, "data_reply": cycle,
             "content": "{\"q\": \"key\"}"}]})
    };
    let mut lines = String::new();
    for cycle in 1..=4 {
        let prompt = format!(
            "Be brief.\nIt is 10:0{}.\n{}",
            cycle.min(3),
            "Say what is so.\n".repeat(9)
        );
        let turns = (1..=cycle).filter(|turn| cycle < 3 || *turn != 1);
        let document = json!({"cycle": cycle, "meta": {"request": {"model": "example-1"}},
            "usage": {"input_tokens": 120 + cycle, "output_tokens": 7}, "root": {"id": "r", "children": [
            {"id": "s", "nodeType": "^sys", "children": [
                {"id": "rules", "nodeType": "cb", "kind": "text", "content": prompt}, tool]},
            {"id": "q", "nodeType": "^seq", "children": turns.map(turn).collect::<Vec<Value>>()},
            {"id": "h", "nodeType": "^ah", "children": []}]}});
        lines.push_str(&format!("{document}\n"));
    }
    lines
}

/// The browser with the page of a session; `None` if there is no browser.
fn browser(scratch: &Scratch, session: &str) -> Option<Chromium> {
    let mut browser = match Chromium::start() {
        Ok(browser) => browser,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return None;
        }
    };
    let page = scratch.path("page.html");
    answer(&["share", session, "--html", "-o", &page]);
    browser
        .open(&address(page.as_ref()))
        .expect("the page opens");
    Some(browser)
}

/// A page and what is asked of it.
struct Page(Chromium);

impl Page {
    #[track_caller]
    fn is(&mut self, expression: &str, wanted: impl Into<Value>) {
        let wanted = wanted.into();
        assert_eq!(
            self.0.value(expression).expect("a value"),
            wanted,
            "{expression}"
        );
    }

    #[track_caller]
    fn text(&mut self, expression: &str) -> String {
        let value = self.0.value(expression).expect("a value");
        value.as_str().expect(expression).to_owned()
    }

    #[track_caller]
    fn has(&mut self, selector: &str, wanted: &str) {
        let text = self.text(&format!(
            "document.querySelector({selector:?})?.textContent ?? 'nothing'"
        ));
        assert!(text.contains(wanted), "{selector}: {wanted} in {text}");
    }

    fn press(&mut self, keys: &[&str]) {
        for key in keys {
            self.0.press(key).expect("a key");
        }
    }

    /// Nothing but the page itself was asked for, and nobody complained.
    fn is_quiet(&self) {
        let requests = self.0.requests();
        assert_eq!(requests.len(), 1, "{requests:?}");
        assert!(requests[0].ends_with("/page.html"), "{requests:?}");
        assert_eq!(self.0.complaints(), Vec::<String>::new());
    }
}

const CHOSEN: &str = "document.querySelector('.row[aria-selected=true] .name').textContent";
const ROLE: &str = "document.activeElement.getAttribute('role')";
const FOCUS: &str = "document.activeElement.textContent";

#[test]
fn the_page_is_read_by_keyboard() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("browser-keys");
    let session = scratch.write("session.jsonl", session());
    let Some(browser) = browser(&scratch, &session) else {
        return;
    };
    let mut page = Page(browser);
    page.is("document.title", "session.jsonl \u{b7} pactql");

    // The timeline: from step to step.
    page.is(
        "document.querySelectorAll('[role=listbox] [role=option]').length",
        4,
    );
    page.is(CHOSEN, "@c4");
    for (key, chosen) in [
        ("Home", "@c1"),
        ("j", "@c2"),
        ("ArrowDown", "@c3"),
        ("j", "@c4"),
        ("j", "@c4"),
        ("k", "@c3"),
        ("ArrowUp", "@c2"),
        ("End", "@c4"),
        ("PageUp", "@c1"),
        ("k", "@c1"),
        ("j", "@c2"),
    ] {
        page.press(&[key]);
        page.is(CHOSEN, chosen);
        page.is(ROLE, "option");
    }
    page.has(".row[aria-selected=true]", "look");
    page.has(".row[aria-selected=true]", "2026-03-02 10:02:00");
    page.has(
        ".row[aria-selected=true] .broken",
        "% of the prefix kept: a date or time in a text",
    );
    page.has(".row[aria-selected=true]", "+2 added ~1 changed");
    page.is("document.querySelectorAll('.row .broken').length", 2);
    page.has("#view p", "provider: 122 sent, 7 replied");
    page.is(
        "getComputedStyle(document.activeElement).outlineStyle",
        "solid",
    );

    // The tree: Enter goes to what is new, opens it, Escape closes it and goes back.
    page.press(&["Enter"]);
    page.is(ROLE, "treeitem");
    assert!(
        page.text(FOCUS).contains("changed: system text"),
        "{}",
        page.text(FOCUS)
    );
    page.press(&["ArrowUp"]);
    page.is("document.activeElement.getAttribute('aria-level')", "1");
    page.press(&["ArrowLeft"]);
    page.is(
        "document.activeElement.getAttribute('aria-expanded')",
        "false",
    );
    page.press(&["ArrowRight", "ArrowRight", "Enter"]);
    page.is(
        "document.activeElement.getAttribute('aria-expanded')",
        "true",
    );
    page.is(
        "[...document.querySelectorAll('.item del')].map(e => e.textContent)",
        json!(["01"]),
    );
    page.press(&["Escape"]);
    page.is(
        "document.activeElement.getAttribute('aria-expanded')",
        "false",
    );
    page.press(&["End"]);
    assert!(
        page.text(FOCUS)
            .contains("added: assistant call look (reply)"),
        "{}",
        page.text(FOCUS)
    );
    page.press(&["Enter"]);
    page.has(".item[aria-expanded=true] .body pre", "{\"q\": \"key\"}");
    page.press(&["Escape", "Escape"]);
    page.is(ROLE, "option");
    page.is(CHOSEN, "@c2");

    // What changed: words, with at most three lines around them.
    page.press(&["2"]);
    page.is(
        "document.querySelector('[role=tab][aria-selected=true]').textContent",
        "Changes",
    );
    page.is("document.querySelector('#panel del').textContent", "01");
    page.is("document.querySelector('#panel ins').textContent", "02");
    page.has("#panel pre", "6 lines as before");
    page.is("document.querySelectorAll('#panel .item').length", 3);
    page.press(&["j"]);
    page.has("#panel", "removed: user text");
    page.press(&["1"]);
    page.has("#panel", "removed since @c2");
    page.press(&["k"]);

    // Tokens: four tables of bars, each with the sum of the step.
    page.press(&["3"]);
    page.is("document.querySelectorAll('#panel table.bars').length", 4);
    let sums = "[...document.querySelectorAll('#panel table.bars')].map(table => \
        [...table.querySelectorAll('tbody tr')].reduce((sum, row) => sum + Number(row.cells[2].textContent), 0))";
    let tokens = "Number(document.querySelector('.row[aria-selected=true] .first').lastChild.textContent.split(' ')[0])";
    let sum = page.0.value(tokens).expect("tokens");
    page.is(sums, json!([sum, sum, sum, sum]));
    page.is(
        "document.querySelector('#panel .bar').getBoundingClientRect().width > 100",
        true,
    );
    page.is("[...document.querySelectorAll('#panel tbody th')].map(e => e.textContent).includes('look')", true);

    // The prefix: cause, byte, mend, and from break to break.
    page.press(&["4"]);
    page.has("#panel .broken", "a date or time in a text");
    page.has(
        "#panel",
        "send the time in the newest message, or only the date",
    );
    page.has("#panel", "byte ");
    page.press(&["Home", "b"]);
    page.is(CHOSEN, "@c2");
    page.press(&["b", "b"]);
    page.is(CHOSEN, "@c3");
    page.press(&["B"]);
    page.is(CHOSEN, "@c2");
    page.press(&["Enter", "End", "Enter"]);
    page.is(CHOSEN, "@c3");

    // Search: to the block, opened.
    page.press(&["/"]);
    page.is("document.activeElement.id", "search");
    page.0.type_text("LAST\" ques").expect("typed");
    page.press(&["Enter"]);
    page.has("#results h2", "1 block matches");
    assert!(
        page.text(FOCUS).contains("@c4 user text"),
        "{}",
        page.text(FOCUS)
    );
    page.press(&["Enter"]);
    page.is(CHOSEN, "@c4");
    page.has(
        ".item[aria-expanded=true] .body pre",
        "the \"last\" question",
    );
    page.press(&["/"]);
    page.0.type_text("nothing has this").expect("typed");
    page.press(&["Enter"]);
    page.has("#results", "0 blocks match");
    page.press(&["Escape"]);
    page.is("document.querySelector('#results').hidden", true);
    page.is(ROLE, "option");

    // The keys themselves.
    page.press(&["?"]);
    page.is("document.querySelector('dialog').open", true);
    page.press(&["Escape"]);
    page.is("document.querySelector('dialog').open", false);
    page.is_quiet();
}

#[test]
fn a_hostile_session_is_shown_and_harms_nothing() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("browser-hostile");
    let session = scratch.write("session.jsonl", session());
    let Some(browser) = browser(&scratch, &session) else {
        return;
    };
    let mut page = Page(browser);
    for step in ["Home", "j", "j", "j"] {
        page.press(&[step, "1", "2", "3", "4", "1"]);
        page.0
            .value("document.querySelectorAll('.item[aria-expanded=false] > .head').forEach(e => e.click())")
            .expect("opened by mouse");
    }
    page.is("window.harmed === undefined", true);
    page.is("document.querySelectorAll('script').length", 2);
    page.is(
        "document.querySelectorAll('img, iframe, object, embed, link, style ~ style').length",
        0,
    );
    page.is("[...document.querySelectorAll('*')].some(e => [...e.attributes].some(a => a.name.startsWith('on')))", false);
    let all = page.text("document.body.innerText");
    assert!(
        all.contains("<img src=x onerror=") && all.contains('\u{2400}'),
        "{all}"
    );
    assert!(
        all.contains("a\u{27e8}U+202E\u{27e9}b\u{27e8}U+200B\u{27e9}c"),
        "{all}"
    );
    assert!(!all.contains('\u{202e}'));
    // What a text would have to do to run, the policy of the page refuses.
    let refused = "(() => { const made = document.createElement('script'); made.textContent = 'window.harmed = 3'; \
        document.body.append(made); made.remove(); return window.harmed === undefined; })()";
    page.is_quiet();
    page.is(refused, true);
}

#[test]
fn the_page_is_for_mouse_and_screen_readers_light_and_dark() {
    if crate::cases::left_to_ci() {
        return;
    }
    let scratch = Scratch::new("browser-mouse");
    let session = scratch.write("session.jsonl", session());
    let Some(browser) = browser(&scratch, &session) else {
        return;
    };
    let mut page = Page(browser);
    page.0
        .value("document.querySelectorAll('.row')[1].click()")
        .expect("a click");
    page.is(CHOSEN, "@c2");
    page.0
        .value("document.getElementById('tab-3').click()")
        .expect("a click");
    page.0
        .value("document.querySelector('#panel table button').click()")
        .expect("a click");
    page.has(".item[aria-expanded=true] .body", "rules");
    page.is(
        "document.querySelector('[role=tab][aria-selected=true]').textContent",
        "Tree",
    );

    // Each thing has a role and a name, and one row of a list is in the order of Tab.
    for (selector, count) in [
        ("[role=listbox][aria-label]", 1),
        ("[role=tablist][aria-label]", 1),
        ("[role=tabpanel][aria-labelledby]", 1),
        ("[role=tree][aria-label]", 1),
        ("[role=option][tabindex='0']", 1),
        ("[role=treeitem][tabindex='0']", 1),
        ("[role=treeitem]:not([aria-level])", 0),
        ("input:not([aria-label])", 0),
        ("main", 1),
        ("h1", 1),
    ] {
        page.is(
            &format!("document.querySelectorAll({selector:?}).length"),
            count,
        );
    }

    // Both schemes: every colour of a text has a contrast of 4.5 to what it is on.
    let contrast = "(() => { \
        const light = (name) => { const probe = document.createElement('i'); document.body.append(probe); \
          probe.style.color = getComputedStyle(document.documentElement).getPropertyValue(name); \
          const parts = getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(n => n / 255) \
            .map(n => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4); \
          probe.remove(); return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]; }; \
        const pairs = [['--added', '--added-back'], ['--removed', '--removed-back'], ['--text', '--mark']]; \
        for (const on of ['--back', '--raised', '--chosen']) pairs.push(['--text', on], ['--quiet', on]); \
        for (const on of ['--back', '--chosen']) for (const of of ['--added', '--removed', '--changed', '--broken']) pairs.push([of, on]); \
        return pairs.filter(([a, b]) => { const [x, y] = [light(a), light(b)]; \
          return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05) < 4.5; }).map(pair => pair.join(' on ')); })()";
    let back = "getComputedStyle(document.body).backgroundColor";
    let mut backs = Vec::new();
    for scheme in ["light", "dark"] {
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        page.0
            .ask("Emulation.setEmulatedMedia", media)
            .expect("a scheme");
        page.is(contrast, json!([]));
        backs.push(page.text(back));
    }
    assert_eq!(backs, ["rgb(255, 255, 255)", "rgb(18, 21, 26)"]);
    page.is_quiet();
}
