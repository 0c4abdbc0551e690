//! Mistakes of form, and the diagnostics they become.
//!
//! Lexer and parser record typed mistakes; their prose is here only: messages beside the variants,
//! labels and help in [`Mistake::label`] and [`Mistake::help`], those of a [`Hint`] in its own.

use std::borrow::Cow;

use thiserror::Error;

use crate::support::diag::{Code, Diagnostic, SelectorEdit, nearest};
use crate::support::text::push_safe;

use super::ast::CompareOp;
use super::span::Span;
use super::words::{CLASSES, CONTROLS, MAX_LEVELS, PLAIN_PSEUDOS, ROOTS, quote};

/// The length limit of a selector, in bytes (LANGUAGE §10, `E_LIMIT`).
pub const MAX_BYTES: usize = 64 * 1024;

/// The most mistakes reported for one selector. Bounds the time spent on recovery.
pub const MAX_MISTAKES: usize = 64;

/// A mistake of form, with its place.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{mistake}")]
pub struct SyntaxError {
    pub span: Span,
    /// What it is.
    pub mistake: Mistake,
}

/// The kinds of mistakes of form. Each displays as its message.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum Mistake {
    /// The text, of this many bytes, is longer than [`MAX_BYTES`].
    #[error("a selector has at most {max} bytes, this one has {0}", max = MAX_BYTES)]
    TooLong(usize),
    /// A condition inside of as many as there may be.
    #[error("conditions are at most {max} levels deep", max = MAX_LEVELS)]
    TooDeep,
    #[error("unexpected character `{}`", .0.escape_debug())]
    Stray(char),
    #[error("expected a word after `{0}`")]
    MissingWord(&'static str),
    #[error("expected a step such as `.cb`, found the word `{0}`")]
    BareWord(Box<str>),
    #[error("a comparison is written in brackets")]
    BareComparison(Box<str>),
    #[error("expected quotes around `{0}`")]
    QuoteKey(Box<str>),
    #[error("expected quotes around `{0}`")]
    QuoteValue(Box<str>),
    #[error("the closing `{0}` is missing")]
    Unterminated(char),
    /// A comparison sign of another language, and the one that replaces it.
    #[error("expected `{1}`, found `{0}`")]
    ForeignOp(Box<str>, CompareOp),
    /// An integer beyond i64.
    #[error("the number is too large")]
    TooLarge,
    /// `@c-3`
    #[error("a cycle has no sign")]
    SignedCycle,
    /// `@t-5 : -1`
    #[error("the `:` of a range has no white space around it")]
    SpacedColon,
    /// `@now`, `@T0`, `@t0none` at the start of the selector.
    #[error("unknown time `@{0}`")]
    UnknownTime(Box<str>),
    /// `@*x`
    #[error("white space is missing after `{0}`")]
    SpaceAfterTime(Box<str>),
    /// `@limit=`
    #[error("the value of the control is missing")]
    MissingControlValue,
    #[error("expected a whole number, found `{0}`")]
    NotADepth(Box<str>),
    #[error("{}", .hint.message(&format!("`{}`", shorten(.found)), .expected))]
    Unexpected {
        found: Box<str>,
        /// The terminals that would be accepted, as the grammar names them.
        expected: Vec<String>,
        /// The well-known mistake this is.
        hint: Hint,
    },
    #[error("{}", .hint.message("the end of the selector", .expected))]
    UnexpectedEnd {
        /// The terminals that would be accepted, as the grammar names them.
        expected: Vec<String>,
        /// The well-known mistake this is.
        hint: Hint,
    },
}

