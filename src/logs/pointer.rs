//! JSON pointers with a wildcard, which say where in a file the messages are.
//!
//! A pointer is that of RFC 6901 (`/a/0/b`, with `~0` for `~` and `~1` for `/`). A reference token
//! that is only `*` matches every element of an array or every value of an object. The empty
//! pointer is the whole value.

use crate::json::{Accepted, Member, ValueType, value_type};

/// A parsed pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    /// Names and numbers; `None` for every one.
    tokens: Vec<Option<String>>,
}

impl Pointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// A message, if the text is not empty and does not start with `/`, or contains a `~` that
    /// neither `0` nor `1` follows.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut tokens = Vec::new();
        if !text.is_empty() {
            let Some(rest) = text.strip_prefix('/') else {
                return Err("expected a JSON pointer, which starts with `/`".to_owned());
            };
            for token in rest.split('/') {
                tokens.push(match token {
                    "*" => None,
                    _ => Some(unescape(token)?),
                });
            }
        }
        let text = text.to_owned();
        Ok(Self { text, tokens })
    }

    /// The pointer as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Every match in the value `raw` of a checked text, in document order, with the plain pointer to it.
    /// Each token costs one pass over the matches of the tokens before it. If the last is a name, the third is the
    /// members beside the match.
    pub(super) fn matches<'a>(
        &self,
        json: Accepted<'_>,
        raw: &'a str,
    ) -> Vec<(String, &'a str, Vec<Member<'a>>)> {
        let mut found = vec![(String::new(), raw, Vec::new())];
        for (at, token) in self.tokens.iter().enumerate() {
            let mut next = Vec::new();
            for (path, value, _) in found {
                let inner: Vec<Member<'a>> = match value_type(value) {
                    ValueType::Array => {
                        let elements = json.elements(value).into_iter().enumerate();
                        let numbered = elements.map(|(at, raw)| (at.to_string().into(), raw));
                        numbered.collect()
                    }
                    _ => json.members(value),
                };
                let is_object = at + 1 == self.tokens.len() && value.starts_with('{');
                let beside = |name: &str| {
                    let others = inner.iter().filter(|(other, _)| other != name);
                    others.cloned().collect::<Vec<_>>()
                };
                for (name, inner) in &inner {
                    if token.as_ref().is_none_or(|wanted| wanted == name) {
                        let others = match token {
                            Some(_) if is_object => beside(name),
                            _ => Vec::new(),
                        };
                        let name = name.replace('~', "~0").replace('/', "~1");
                        next.push((format!("{path}/{name}"), *inner, others));
                    }
                }
            }
            found = next;
        }
        found
    }
}

fn unescape(part: &str) -> Result<String, String> {
    let mut out = String::with_capacity(part.len());
    let mut letters = part.chars();
    while let Some(letter) = letters.next() {
        if letter != '~' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('0') => out.push('~'),
            Some('1') => out.push('/'),
            _ => {
                return Err(
                    "in a JSON pointer, `~` is written `~0` and `/` is written `~1`".into(),
                );
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::Pointer;
    use crate::json::Accepted;

    fn found(pointer: &str, value: &str) -> Vec<String> {
        let pointer = Pointer::parse(pointer).expect("a pointer");
        let matches = pointer.matches(Accepted::default(), value);
        matches
            .into_iter()
            .map(|(at, raw, _)| format!("{at}={raw}"))
            .collect()
    }

    #[test]
    fn names_indexes_and_wildcards() {
        let value = r#"{"a":[{"b":1},{"b":2},{"c":3}],"x/y":{"*":4,"~":5}}"#;
        assert_eq!(found("/a/1/b", value), ["/a/1/b=2"]);
        assert_eq!(found("/a/*/b", value), ["/a/0/b=1", "/a/1/b=2"]);
        assert_eq!(found("/x~1y/~0", value), ["/x~1y/~0=5"]);
        assert_eq!(found("/x~1y/*", value), ["/x~1y/*=4", "/x~1y/~0=5"]);
        assert_eq!(found("/a/01", value), [""; 0]);
        assert_eq!(found("/a/7", value), [""; 0]);
        assert_eq!(found("/a/b", value), [""; 0]);
        assert_eq!(found("", "3"), ["=3"]);
    }

    #[test]
    fn bad_pointers_are_refused() {
        assert!(Pointer::parse("a/b").is_err());
        assert!(Pointer::parse("/a~2").is_err());
        assert!(Pointer::parse("/a~").is_err());
    }
}
