//! The arguments of tools: one table gives the schema that clients read and the check of what they
//! send.

use crate::app::present::{Failure, clean};
use crate::support::diag::nearest;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Debug, Deserialize)]
pub(crate) struct Parameter {
    name: String,
    kind: ParameterKind,
    #[serde(default)]
    required: bool,
    example: Value,
    about: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ParameterKind {
    Text,
    /// A whole number, at least this.
    Count(u64),
    Flag,
    Word(Vec<String>),
    Words(Vec<String>),
}

impl Parameter {
    /// A value that was sent as text, as in the query of a URL. What cannot be read stays the text, which is refused then.
    pub(crate) fn of_text(&self, text: &str) -> Value {
        let text_itself = || Value::from(text);
        match &self.kind {
            ParameterKind::Text | ParameterKind::Word(_) => text_itself(),
            ParameterKind::Count(_) => text
                .parse::<u64>()
                .map_or_else(|_| text_itself(), Value::from),
            ParameterKind::Flag if text.is_empty() => Value::Bool(true),
            ParameterKind::Flag => text
                .parse::<bool>()
                .map_or_else(|_| text_itself(), Value::from),
            ParameterKind::Words(_) => text.split(',').collect(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_required(&self) -> bool {
        self.required
    }

    #[cfg(test)]
    pub(crate) fn takes_its_example(&self) -> bool {
        self.takes(&self.example)
    }

    pub(crate) fn schema(&self) -> Value {
        let mut schema = match &self.kind {
            ParameterKind::Text => json!({"type": "string"}),
            ParameterKind::Count(least) => json!({"type": "integer", "minimum": least}),
            ParameterKind::Flag => json!({"type": "boolean"}),
            ParameterKind::Word(words) => json!({"type": "string", "enum": words}),
            ParameterKind::Words(words) => {
                json!({"type": "array", "items": {"type": "string", "enum": words}})
            }
        };
        let description = format!("{} Example: {}", self.about, self.example);
        schema["description"] = Value::from(description);
        schema
    }

    fn takes(&self, value: &Value) -> bool {
        let one_of = |words: &[String], value: &Value| words.iter().any(|word| word == value);
        match &self.kind {
            ParameterKind::Text => value.is_string(),
            ParameterKind::Count(least) => whole(value).is_some_and(|value| value >= *least),
            ParameterKind::Flag => value.is_boolean(),
            ParameterKind::Word(words) => one_of(words, value),
            ParameterKind::Words(words) => value
                .as_array()
                .is_some_and(|values| values.iter().all(|value| one_of(words, value))),
        }
    }

    fn expected(&self) -> String {
        match &self.kind {
            ParameterKind::Text => "a string".to_owned(),
            ParameterKind::Count(least) => format!("a whole number, {least} or more"),
            ParameterKind::Flag => "true or false".to_owned(),
            ParameterKind::Word(words) => format!("one of {}", words.join(", ")),
            ParameterKind::Words(words) => format!("a list of {}", words.join(", ")),
        }
    }
}

/// A whole number from 0; at most `u64::MAX`. JSON Schema calls a number an integer whose fraction is zero, however it
/// is spelled: `1.0` and `1e3` are.
fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        (number >= 0.0).then_some(number as u64)
    })
}

/// The JSON Schema of the arguments of a tool. Members are in the order of their names.
#[cfg(any(feature = "mcp", test))]
pub(crate) fn schema(parameters: &[Parameter]) -> Map<String, Value> {
    let required = parameters.iter().filter(|parameter| parameter.required);
    let required: Vec<&str> = required.map(|parameter| &*parameter.name).collect();
    let properties = parameters.iter();
    let properties = properties.map(|parameter| (parameter.name.clone(), parameter.schema()));
    let mut schema = Map::new();
    schema.insert("type".to_owned(), Value::from("object"));
    schema.insert("properties".to_owned(), Value::Object(properties.collect()));
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    if !required.is_empty() {
        schema.insert("required".to_owned(), Value::from(required));
    }
    schema
}

/// Arguments that a tool's table does not allow, and which one it is if its value is wrong.
type Wrong = (Failure, Option<String>);

#[derive(Debug)]
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Checks what a client sent against the table of a tool. `null` means left out.
    ///
    /// # Errors
    /// The first unknown argument by name (`E_USAGE`), or else the first argument of the table
    /// that is missing (`E_USAGE`) or has a value that it cannot have (`E_VALUE`).
    pub(crate) fn check(
        tool: &str,
        parameters: &[Parameter],
        mut sent: Map<String, Value>,
    ) -> Result<Self, Wrong> {
        sent.retain(|_, value| !value.is_null());
        let names = parameters.iter().map(|parameter| &*parameter.name);
        let unknown = sent
            .keys()
            .find(|sent| !names.clone().any(|name| name == *sent));
        if let Some(name) = unknown {
            let failure = Failure::usage(format!("{tool} has no argument `{}`", clean(name, 80)));
            let help = match nearest(name, names.clone()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if parameters.is_empty() => "it takes none".to_owned(),
                None => format!("it takes {}", names.collect::<Vec<_>>().join(", ")),
            };
            return Err((failure.with_help(help), None));
        }
        for parameter in parameters {
            let name = &parameter.name;
            match sent.get(name) {
                None if parameter.required => {
                    let failure = Failure::usage(format!("{tool} needs the argument `{name}`"));
                    let help = format!("{name}: {}", parameter.about);
                    return Err((failure.with_help(help), None));
                }
                Some(value) if !parameter.takes(value) => {
                    let (expected, shown) = (parameter.expected(), clean(&value.to_string(), 80));
                    let message = format!("`{name}` must be {expected}, not {shown}");
                    return Err((Failure::value(message), Some(name.clone())));
                }
                _ => {}
            }
        }
        Ok(Self(sent))
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    pub(crate) fn needed(&self, name: &str) -> &str {
        self.text(name).unwrap_or_default()
    }

    pub(crate) fn count(&self, name: &str) -> Option<u64> {
        whole(self.0.get(name)?)
    }

    /// A number as a `usize`, if it was sent; at most `usize::MAX`.
    pub(crate) fn size(&self, name: &str) -> Option<usize> {
        let count = self.count(name)?;
        Some(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Sets an argument that was not sent.
    pub(crate) fn or(&mut self, name: &str, value: impl Into<Value>) {
        self.0
            .entry(name.to_owned())
            .or_insert_with(|| value.into());
    }

    /// What was sent but for these, in the order of the names.
    pub(crate) fn without(&self, names: &[&str]) -> Value {
        let mut sent = self.0.clone();
        sent.retain(|name, _| !names.contains(&&**name));
        Value::Object(sent)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether nodes are to be printed, each with its contents, in the place of ids.
    pub(crate) fn asks_for_nodes(&self) -> bool {
        self.text("format") == Some("nodes") || self.flag("nodes")
    }

    /// The words of a list; empty if it was not sent.
    pub(crate) fn words(&self, name: &str) -> impl Iterator<Item = &str> {
        let list = self.0.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::{Arguments, Parameter, schema};
    use serde_json::{Value, json};

    fn table() -> Vec<Parameter> {
        let table = json!([
            {"name": "cache", "kind": "text", "required": true, "example": "c", "about": "Where."},
            {"name": "budget", "kind": {"count": 0}, "example": 4, "about": "How many."},
            {"name": "moves", "kind": "flag", "example": true, "about": "Whether."},
            {"name": "mode", "kind": {"word": ["one", "two"]}, "example": "one", "about": "Which."},
            {"name": "fields", "kind": {"words": ["a", "b"]}, "example": ["a"], "about": "Which ones."},
        ]);
        serde_json::from_value(table).expect("parameters")
    }

    fn check(sent: Value) -> Result<Arguments, String> {
        let Value::Object(sent) = sent else {
            return Err("no object".to_owned());
        };
        Arguments::check("tool", &table(), sent).map_err(|(failure, _)| failure.to_string())
    }

    #[test]
    fn what_the_table_allows_is_read() {
        let read = check(json!({"cache": "x", "budget": u64::MAX, "fields": ["b"], "mode": null}));
        let read = read.expect("good arguments");
        assert_eq!(read.needed("cache"), "x");
        assert_eq!(read.count("budget"), Some(u64::MAX));
        assert_eq!((read.flag("moves"), read.text("mode")), (false, None));
        assert_eq!(read.words("fields").collect::<Vec<_>>(), ["b"]);
        assert_eq!(read.words("others").count(), 0);
    }

    #[test]
    fn a_number_without_a_fraction_is_whole() {
        for (spelled, read) in [
            ("1.0", Some(1)),
            ("1e3", Some(1000)),
            ("-0.0", Some(0)),
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("1e300", Some(u64::MAX)),
            ("1.5", None),
            ("-1.0", None),
            ("-1", None),
        ] {
            let number: Value = serde_json::from_str(spelled).expect("a number");
            let read_as = check(json!({"cache": "x", "budget": number}));
            assert_eq!(
                read_as.ok().and_then(|a| a.count("budget")),
                read,
                "{spelled}"
            );
        }
    }

    #[test]
    fn what_it_does_not_allow_is_reported() {
        for (sent, message) in [
            (json!({}), "error[E_USAGE]: tool needs the argument `cache`"),
            (json!({"cache": null}), "needs the argument `cache`"),
            (json!({"cache": "x", "bugdet": 1}), "did you mean `budget`?"),
            (
                json!({"cache": "x", "zzzzzzzz": 1}),
                "it takes cache, budget, moves, mode, fields",
            ),
            (
                json!({"cache": 1}),
                "error[E_VALUE]: `cache` must be a string, not 1",
            ),
            (
                json!({"cache": "x", "budget": -1}),
                "must be a whole number, 0 or more",
            ),
            (
                json!({"cache": "x", "budget": 1.5}),
                "`budget` must be a whole number, 0 or more, not 1.5",
            ),
            (json!({"cache": "x", "budget": "1"}), "0 or more, not \"1\""),
            (json!({"cache": "x", "moves": "yes"}), "true or false"),
            (json!({"cache": "x", "mode": "three"}), "one of one, two"),
            (
                json!({"cache": "x", "fields": ["a", "c"]}),
                "a list of a, b",
            ),
            (json!({"cache": "x", "fields": "a"}), "a list of a, b"),
        ] {
            let error = check(sent.clone()).expect_err(message);
            assert!(error.contains(message), "{sent}: {error}");
        }
    }

    #[test]
    fn the_schema_says_the_same() {
        let schema = Value::Object(schema(&table()));
        assert_eq!(schema["required"], json!(["cache"]));
        assert_eq!(schema["properties"]["budget"]["minimum"], 0);
        let about = &schema["properties"]["cache"]["description"];
        assert_eq!(about, "Where. Example: \"c\"");
        assert_eq!(schema["properties"]["mode"]["enum"], json!(["one", "two"]));
        assert_eq!(schema["additionalProperties"], false);
    }
}
