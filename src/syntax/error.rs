//! What can be wrong with the form of a selector, and how it is said.
//!
//! Lexer and parser record typed mistakes; the prose is made here, once. Grammar terminals have
//! friendly names in one table, [`friendly`].

use crate::diag::{Code, Diagnostic, ToDiagnostic, nearest};

use super::ast::Op;
use super::print::{quote, quote_word};
use super::span::Span;

/// A mistake of form, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct SyntaxError {
    /// Where it is.
    pub span: Span,
    /// What it is.
    pub mistake: Mistake,
}

/// The kinds of mistakes of form.
#[derive(Clone, Debug, PartialEq)]
pub enum Mistake {
    /// The text is longer than a selector may be.
    TooLong(usize),
    /// A character no selector holds in this place.
    Stray(char),
    /// A sign (`#`, `.`, `+`, `@`) without its word.
    MissingWord(&'static str),
    /// A word without a sign.
    BareWord(Box<str>),
    /// A comparison without its brackets.
    BareComparison(Box<str>),
    /// A key that has to be quoted.
    QuoteKey(Box<str>),
    /// A value that has to be quoted.
    QuoteValue(Box<str>),
    /// A quoted text without its closing quote.
    Unterminated(char),
    /// A comparison sign of another language.
    ForeignOp(Box<str>, Op),
    /// A number that does not fit.
    TooLarge,
    /// `@c-3`
    SignedCycle,
    /// `@t-5 : -1`
    SpacedColon,
    /// `@now`, `@T0`, `@t0none` where the time belongs.
    UnknownTime(Box<str>),
    /// `@*x`
    SpaceBehindTime(Box<str>),
    /// `@limit=`
    MissingControlValue,
    /// Something that is no depth inside of `:depth(…)`.
    NotADepth(Box<str>),
    /// A token the grammar has no place for.
    Unexpected {
        /// The text of the token.
        found: Box<str>,
        /// Terminals that would fit, as the grammar names them.
        expected: Vec<String>,
        /// Which known situation this is.
        hint: Hint,
    },
    /// The text ended too early.
    UnexpectedEnd {
        /// Terminals that would fit, as the grammar names them.
        expected: Vec<String>,
        /// Which known situation this is.
        hint: Hint,
    },
}

/// Known situations around an unexpected token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hint {
    /// None of them.
    #[default]
    None,
    /// `? {…}` or `?? {…}` behind a chain.
    SearchBehindChain,
    /// `? ?`
    DoubleSearch,
    /// A union with a position in it.
    PositionInUnion,
    /// `.cb (role=user)`
    SpacedGroup,
    /// `.cb[x](y=1)`
    DetachedGroup,
    /// `:first(2)`
    PseudoWithArguments,
    /// A tag behind white space inside a chain.
    DetachedTag,
    /// A time that is not at the start.
    LateTime,
    /// `none .cb`
    NothingAlone,
    /// `@limit=5 .cb`
    ControlInFront,
    /// A step behind filters or controls.
    StepBehindFilters,
    /// `(d1) > .cb`, `(d1) (d2)`
    StepBehindPosition,
    /// `{role=user} .cb`
    StepBehindSearch,
    /// `(d1..3)`
    HalfDepthRange,
    /// `>` or `,` with nothing on one side.
    DanglingCombinator,
    /// `[role=user name]`
    WordsInValue,
    /// `$name` where a name or type belongs.
    ParamAsName,
}

