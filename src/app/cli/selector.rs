//! The commands about a selector alone: `explain`, `sql`, `fmt`.

use super::command::{Invocation, RunCommand, print, say};
use super::options::{EditionArgs, named};
use super::output::escaped;
use super::sessions;
use super::words::{check_selectors, split_operands};
use crate::app::present::stores::{Access, StoreAddress, none_of};
use crate::app::present::{Exit, Failure, Result};
use crate::engine::ExplainOptions;
use crate::query::sql::{Dialect, Options};
use crate::store::parquet_views;
use clap::Args;
use serde_json::json;
use std::fmt::Write as _;

/// How is a selector read, planned and run?
///
/// Prints the selector, its normalized text and fingerprint, and its plan. With a session, the
/// snapshots it names are looked up there, and --analyze runs the plan and prints counters and the
/// rows of each step, next to the estimate of the index where there is one. With a store, it says whether
/// one statement answers or sessions are loaded, how many there are, and how many of them can match at all; --analyze asks
/// those.
#[derive(Args, Debug)]
#[command(override_usage = "pactql explain [OPTIONS] [SESSION] <SELECTOR>")]
pub(super) struct ExplainArgs {
    /// A session (a file, a directory, `STORE#name`, or `-`) or a store, if any, and the selector.
    #[arg(value_name = "SESSION", required = true, num_args = 1..=2)]
    inputs: Vec<String>,
    /// Run the plan, and show what each step did.
    #[arg(long)]
    analyze: bool,
    /// Show the normalized form after each pass.
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    edition: EditionArgs,
}

impl RunCommand for ExplainArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let engine = self.edition.engine();
        let (session, selector) = match &self.inputs[..] {
            [selector] => {
                check_selectors("explain", &self.inputs)?;
                (None, selector)
            }
            inputs => {
                let (names, selectors) = split_operands("explain", inputs, &[])?;
                (names.first(), &selectors[0])
            }
        };
        if self.analyze && session.is_none() {
            return Err(Failure::usage("`--analyze` needs a session")
                .with_help("pactql explain SESSION SELECTOR --analyze"));
        }
        let store = session.and_then(|name| StoreAddress::parse(name));
        let store = store.filter(|address| address.is_several());
        let session = match session {
            Some(name) if store.is_none() => Some(sessions::open(name, with.limits)?),
            _ => None,
        };
        let options = ExplainOptions {
            analyze: self.analyze && store.is_none(),
            verbose: self.verbose,
        };
        let explain = engine.explain(session.as_deref(), selector, options)?;
        let (mut counts, mut route) = (Vec::new(), None);
        if let Some(address) = store {
            let prepared = engine.prepare(selector)?;
            let store = super::read_sessions::open_store(address.store, Access::Read)?;
            let asked = store.select_prepared(&prepared).sessions(address.glob());
            let mut answers = asked.answers()?;
            let all = answers.sessions()?;
            if all == 0 {
                say(&format!("note: {}\n", none_of(address)));
            }
            counts.extend([("sessions", all), ("candidates", answers.candidates())]);
            route = Some(asked.route()?);
            if self.analyze {
                let found = answers.try_fold((0, 0), |(sessions, rows), found| {
                    let count = found?.answer.count();
                    Ok::<_, Failure>((sessions + 1, rows + count))
                })?;
                counts.extend([("matched", found.0), ("rows", found.1)]);
            }
        }
        if with.is_json() {
            let mut json = explain.to_json();
            for (name, count) in counts {
                json["store"][name] = json!(count);
            }
            if let Some(route) = route {
                json["store"]["answered_by"] = json!(route.to_string());
            }
            return print(&format!("{json}\n"));
        }
        let mut text = explain.to_string();
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if let Some(route) = route {
            let _ = writeln!(text, "answered by  {route}");
        }
        for (name, count) in counts {
            let _ = writeln!(text, "{name:<12} {count}");
        }
        with.show(&escaped(&text, false), true)
    }
}

/// Which SQL statement answers a selector? Prints it, or the views it reads.
///
/// A database answers the statement where the data is: SQLite and PostgreSQL over a store,
/// DuckDB and Spark over its export to Parquet (`pactql store parquet STORE DIR`), after the statements
/// that --create-views prints. Rows are session, seq, snapshot, id and ord; of a range session, newer,
/// older, change, id and ord.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql sql [OPTIONS] <SELECTOR>
       pactql sql [OPTIONS] --create-views <DIR>")]