macro_rules! hints {
    ($($(#[$meta:meta])* $Hint:ident: $message:literal, $label:literal, $help:literal;)*) => {
        /// Well-known mistakes around an unexpected token.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum Hint {
            $($(#[$meta])* $Hint,)*
        }

        impl Hint {
            /// Message, remark at the place of the token, and help. Where the message is empty, it names the
            /// expected terminals and the token.
            fn texts(self) -> (&'static str, &'static str, &'static str) {
                match self {
                    $(Self::$Hint => ($message, $label, $help),)*
                }
            }
        }
    };
}

hints! {
    #[default]
    None: "", "not expected here", "";
    /// `? {…}` or `?? {…}` after a chain.
    SearchBehindChain: "a search cannot follow a chain", "not expected here", "write the properties in brackets: `.cb[kind='summary']`";
    /// `? ?`
    DoubleSearch: "`?` and `??` take properties, not another search", "not expected here", "`? {…}` looks one level down, `?? {…}` at any level";
    PositionInUnion: "a position is never part of a union", "not expected here", "write two selectors, or chains such as `^ah .cb, .cb:summary`";
    /// `.cb (role=user)`
    SpacedGroup: "a group of properties directly follows a type", "remove the white space before it", "write `.cb(role='user')`, or `.cb [role='user']` for what is inside";
    /// `.cb[x](y=1)`
    DetachedGroup: "a group of properties directly follows a type", "use brackets here", "write `[role='user']`";
    /// `:first(2)`
    PseudoWithArguments: "this pseudo-class takes no parentheses", "not expected here", "`:depth(…)` and `:nth(…)` do";
    DetachedTag: "a tag after white space filters the whole selector and is written at its end", "not expected here", "attach the tag to its step: `.cb+tag`";
    LateTime: "the time is written at the start of a selector", "not expected here", "move it to the front: `@t0 .cb`";
    /// `none .cb`
    NothingAlone: "`none` takes nothing but controls", "not expected here", "`none` matches nothing, whatever follows";
    /// `@limit=5 .cb`
    ControlInFront: "controls are written at the end of a selector", "not expected here", "move the control to the end: `.cb @limit=5`";
    StepBehindFilters: "only filters and controls may follow here", "no step follows a filter or control", "move the filter or control to the end";
    /// `(d1) > .cb`, `(d1) (d2)`
    StepBehindPosition: "only filters and controls may follow a position", "no step follows a position", "go on with another hop, or write a chain: `depth(1) > .cb`";
    /// `{role=user} .cb`
    StepBehindSearch: "only filters and controls may follow here", "no step follows a search", "write a chain, with the properties in brackets: `[key] .cb`";
    /// `(d1..3)`
    HalfDepthRange: "", "not expected here", "a range of depths names both: `d1..d3`";
    /// `>` or `,` without a step on one side.
    DanglingCombinator: "", "not expected here", "write a step such as `.cb` or `*` on each side";
    /// `[role=user name]`
    WordsInValue: "", "not expected here", "separate properties with commas, and quote a text with spaces";
    /// `:has(@t0 .cb)`
    TimeInside: "a selector in a condition has no time", "not expected here", "the condition is about the snapshot of its step: leave the time out";
    /// `:has((d1))`, `:has({role='user'})`, `:has(?? {…})`
    SearchInside: "a selector in a condition is a chain of steps", "no position and no search here", "write the properties in brackets: `:has([role='user'])`";
    /// `:has(.cb {x})`, `:has(.cb +a)`
    FilterInside: "a selector in a condition takes no filters", "not expected here", "attach it to a step: `:has(.cb[role='user'])`, `:has(.cb+tag)`";
    /// `:has(.cb @limit=1)`
    ControlInside: "a selector in a condition takes no controls", "not expected here", "controls are written at the end of the whole selector";
    /// `:has(none)`
    NothingInside: "a selector in a condition is a chain of steps", "not expected here", "`:not(*)` is true of no node";
    /// `:has(.cb,)`
    InnerMissing: "", "a selector is missing", "write a step such as `.cb` or `*` on each side of a comma";
    /// `$name` instead of a name or type.
    ParamAsName: "a parameter takes the place of a whole literal, not of a name or a depth", "not expected here", "write `[name=$value]`";
    /// `[role=]`
    MissingValue: "expected a value after the comparison", "not expected here", "write `[role='user']`, or `[role=null]` for nodes without one; inside double quotes a shell replaces `$name`";
    /// `[=user]`
    MissingName: "expected the name of an attribute before the comparison", "not expected here", "write `[role='user']`";
}

impl SyntaxError {
    /// The replacement that undoes the mistake, where it is evident.
    fn edit(&self) -> Option<SelectorEdit> {
        let (start, end) = (self.span.start as usize, self.span.end as usize);
        let text = match &self.mistake {
            Mistake::QuoteKey(word) => format!("#{}", quote(word.trim_start_matches('#'))),
            Mistake::QuoteValue(word) => quote(word),
            Mistake::ForeignOp(sign, op) if !matches!(&**sign, "^=" | "$=" | "*=") => {
                op.to_string()
            }
            Mistake::BareComparison(text) => format!("[{text}]"),
            Mistake::UnknownTime(word) => meant_time(word)?,
            Mistake::SpaceAfterTime(_) => return Some(SelectorEdit::new(end..end, " ")),
            Mistake::SpacedColon => "..".to_owned(),
            _ => return None,
        };
        Some(SelectorEdit::new(start..end, text))
    }

    /// The error as text, with its places.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let code = match self.mistake {
            Mistake::TooLong(_) | Mistake::TooDeep => Code::Limit,
            _ => Code::SelectorInvalid,
        };
        let error = Diagnostic::error(code, self.mistake.to_string());
        let mut error = error.at(self.span, self.mistake.label());
        if let Some(edit) = self.edit() {
            error.add_edit(edit);
        }
        error.with_any_help(self.mistake.help())
    }
}

impl Mistake {
    fn label(&self) -> &'static str {
        match self {
            Self::TooLong(_) => "the limit is here",
            Self::TooDeep => "one level too many",
            Self::Stray(_) => "not expected here",
            Self::MissingWord(_) => "the word is missing",
            Self::BareWord(_) => "a word takes a sign",
            Self::BareComparison(_) => "brackets are missing",
            Self::QuoteKey(_) | Self::QuoteValue(_) => {
                "without quotes, a word has ASCII letters, digits, `_`, `-` and `:`"
            }
            Self::Unterminated(_) => "this text has no end",
            Self::ForeignOp(..) => "not a comparison",
            Self::TooLarge => "integers go up to 9223372036854775807",
            Self::SignedCycle => "write the cycle's number",
            Self::SpacedColon => "remove the white space",
            Self::UnknownTime(_) => "no such time",
            Self::SpaceAfterTime(_) => "needed before a letter or digit",
            Self::MissingControlValue => "after this",
            Self::NotADepth(_) => "depths and positions are whole numbers",
            Self::Unexpected { hint, .. } => hint.texts().1,
            Self::UnexpectedEnd { .. } => "the selector ends here",
        }
    }

    /// What to write instead, where that is known.
    fn help(&self) -> Option<Cow<'static, str>> {
        Some(match self {
            Self::Stray(character) => return stray_help(*character).map(Cow::Borrowed),
            Self::MissingWord("#") => "write `#hero`, or quote the word: `#'hero banner'`".into(),
            Self::MissingWord("+") => {
                "write `+featured`, or quote the tag: `+'hero banner'`".into()
            }
            Self::MissingWord("@") => {
                "write a time such as `@t0`, or a control such as `@limit=5`".into()
            }
            Self::MissingWord(_) => "write `#$key`".into(),
            Self::BareWord(word) => match bare_word_fix(word) {
                Some(fix) => format!("did you mean `{fix}`?").into(),
                None => "types start with `.`, keys and ids with `#`, tags with `+`".into(),
            },
            Self::BareComparison(text) => format!("write `[{text}]`").into(),
            Self::QuoteKey(word) => format!("write `#{}`", quote(word)).into(),
            Self::QuoteValue(word) => format!("write `{}`", quote(word)).into(),
            Self::ForeignOp(sign, _) if &**sign == "^=" => "write `~ '^text'`".into(),
            Self::ForeignOp(sign, _) if &**sign == "$=" => "write `~ 'text$'`".into(),
            Self::ForeignOp(_, op) => format!("write `{op}`").into(),
            Self::SignedCycle => {
                "`@c17` is the snapshot of cycle 17; `@t-1` counts commits back".into()
            }
            Self::SpacedColon => "or write `..`, which takes it: `@t-5 .. @t-1`".into(),
            Self::UnknownTime(word) => time_help(word).into(),
            Self::NotADepth(_) => "write depths as `1`, `1,2,5`, `1-3`, `>=2` or `{1,2}`".into(),
            Self::Unexpected { hint, .. } | Self::UnexpectedEnd { hint, .. } => {
                return Some(hint.texts().2.into()).filter(|help: &Cow<'_, str>| !help.is_empty());
            }
            Self::TooLong(_)
            | Self::TooDeep
            | Self::Unterminated(_)
            | Self::TooLarge
            | Self::SpaceAfterTime(_)
            | Self::MissingControlValue => return None,
        })
    }
}

