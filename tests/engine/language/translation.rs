//! Translation between editions: what each construct becomes, and what has no words.

use super::{Edition, lowered};
use pactql::diag::ColorChoice;
use pactql::ir::translate;

use Edition::{Canonical, Depth, V01};

/// Each selector says in the other edition what stands beside it.
#[track_caller]
fn becomes(from: Edition, to: Edition, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let said = translate(text, from, to);
        let shown = said.as_ref().map_err(|e| e.render(ColorChoice::Never));
        assert_eq!(
            shown,
            Ok(&(*expected).to_owned()),
            "{from} to {to}: `{text}`"
        );
        lowered(expected, to);
    }
}

/// Each selector cannot be said in the other edition: the place, and words of the message, the
/// label or the reason.
#[track_caller]
fn has_no_words(from: Edition, to: Edition, cases: &[(&str, &str, &str)]) {
    for (text, underlined, says) in cases {
        lowered(text, from);
        let Err(error) = translate(text, from, to) else {
            panic!("{from} to {to}: `{text}`");
        };
        let shown = error.render(ColorChoice::Never);
        assert_eq!(error.code().as_str(), "E_EDITION", "{shown}");
        let span = error.first().labels[0].span.clone();
        assert_eq!(&text[span], *underlined, "{shown}");
        assert!(shown.contains(says), "`{text}` ({says}): {shown}");
        assert!(shown.contains(to.as_str()), "{shown}");
    }
}

#[test]
fn from_the_first_edition() {
    becomes(
        V01,
        Canonical,
        &[
            (".cb", "@t0 .cb"),
            ("#cb:u1", "@t0 {id='cb:u1'}"),
            (".cb:summary", "@t0 {stored_type='cb:summary'}"),
            (".foo[kind=x]", "@t0 {stored_type='foo', stored_kind='x'}"),
            ("^seq", "@t0 [stored_type='^seq']"),
            ("^seq > .mt:first", "@t0 ^seq > .mt:first"),
            ("@t-3..@t0 .cb", "@t0..@t-3 .cb"),
        ],
    );
    becomes(
        V01,
        Depth,
        &[
            ("#cb:u1 .cb", "@t0 #cb:u1 .cb"),
            ("#'a b'", "@t0 #'a b'"),
            ("#'a:first'", "@t0 #'a:first'"),
            (".cb:summary", "@t0 [nodeType='cb:summary']"),
            ("[nodeType='cb']", "@t0 [nodeType<='cb'][nodeType>='cb']"),
            (
                ".foo[kind=x]",
                "@t0 [nodeType<='foo'][nodeType>='foo'][kind='x']",
            ),
            ("^seq", "@t0 ^root > ^seq"),
            ("^seq .mc", "@t0 ^seq .mc"),
            (":depth(2) > :core", "@t0 depth(2) > :core"),
            (".cb[role='user'][ttl<2]", "@t0 .cb[role='user'][ttl<2]"),
            ("@* none", "@* none"),
        ],
    );
    has_no_words(
        V01,
        Depth,
        &[
            (".cb[kind=call]", "kind=call", "where no kind is stored"),
            (".cb [kind=null]", "kind=null", "`canonical` has it"),
            (".cb:x[kind=x]", "kind=x", "such nodes too"),
            ("[type=$t]", "type=$t", "whose type starts with it"),
        ],
    );
}

