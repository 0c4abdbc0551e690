//! Properties of parsing, printing and lowering: printing is the inverse of parsing, canonical text
//! is a fixed point, and no text panics, recurses or takes more than linear time.

use std::time::{Duration, Instant};

use pactql::internals::ir::{Edition, compile_observed, desugar, short_node};
use pactql::internals::syntax::{parse, parse_node, quote};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::advised::{compile, compile_place};
use crate::support::print;

/// Pieces of valid selectors, joined into selectors that are mostly valid.
fn part() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "^root",
            "^sys",
            "^seq",
            "^ah",
            "*",
            ".mt",
            ".seg",
            ".mc",
            ".cb",
            ".block",
            ".cb:summary",
            ".foo:bar",
            ".mt:depth(1)",
            "#a",
            "#'b c'",
            "#$k",
            "+t",
            "+'u v'",
            ":first",
            ":last",
            ":core",
            ":pre",
            ":post",
            ":nth(2)",
            ":nth($n)",
            ":depth(1-3)",
            ":depth(<=0,{2,4})",
            "depth(>=1)",
            "depth(0)",
            ".cb(role=user kind='x')",
            "[ephemeral]",
            "[stored_type='^seq']",
            "[x, y=1]",
            "[offset]",
        ])
        .prop_map(str::to_owned),
        prop().prop_map(|prop| format!("[{prop}]")),
    ]
}

fn prop() -> impl Strategy<Value = String> {
    let name = select(vec![
        "role",
        "kind",
        "nodeType",
        "type",
        "key",
        "id",
        "ttl",
        "offset",
        "priority",
        "tag",
        "x",
        "'my key'",
        "data_y",
        "depth",
        "age",
        "created_at_ns",
        "content",
        "stored_kind",
        "cad",
        "bytes",
        "tokens",
    ]);
    let op = select(vec!["=", "!=", "<", "<=", ">", ">=", "~"]);
    let value = prop_oneof![
        select(vec![
            "user",
            "'a\\'b'",
            "\"\\\\d\"",
            "null",
            "true",
            "0",
            "-1",
            "007",
            "1.50",
            "2.0",
            "$p",
            "[a, 'b']",
            "[1, 2, 1]",
            "[$p, 3]",
            "'block'",
            "seg:x",
            "1e5",
            "''",
        ])
        .prop_map(str::to_owned),
        any::<i64>().prop_map(|number| number.to_string()),
        "[a-zé\\\\' ]{0,6}".prop_map(|text| pactql::internals::syntax::quote(&text)),
    ];
    (name, op, value).prop_map(|(name, op, value)| format!("{name}{op}{value}"))
}

fn step() -> impl Strategy<Value = String> {
    prop::collection::vec(part(), 1..4).prop_map(|parts| parts.concat())
}

fn group() -> impl Strategy<Value = String> {
    (
        step(),
        prop::collection::vec((select(vec![" ", " > ", ">"]), step()), 0..4),
    )
        .prop_map(|(first, rest)| {
            rest.into_iter()
                .fold(first, |text, (how, step)| text + how + &step)
        })
}

fn hop() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec![
            "d1",
            "d0",
            "d-1",
            "d1..d3",
            "depth(>=2)",
            "seg",
            "cont",
            "block",
            "*",
            "0",
            "-2",
            "*:block",
            "1:cont",
            "block.call",
            "block:call",
            "cont[offset=0]",
            "*{x}",
            "end",
            "+1",
            "seg(role=user)",
            "*:cb.x[y]",
        ])
        .prop_map(str::to_owned),
        prop().prop_map(|prop| format!("?{{{prop}}}")),
    ]
}

fn body() -> impl Strategy<Value = String> {
    let position =
        || prop::collection::vec(hop(), 1..5).prop_map(|hops| format!("({})", hops.join(", ")));
    let braces = || {
        prop::collection::vec(prop(), 1..4).prop_map(|props| format!("{{{}}}", props.join(", ")))
    };
    prop_oneof![
        6 => prop::collection::vec(group(), 1..4).prop_map(|groups| groups.join(", ")),
        2 => position(),
        1 => braces(),
        1 => (position(), select(vec!["?", "??"]), braces())
            .prop_map(|(scope, sign, attrs)| format!("{scope} {sign} {attrs}")),
        1 => (position(), braces()).prop_map(|(scope, attrs)| format!("within{scope} ?? {attrs}")),
        1 => Just("none".to_owned()),
    ]
}

