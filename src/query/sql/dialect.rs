//! What differs between the dialects: literals, names, and the few functions a statement needs.
//!
//! Everything that came from a selector or from its user goes into a statement through this file alone,
//! as a literal or a quoted name. It must not know selectors.

use std::str::FromStr;

use crate::support::macros::names;
use crate::support::text::controls;

names! {
    /// A dialect of SQL, and with it the home of the tables (STORE §5): SQLite and PostgreSQL have the tables of
    /// a store, DuckDB and Spark those of an export to Parquet, in which each table has `session_id` and `node`
    /// has the contents.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Dialect: name {
        /// SQLite 3.44 or later, over a store.
        Sqlite = "sqlite",
        /// DuckDB 1.3 or later, over Parquet.
        DuckDb = "duckdb",
        /// PostgreSQL 12 or later, over a store.
        Postgres = "postgres",
        /// Spark 4.0 or later, over Parquet.
        Spark = "spark",
    }
}

impl Dialect {
    /// Whether the tables are those of an export to Parquet.
    pub(crate) fn is_parquet(self) -> bool {
        matches!(self, Self::DuckDb | Self::Spark)
    }
}

/// Text that names no [`Dialect`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected sqlite, duckdb, postgres or spark")]
pub struct UnknownDialect;

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        Self::parse(text).ok_or(UnknownDialect)
    }
}

impl Dialect {
    /// A text literal. The text has no U+0000, which no dialect can write: tests with one are refused.
    pub(crate) fn text(self, text: &str) -> String {
        match self {
            // What a backslash means in a plain literal is a setting of the server.
            Self::Postgres if text.contains('\\') => {
                format!(" E{}", doubled(&text.replace('\\', "\\\\"), "'"))
            }
            Self::Sqlite | Self::DuckDb | Self::Postgres => doubled(text, "'"),
            Self::Spark => {
                let text = text.replace('\\', "\\\\").replace('\'', "\\'");
                // Spark puts a setting in the place of `${name}` before it reads the statement.
                format!("'{}'", text.replace('{', "\\u007B"))
            }
        }
    }

    /// Whether a JSON text has a text with U+0000, in SQLite and PostgreSQL: JSON writes it in one way, after backslashes
    /// in pairs.
    #[cfg(feature = "store")]
    pub(crate) fn has_nul(self, json: &str) -> String {
        let [pair, nul] = [r"\\", r"\u0000"].map(|text| self.text(text));
        let unpaired = format!("replace({json}, {pair}, '')");
        format!("replace({unpaired}, {nul}, '') <> {unpaired}")
    }

    /// A JSON text that the database can read: PostgreSQL refuses all of one with U+0000, so U+FFFD is in its place.
    pub(crate) fn readable_json(self, json: &str) -> String {
        if self != Self::Postgres {
            return json.to_owned();
        }
        let text = |text: &str| self.text(text);
        format!(
            "case when strpos({json}, {}) > 0 then regexp_replace({json}, {}, {}, 'g') else {json} end",
            text(r"\u0000"),
            text(r"(?<!\\)((?:\\\\)*)\\u0000"),
            text(r"\1\\ufffd")
        )
    }

    pub(crate) fn name_of(self, name: &str) -> String {
        doubled(name, if self == Self::Spark { "`" } else { "\"" })
    }

    pub(super) fn int(self, value: i64) -> String {
        // The digits of the least one are beyond an integer before their sign is read.
        match value {
            i64::MIN => "(-9223372036854775807 - 1)".to_owned(),
            value if value < 0 => format!("({value})"),
            value => value.to_string(),
        }
    }

    /// A double of exactly this value, which is finite.
    pub(super) fn real(self, value: f64) -> String {
        let digits = format!("{value:e}");
        match self {
            Self::Sqlite if digits.contains('.') => format!("({digits})"),
            Self::Sqlite => format!("({})", digits.replacen('e', ".0e", 1)),
            Self::DuckDb | Self::Spark => format!("cast('{digits}' as double)"),
            Self::Postgres => format!("cast('{digits}' as double precision)"),
        }
    }

