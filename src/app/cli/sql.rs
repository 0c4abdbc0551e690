//! `pactql sql`: a selector as a statement of SQL.

use super::command::{Invocation, Run, print, say};
use super::operands;
use super::options::{EditionArgs, named};
use crate::app::present::stores::Address;
use crate::app::present::{Exit, Failure};
use crate::engine::Engine;
use crate::query::sql::{Dialect, Options};
use crate::store::parquet_views;
use clap::Args;

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
pub(super) struct Sql {
    /// The selector.
    #[arg(value_name = "SELECTOR", required_unless_present = "views")]
    selector: Option<String>,
    /// Whose SQL.
    #[arg(long, default_value = "sqlite", value_name = "DIALECT")]
    #[arg(value_parser = named(&Dialect::ALL, Dialect::name))]
    dialect: Dialect,
    /// Only sessions whose name matches, where `*` is any text without `/`.
    #[arg(
        long,
        value_name = "GLOB",
        default_value = "",
        hide_default_value = true
    )]
    sessions: String,
    /// The schema of the tables.
    #[arg(
        long,
        value_name = "NAME",
        default_value = "",
        hide_default_value = true
    )]
    schema: String,
    /// Print the statements that make views over the Parquet files of a directory or a bucket.
    #[arg(long = "create-views", value_name = "DIR")]
    #[arg(conflicts_with_all = ["selector", "sessions"])]
    views: Option<String>,
    #[command(flatten)]
    edition: EditionArgs,
}

impl Run for Sql {
    fn run(&self, _: &Invocation) -> Result<Exit, Failure> {
        match (&self.views, &self.selector) {
            (Some(directory), _) => self.print_views(directory),
            (None, Some(selector)) => self.print_statement(selector),
            (None, None) => Err(Failure::usage("`sql` needs a selector")),
        }
    }
}

impl Sql {
    fn print_statement(&self, selector: &String) -> Result<Exit, Failure> {
        if let Some(address) = Address::of(selector) {
            return Err(Failure::usage(format!(
                "`{selector}` is a store; `sql` prints a statement and asks no store"
            ))
            .with_help(format!(
                "pactql select {} SELECTOR --via sql",
                address.store
            )));
        }
        operands::check_selectors("sql", std::slice::from_ref(selector))?;
        let engine: Engine = self.edition.engine();
        let options = Options {
            sessions: self.sessions.clone(),
            schema: self.schema.clone(),
        };
        let prepared = engine.prepare(selector)?;
        for warning in prepared.warnings() {
            say(&warning.to_text(prepared.text(), crate::support::diag::ColorChoice::Never));
        }
        let statement = prepared.sql(self.dialect, &options)?;
        print(&format!("{};\n", statement.text()))
    }

    fn print_views(&self, directory: &str) -> Result<Exit, Failure> {
        let schema = Some(&*self.schema).filter(|schema| !schema.is_empty());
        if !self.dialect.is_parquet() {
            return Err(Failure::value(format!(
                "`--create-views` makes views over Parquet files, which {} does not read",
                self.dialect
            ))
            .with_help("--dialect duckdb or spark"));
        }
        let views = parquet_views(self.dialect, directory, schema)?;
        print(&format!("{};\n", views.join(";\n\n")))
    }
}