fn selector() -> impl Strategy<Value = String> {
    let time = select(vec![
        "",
        "",
        "@t0 ",
        "@t-3 ",
        "@c7 ",
        "@* ",
        "@t-3..@t0 ",
        "@t0..@t-* ",
        "@c3:9 ",
        "@history ",
        "@t-5..-1 ",
    ]);
    let filter = prop_oneof![
        prop().prop_map(|prop| format!(" {{{prop}}}")),
        prop().prop_map(|prop| format!(" [{prop}]")),
        select(vec![
            " +a",
            " +'b c'",
            " @limit=5",
            " @p=2",
            " @first",
            " @unique",
            " @order=bfs",
            " @order=turn:desc,pre",
            " @mode=union",
            " @limit=$n",
        ])
        .prop_map(str::to_owned),
    ];
    (time, body(), prop::collection::vec(filter, 0..4))
        .prop_map(|(time, body, filters)| format!("{time}{body}{}", filters.concat()))
}

fn edition() -> impl Strategy<Value = Edition> {
    select(Edition::ALL.to_vec())
}

/// The short form of a node, mostly valid.
fn node() -> impl Strategy<Value = String> {
    let head = select(vec![
        "block:text",
        "cb",
        "cont",
        "seg:x:y",
        "memory",
        "cb:first",
        "1b",
    ]);
    let value = prop_oneof![
        select(vec![
            "hero",
            "-12",
            "+1.50",
            "null",
            "true",
            "[a, 1, 'b c']",
            "[]",
            "$p",
            "''"
        ])
        .prop_map(str::to_owned),
        ".{0,6}".prop_map(|text| quote(&text)),
    ];
    let names = vec![
        "key", "ttl", "tag", "data_x", "'my key'", "kind", "nodeType", "cad",
    ];
    let prop = (
        select(names),
        select(vec!["=", "=", "=", " = ", "!="]),
        value,
    );
    let brace = proptest::collection::vec(prop, 0..3).prop_map(|props| {
        let props: Vec<String> = props
            .iter()
            .map(|(n, op, v)| format!("{n}{op}{v}"))
            .collect();
        format!("{{{}}}", props.join(", "))
    });
    let tag = select(vec!["+a", "+2024-q3", "+'to do'", "+"]).prop_map(str::to_owned);
    let parts = proptest::collection::vec(prop_oneof![brace, tag], 0..4);
    let content = proptest::option::of("(?s).{0,12}");
    (head, parts, content, select(vec!["", " ", "\n"])).prop_map(|(head, parts, content, space)| {
        let content = content.map(|text| quote(&text)).unwrap_or_default();
        format!("{head}{space}{}{space}{content}", parts.join(space))
    })
}