    /// The text as lines of a comment. It may say anything: no line of it ends the comment.
    pub(super) fn comment(self, text: &str) -> String {
        let mut out = String::from("-- ");
        for letter in text.chars() {
            match letter {
                '\n' => out.push_str("\\n"),
                // Whatever a reader takes for the end of a line, or acts on.
                letter if controls(letter) || matches!(letter, '\u{2028}' | '\u{2029}') => {
                    out.extend(letter.escape_unicode());
                }
                // Spark would put a setting there.
                '{' if self == Self::Spark && out.ends_with('$') => out.push_str(" {"),
                letter => out.push(letter),
            }
        }
        out
    }
}

/// `text` between marks, where a mark inside is written twice.
fn doubled(text: &str, mark: &str) -> String {
    format!("{mark}{}{mark}", text.replace(mark, &mark.repeat(2)))
}

impl Dialect {
    /// Whether a session's name matches a pattern, in which `*` is any text.
    pub(super) fn name_matches(self, column: &str, glob: &str) -> String {
        if !glob.contains('*') {
            return format!("{column} = {}", self.text(glob));
        }
        if self == Self::Sqlite {
            let pattern = glob.replace('[', "[[]").replace('?', "[?]");
            return format!("{column} glob {}", self.text(&pattern));
        }
        let pattern = glob.replace('!', "!!").replace('%', "!%");
        let pattern = pattern.replace('_', "!_").replace('*', "%");
        format!("{column} like {} escape '!'", self.text(&pattern))
    }

    pub(super) fn contains(self, column: &str, text: &str) -> String {
        let text = self.text(text);
        match self {
            Self::Sqlite => format!("instr({column}, {text}) > 0"),
            Self::Postgres => format!("strpos({column}, {text}) > 0"),
            Self::DuckDb | Self::Spark => format!("contains({column}, {text})"),
        }
    }

    /// The RFC 3339 text of nanoseconds since 1970, in UTC, with nine decimals.
    pub(super) fn iso(self, nanos: &str) -> String {
        let part = format!("(({nanos}) % 1000000000)");
        let rest = format!("(({part} + 1000000000) % 1000000000)");
        // Towards zero first: the least number has no second below it.
        let seconds = match self {
            Self::DuckDb => format!("(({nanos}) - {part}) // 1000000000"),
            Self::Spark => format!("(({nanos}) - {part}) div 1000000000"),
            Self::Sqlite | Self::Postgres => format!("(({nanos}) - {part}) / 1000000000"),
        };
        let seconds = format!("({seconds} - case when {part} < 0 then 1 else 0 end)");
        match self {
            Self::Sqlite => format!(
                "strftime('%Y-%m-%dT%H:%M:%S', {seconds}, 'unixepoch') || printf('.%09dZ', {rest})"
            ),
            Self::DuckDb => format!(
                "strftime(make_timestamp(({seconds}) * 1000000), '%Y-%m-%dT%H:%M:%S') || '.' \
                 || lpad(cast({rest} as varchar), 9, '0') || 'Z'"
            ),
            Self::Postgres => format!(
                "to_char(timestamp '1970-01-01 00:00:00' + ({seconds}) * interval '1 second', \
                 'YYYY-MM-DD\"T\"HH24:MI:SS') || '.' || lpad(cast({rest} as text), 9, '0') || 'Z'"
            ),
            Self::Spark => format!(
                "concat(date_format(timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, \
                 {seconds}), \"yyyy-MM-dd'T'HH:mm:ss\"), '.', lpad(cast({rest} as string), 9, '0'), 'Z')"
            ),
        }
    }

    /// Texts in an order joined to one, one for each group. `separator` ends each.
    pub(super) fn joined(self, text: &str, order: &str) -> String {
        match self {
            Self::Sqlite => format!("group_concat({text}, '' order by {order})"),
            Self::DuckDb | Self::Postgres => format!("string_agg({text}, '' order by {order})"),
            Self::Spark => format!(
                "array_join(transform(array_sort(collect_list(struct({order} as at, {text} as part))), \
                 x -> x.part), '')"
            ),
        }
    }

    pub(super) fn letter(self, number: u32) -> String {
        match self {
            Self::Sqlite | Self::Spark => format!("char({number})"),
            Self::DuckDb | Self::Postgres => format!("chr({number})"),
        }
    }
}