impl Hint {
    /// The message for `found` in place of one of the expected terminals.
    fn message(self, found: &str, expected: &[String]) -> String {
        match (self.texts().0, expectation(expected)) {
            ("", Some(list)) => format!("expected {list}, found {found}"),
            ("", None) => format!("unexpected {found}"),
            (message, _) => message.to_owned(),
        }
    }
}

fn stray_help(character: char) -> Option<&'static str> {
    Some(match character {
        '\'' | '"' => "a quoted word follows `#` or `+`, or is in brackets",
        '.' => "a type starts with an ASCII letter: `.cb`; test any other as `[nodeType='…']`",
        ':' => "a pseudo-class starts with a letter: `:first`",
        '=' => "a comparison is written in brackets: `[role='user']`",
        '$' => "a parameter takes the place of a literal: `[role=$role]`, `#$key`",
        '#' => "inside brackets write `key='hero'` or `id='cb:1'`",
        '^' => "a root is part of a chain; in a position write `d0` or `d-1`",
        '~' => "a search of text is written in brackets: `[content~'err']`",
        c if c.is_whitespace() => "use plain spaces",
        _ => return None,
    })
}

/// The time that `@word`, at the start of a selector, was probably meant to be.
fn meant_time(word: &str) -> Option<String> {
    let lower = word.to_ascii_lowercase();
    let rest = lower.strip_prefix(['t', 'c'])?;
    let sign = usize::from(rest.starts_with('-'));
    let digits = rest
        .bytes()
        .skip(sign)
        .take_while(u8::is_ascii_digit)
        .count();
    if digits == 0 {
        return None;
    }
    let (time, rest) = (lower.get(..=sign + digits)?, word.get(1 + sign + digits..)?);
    match rest.chars().next() {
        None => Some(format!("@{time}")),
        Some(c) if c.is_ascii_alphabetic() => Some(format!("@{time} {rest}")),
        Some(_) => None,
    }
}