impl ToDiagnostic for SyntaxError {
    fn to_diagnostic(&self) -> Diagnostic {
        let invalid = |message: String, label: &str| {
            Diagnostic::error(Code::SelectorInvalid, message).at(self.span, label)
        };
        match &self.mistake {
            Mistake::TooLong(length) => Diagnostic::error(
                Code::Limit,
                format!(
                    "a selector has at most {} bytes, this one has {length}",
                    super::MAX_BYTES
                ),
            )
            .at(self.span, "the limit is here"),
            Mistake::Stray(character) => {
                let error = invalid(
                    format!("unexpected character `{}`", character.escape_debug()),
                    "no selector holds this here",
                );
                match character {
                    '\'' | '"' => {
                        error.with_help("quoted words stand behind `#` or `+`, or in brackets")
                    }
                    '.' => error.with_help(
                        "a type starts with an ASCII letter: `.cb`; test any other as `[nodeType='…']`",
                    ),
                    ':' => error.with_help("a pseudo-class starts with a letter: `:first`"),
                    '=' => error.with_help("comparisons stand in brackets: `[role='user']`"),
                    '$' => {
                        error.with_help("a parameter stands for a literal: `[role=$role]`, `#$key`")
                    }
                    '#' => error.with_help("inside of brackets write `key='hero'` or `id='cb:1'`"),
                    '^' => {
                        error.with_help("roots stand in chains; in a position write `d0` or `d-1`")
                    }
                    '~' => {
                        error.with_help("a search of text stands in brackets: `[content~'err']`")
                    }
                    c if c.is_whitespace() => error.with_help("use plain spaces"),
                    _ => error,
                }
            }
            Mistake::MissingWord(sign) => invalid(
                format!("`{sign}` without a word behind it"),
                "the word is missing",
            )
            .with_help(match *sign {
                "#" => "write `#hero`, or quote the word: `#'hero banner'`",
                "+" => "write `+featured`, or quote the tag: `+'hero banner'`",
                "@" => "write a time such as `@t0`, or a control such as `@limit=5`",
                _ => "write `#$key`",
            }),
            Mistake::BareWord(word) => {
                let error = invalid(format!("unexpected word `{word}`"), "a word needs a sign");
                match bare_word_fix(word) {
                    Some(fix) => error.with_help(format!("did you mean `{fix}`?")),
                    None => error
                        .with_help("types start with `.`, keys and ids with `#`, tags with `+`"),
                }
            }
            Mistake::BareComparison(text) => invalid(
                format!("`{text}` stands in no brackets"),
                "a comparison needs brackets",
            )
            .with_help(format!("write `[{text}]`")),
            Mistake::QuoteKey(word) => invalid(
                format!("`{word}` has to be quoted"),
                "only ASCII letters, digits, `_`, `-` and `:` go without quotes",
            )
            .with_help(format!("write `#{}`", quote(word))),
            Mistake::QuoteValue(word) => invalid(
                format!("`{word}` has to be quoted"),
                "only ASCII letters, digits, `_`, `-` and `:` go without quotes",
            )
            .with_help(format!("write `{}`", quote(word))),
            Mistake::Unterminated(quote) => invalid(
                format!("the closing `{quote}` is missing"),
                "this text has no end",
            ),
            Mistake::ForeignOp(sign, op) => {
                invalid(format!("unknown comparison `{sign}`"), "not a comparison").with_help(
                    match (&**sign, op) {
                        ("^=", _) => "write `~ '^text'`".to_owned(),
                        ("$=", _) => "write `~ 'text$'`".to_owned(),
                        _ => format!("write `{}`", op.as_str()),
                    },
                )
            }
            Mistake::TooLarge => invalid(
                "the number is too large".to_owned(),
                "integers go up to 9223372036854775807",
            ),
            Mistake::SignedCycle => {
                invalid("a cycle has no sign".to_owned(), "write the cycle's number")
                    .with_help("`@c17` is the snapshot of cycle 17; `@t-1` counts commits back")
            }
            Mistake::SpacedColon => invalid(
                "no white space goes around the `:` of a range".to_owned(),
                "remove the white space",
            )
            .with_help("or write `..`, which takes it: `@t-5 .. @t-1`"),
            Mistake::UnknownTime(word) => {
                invalid(format!("unknown time `@{word}`"), "no such time")
                    .with_help(time_help(word))
            }
            Mistake::SpaceBehindTime(time) => invalid(
                format!("white space is missing behind `{time}`"),
                "needed before a letter or digit",
            ),
            Mistake::MissingControlValue => invalid(
                "the value of the control is missing".to_owned(),
                "behind this",
            ),
            Mistake::NotADepth(word) => invalid(
                format!("`{word}` is not a whole number"),
                "depths and positions are whole numbers",
            )
            .with_help("write depths as `1`, `1,2,5`, `1-3`, `>=2` or `{1,2}`"),
            Mistake::Unexpected {
                found,
                expected,
                hint,
            } => {
                let error = invalid(unexpected_message(found, *hint), unexpected_label(*hint));
                with_advice(error, expected, *hint)
            }
            Mistake::UnexpectedEnd { expected, hint } => {
                let error = invalid(
                    "unexpected end of the selector".to_owned(),
                    "something is missing here",
                );
                with_advice(error, expected, *hint)
            }
        }
    }
}

