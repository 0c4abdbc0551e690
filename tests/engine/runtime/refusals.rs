//! Every refusal of RUNTIME §3: its code, the node its message names, and that nothing changed:
//! after it an operation that is allowed has the outcome it has without it.

use std::sync::atomic::{AtomicI64, Ordering};

use pactql::{Context, Error, NewNode, context::Reference};

use super::properties::{document, working};

/// A clock that shows a later time whenever it is read, so that a reading too many shows.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl pactql::context::Clock for Ticking {
    fn now_ns(&self) -> i64 {
        self.0.fetch_add(1_000, Ordering::Relaxed)
    }
}

/// A session with a sealed turn and, in the cycle in progress, a head with a core.
///
/// ```text
/// ^sys   rule, group (removable) > inner, held (new, pinned)
/// ^seq   mt:1: pre@-1, mc:1 > asked, post@1, posts@1 > found
/// ^ah    before@-1, core > (draft, box > boxed), after@1
/// ```
fn session() -> (Context, Reference) {
    let mut ctx = Context::builder().clock(Ticking::default()).build();
    for (position, node) in [
        (
            "^sys",
            r#"{"id":"rule","key":"policy","content":"be brief"}"#,
        ),
        (
            "^sys",
            r#"{"id":"group","nodeType":"mc","removable":true,"children":[{"id":"inner"}]}"#,
        ),
        ("^ah", r#"{"id":"pre","offset":-1}"#),
        ("^ah", r#"{"id":"asked","role":"user"}"#),
        ("^ah", r#"{"id":"post","offset":1}"#),
        (
            "^ah",
            r#"{"id":"posts","nodeType":"mc","offset":1,"children":[{"id":"found"}]}"#,
        ),
    ] {
        add(&mut ctx, position, node).unwrap();
    }
    ctx.commit().unwrap();
    for (position, node) in [
        ("^sys", r#"{"id":"held"}"#),
        ("^sys", r#"{"id":"short"}"#),
        ("^ah", r#"{"id":"before","offset":-1}"#),
        (
            "^ah",
            r#"{"id":"core","nodeType":"mc","offset":0,"children":[
                {"id":"draft"},{"id":"box","nodeType":"mc","children":[{"id":"boxed"}]}]}"#,
        ),
        ("^ah", r#"{"id":"after","offset":1}"#),
    ] {
        add(&mut ctx, position, node).unwrap();
    }
    ctx.remove("[id='short']").unwrap();
    let reference = ctx.pin("[id='held']").unwrap();
    (ctx, reference)
}

fn add(ctx: &mut Context, position: &str, node: &str) -> Result<String, Error> {
    ctx.add(position, NewNode::json(node)?)
}

/// The bytes of every snapshot and of the working state.
fn bytes(ctx: &mut Context) -> Vec<String> {
    let session = ctx.session();
    let history = session.history();
    let committed = history.committed().iter();
    let mut all: Vec<String> = committed.map(|snapshot| document(snapshot)).collect();
    all.push(working(&session));
    all
}

/// An operation: its name, what it acts on, and the node or members it is given.
#[derive(Clone, Copy, Debug)]
enum Do {
    Add(&'static str, &'static str),
    Update(&'static str, &'static str),
    Remove(&'static str),
    Move(&'static str, &'static str),
    Replace(&'static str, &'static str),
    Compact(&'static str, &'static str),
    Pin(&'static str),
}

impl Do {
    fn run(self, ctx: &mut Context) -> Result<(), Error> {
        match self {
            Self::Add(position, node) => add(ctx, position, node).map(drop),
            Self::Update(selector, fields) => {
                ctx.update(selector, NewNode::json(fields)?).map(drop)
            }
            Self::Remove(selector) => ctx.remove(selector).map(drop),
            Self::Move(selector, position) => ctx.move_to(selector, position).map(drop),
            Self::Replace(selector, node) => ctx.replace(selector, NewNode::json(node)?).map(drop),
            Self::Compact(selector, node) => ctx.compact(selector, NewNode::json(node)?).map(drop),
            Self::Pin(selector) => ctx.pin(selector).map(drop),
        }
    }
}

use Do::{Add, Compact, Move, Pin, Remove, Replace, Update};

/// What is refused, its code, what its message names, and a neighbour that is allowed.
const CASES: &[(Do, &str, &str, Do)] = &[
    // Where a node cannot be put.
    (
        Add("[id='nothing']", "{}"),
        "E_PLACEMENT",
        "nothing",
        Add("[id='core']", "{}"),
    ),
    (Add(".mc", "{}"), "E_PLACEMENT", "", Add("[id='box']", "{}")),
    (
        Add("(d0, cont, +4)", "{}"),
        "E_PLACEMENT",
        "core",
        Add("(d0, cont, +2)", "{}"),
    ),
    (
        Add("(d0, cont, -3)", "{}"),
        "E_PLACEMENT",
        "core",
        Add("(d0, cont, -2)", "{}"),
    ),
    (
        Add("(d0, cont, +0)", "{}"),
        "",
        "",
        Add("(d0, cont, +1)", "{}"),
    ),
    (
        Add("(d0, cont, +2)", r#"{"offset":-1}"#),
        "E_PLACEMENT",
        "-1",
        Add("(d0, cont, +2)", r#"{"offset":1}"#),
    ),
    (
        Add("^ah", r#"{"offset":0}"#),
        "E_PLACEMENT",
        "core",
        Add("^ah", r#"{"offset":2}"#),
    ),
    (
        Add("^ah", r#"{"nodeType":"mc","offset":0}"#),
        "E_PLACEMENT",
        "core",
        Add("^ah", r#"{"nodeType":"mc","offset":1}"#),
    ),
    // Between committed siblings of one offset there is no place.
    (
        Add("(d1, +3)", "{}"),
        "E_PLACEMENT",
        "posts",
        Add("(d1, end)", "{}"),
    ),
    // Regions, and what is no node of a caller's.
    (Add("^root", "{}"), "E_REGION", "root", Add("^sys", "{}")),
    (
        Add("[id='^seq']", "{}"),
        "E_REGION",
        "^seq",
        Add("^ah", "{}"),
    ),
    (
        Add("^ah", r#"{"id":"turn","nodeType":"mt"}"#),
        "E_REGION",
        "turn",
        Add("^ah", r#"{"id":"turn","nodeType":"mc"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","nodeType":"^ah"}"#),
        "E_REGION",
        "x",
        Add("^ah", r#"{"id":"x","nodeType":"cb"}"#),
    ),
    (
        Add(
            "^ah",
            r#"{"id":"x","nodeType":"mc","children":[{"id":"y","nodeType":"seg:z"}]}"#,
        ),
        "E_REGION",
        "y",
        Add(
            "^ah",
            r#"{"id":"x","nodeType":"mc","children":[{"id":"y","nodeType":"cb:z"}]}"#,
        ),
    ),
    // Sealed cores.
    (
        Add("[id='mc:1']", "{}"),
        "E_SEALED",
        "mc:1",
        Add("[id='posts']", "{}"),
    ),
    (
        Add("[id='asked']", "{}"),
        "E_SEALED",
        "asked",
        Add("[id='found']", "{}"),
    ),
    (
        Add("(d1)", r#"{"offset":0}"#),
        "E_SEALED",
        "mt:1",
        Add("(d1)", r#"{"offset":-3}"#),
    ),
    // Headers.
    (
        Add("^ah", r#"{"id":"x","colour":"red"}"#),
        "E_HEADER",
        "colour",
        Add("^ah", r#"{"id":"x","data_colour":"red"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","cycle":2}"#),
        "E_HEADER",
        "cycle",
        Add("^ah", r#"{"id":"x"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","created_at_ns":2}"#),
        "E_HEADER",
        "created_at_ns",
        Add(
            "^ah",
            r#"{"id":"x","created_at_iso":"2026-01-02T03:04:05Z"}"#,
        ),
    ),
    (
        Add("^ah", r#"{"id":"x","creation_index":2}"#),
        "E_HEADER",
        "creation_index",
        Add("^ah", r#"{"id":"x"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","parent_id":"^ah"}"#),
        "E_HEADER",
        "parent",
        Add("^ah", r#"{"id":"x"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","created_at_iso":"yesterday"}"#),
        "E_HEADER",
        "created_at_iso",
        Add(
            "^ah",
            r#"{"id":"x","created_at_iso":"2026-01-02T04:04:05.5+01:00"}"#,
        ),
    ),
    (
        Add("^ah", r#"{"id":"x","ttl":-1}"#),
        "E_HEADER",
        "ttl",
        Add("^ah", r#"{"id":"x","ttl":0}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","ttl":1.0}"#),
        "E_HEADER",
        "ttl",
        Add("^ah", r#"{"id":"x","ttl":1}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","offset":9223372036854775808}"#),
        "E_HEADER",
        "offset",
        Add("^ah", r#"{"id":"x","offset":9223372036854775807}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","role":1}"#),
        "E_HEADER",
        "role",
        Add("^ah", r#"{"id":"x","role":"1"}"#),
    ),
    (
        Add("^ah", r#"{"id":""}"#),
        "E_HEADER",
        "id",
        Add("^ah", r#"{"id":" "}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","tag":"a","tags":["a"]}"#),
        "E_HEADER",
        "tag",
        Add("^ah", r#"{"id":"x","tags":["a"]}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","cad":1,"cadence":1}"#),
        "E_HEADER",
        "cad",
        Add("^ah", r#"{"id":"x","cadence":1}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","removable":true}"#),
        "E_HEADER",
        "removable",
        Add(
            "^ah",
            r#"{"id":"x","nodeType":"mc","offset":1,"removable":true}"#,
        ),
    ),
    (
        Add("^ah", r#"{"id":"x","content_hash":"00"}"#),
        "E_HEADER",
        "content_hash",
        Add(
            "^ah",
            r#"{"id":"x","content_hash":"3d81012112ce288f5f9061f4973ab485bbe28d04ce7989ab351215f75d5a2058"}"#,
        ),
    ),
    (
        Add("^ah", r#"{"id":"x","nodeType":"^x"}"#),
        "E_HEADER",
        "nodeType",
        Add("^ah", r#"{"id":"x","nodeType":"x"}"#),
    ),
    // Node text that cannot be read.
    (
        Add("^ah", r#"{"id":"x""#),
        "E_INPUT",
        "",
        Add("^ah", r#"{"id":"x"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","id":"y"}"#),
        "E_INPUT",
        "id",
        Add("^ah", r#"{"id":"x"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","content":"\ud83d"}"#),
        "E_INPUT",
        "",
        Add("^ah", r#"{"id":"x","content":"\ud83d\ude00"}"#),
    ),
    (Add("^ah", "[]"), "E_INPUT", "", Add("^ah", "{}")),
    // Ids that were used, also of nodes that are gone.
    (
        Add("^ah", r#"{"id":"asked"}"#),
        "E_DUPLICATE_ID",
        "asked",
        Add("^ah", r#"{"id":"asked again"}"#),
    ),
    (
        Add("^ah", r#"{"id":"short"}"#),
        "E_DUPLICATE_ID",
        "short",
        Add("^ah", r#"{"id":"shorter"}"#),
    ),
    (
        Add("^ah", r#"{"id":"x","children":[{"id":"x"}]}"#),
        "E_DUPLICATE_ID",
        "x",
        Add("^ah", r#"{"id":"x","children":[{"id":"y"}]}"#),
    ),
    // Updates.
    (
        Update("^ah", r#"{"ttl":1}"#),
        "E_REGION",
        "^ah",
        Update("^ah > .cb", r#"{"ttl":1}"#),
    ),
    (
        Update("^root", r#"{"priority":1}"#),
        "E_REGION",
        "^root",
        Update("[id='rule']", r#"{"priority":1}"#),
    ),
    (
        Update("[id='asked']", r#"{"ttl":1}"#),
        "E_SEALED",
        "asked",
        Update("[id='post']", r#"{"ttl":1}"#),
    ),
    (
        Update("[id='mt:1']", r#"{"priority":1}"#),
        "E_SEALED",
        "mt:1",
        Update("[id='pre']", r#"{"priority":1}"#),
    ),
    (
        Update("[id='rule']", r#"{"content":"no"}"#),
        "E_SEALED",
        "rule",
        Update("[id='held']", r#"{"content":"no"}"#),
    ),
    (
        Update("[id='rule'], [id='held']", r#"{"content":"no"}"#),
        "E_SEALED",
        "rule",
        Update("[id='held']", r#"{"content":"no"}"#),
    ),
    (
        Update("[id='held']", r#"{"offset":1}"#),
        "E_HEADER",
        "offset",
        Move("[id='held']", "(d-1, -1)"),
    ),
    (
        Update("[id='held']", r#"{"id":"other"}"#),
        "E_HEADER",
        "id",
        Update("[id='held']", r#"{"key":"other"}"#),
    ),
    (
        Update("[id='held']", r#"{"nodeType":"mc"}"#),
        "E_HEADER",
        "nodeType",
        Update("[id='held']", r#"{"kind":"call"}"#),
    ),
    (
        Update("[id='box']", r#"{"removable":true}"#),
        "E_HEADER",
        "removable",
        Update("[id='box']", r#"{"ttl":1}"#),
    ),
    (
        Update("[id='held']", r#"{"ttl":-1}"#),
        "E_HEADER",
        "ttl",
        Update("[id='held']", r#"{"ttl":null}"#),
    ),
    (
        Update("[id='held']", r#"{"colour":1}"#),
        "E_HEADER",
        "colour",
        Update("[id='held']", r#"{"data_colour":1}"#),
    ),
    (
        Update("[id='core']", r#"{"ttl":1}"#),
        "E_HEADER",
        "core",
        Update("[id='box']", r#"{"ttl":1}"#),
    ),
    // Removals.
    (Remove("^sys"), "E_REGION", "^sys", Remove("[id='group']")),
    (Remove("^root"), "E_REGION", "^root", Remove("[id='rule']")),
    (
        Remove("[id='mt:1']"),
        "E_SEALED",
        "mt:1",
        Remove("[id='post']"),
    ),
    (
        Remove("[id='asked']"),
        "E_SEALED",
        "asked",
        Remove("[id='found']"),
    ),
    (
        Remove("[id='mc:1']"),
        "E_SEALED",
        "mc:1",
        Remove("[id='posts']"),
    ),
    (
        Remove("[id='held']"),
        "E_PINNED",
        "held",
        Remove("[id='inner']"),
    ),
    (
        Remove("^sys > .cb"),
        "E_PINNED",
        "held",
        Remove("^sys > .mc"),
    ),
    // Replacements.
    (
        Replace("[id='nothing']", "{}"),
        "E_PLACEMENT",
        "nothing",
        Replace("[id='draft']", "{}"),
    ),
    (
        Replace("^ah > .cb", "{}"),
        "E_PLACEMENT",
        "2",
        Replace("[id='after']", "{}"),
    ),
    (
        Replace("^ah", "{}"),
        "E_REGION",
        "^ah",
        Replace("[id='core']", r#"{"nodeType":"mc"}"#),
    ),
    (
        Replace("[id='rule']", r#"{"id":"x","nodeType":"mt"}"#),
        "E_REGION",
        "x",
        Replace("[id='rule']", r#"{"id":"x","nodeType":"mc"}"#),
    ),
    (
        Replace("[id='asked']", "{}"),
        "E_SEALED",
        "asked",
        Replace("[id='post']", "{}"),
    ),
    (
        Replace("[id='mt:1']", "{}"),
        "E_SEALED",
        "mt:1",
        Replace("[id='posts']", "{}"),
    ),
    (
        Replace("[id='held']", "{}"),
        "E_PINNED",
        "held",
        Replace("[id='rule']", "{}"),
    ),
    (
        Replace("[id='rule']", r#"{"offset":1}"#),
        "E_HEADER",
        "offset",
        Replace("[id='rule']", r#"{"key":"other"}"#),
    ),
    (
        Replace(
            "[id='rule']",
            r#"{"created_at_iso":"2026-01-02T03:04:05Z"}"#,
        ),
        "E_HEADER",
        "time",
        Replace("[id='rule']", r#"{"ttl":3}"#),
    ),
    (
        Replace("[id='rule']", r#"{"id":"asked"}"#),
        "E_DUPLICATE_ID",
        "asked",
        Replace("[id='rule']", r#"{"id":"ruled"}"#),
    ),
    // Moves.
    (
        Move("^sys", "^ah"),
        "E_REGION",
        "^sys",
        Move("[id='rule']", "^ah"),
    ),
    (
        Move("[id='mt:1']", "^ah"),
        "E_REGION",
        "mt:1",
        Move("[id='post']", "^sys"),
    ),
    (
        Move("[id='draft']", "[id='^seq']"),
        "E_REGION",
        "^seq",
        Move("[id='draft']", "(d1, end)"),
    ),
    (
        Move("[id='draft']", "^root"),
        "E_REGION",
        "root",
        Move("[id='draft']", "^sys"),
    ),
    (
        Move("[id='box']", "[id='box']"),
        "E_PLACEMENT",
        "box",
        Move("[id='draft']", "[id='box']"),
    ),
    (
        Move("[id='box']", "[id='boxed']"),
        "E_PLACEMENT",
        "box",
        Move("[id='draft']", "[id='boxed']"),
    ),
    (
        Move("[id='draft']", "[id='nothing']"),
        "E_PLACEMENT",
        "nothing",
        Move("[id='draft']", "^sys"),
    ),
    (
        Move("[id='draft']", "[id='mc:1']"),
        "E_SEALED",
        "mc:1",
        Move("[id='draft']", "[id='posts']"),
    ),
    (
        Move("[id='asked']", "^ah"),
        "E_SEALED",
        "asked",
        Move("[id='found']", "^ah"),
    ),
    (
        Move("[id='post']", "[id='posts']"),
        "E_SEALED",
        "post",
        Move("[id='post']", "^sys"),
    ),
    // Compactions.
    (
        Compact("[id='nothing']", "{}"),
        "E_PLACEMENT",
        "nothing",
        Compact("[id='asked']", "{}"),
    ),
    (
        Compact("^seq > .mt, ^sys", "{}"),
        "E_REGION",
        "^sys",
        Compact("^seq > .mt", "{}"),
    ),
    (
        Compact("[id='mc:1']", "{}"),
        "E_SEALED",
        "mc:1",
        Compact("[id='mc:1'] > .cb", "{}"),
    ),
    (
        Compact("[id='held']", "{}"),
        "E_PINNED",
        "held",
        Compact("[id='rule']", "{}"),
    ),
    (
        Compact("[id='asked']", r#"{"id":"x","nodeType":"mt"}"#),
        "E_REGION",
        "x",
        Compact("[id='asked']", r#"{"id":"x"}"#),
    ),
    (
        Compact("[id='asked']", r#"{"ttl":0}"#),
        "E_HEADER",
        "ttl",
        Compact("[id='asked']", r#"{"ttl":1}"#),
    ),
    // References.
    (
        Pin("[id='nothing']"),
        "E_PLACEMENT",
        "nothing",
        Pin("[id='rule']"),
    ),
    (Pin("^ah > .cb"), "E_PLACEMENT", "2", Pin("[id='after']")),
    // Times: a mutation acts on the working state.
    (
        Remove("@t0 .cb"),
        "E_SELECTOR_INVALID",
        "",
        Remove("[id='draft']"),
    ),
    (
        Update("@c1 [id='held']", r#"{"ttl":1}"#),
        "E_SELECTOR_INVALID",
        "",
        Update("[id='held']", r#"{"ttl":1}"#),
    ),
];

#[test]
fn each_refusal_has_its_code_names_the_node_and_changes_nothing() {
    let mut wrong = Vec::new();
    for &(refused, code, named, allowed) in CASES {
        let (mut ctx, _held) = session();
        let before = bytes(&mut ctx);
        let cycle = ctx.cycle();
        match refused.run(&mut ctx) {
            Ok(()) => wrong.push(format!("{refused:?}: not refused")),
            Err(error) => {
                let (got, message) = (error.code().to_string(), error.to_string());
                if got != code && !code.is_empty() {
                    wrong.push(format!("{refused:?}: {got} instead of {code}: {message}"));
                }
                if !message.contains(named) {
                    wrong.push(format!("{refused:?}: no {named} in: {message}"));
                }
            }
        }
        if bytes(&mut ctx) != before || ctx.cycle() != cycle {
            wrong.push(format!("{refused:?}: something changed"));
        }
        let (mut other, _held_too) = session();
        for ctx in [&mut ctx, &mut other] {
            if let Err(error) = allowed.run(ctx) {
                wrong.push(format!("{allowed:?}: {}: {error}", error.code()));
            }
        }
        if bytes(&mut ctx) != bytes(&mut other) {
            wrong.push(format!("{refused:?}: it used up a time or an index"));
        }
        let after = [&mut ctx, &mut other].map(|ctx| {
            add(ctx, "^sys", r#"{"id":"last"}"#).unwrap();
            ctx.commit().unwrap();
            bytes(ctx)
        });
        if after[0] != after[1] {
            wrong.push(format!("{refused:?}: the next commit is another one"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A loose block in the core zone and a core container exclude each other.
#[test]
fn a_core_container_is_not_put_beside_loose_blocks() {
    let mut ctx = Context::builder().clock(Ticking::default()).build();
    add(&mut ctx, "^ah", r#"{"id":"loose"}"#).unwrap();
    let before = bytes(&mut ctx);
    let error = add(
        &mut ctx,
        "^ah",
        r#"{"id":"core","nodeType":"mc","offset":0}"#,
    )
    .unwrap_err();
    assert_eq!(error.code().to_string(), "E_PLACEMENT", "{error}");
    assert_eq!(bytes(&mut ctx), before);
    add(
        &mut ctx,
        "^ah",
        r#"{"id":"core","nodeType":"mc","offset":1}"#,
    )
    .unwrap();
}

/// What a core container cannot have.
#[test]
fn a_core_container_has_no_ttl_and_stays() {
    for member in [r#""ttl":1"#, r#""removable":true"#] {
        let mut ctx = Context::builder().clock(Ticking::default()).build();
        let node = format!(r#"{{"id":"core","nodeType":"mc","offset":0,{member}}}"#);
        let error = add(&mut ctx, "^ah", &node).unwrap_err();
        assert_eq!(error.code().to_string(), "E_HEADER", "{error}");
        add(
            &mut ctx,
            "^ah",
            &node.replace("\"offset\":0", "\"offset\":1"),
        )
        .unwrap();
    }
}

/// What to write instead of a member that a node cannot be given.
#[test]
fn unknown_members_are_answered_with_what_was_meant() {
    let help = |error: Error| error.first().help.clone().unwrap_or_default();
    for (member, expected) in [
        ("Role", "did you mean `role`?"),
        ("node_type", "did you mean `nodeType`?"),
        (
            "prority",
            "did you mean `priority`? if not, name it `data_prority`",
        ),
        ("text", "did you mean `content`?"),
        ("message", "did you mean `content`?"),
        ("type", "did you mean `nodeType` or `kind`?"),
        (
            "tool_calls",
            "a call is a block of kind `call` with `data_call_id`",
        ),
        ("tool_call_id", "did you mean `data_call_id`?"),
        ("x", "name it `data_x`"),
        ("color", "name it `data_color`"),
        ("cycle", "give `created_at_iso` to keep the time of a log"),
    ] {
        let (mut ctx, _held) = session();
        let error = add(&mut ctx, "^ah", &format!("{{\"{member}\":1}}")).unwrap_err();
        assert_eq!(help(error), expected, "{member}");
    }
    for (before, update, expected) in [
        ("{}", r#"{"cycle":3}"#, ""),
        (
            r#"{"tags":["a"]}"#,
            r#"{"tag":["b"]}"#,
            "set `tags` instead",
        ),
        (r#"{"tag":["a"]}"#, r#"{"tags":["b"]}"#, "set `tag` instead"),
        ("{}", r#"{"tag":["a"],"tags":["b"]}"#, "give one of them"),
    ] {
        let (mut ctx, _held) = session();
        let id = add(&mut ctx, "^sys", before).unwrap();
        let update = NewNode::json(update).unwrap();
        let error = ctx.update(&format!("[id='{id}']"), update).unwrap_err();
        assert_eq!(help(error), expected, "{before}");
    }
}

/// What is no request or no tool is refused at its place, and nothing has changed.
#[test]
fn parameters_and_tools_that_are_no_objects_are_refused() {
    let mut context = Context::new();
    let cases = [
        ("{model}", "expected a key in double quotes", Some(1)),
        (
            "[1]",
            "the parameters of a request must be a JSON object",
            None,
        ),
        (r#"{"a":1,"a":2}"#, "the key `a` is given twice", Some(7)),
    ];
    for (text, message, at) in cases {
        let error = context.set_request(text).unwrap_err();
        assert_eq!(error.code(), pactql::Code::Input, "{text}");
        assert!(
            error.message().contains(message),
            "{text}: {}",
            error.message()
        );
        if let Some(at) = at {
            assert_eq!(error.first().start(), at, "{text}");
        }
    }
    let error = context.set_tools(["nope"]).unwrap_err();
    assert!(
        error.message().starts_with("expected"),
        "{}",
        error.message()
    );
    let error = context.set_tools(["7"]).unwrap_err();
    assert_eq!(
        error.message(),
        "the definition of a tool must be a JSON object"
    );
    assert!(!context.is_changed());
}

/// A context that nothing keeps says so instead of saving nothing.
#[cfg(feature = "store")]
#[test]
fn saving_without_a_store_is_refused() {
    let error = Context::new().save().unwrap_err();
    assert_eq!(error.code(), pactql::Code::Store);
    assert!(
        error
            .first()
            .help
            .as_ref()
            .is_some_and(|help| help.contains("SessionFile::save"))
    );
}