/// What `@word`, at the start of a selector, was probably meant to be.
fn time_help(word: &str) -> String {
    if let Some(time) = meant_time(word) {
        return format!("did you mean `{time}`?");
    }
    let lower = word.to_ascii_lowercase();
    let ahead = lower.strip_prefix("t+").or(lower.strip_prefix('+'));
    if ahead.is_some_and(|ahead| ahead.starts_with(|c: char| c.is_ascii_digit())) {
        return "later snapshots cannot be named: `@t0` is the newest, `@t-1` the one before it; without a time a selector \
                reads the working state"
            .to_owned();
    }
    match nearest(&lower, CONTROLS.into_iter().chain(["history"])) {
        Some("history") => "did you mean `@history`?".to_owned(),
        Some(control) => format!("did you mean `@{control}`? Controls are written at the end"),
        None => "times are `@t0`, `@t-1`, `@c17`, `@*`, `@history` and ranges".to_owned(),
    }
}

/// The word with the sign it probably lost.
fn bare_word_fix(word: &str) -> Option<String> {
    Some(match word {
        _ if CLASSES.contains(&word) => format!(".{word}"),
        _ if ROOTS.contains(&word) => format!("^{word}"),
        _ if PLAIN_PSEUDOS.contains(&word) => format!(":{word}"),
        "depth" => "depth(1)".to_owned(),
        "within" => "within(d1) ?? {role='user'}".to_owned(),
        _ => return None,
    })
}

/// A list such as "a type, a key or `[`" of the expected terminals.
fn expectation(expected: &[String]) -> Option<String> {
    let mut words: Vec<Cow<'_, str>> = Vec::new();
    for terminal in expected {
        if let Some(word) = friendly(terminal.trim_matches('"'))
            && !words.contains(&word)
        {
            words.push(word);
        }
    }
    // A longer list does not help.
    const LONGEST: usize = 8;
    if words.len() > LONGEST {
        return Some("a step such as `.cb`, `#hero` or `[role='user']`".to_owned());
    }
    let (last, others) = words.split_last()?;
    if others.is_empty() {
        return Some(last.to_string());
    }
    Some(format!("{} or {last}", others.join(", ")))
}

/// The name of a grammar terminal in messages; `None` for white space.
fn friendly(terminal: &str) -> Option<Cow<'static, str>> {
    Some(Cow::Borrowed(match terminal {
        "^root" => "a root such as `^seq`",
        ".type" => "a type such as `.cb`",
        "#word" | "#'word'" | "#$name" => "`#` and a word",
        "+tag" | "+'tag'" => "a tag",
        ":pseudo" | ":depth(" | ":nth(" | ":has(" => "a pseudo-class",
        "within=" => "`within=N`",
        "depth(" => "`depth(…)`",
        "within(" => "`within(…)`",
        "none" => "`none`",
        "@time" | "@history" => "a time",
        "..@" => "`..`",
        "@end" => "the other end of the range",
        "@control" => "a control",
        "=value" => "`=` and a value",
        "word" => "a word",
        "'text'" => "a quoted text",
        "int" | "decimal" | "digits" => "a number",
        "$name" => "a parameter",
        "op" => "a comparison",
        ".sub" => "a kind",
        sign if !sign.starts_with(' ') => return Some(format!("`{sign}`").into()),
        _ => return None,
    }))
}

/// The start of a token for a message, with control characters escaped where it fits whole.
fn shorten(found: &str) -> String {
    const SHOWN: usize = 40;
    if found.chars().count() > SHOWN {
        let start: String = found.chars().take(SHOWN).collect();
        return format!("{start}…");
    }
    let mut shown = String::with_capacity(found.len());
    found
        .chars()
        .for_each(|letter| push_safe(letter, &mut shown));
    shown
}
