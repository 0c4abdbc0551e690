//! JSON for the reference interpreter: numbers keep their text, objects keep their order. Parser
//! and writers are separate from the engine's, so that a fault cannot be in both.

use std::fmt::Write as _;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// The number as written.
    Num(String),
    Str(String),
    List(Vec<Json>),
    Obj(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn text(value: &str) -> Self {
        Self::Str(value.to_owned())
    }

    pub(crate) fn int(value: i64) -> Self {
        Self::Num(value.to_string())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Self::Obj(members) => members.iter().find(|(k, _)| k == name).map(|(_, v)| v),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Num(text) => text.parse().ok(),
            _ => None,
        }
    }

    pub(crate) fn is_scalar(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Obj(_))
    }

    /// Equality by value: 1 equals 1.0 at any level, and the order of members does not matter.
    pub(crate) fn same(&self, other: &Json) -> bool {
        match (self, other) {
            (Self::Num(a), Self::Num(b)) => {
                super::compare::compare_numbers(a, b) == std::cmp::Ordering::Equal
            }
            (Self::List(a), Self::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same(b))
            }
            (Self::Obj(a), Self::Obj(b)) => {
                a.len() == b.len()
                    && a.iter()
                        .all(|(name, a)| other.get(name).is_some_and(|b| a.same(b)))
            }
            _ => self == other,
        }
    }

    /// The JSON text without white space.
    pub(crate) fn write(&self) -> String {
        let mut out = String::new();
        self.write_to(&mut out);
        out
    }

    fn write_to(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => write!(out, "{value}").unwrap(),
            Self::Num(text) => out.push_str(text),
            Self::Str(text) => out.push_str(&serde_json::to_string(text).unwrap()),
            Self::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write_to(out);
                }
                out.push(']');
            }
            Self::Obj(members) => {
                out.push('{');
                for (i, (name, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(&serde_json::to_string(name).unwrap());
                    out.push(':');
                    value.write_to(out);
                }
                out.push('}');
            }
        }
    }

    /// The bytes of the text of a content: of a list or an object of its canonical JSON (LANGUAGE §5).
    pub(crate) fn bytes(&self) -> i64 {
        let bytes = match self {
            Self::Null => 0,
            Self::Str(text) => text.len(),
            other => other.canonical().len(),
        };
        bytes as i64
    }

    /// As Python's `json.dumps(…, sort_keys=True, separators=(',', ':'), ensure_ascii=True)`
    /// writes it (RUNTIME §2).
    pub(crate) fn canonical(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Num(text) => canonical_number(text),
            Self::Str(text) => canonical_string(text),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Json::canonical).collect();
                format!("[{}]", items.join(","))
            }
            Self::Obj(members) => {
                let mut members: Vec<&(String, Json)> = members.iter().collect();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                let members: Vec<String> = members
                    .iter()
                    .map(|(name, value)| {
                        format!("{}:{}", canonical_string(name), value.canonical())
                    })
                    .collect();
                format!("{{{}}}", members.join(","))
            }
        }
    }
}

fn canonical_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}").unwrap();
                }
            }
        }
    }
    out.push('"');
    out
}

/// Python's `repr` of the number `text` reads as.
fn canonical_number(text: &str) -> String {
    if !text.contains(['.', 'e', 'E']) {
        return if text == "-0" { "0" } else { text }.to_owned();
    }
    let value: f64 = text.parse().unwrap();
    // As many digits as are needed, and rounded exactly; ties go to the even digit.
    let shortest = format!("{value:e}");
    let needed = shortest.bytes().filter(u8::is_ascii_digit).count()
        - shortest
            .split_once('e')
            .unwrap()
            .1
            .trim_start_matches('-')
            .len();
    let exact = format!("{value:.*e}", needed - 1);
    // Next to a power of two, the nearest such decimal may be another number.
    let shortest = if exact.parse() == Ok(value) {
        exact
    } else {
        shortest
    };
    let (mantissa, exponent) = shortest.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    if !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let plain = format!("{value:.*}", (needed as i32 - 1 - exponent).max(1) as usize);
    if plain.parse() == Ok(value) {
        plain
    } else {
        format!("{value}")
    }
}

/// Reads one JSON text.
pub(crate) fn parse(text: &str) -> Json {
    let mut parser = Parser {
        rest: text.trim_start(),
    };
    let value = parser.value();
    assert!(
        parser.rest.is_empty(),
        "text behind the value: {}",
        parser.rest
    );
    value
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip(&mut self, n: usize) {
        self.rest = &self.rest[n..];
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest.starts_with(token);
        if found {
            self.skip(token.len());
            self.rest = self.rest.trim_start();
        }
        found
    }

    fn expect(&mut self, token: &str) {
        assert!(self.eat(token), "expected {token} at {:.40}", self.rest);
    }

    fn value(&mut self) -> Json {
        if self.eat("null") {
            Json::Null
        } else if self.eat("true") {
            Json::Bool(true)
        } else if self.eat("false") {
            Json::Bool(false)
        } else if self.eat("[") {
            let mut items = Vec::new();
            while !self.eat("]") {
                if !items.is_empty() {
                    self.expect(",");
                }
                items.push(self.value());
            }
            Json::List(items)
        } else if self.eat("{") {
            let mut members = Vec::new();
            while !self.eat("}") {
                if !members.is_empty() {
                    self.expect(",");
                }
                let name = self.string();
                self.expect(":");
                members.push((name, self.value()));
            }
            Json::Obj(members)
        } else if self.rest.starts_with('"') {
            Json::Str(self.string())
        } else {
            let end = self
                .rest
                .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
                .unwrap_or(self.rest.len());
            assert!(end > 0, "no JSON value at {:.40}", self.rest);
            let text = self.rest[..end].to_owned();
            self.skip(end);
            self.rest = self.rest.trim_start();
            Json::Num(text)
        }
    }

    fn string(&mut self) -> String {
        assert!(
            self.rest.starts_with('"'),
            "expected a string at {:.40}",
            self.rest
        );
        let bytes = self.rest.as_bytes();
        let mut end = 1;
        while bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let text = serde_json::from_str(&self.rest[..=end]).unwrap();
        self.skip(end + 1);
        self.rest = self.rest.trim_start();
        text
    }
}

#[test]
fn canonical_text_is_pythons() {
    let value = parse(
        r#"{"b": [1.0, 1e-7, 1e16, 0.00001, 123456789012345678901234567890, -0, 1.5e300],
        "a": "é\u007f\ud83d\ude00\n\"", "A": {"z": null, "y": true}}"#,
    );
    assert_eq!(
        value.canonical(),
        r#"{"A":{"y":true,"z":null},"a":"\u00e9\u007f\ud83d\ude00\n\"","b":[1.0,1e-07,1e+16,1e-05,123456789012345678901234567890,0,1.5e+300]}"#
    );
    assert_eq!(parse("0.0001").canonical(), "0.0001");
    assert_eq!(parse("123456789012345.0").canonical(), "123456789012345.0");
    assert_eq!(parse("773813143760026.25").canonical(), "773813143760026.2");
    assert_eq!(
        parse("5.684341886080802e-14").canonical(),
        "5.684341886080802e-14"
    );
}
