//! LANGUAGE §5: comparing.

use super::check;
use crate::support::selector::Edition::{Canonical, Depth, V01};

const HEADERS: &str = "
root -
  ah ^ah
    a cb ttl=0 priority=5 role=user created_at_ns=1763000000000000001
    b cb ttl=2 role=tool cycle=3 creation_index=1 created_at_ns=1763000000000000002
    c cb ttl=10 role=\"\" kind=\"10\" cadence=1 created_at_ns=1763000000000000003
    d cb role=assistant kind=\"9\" key=\"007\" priority=-1 created_at_ns=1763000000000000004
";

#[test]
fn numeric_headers() {
    check(
        V01,
        HEADERS,
        &[
            ("=", "[ttl=2]", "b"),
            ("< is numeric", "[ttl<10]", "a b"),
            ("<=", "[ttl<=10]", "a b c"),
            (">", "[ttl>2]", "c"),
            (">=", "[ttl>=2]", "b c"),
            ("!= is the complement", "^ah > [ttl!=2]", "a c d"),
            ("null with =", "^ah > [ttl=null]", "d"),
            ("null with !=", "^ah > [ttl!=null]", "a b c"),
            ("[a] is present", "^ah > [ttl]", "a b c"),
            (
                "an ordering with null is never true",
                "[ttl<null], [ttl>=null]",
                "",
            ),
            (
                "an absent one is in no ordering",
                ".cb[cycle<99], .cb[cycle>=99]",
                "b",
            ),
            ("a decimal", "^ah > [ttl<2.5]", "a b"),
            ("an integer is an equal decimal", "[ttl=2.0]", "b"),
            ("negative", "[priority=-1]", "d"),
            (
                "nanoseconds are exact",
                "[created_at_ns=1763000000000000003]",
                "c",
            ),
            (
                "and in order",
                ".cb[created_at_ns>1763000000000000002]",
                "c d",
            ),
            (
                "against a decimal too: this one reads as 1763000000000000000",
                ".cb[created_at_ns<=1763000000000000002.0]",
                "",
            ),
            ("creation_index", "[creation_index=1]", "b"),
            ("cadence", "[cadence=1]", "c"),
            ("cad", "[cad=1]", "c"),
            ("a text is an error", "[ttl='2']", "E_SELECTOR_INVALID"),
            (
                "a word is an error",
                "[priority=high]",
                "E_SELECTOR_INVALID",
            ),
            ("also in an ordering", "[offset<'0']", "E_SELECTOR_INVALID"),
        ],
    );
}

#[test]
fn string_headers() {
    check(
        V01,
        HEADERS,
        &[
            ("=", "[role='user']", "a"),
            ("case-sensitive", "[role='User']", ""),
            ("!= includes nodes without it", "^ah > [kind!='9']", "a b c"),
            ("the empty string is not null", ".cb[role='']", "c"),
            ("and is present", "^ah > [role]", "a b c d"),
            ("orderings are lexicographic", ".cb[kind<'9']", "c"),
            ("a number compares as written", "[key=007]", "d"),
            ("not as its value", "[key=7]", ""),
            ("a bare word", "[role=tool]", "b"),
            ("id", "[id='b']", "b"),
            ("id orderings", "^ah > [id>='c']", "c d"),
            ("parent", "[parent='ah']", "a b c d"),
            ("parent_id", "[parent_id=ah]", "a b c d"),
            ("the root has no parent", "[parent=null]", "root"),
            ("content_hash is computed", "*[content_hash=null]", ""),
            ("absent with an ordering", ".cb[key<'zzz']", "d"),
        ],
    );
}

#[test]
fn text_orders_by_code_point() {
    let outline = "
root -
  ah ^ah
    a cb data_s=Z
    b cb data_s=a
    c cb data_s=é
    d cb data_s=日
    e cb data_s=😀
    f cb data_s=\u{ffff}
";
    check(
        V01,
        outline,
        &[
            ("capitals before small letters", ".cb[data_s<'a']", "a"),
            ("beyond ASCII", ".cb[data_s>'z']", "c d e f"),
            (
                "above the basic plane comes last",
                ".cb[data_s>'\u{ffff}']",
                "e",
            ),
        ],
    );
}