fn unexpected_message(found: &str, hint: Hint) -> String {
    match hint {
        Hint::SearchBehindChain => "a search cannot follow a chain".to_owned(),
        Hint::DoubleSearch => "a search sign takes properties, not another search".to_owned(),
        Hint::PositionInUnion => "a position is never part of a union".to_owned(),
        Hint::SpacedGroup => "a group of properties stands right behind its type".to_owned(),
        Hint::DetachedGroup => "a group of properties follows a type and nothing else".to_owned(),
        Hint::PseudoWithArguments => "this pseudo-class takes no parentheses".to_owned(),
        Hint::DetachedTag => {
            "a tag behind white space filters the whole selector and stands at its end".to_owned()
        }
        Hint::LateTime => "the time stands at the start of a selector".to_owned(),
        Hint::StepBehindFilters | Hint::StepBehindSearch => {
            "only filters and controls may follow here".to_owned()
        }
        Hint::StepBehindPosition => "only filters and controls may follow a position".to_owned(),
        Hint::NothingAlone => "`none` stands alone".to_owned(),
        Hint::ControlInFront => "controls stand at the end of a selector".to_owned(),
        Hint::ParamAsName => {
            "a parameter stands for a whole literal, not for a name or a depth".to_owned()
        }
        Hint::None | Hint::DanglingCombinator | Hint::WordsInValue | Hint::HalfDepthRange => {
            format!("unexpected `{}`", shorten(found))
        }
    }
}

fn unexpected_label(hint: Hint) -> &'static str {
    match hint {
        Hint::SpacedGroup => "remove the white space before it",
        Hint::DetachedGroup => "use brackets here",
        Hint::StepBehindFilters => "no step can stand behind a filter or control",
        Hint::StepBehindPosition => "no step can stand behind a position",
        Hint::StepBehindSearch => "no step can stand behind a search",
        _ => "not expected here",
    }
}

fn with_advice(error: Diagnostic, expected: &[String], hint: Hint) -> Diagnostic {
    let help = match hint {
        Hint::SearchBehindChain => "write the properties in brackets: `.cb[kind='summary']`",
        Hint::DoubleSearch => "`? {…}` looks one level down, `?? {…}` at any level",
        Hint::PositionInUnion => "write two selectors, or chains such as `^ah .cb, .cb:summary`",
        Hint::SpacedGroup => "write `.cb(role='user')`, or `.cb [role='user']` for what is below",
        Hint::DetachedGroup => "write `[role='user']`",
        Hint::PseudoWithArguments => "`:depth(…)` and `:nth(…)` do",
        Hint::DetachedTag => "attach the tag to its step: `.cb+tag`",
        Hint::LateTime => "move it to the front: `@t0 .cb`",
        Hint::NothingAlone => "`none` matches nothing, whatever follows",
        Hint::ControlInFront => "move the control to the end: `.cb @limit=5`",
        Hint::StepBehindFilters => "move the filter or control to the end",
        Hint::StepBehindPosition => "go on with another hop, or write a chain: `depth(1) > .cb`",
        Hint::StepBehindSearch => "write a chain, with the properties in brackets: `[key] .cb`",
        Hint::HalfDepthRange => "a range of depths names both: `d1..d3`",
        Hint::WordsInValue => "separate properties with commas, and quote a text with spaces",
        Hint::ParamAsName => "write `[name=$value]`",
        Hint::DanglingCombinator => "a step such as `.cb` or `*` belongs on each side",
        Hint::None => {
            return match expectation(expected) {
                Some(list) => error.with_help(format!("expected {list}")),
                None => error,
            };
        }
    };
    error.with_help(help)
}