#[test]
fn to_the_first_edition() {
    becomes(
        Depth,
        V01,
        &[
            ("@t0 ^seq", "@t0 ^seq > .mt"),
            ("@t0 ^seq .cb", "@t0 ^seq .cb"),
            ("@t0 #a .cb", "@t0 #a .cb"),
            ("@t0 depth(0) > .cont(offset=0)", "@t0 ^ah > .mc[offset=0]"),
            ("@t0 depth(-1)", "@t0 ^sys"),
            ("@t0 depth(2)", "@t0 *:depth(2)"),
            ("@t0 depth(>=2)", "@t0 *:depth(2..9223372036854775807)"),
            (
                "@t0 depth(0,1-2) > .mc",
                "@t0 ^ah > .mc, *:depth(1..2) > .mc",
            ),
            (
                "@t0 depth(1)[role=user] .cb",
                "@t0 ^seq > .mt[role='user']:depth(1) .cb",
            ),
            (
                "@t0 ^root depth(1)[x]",
                "@t0 ^root ^seq > .mt[x!=null]:depth(1)",
            ),
            ("@t0 .mt:depth(0)", "@t0 ^ah, ^ah .mt"),
            ("@t0 .cb:depth(<=1)", "@t0 ^sys .cb, ^ah .cb, .cb:depth(1)"),
            ("@t0 .cb:depth(0):first", "@t0 ^ah .cb:first"),
            ("@t0 .cb(role=user, ttl<2)", "@t0 .cb[role='user'][ttl<2]"),
            ("@t0 (d1, seg, cont, block)", "@t0 *:depth(1) > .mc > .cb"),
            ("@t0 (cont)", "@t0 ^root > .mc"),
            (
                "@t0 .cb:call",
                "@t0 [nodeType='cb'][kind='call'], .cb:call[kind=null], \
                 [nodeType<'cb;'][nodeType>='cb:'][kind='call']",
            ),
            ("@t0 .foo", "@t0 .foo, [nodeType<'foo;'][nodeType>='foo:']"),
            ("@t0 [nodeType='cb:x']", "@t0 .cb:x"),
        ],
    );
    becomes(
        Canonical,
        V01,
        &[
            ("@t0 #hero", "@t0 [key='hero']"),
            ("@t0 #hero [x]", "@t0 [key='hero'][x!=null]"),
            ("@history .cb", "@t0..@t-* .cb"),
            ("@t0 .cb+a +b", "@t0 .cb[tags='a'][tags='b']"),
            ("@t0 .cb[ephemeral]", "@t0 .cb[ttl=1]"),
            ("@t0 .cb[role=user, ttl=1]", "@t0 .cb[role='user'][ttl=1]"),
            (
                "@t0 .cb[role=[user,tool]]",
                "@t0 .cb[role='tool'], .cb[role='user']",
            ),
            (
                "@t0 .cb[role!=[user,tool]]",
                "@t0 .cb[role!='tool'][role!='user']",
            ),
            ("@t0 .mc, .cb {x}", "@t0 .mc[x!=null], .cb[x!=null]"),
            ("@t0 ^ah :pre {x}", "@t0 ^ah :pre > [x!=null]"),
            (
                "@t0 within(d1) ?? {role=user}",
                "@t0 *:depth(1) [role='user']",
            ),
            ("@t0 .cb @order=pre", "@t0 .cb"),
            ("@t0 .cb[stored_kind=x]", "@t0 .cb[kind='x']"),
            ("@t0 .cb[ttl<1][ttl>1]", "@t0 none"),
        ],
    );
    has_no_words(
        Depth,
        V01,
        &[
            (".cb", ".cb", "no time means `@t0`"),
            ("@t0 .cb[kind=call]", "kind=call", "the stored kind alone"),
            ("@t0 .cb[age<2]", "age<2", "the facet `age`"),
            ("@t0 .mc > .cb:depth(0)", ":depth(0)", "at this place"),
            (
                "@t0 depth(0..1):first",
                ":first",
                "a pick takes from one group",
            ),
            (
                "@t0..@t-1 .cb @mode=union",
                "@mode=union",
                "answers pairwise",
            ),
            ("@t0 [nodeType=$t]", "nodeType=$t", "the whole nodeType"),
        ],
    );
}

#[test]
fn to_the_second_edition() {
    becomes(
        Canonical,
        Depth,
        &[
            ("#hero", "[key='hero']"),
            ("{id=a}", "#a"),
            ("^seq", "depth(>=1)"),
            ("^ah > .mc:core", "^ah > .mc[offset=0]"),
            (".cb:call", ".cb:call"),
            (".foo", ".foo"),
            ("[kind=call]", "[kind='call']"),
            (".cb:core[sticky]", ".cb[offset=0][ttl=1][cadence=1]"),
            ("[stored_type='^seq']", "^root > ^seq"),
            (
                "@t0..@t-1 .cb:first @mode=latest {x}",
                "@t0..@t-1 .cb:first @mode=latest [x!=null]",
            ),
            ("@t0 .cb[age<2]", "@t0 .cb[age<2]"),
            ("(d1) ? {role=user}", "depth(1) > [role='user']"),
        ],
    );
    has_no_words(
        Canonical,
        Depth,
        &[
            (".cb @limit=3", "@limit=3", "`@limit` cannot be said"),
            (".cb @first", "@first", "come whole"),
            (".cb @unique", "@unique", "`canonical` has it"),
            (".cb @order=bfs", "@order=bfs", "in their own order"),
            ("#hero @order=pre", "@order=pre", "`@order`"),
            (".cb[role~'^u']", "role~'^u'", "whole values only"),
            (".cb[x=[a,b]]", "x=[a,b]", "hold all of them"),
            (".cb:first {x}", "{x}", "before any pick"),
            (".cb[stored_kind=x]", "stored_kind=x", "such nodes too"),
            (".mt[role=[a,b]]:first", ":first", "a pick"),
        ],
    );
}

/// A union may have as many groups as any selector, and no more.
#[test]
fn sizes() {
    let list = |count: usize| {
        let values: Vec<String> = (0..count).map(|value| format!("v{value}")).collect();
        format!(".cb[role=[{}]]", values.join(","))
    };
    assert!(translate(&list(256), Canonical, Depth).is_ok());
    for text in [
        list(257),
        [list(100), list(99).replace(".cb", ".mt"), list(58)].join(", "),
        format!("{} {} {}", list(40), list(40), list(40)),
        list(1_000).replace("role", "nodeType"),
    ] {
        let error = translate(&text, Canonical, Depth);
        let message = error.err().map(|error| error.message().to_owned());
        assert_eq!(
            message.as_deref(),
            Some("a selector of this size cannot be said in edition `depth`")
        );
    }
}