#[test]
fn content_and_hashes() {
    let outline = "
root -
  ah ^ah
    a cb content=hello
    b cb content=\"\"
    c cb content=hello content_hash=stored
    d cb content=5
    e cb content={\"x\":1}
";
    check(
        V01,
        outline,
        &[
            ("content", "[content='hello']", "a c"),
            ("an empty content is not null", ".cb[content]", "a b c d e"),
            ("an object equals nothing", ".cb[content!='hello']", "b d e"),
            ("the stored hash wins", "[content_hash='stored']", "c"),
            (
                "a computed hash is 64 digits",
                ".cb[content_hash!='stored']",
                "a b d e",
            ),
        ],
    );
}

#[test]
fn custom_attributes() {
    let outline = "
root -
  ah ^ah
    a cb data_v=10
    b cb data_v=\"10\"
    c cb data_v=9.5
    d cb data_v=abc
    e cb data_v=true
    f cb data_v=\"true\"
    g cb data_v=[1,\"x\",true]
    h cb data_v={\"x\":1}
    i cb data_v=null
    j cb data_v=\"\"
    k cb data_v=[]
    l cb data_v=18446744073709551616
    m cb status=done removable=true provenance=model:x
";
    check(
        V01,
        outline,
        &[
            ("= keeps the type: a number", ".cb[data_v=10]", "a"),
            ("= keeps the type: a text", ".cb[data_v='10']", "b"),
            ("a decimal is its integer", ".cb[data_v=10.0]", "a"),
            ("booleans are texts", ".cb[data_v='true']", "e f g"),
            ("true is that text", ".cb[data_v=true]", "e f g"),
            ("a list: membership", ".cb[data_v='x']", "g"),
            ("a list: membership of a number", ".cb[data_v=1]", "g"),
            ("a list: not the text of the number", ".cb[data_v='1']", ""),
            ("absent and null are null", ".cb[data_v=null]", "i m"),
            ("the empty string is not null", ".cb[data_v='']", "j"),
            (
                "the empty list is not null",
                ".cb[data_v]",
                "a b c d e f g h j k l",
            ),
            (
                "!= is the complement",
                ".cb[data_v!=10]",
                "b c d e f g h i j k l m",
            ),
            (
                "orderings are numeric where both read as numbers",
                ".cb[data_v>9.9]",
                "a b d e f l",
            ),
            (
                "a quoted number reads as one",
                ".cb[data_v>='10']",
                "a b d e f l",
            ),
            ("else they are textual", ".cb[data_v<'b']", "a b c d j l"),
            (
                "lists and objects are in no ordering",
                ".cb[data_v<='zzz']",
                "a b c d e f j l",
            ),
            (
                "integers beyond 64 bits",
                ".cb[data_v>9223372036854775807]",
                "d e f l",
            ),
            (
                "any other name",
                "[status='done'][removable=true][provenance='model:x']",
                "m",
            ),
            (
                "unknown names match nothing where absent",
                "[nowhere='x']",
                "",
            ),
            ("and are null", "#m[nowhere=null]", "m"),
        ],
    );
}

#[test]
fn numbers_of_any_length_are_exact() {
    let zeros = "0".repeat(399);
    let outline = format!(
        "
root -
  ah ^ah
    a cb data_v=10000000000000000000000000000000000000000
    b cb data_v=10000000000000000000000000000000000000001
    c cb data_v=1{zeros}0
    d cb data_v=\"1{zeros}1\"
    e cb data_v=\"1{zeros}0.5\"
    f cb data_v=-1{zeros}0
    g cb data_v=9007199254740993
    h cb data_v=9007199254740992.0
    i cb data_v=1e40
"
    );
    let rest = format!("@t0 .cb[data_v>'1{zeros}0']");
    let middle = format!("@t0 .cb[data_v>='1{zeros}0.5']");
    let below = format!("@t0 .cb[data_v<'1{zeros}0.5']");
    check(
        V01,
        &outline,
        &[
            ("above a small one", ".cb[data_v>5]", "a b c d e g h i"),
            ("below a small one", ".cb[data_v<5]", "f"),
            ("equal to a decimal", ".cb[data_v=1e40]", ""),
            (
                "integer and decimal",
                ".cb[data_v<=9007199254740992]",
                "f h",
            ),
            ("not rounded", ".cb[data_v=9007199254740993]", "g"),
            (
                "a decimal is a double",
                ".cb[data_v=9007199254740993.0]",
                "h",
            ),
            (
                "beyond 128 bits",
                ".cb[data_v>'10000000000000000000000000000000000000000']",
                "b c d e i",
            ),
            ("beyond a double", &rest, "d e"),
            ("with decimals there", &middle, "d e"),
            ("below those", &below, "a b c f g h i"),
        ],
    );
}

#[test]
fn numeric_headers_at_the_ends_of_their_range() {
    let outline = "
root -
  ah ^ah
    a cb priority=9223372036854775807
    b cb priority=-9223372036854775808
    c cb
";
    check(
        V01,
        outline,
        &[
            (
                "all lie below 2^63",
                ".cb[priority<9223372036854775808.0]",
                "a b c",
            ),
            ("or at it", ".cb[priority<=9223372036854775808.0]", "a b c"),
            (
                "a decimal beside it is the same double",
                ".cb[priority<9223372036854775807.5]",
                "a b c",
            ),
            ("none is above", ".cb[priority>=9223372036854775808.0]", ""),
            (
                "all but one are above -2^63",
                ".cb[priority>-9223372036854775808.0]",
                "a c",
            ),
            ("one is at it", ".cb[priority<=-9223372036854775808.0]", "b"),
            ("and equal", ".cb[priority=-9223372036854775808.0]", "b"),
        ],
    );
}

#[test]
fn headers_with_an_alias() {
    let outline = "
root -
  ah ^ah
    a cb tag=x tags=y
    b cb tag=x tags=null
    c cb tag=null tags=x
    d cb tag=null tags=null
    e cb cad=1 cadence=2
    f cb cad=2 cadence=null
    g cb cad=null cadence=2
    h cb cad=2
    i cb cad=null
";
    for edition in [V01, Depth, Canonical] {
        check(
            edition,
            outline,
            &[
                ("the name wins", "@t0 [tags=y]", "a"),
                ("null is absent", "@t0 [tags=x]", "b c"),
                ("under either name", "@t0 [tag=x]", "b c"),
                ("!= is the complement", "@t0 .cb[tags!=x]", "a d e f g h i"),
                ("orderings are false", "@t0 [tags>=x]", ""),
                ("present", "@t0 [tags]", "a b c"),
                ("and its complement", "@t0 .cb[tags=null]", "d e f g h i"),
                ("cadence", "@t0 [cadence=2]", "e f g h"),
                ("an ordering", "@t0 [cad<2]", ""),
                ("absent", "@t0 .cb[cadence=null]", "a b c d i"),
                ("the complement", "@t0 .cb[cad!=2]", "a b c d i"),
            ],
        );
    }
    check(
        Canonical,
        outline,
        &[
            ("attached", "@t0 .cb+x", "b c"),
            ("both", "@t0 [tags=[x,y]]", ""),
            ("a pattern", "@t0 [tags~x]", "b c"),
        ],
    );
}

#[test]
fn tags() {
    let outline = "
root -
  ah ^ah
    a cb tags=[\"x\",\"y\"]
    b cb tags=\"x\"
    c cb tag=[\"y\"]
    d cb tags=[]
    e cb
";
    check(
        V01,
        outline,
        &[
            ("membership", "[tags='x']", "a b"),
            ("also spelled tag", "[tag='y']", "a c"),
            ("a plain string is a list of one", ".cb[tags!='y']", "b d e"),
            ("the empty list is not null", ".cb[tags]", "a b c d"),
            ("null", ".cb[tags=null]", "e"),
            ("orderings are false", ".cb[tags<'zzz'], .cb[tags>='']", ""),
        ],
    );
    check(
        Canonical,
        outline,
        &[
            ("a list needs both", "@t0 [tags=[x,y]]", "a"),
            ("!= is the complement", "@t0 .cb[tags!=[x,y]]", "b c d e"),
        ],
    );
}

#[test]
fn lists_and_patterns() {
    let outline = "
root -
  ah ^ah
    a cb role=user data_l=[1,2] ttl=1
    b cb role=tool data_l=[2,3] ttl=1 cadence=1
    c cb role=assistant data_s=abc
    d cb data_n=120
    e cb:sum tags=[\"ab\",\"cd\"]
";
    check(
        Canonical,
        outline,
        &[
            (
                "on a scalar one of them",
                "@t0 .cb[role=[user,tool]]",
                "a b",
            ),
            (
                "!= is the complement",
                "@t0 .cb[role!=[user,tool]]",
                "c d e",
            ),
            ("on a list all of them", "@t0 [data_l=[1,2]]", "a"),
            ("numbers too", "@t0 [ttl=[1,2]]", "a b"),
            (
                "a list with an ordering",
                "@t0 [ttl<[1,2]]",
                "E_SELECTOR_INVALID",
            ),
            ("an empty list", "@t0 [role=[]]", "E_SELECTOR_INVALID"),
            ("several properties", "@t0 [role=user, ttl=1]", "a"),
            ("a pattern searches", "@t0 [role~'s+']", "a c"),
            ("in numbers", "@t0 [data_n~'^12']", "d"),
            ("in list elements", "@t0 [tags~'^c']", "e"),
            ("in the type's one vocabulary", "@t0 [nodeType~'cb:s']", "e"),
            ("never in null", "@t0 [data_s~'']", "c"),
            ("a numeric header", "@t0 [ttl~'1']", "E_SELECTOR_INVALID"),
            ("a bad pattern", "@t0 [role~'(']", "E_SELECTOR_INVALID"),
            ("[ephemeral]", "@t0 .cb[ephemeral]", "a b"),
            ("[sticky]", "@t0 .cb[sticky]", "b"),
            ("in braces too", "@t0 {sticky}", "b"),
        ],
    );
}

#[test]
fn facets() {
    let outline = "
root -
  seq ^seq
    t mt
      a cb cycle=2
  ah ^ah
    b cb
--- 4
root -
  seq ^seq
    t mt
      a cb cycle=2
    u mt created_at_ns=1
      b cb
  ah ^ah
    c cb
--- 6
";
    for edition in [Depth, Canonical] {
        check(
            edition,
            outline,
            &[
                ("depth", "@t0 .cb[depth=1]", "b"),
                ("no depth is null", "@t0 *[depth=null]", "root seq"),
                (
                    "an implicit core has its turn's depth",
                    "@t0 .mc[depth>0] > .cb, .mc[depth=0] > .cb",
                    "a b c",
                ),
                ("and no other", "@t0 .mt .mc[depth=2] > .cb", "a"),
                (
                    "nor any other facet",
                    "@t0 .mc[sdepth>0] .cb, .mc[age>=0] .cb, .mc[born_turn>=0] .cb",
                    "",
                ),
                ("sdepth", "@t0 *[sdepth<=1]", "root seq ah"),
                ("born_turn is the cycle header", "@t0 .cb[born_turn=2]", "a"),
                (
                    "else the oldest snapshot that has the id",
                    "@t0 .cb[born_turn=4]",
                    "b",
                ),
                ("or this one", "@t0 .cb[born_turn=6]", "c"),
                ("age", "@t0 .cb[age=2]", "b"),
                ("age of a newcomer", "@t0 .cb[age=0]", "c"),
                ("in an older snapshot", "@c4 .cb[age>=0]", "a b"),
                (
                    "they need an explicit time",
                    ".cb[age=2]",
                    "E_FACET_NEEDS_SNAPSHOT",
                ),
            ],
        );
    }
}

#[test]
fn parameters_are_for_prepare() {
    check(
        Canonical,
        HEADERS,
        &[(
            "select answers a parameter with an error",
            "@t0 .cb[role=$role]",
            "E_SELECTOR_INVALID",
        )],
    );
}