/// What `@word` at the start was probably meant to be.
fn time_help(word: &str) -> String {
    let lower = word.to_ascii_lowercase();
    let digits = lower.strip_prefix(['t', 'c']).map_or(0, |rest| {
        rest.bytes()
            .take_while(|&byte| byte == b'-' || byte.is_ascii_digit())
            .count()
    });
    if digits > 0 {
        let (time, rest) = lower.split_at(digits + 1);
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!(" {}", word.get(digits + 1..).unwrap_or_default())
        };
        return format!("did you mean `@{time}{rest}`?");
    }
    match nearest(&lower, super::lex::CONTROLS.into_iter().chain(["history"])) {
        Some("history") => "did you mean `@history`?".to_owned(),
        Some(control) => format!("did you mean `@{control}`? Controls stand at the end"),
        None => "times are `@t0`, `@t-1`, `@c17`, `@*`, `@history` and ranges".to_owned(),
    }
}

/// The word with the sign it probably lost.
fn bare_word_fix(word: &str) -> Option<String> {
    const TYPES: [&str; 6] = ["mt", "mc", "cb", "seg", "cont", "block"];
    const ROOTS: [&str; 4] = ["sys", "seq", "ah", "root"];
    const PSEUDOS: [&str; 5] = ["first", "last", "pre", "core", "post"];
    let sign = if TYPES.contains(&word) {
        '.'
    } else if ROOTS.contains(&word) {
        '^'
    } else if PSEUDOS.contains(&word) {
        ':'
    } else {
        return match word {
            "depth" => Some("depth(1)".to_owned()),
            "within" => Some("within(d1) ?? {role='user'}".to_owned()),
            _ => None,
        };
    };
    Some(format!("{sign}{word}"))
}

/// "a type, a key or `[`", from the names of the grammar's terminals.
fn expectation(expected: &[String]) -> Option<String> {
    let mut words: Vec<&str> = Vec::new();
    for terminal in expected {
        if let Some(word) = friendly(terminal.trim_matches('"'))
            && !words.contains(&word)
        {
            words.push(word);
        }
    }
    // A list of everything helps nobody.
    const LONGEST: usize = 8;
    if words.len() > LONGEST {
        return Some("a step such as `.cb`, `#hero` or `[role='user']`".to_owned());
    }
    let (last, others) = words.split_last()?;
    if others.is_empty() {
        return Some((*last).to_owned());
    }
    Some(format!("{} or {last}", others.join(", ")))
}

/// The reader's name for a terminal of the grammar; `None` for those that are never worth
/// naming.
fn friendly(terminal: &str) -> Option<&'static str> {
    Some(match terminal {
        ">" => "`>`",
        "," => "`,`",
        "*" => "`*`",
        "^root" => "a root such as `^seq`",
        ".type" => "a type such as `.cb`",
        "#word" | "#'word'" | "#$name" => "`#` and a word",
        "+tag" | "+'tag'" => "a tag",
        ":pseudo" | ":depth(" | ":nth(" => "a pseudo-class",
        "depth(" => "`depth(…)`",
        "within(" => "`within(…)`",
        "none" => "`none`",
        "?" => "`?`",
        "??" => "`??`",
        "@time" | "@history" => "a time",
        "..@" => "`..`",
        "@end" => "the other end of the range",
        "@control" => "a control",
        "=value" => "`=` and a value",
        "[" => "`[`",
        "]" => "`]`",
        "(" => "`(`",
        ")" => "`)`",
        "{" => "`{`",
        "}" => "`}`",
        "word" | "'text'" => "a word or a quoted text",
        "int" | "decimal" | "digits" => "a number",
        "$name" => "a parameter",
        "op" => "a comparison",
        ".." => "`..`",
        "-" => "`-`",
        ".sub" => "a kind",
        _ => return None,
    })
}

/// At most a few words of a long token.
fn shorten(found: &str) -> String {
    const SHOWN: usize = 40;
    if found.chars().count() <= SHOWN {
        return quote_word(found);
    }
    let start: String = found.chars().take(SHOWN).collect();
    format!("{start}…")
}