proptest! {
    #![proptest_config(crate::support::random::property(16_000))]

    /// parse ∘ print is the identity on short forms of nodes, and keeps their members.
    #[test]
    fn printing_nodes_is_the_inverse_of_parsing(text in node(), edition in edition()) {
        if let Ok(tree) = parse_node(&text) {
            let printed = print::node(&tree);
            let again = parse_node(&printed);
            prop_assert_eq!(again.as_ref(), Ok(&tree), "{} printed as {}", text, printed);
            let members = |text: &str| short_node(text, edition).map(|members| {
                members.into_iter().map(|one| (one.name, one.json)).collect::<Vec<_>>()
            });
            prop_assert_eq!(members(&text).ok(), members(&printed).ok());
        }
    }

    /// A quoted content is the text that was quoted, whatever its characters.
    #[test]
    fn any_content_survives_quoting(content in "(?s).{0,40}") {
        let members = short_node(&format!("cb {}", quote(&content)), Edition::Canonical);
        let json = members.ok().and_then(|mut members| members.pop()).map(|one| one.json);
        let read = json.and_then(|json| serde_json::from_str::<String>(&json).ok());
        prop_assert_eq!(read, Some(content));
    }

    /// parse ∘ print is the identity on trees.
    #[test]
    fn printing_is_the_inverse_of_parsing(text in selector()) {
        let printed = parse(&text).map(|tree| print::selector(&tree));
        if let (Ok(tree), Ok(printed)) = (parse(&text), &printed) {
            let again = parse(printed);
            prop_assert_eq!(again.as_ref().ok(), Some(&tree), "{} printed as {}", text, printed);
        }
    }

    /// Canonical text, read in the canonical edition, is the same query without warnings, and
    /// prints as itself.
    #[test]
    fn canonical_text_is_a_fixed_point(text in selector(), edition in edition()) {
        if let Ok(lowered) = compile(&text, edition) {
            let canonical = lowered.query.to_string();
            match compile(&canonical, Edition::Canonical) {
                Ok(again) => {
                    prop_assert_eq!(&again.query, &lowered.query, "{} printed as {}", text, canonical);
                    prop_assert_eq!(&again.query.to_string(), &canonical);
                    prop_assert_eq!(again.warnings, [], "{} printed as {}", text, canonical);
                }
                Err(error) => prop_assert!(false, "{} printed as {}: {}", text, canonical, error),
            }
        }
    }

    /// Sugar is reported with its place, and canonical text has none.
    #[test]
    fn canonical_text_is_free_of_sugar(text in selector(), edition in edition()) {
        if let Ok(lowered) = compile(&text, edition) {
            let sugar = desugar(&text, edition).unwrap_or_default();
            for pair in sugar.windows(2) {
                prop_assert!(pair[0].start <= pair[1].start);
            }
            for one in &sugar {
                prop_assert_eq!(text.get(one.start..one.end), Some(&*one.written));
                prop_assert!(!one.normal.is_empty(), "{:?} in {}", one, text);
            }
            let canonical = lowered.query.to_string();
            let left = desugar(&canonical, Edition::Canonical);
            prop_assert_eq!(left.as_ref(), Ok(&Vec::new()), "{} as {}", text, canonical);
        }
    }

    /// A suggested rewrite is a valid selector of the edition, or of the edition that the help
    /// names.
    #[test]
    fn advice_can_be_taken(text in selector(), edition in edition()) {
        let Err(error) = compile(&text, edition) else { return Ok(()) };
        if error.diagnostics().any(|one| one.code.map(|code| code.as_str()) != Some("E_EDITION")) {
            return Ok(());
        }
        let help = error.first().help.clone().unwrap_or_default();
        let parts: Vec<&str> = help.split('`').collect();
        // A suggestion may be only a part of the selector: a time or a name.
        let part = |said: &str| matches!(said, "@t0..@t-*" | "nodeType" | "kind");
        match parts.as_slice() {
            ["write ", said, ""] | ["write ", said, ", or choose edition ", _, ""] => {
                prop_assert!(part(said) || compile(said, edition).is_ok(), "{}: {}", text, help);
            }
            ["write ", said, ", or in edition ", other, " ", text, ""] => {
                prop_assert!(compile(said, edition).is_ok(), "{}: {}", text, help);
                let other = other.parse::<Edition>().unwrap_or_default();
                prop_assert!(compile(text, other).is_ok(), "{}: {}", text, help);
            }
            ["edition ", other, " has it: ", text, ""] => {
                let other = other.parse::<Edition>().unwrap_or_default();
                prop_assert!(compile(text, other).is_ok(), "{}: {}", text, help);
            }
            ["edition ", _, " has it"] => {}
            _ => prop_assert!(help.contains("for the attribute of that name"), "{}: {}", text, help),
        }
    }

    /// Errors point into the text and are sorted.
    #[test]
    fn errors_point_into_the_text(
        text in prop_oneof![
            selector(),
            ".{0,40}",
            prop::collection::vec(
                select(vec![
                    "@t0", "@", "..", ":", " ", ">", ",", ".cb", ".", "#", "#a", "[", "]", "{", "}",
                    "(", ")", "=", "~", "'", "\"", "\\", "+", "+t", "?", "??", "d1", "5", "-", "$x",
                    "within(", "depth(", ":depth(", ":nth(", "none", "é", "\u{a0}", "\0", "@limit=",
                    "role", "99999999999999999999", "1.5", "*", "^seq", "end",
                ]),
                0..20,
            ).prop_map(|tokens| tokens.concat()),
        ],
        cut in any::<prop::sample::Index>(),
        edition in edition(),
    ) {
        let mut end = cut.index(text.len() + 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        for text in [text.as_str(), &text[..end]] {
            if let Err(error) = compile(text, edition) {
                let mut last = 0;
                for diagnostic in error.diagnostics() {
                    let span = diagnostic.labels[0].span.clone();
                    prop_assert!(text.get(span.clone()).is_some(), "{:?} in {:?}", span, text);
                    prop_assert!(span.start >= last);
                    last = span.start;
                }
                prop_assert!(!error.to_text(pactql::ColorChoice::Never).is_empty());
            }
        }
    }
}

proptest! {
    // A time is refused in each, and a refusal costs many attempts at a correction.
    #![proptest_config(crate::support::random::property(1_600))]

    /// Without an insertion point, a place is the selector, but for the time that is left out; and no
    /// text makes a place panic.
    #[test]
    fn places_are_selectors(text in selector()) {
        let place = compile_place(&text, Edition::Canonical);
        if let (Ok(place), Ok(lowered)) = (&place, compile(&text, Edition::Canonical)) {
            prop_assert_eq!(&place.query, &lowered.query);
        }
        if let Err(error) = &place {
            for label in error.diagnostics().flat_map(|one| &one.labels) {
                prop_assert!(text.get(label.span.clone()).is_some(), "{}: {:?}", text, label);
            }
            if let Some(corrected) = error.first().correction() {
                prop_assert!(compile_place(corrected, Edition::Canonical).is_ok(), "{}", corrected);
            }
        }
    }
}

/// Any bytes, read as text as the command line reads them; errors mark parts of it.
#[test]
fn random_bytes_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..crate::support::random::share(20_000) {
        let mut bytes = Vec::new();
        for _ in 0..state % 48 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            bytes.push(u8::try_from(state >> 56).unwrap_or_default());
        }
        state = state.wrapping_add(0x1234_5678_9abc_def1).rotate_left(17);
        let text = String::from_utf8_lossy(&bytes);
        for edition in Edition::ALL {
            let errors = [
                compile(&text, edition).err(),
                compile_place(&text, edition).err(),
                short_node(&text, edition).err(),
            ];
            let errors = errors.iter().flatten();
            for label in errors.flat_map(|error| error.diagnostics().flat_map(|one| &one.labels)) {
                assert!(
                    text.get(label.span.clone()).is_some(),
                    "{text:?}: {label:?}"
                );
            }
        }
    }
}