pub(super) struct SqlArgs {
    /// The selector.
    #[arg(value_name = "SELECTOR", required_unless_present = "views")]
    selector: Option<String>,
    /// Whose SQL.
    #[arg(long, default_value = "sqlite", value_name = "DIALECT")]
    #[arg(value_parser = named(&Dialect::ALL, Dialect::name))]
    dialect: Dialect,
    /// Only sessions whose name matches, where `*` is any text, also with `/`.
    #[arg(long, value_name = "GLOB", default_value = "")]
    #[arg(hide_default_value = true)]
    sessions: String,
    /// The schema of the tables.
    #[arg(long, value_name = "NAME", default_value = "")]
    #[arg(hide_default_value = true)]
    schema: String,
    /// Print the statements that make views over the Parquet files of a directory or a bucket.
    #[arg(long = "create-views", value_name = "DIR")]
    #[arg(conflicts_with_all = ["selector", "sessions"])]
    views: Option<String>,
    #[command(flatten)]
    edition: EditionArgs,
}

impl RunCommand for SqlArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        if let Some(directory) = &self.views {
            if !self.dialect.is_parquet() {
                return Err(Failure::value(format!(
                    "`--create-views` makes views over Parquet files, which {} does not read",
                    self.dialect
                ))
                .with_help("--dialect duckdb or spark"));
            }
            let schema = Some(&*self.schema).filter(|schema| !schema.is_empty());
            let views = parquet_views(self.dialect, directory, schema)?;
            let json = json!({"dialect": self.dialect.name(), "views": views});
            return with.print(&json, || format!("{};\n", views.join(";\n\n")));
        }
        // clap wants one of both.
        let selector = self.selector.as_slice();
        if let Some(address) = selector.iter().find_map(|word| StoreAddress::parse(word)) {
            let store = address.store;
            return Err(Failure::usage(format!(
                "`{store}` is a store; `sql` prints a statement and asks no store"
            ))
            .with_help(format!("pactql select {store} SELECTOR --via sql")));
        }
        check_selectors("sql", selector)?;
        let prepared = self.edition.engine().prepare(&selector.concat())?;
        with.warn(prepared.warnings(), prepared.text());
        let options = Options {
            sessions: self.sessions.clone(),
            schema: self.schema.clone(),
        };
        let statement = prepared.sql(self.dialect, &options)?;
        let text = statement.text();
        let json = json!({"dialect": self.dialect.name(), "statement": text});
        with.print(&json, || format!("{text};\n"))
    }
}

/// Is a selector valid, and what is its normalized form? Prints one a line.
///
/// Normalized text is canonical: selectors known to have the same meaning get the same text, and
/// the text itself is a selector of the canonical edition. `--check` prints its fingerprint, too.
#[derive(Args, Debug)]
pub(super) struct FmtArgs {
    /// The selectors.
    #[arg(value_name = "SELECTOR", required = true)]
    selectors: Vec<String>,
    /// Also print the fingerprint of each.
    #[arg(long)]
    check: bool,
    /// The edition to write them in. Only the canonical one has words for every selector.
    #[arg(long, value_name = "EDITION", default_value = "canonical", value_parser = ["canonical"])]
    to: String,
    #[command(flatten)]
    edition: EditionArgs,
}

impl RunCommand for FmtArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        check_selectors("fmt", &self.selectors)?;
        let engine = self.edition.engine();
        let mut text = String::new();
        for selector in &self.selectors {
            let report = engine.check(selector)?;
            let (canonical, fingerprint) = (&report.canonical, &report.fingerprint);
            if with.is_json() {
                let warnings = report.warnings.iter().map(ToString::to_string);
                let json = json!({
                    "canonical": canonical,
                    "fingerprint": fingerprint,
                    "warnings": warnings.collect::<Vec<_>>(),
                });
                let _ = writeln!(text, "{json}");
                continue;
            }
            with.warn(&report.warnings, selector);
            let _ = writeln!(text, "{canonical}");
            if self.check {
                let _ = writeln!(text, "sha256 {fingerprint}");
            }
        }
        print(&text)
    }
}
