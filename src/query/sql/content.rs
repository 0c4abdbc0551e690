//! Tests of `content`: a text, a number or a boolean, or a list or an object in JSON (LANGUAGE §5).

#[cfg(feature = "store")]
use crate::query::ir::{Attr, Test};
use crate::query::ir::{AttrTest, CompareOp};

use super::dialect::Dialect;
use super::error::Refused;
use super::predicate::{Compared, Predicates, distinct, of_equality};
use super::words::{all, any};

/// The function of SQLite for the bytes of the text of a content.
const BYTES: &str = "pactql_bytes";

impl Predicates<'_> {
    /// The column of the text of a content, and whether that is JSON.
    fn columns(&self) -> (&'static str, &'static str) {
        if self.dialect.is_parquet() {
            ("n.content", "n.content_json")
        } else {
            ("b.text", "b.json")
        }
    }

    /// The condition of a test of the content, at `b`, if nothing without a content meets it.
    #[cfg(feature = "store")]
    pub(super) fn required_text(test: &Test, dialect: Dialect) -> Option<String> {
        let test = test.attr().filter(|test| test.attr == Attr::Content)?;
        let compared = Compared::new(test).ok()?;
        let has_any = matches!(test.op, CompareOp::Eq | CompareOp::Matches) && !compared.null;
        let mut predicates = Self::new(dialect, String::new(), false, "");
        has_any
            .then(|| predicates.content(&compared).ok())
            .flatten()
    }

    pub(super) fn content(&mut self, compared: &Compared<'_>) -> Result<String, Refused> {
        let (text, json) = self.columns();
        self.needs.body = true;
        // A number, true or false: no list, object, text or null.
        let scalar = format!("{json} and substr({text}, 1, 1) not in ('[', '{{', '\"', 'n')");
        let &Compared { test, null, .. } = compared;
        match test.op {
            CompareOp::Eq | CompareOp::Ne => {
                let texts = distinct(compared.texts().collect());
                let quoted: Vec<String> = texts.iter().map(|t| self.dialect.text(t)).collect();
                let mut parts = Vec::new();
                if !quoted.is_empty() {
                    let list = quoted.join(", ");
                    parts.push(format!("(not {json} or {scalar}) and {text} in ({list})"));
                    let members = match (self.dialect, texts.len()) {
                        (Dialect::Sqlite, 2..) => vec![self.members(&quoted)],
                        _ => {
                            let members = texts.iter().map(|wanted| self.member(test, wanted));
                            members.collect::<Result<_, _>>()?
                        }
                    };
                    // A list has all of the values; null is never one of them.
                    if !null {
                        let list = format!("{json} and substr({text}, 1, 1) = '['");
                        parts.push(all([list, all(members)]));
                    }
                }
                if null {
                    parts.push(format!("{text} is null or {json} and {text} = 'null'"));
                }
                let equal = any(parts.into_iter().map(|part| format!("({part})")));
                Ok(of_equality(test.op, equal))
            }
            CompareOp::Matches => {
                let found = self.search(compared, text)?;
                if found == "false" {
                    return Ok(found);
                }
                let inside = self.strings(compared)?;
                Ok(any([
                    format!("((not {json} or {scalar}) and {found})"),
                    format!("({json} and substr({text}, 1, 1) in ('[', '{{') and {inside})"),
                ]))
            }
            op => Ok(any(compared.texts().map(|right| {
                let right = self.dialect.text(&right);
                format!("((not {json} or {scalar}) and {text} {op} {right})")
            }))),
        }
    }

    /// The bytes of the text of a content.
    pub(super) fn size(&mut self, test: &AttrTest) -> Result<String, Refused> {
        if self.dialect != Dialect::Sqlite {
            return Err(Refused::size(test));
        }
        self.needs.body = true;
        Ok(format!("coalesce({BYTES}(b.text, b.json), 0)"))
    }

    /// The text of a content that is a list or an object, and of others an empty list.
    fn structure(&self, marks: &str) -> String {
        let (text, json) = self.columns();
        let read = self.dialect.readable_json(text);
        format!("case when {json} and substr({text}, 1, 1) in ({marks}) then {read} else '[]' end")
    }

    /// Whether a content that is a list has elements with all of these texts, which are quoted, in SQLite: one
    /// subquery, as a statement has only this many.
    fn members(&self, quoted: &[String]) -> String {
        let list = self.structure("'['");
        let element = "case e.type when 'text' then e.value when 'true' then e.type when 'false' then e.type \
                       when 'integer' then b.text -> e.fullkey when 'real' then b.text -> e.fullkey end";
        let (texts, count) = (quoted.join(", "), quoted.len());
        format!(
            "(select count(distinct {element}) from json_each({list}) e where {element} in ({texts})) = {count}"
        )
    }

    /// Whether a content that is a list has an element with this text.
    fn member(&self, test: &AttrTest, wanted: &str) -> Result<String, Refused> {
        let list = self.structure("'['");
        let text = self.dialect.text(wanted);
        let plain = wanted.len() <= 18
            && wanted
                .trim_start_matches('-')
                .bytes()
                .all(|b| b.is_ascii_digit())
            && wanted
                .parse::<i64>()
                .is_ok_and(|value| value.to_string() == wanted);
        let numeric = wanted.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && serde_json::from_str::<serde_json::Number>(wanted).is_ok();
        let boolean = matches!(wanted, "true" | "false");
        if numeric && !plain && self.dialect.is_parquet() {
            return Err(Refused::new(
                test,
                "a number inside a list is read there without its spelling; write an integer of up to \
                 18 digits",
            ));
        }
        // What an element is: a text, a boolean, a number; with the same text.
        let [string, truth, figure] = self.elements(&text);
        let mut kinds = vec![string];
        kinds.extend(boolean.then_some(truth));
        kinds.extend(numeric.then_some(figure));
        let kinds = kinds.join(" or ");
        Ok(match self.dialect {
            Dialect::Sqlite => {
                format!("exists (select 1 from json_each({list}) e where {kinds})")
            }
            // A subquery would be made into a join of all nodes.
            Dialect::DuckDb => {
                format!("len(list_filter(json_extract({list}, '$[*]'), lambda e: {kinds})) > 0")
            }
            Dialect::Postgres => format!(
                "exists (select 1 from json_array_elements(cast({list} as json)) e where {kinds})"
            ),
            Dialect::Spark => {
                format!("exists(cast(parse_json({list}) as array<variant>), v -> {kinds})")
            }
        })
    }

    /// Whether an element of a list is a string, a boolean or a number of a text, which is quoted.
    fn elements(&self, text: &str) -> [String; 3] {
        match self.dialect {
            Dialect::Sqlite => [
                format!("e.type = 'text' and e.value = {text}"),
                format!("e.type = {text}"),
                format!("e.type in ('integer', 'real') and b.text -> e.fullkey = {text}"),
            ],
            Dialect::Postgres => [
                format!("json_typeof(e.value) = 'string' and e.value #>> '{{}}' = {text}"),
                format!("json_typeof(e.value) = 'boolean' and cast(e.value as text) = {text}"),
                format!("json_typeof(e.value) = 'number' and cast(e.value as text) = {text}"),
            ],
            Dialect::DuckDb => [
                format!("json_type(e) = 'VARCHAR' and json_extract_string(e, '$') = {text}"),
                format!("json_type(e) = 'BOOLEAN' and cast(e as varchar) = {text}"),
                format!("json_type(e) in ('BIGINT', 'UBIGINT') and cast(e as varchar) = {text}"),
            ],
            Dialect::Spark => ["STRING", "BOOLEAN", "BIGINT"].map(|kind| {
                format!("schema_of_variant(v) = '{kind}' and cast(v as string) = {text}")
            }),
        }
    }

    /// Whether a pattern is found in a string inside a list or an object, at any depth.
    fn strings(&self, compared: &Compared<'_>) -> Result<String, Refused> {
        let json = self.structure("'[', '{'");
        Ok(match self.dialect {
            Dialect::Sqlite => {
                let found = self.search(compared, "e.value")?;
                format!(
                    "exists (select 1 from json_tree({json}) e where e.type = 'text' and {found})"
                )
            }
            Dialect::Postgres => {
                let found = self.search(compared, "(e.value #>> '{}')")?;
                format!(
                    "exists (select 1 from jsonb_path_query(cast({json} as jsonb), 'strict $.**') \
                     as e(value) where jsonb_typeof(e.value) = 'string' and {found})"
                )
            }
            Dialect::DuckDb => {
                // The strings of the text that are not names of members, each read as JSON. DuckDB tests what
                // `and` joins in an order of its own: only `case` keeps it from reading a name.
                let string = "'\"(?:[^\"\\\\]|\\\\.)*\"\\s*:?'";
                let text =
                    "json_extract_string(case when suffix(e, ':') then null else e end, '$')";
                let found = self.search(compared, text)?;
                format!(
                    "len(list_filter(regexp_extract_all({json}, {string}), lambda e: {found})) > 0"
                )
            }
            Dialect::Spark => {
                // Finds each string of the text, and the colon with the name of a member; names count as null.
                // A name is found whole, so that the next string begins after it.
                let string = "'\"[^\"\\\\\\\\]*+(?:\\\\\\\\.[^\"\\\\\\\\]*+)*+\"(?:\\\\s*:)?'";
                let text = "from_json(concat('[', case when endswith(s, ':') then 'null' else s end, ']'), \
                            'array<string>')[0]";
                let found = self.search(compared, text)?;
                format!("exists(regexp_extract_all({json}, {string}, 0), s -> {found})")
            }
        })
    }
}