/// Repeated pieces fill a selector of the largest size, and one of a megabyte.
#[test]
fn large_and_deep_selectors_take_linear_time() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let pieces = [
        "(",
        "[",
        "{",
        ")",
        "]",
        "}",
        ".cb ",
        ".cb,",
        ".cb>",
        "> ",
        ", ",
        "@t0 ",
        "#",
        "+a ",
        "'",
        "\"\\",
        "[a=",
        "[[",
        "{a,",
        "(d1,",
        ":depth(",
        ":depth(1,",
        "depth({",
        ":nth(",
        "? ",
        "?? ",
        "within(",
        "é",
        "\u{a0}",
        "[x] ",
        "[x][y]",
        ".cb[",
        "$",
        "a",
        "1",
        "..",
        ":first",
        "@limit=1 ",
        "{x}",
        "none ",
        "[a=[1,",
        "\\",
        "\0",
        "#a:b:c:",
        ".mt:first:",
        "a=b ",
    ];
    let budget = Duration::from_secs(20);
    let start = Instant::now();
    for piece in pieces {
        for size in [64 * 1024, 1_000_000] {
            let text = piece.repeat(size / piece.len());
            for edition in [Edition::V01, Edition::Canonical] {
                let outcome = compile(&text, edition);
                if let Err(error) = outcome {
                    let shown: usize = error
                        .diagnostics()
                        .take(3)
                        .map(|one| {
                            pactql::internals::diag::render_diagnostic(
                                &text,
                                one,
                                Default::default(),
                            )
                            .len()
                        })
                        .sum();
                    assert!(shown < 20_000, "{piece:?}: {shown}");
                }
            }
        }
        // Far above the time of a linear run, far below that of a quadratic one.
        assert!(start.elapsed() < budget, "too slow at {piece:?}");
    }
}

/// An observer sees the passes by name, in order.
#[test]
fn observers_see_each_pass() {
    let mut seen = Vec::new();
    let lowered = compile_observed(
        ".cb[b][a], .mt[ttl<1][ttl>2]",
        Edition::Canonical,
        &mut |name, query| seen.push(format!("{name}: {query}")),
    );
    assert!(lowered.is_ok());
    assert_eq!(
        seen,
        [
            "lower: .cb[b!=null][a!=null], .mt[ttl<1][ttl>2]",
            "conditions: .cb[b!=null][a!=null], .mt[ttl<1][ttl>2]",
            "types: .cb[b!=null][a!=null], .mt[ttl<1][ttl>2]",
            "order: .cb[a!=null][b!=null], .mt[ttl<1][ttl>2]",
            "contradictions: .cb[a!=null][b!=null]",
            "groups: .cb[a!=null][b!=null]",
        ]
    );
}
