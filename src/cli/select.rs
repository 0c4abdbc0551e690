//! `pactql select`: the nodes that a selector finds.

use super::answers::{How, Labels, append};
use super::command::{Run, print, say};
use super::fit::FitArgs;
use super::options::{Color, EditionName, Format, Limits, RangeArgs};
use super::{input, operands, output, sessions};
use crate::diag::{Code, Diagnostic, Error};
use crate::engine::Prepared;
use crate::history::Session;
use crate::present::answer::Found;
use crate::present::{Exit, Failure};
use clap::Args;
use std::io::{self, Write};

/// Find nodes with a selector.
///
/// The result is an ordered list of ids, or for a range of snapshots the differences between
/// neighbours. With several sessions, each result is labelled with the path of its session; with
/// several selectors, with the selector. A directory of single documents is one session; with a
/// JSON Lines file among several files in it, each file is a session.
#[derive(Args, Debug)]
#[command(override_usage = "\
pactql select [OPTIONS] <SESSION> <SELECTOR>
       pactql select [OPTIONS] <SESSION>... -e <SELECTOR>
       pactql select [OPTIONS] <SESSION> --file <FILE>")]
#[command(after_help = "\
Examples:
  pactql select session.jsonl \"@t0 ^seq .mt:depth(1) .cb[role='assistant']\"
  pactql select session.jsonl \"@t0 .cb[kind='call']\" --format nodes
  pactql select runs/*.jsonl -e \"@t0 .cb[kind='result']\" --count
  pactql select runs/ -e \"@t0 .cb[content~'refund']\" -l
  pactql select session.jsonl -e \"@t0 .cb[kind='call']\" -e \"@t0 .cb[kind='result']\"
  pactql select session.jsonl \"@t-3..@t0 .cb[ttl<=1]\" --format json
  pactql select session.jsonl \"@history .cb\" --include-content --stats --max-changes 20
  pactql select session.jsonl \"@history .cb[kind='call'] @mode=latest\"
  pactql select session.jsonl \"@t0 .cb\" --budget 2000 --query \"refund policy\"
  pactql select session.jsonl --file selectors.txt --format json

Exit codes: 0 ok, also if nothing is found, 2 invalid selector, 8 nothing found with --fail-if-empty.")]
pub(super) struct Select {
    /// Sessions: files, directories, or `-` for standard input. The last argument is the selector,
    /// unless -e or --file gives it.
    #[arg(value_name = "SESSION", required = true)]
    inputs: Vec<String>,
    /// A selector; may be given several times.
    #[arg(short = 'e', long = "selector", value_name = "SELECTOR")]
    #[arg(allow_hyphen_values = true)]
    selectors: Vec<String>,
    /// Run every line of a file as a selector; prints one line of JSON for each, which is the
    /// error if there is one.
    #[arg(long, value_name = "FILE", conflicts_with = "selectors")]
    file: Option<String>,
    /// How the result is printed.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Print only the number of nodes; of several sessions only those with any.
    #[arg(long)]
    count: bool,
    /// With --count: print the sessions with none, too.
    #[arg(long, requires = "count")]
    all: bool,
    /// Print only the paths of the sessions in which something is found.
    #[arg(short, long, conflicts_with_all = ["count", "file", "budget"])]
    list: bool,
    /// Exit with code 8 if nothing is found.
    #[arg(long)]
    fail_if_empty: bool,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    fit: FitArgs,
    #[command(flatten)]
    edition: EditionName,
    #[command(flatten)]
    limits: Limits,
}

impl Run for Select {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let how = How {
            engine: self.edition.engine(),
            options: self.range.options(),
            budget: self.fit.budget()?,
            format: self.format.resolve(),
            count: self.count,
            color,
        };
        match &self.file {
            Some(file) => self.run_file(file, &how),
            None => self.run_sessions(&how),
        }
    }
}

impl Select {
    /// Runs the selectors on each session.
    fn run_sessions(&self, how: &How) -> Result<Exit, Failure> {
        let (names, selectors) = operands::split(&self.inputs, &self.selectors)?;
        // An invalid selector is reported before anything is read.
        let prepared: Vec<Prepared> = selectors
            .iter()
            .map(|selector| how.engine.prepare(selector))
            .collect::<Result<_, _>>()?;
        if let Some(error) = prepared.iter().find_map(unbound) {
            return Err(error.into());
        }
        let given = names;
        let (names, directory) = sessions::expand(given)?;
        let sessions = sessions::open_all(&names, &self.limits)
            .map_err(|failure| sessions::explain_directory(failure, given))?;
        let several = directory || names.len() > 1;
        let mut run = Answers {
            select: self,
            how,
            several,
            out: String::new(),
            said: Vec::new(),
            empty: None,
            found: 0,
            listed: Vec::new(),
        };
        for (name, session) in names.iter().zip(&sessions) {
            for prepared in &prepared {
                let labels = Labels {
                    session: several.then_some(&**name),
                    selector: (selectors.len() > 1).then(|| prepared.text()),
                };
                run.add(name, session, prepared, labels)?;
            }
        }
        run.finish(names.len())
    }

    /// Runs each line of a file of selectors on one session.
    fn run_file(&self, file: &str, how: &How) -> Result<Exit, Failure> {
        if !matches!(self.format, Format::Auto | Format::Json) {
            return Err(
                Failure::value("--file answers in JSON only").with_help("leave `--format` out")
            );
        }
        let [name] = &self.inputs[..] else {
            return Err(
                Failure::usage("--file takes one session and no other selector")
                    .with_help("pactql select SESSION --file FILE"),
            );
        };
        if name == input::STDIN && file == input::STDIN {
            return Err(Failure::usage("standard input can be read once only")
                .with_help("give the session or the selectors as a file"));
        }
        let selectors = input::read(file, &self.limits)?;
        let session = sessions::open(name, &self.limits)?;
        let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
        let mut exit = Exit::Ok;
        let mut found = 0;
        for line in input::lines(&selectors) {
            let text = match run_line(&session, line, how) {
                Ok((text, count)) => {
                    found += count;
                    text
                }
                Err(failure @ Failure::Plain(Exit::Internal, ..)) => return Err(failure),
                Err(failure) => {
                    exit = Exit::Selector;
                    failure.json().to_string()
                }
            };
            writeln!(out, "{text}")?;
        }
        out.flush()?;
        Ok(match exit {
            Exit::Ok if self.fail_if_empty && found == 0 => Exit::Empty,
            exit => exit,
        })
    }
}

/// The error for a selector with a parameter.
fn unbound(prepared: &Prepared) -> Option<Error> {
    let name = format!("${}", prepared.params().first()?);
    let text = prepared.text();
    let at = text.find(&name)?;
    let mistake = Diagnostic::error(Code::SelectorInvalid, format!("`{name}` has no value"))
        .at(at..at + name.len(), "this parameter")
        .with_help("values of parameters cannot be given here; write the value in its place");
    Some(Error::new(text, mistake))
}

/// The answers of a run, while they are found.
struct Answers<'a> {
    select: &'a Select,
    how: &'a How,
    /// Whether the answers are labelled with their sessions.
    several: bool,
    out: String,
    /// Remarks that were made, each once.
    said: Vec<String>,
    /// The remarks on the first answer without rows of several; they are made if all are.
    empty: Option<String>,
    /// The rows or changes of all answers.
    found: usize,
    /// The sessions in which something was found.
    listed: Vec<&'a str>,
}

impl<'a> Answers<'a> {
    /// Runs a selector on a session.
    fn add(
        &mut self,
        name: &'a str,
        session: &Session,
        prepared: &Prepared,
        labels: Labels<'_>,
    ) -> Result<(), Failure> {
        let (select, how) = (self.select, self.how);
        let answer = prepared
            .select_with(session, &how.options)
            .map_err(|error| Failure::in_session(error, labels.session))?;
        let found = Found::new(&answer, how.budget.as_ref())?;
        let count = found.count();
        self.found += count;
        if count > 0 && !self.listed.contains(&name) {
            self.listed.push(name);
        }
        let left_out = how.count && self.several && count == 0 && !select.all;
        if !select.list && !left_out {
            append(&found, prepared, labels, how, &mut self.out)?;
        }
        if count == 0 && self.empty.is_some() {
            // Why an answer is empty costs more than the answer.
            return Ok(());
        }
        let color = how.color.for_errors();
        let as_json = select.format == Format::Json;
        let remarks = found.remarks(prepared, session, as_json, color);
        if count == 0 && self.several {
            self.empty.get_or_insert(remarks);
        } else if !self.said.contains(&remarks) {
            say(&remarks);
            self.said.push(remarks);
        }
        Ok(())
    }

    /// Prints the answers.
    fn finish(self, sessions: usize) -> Result<Exit, Failure> {
        if self.found == 0 {
            say(self.empty.as_deref().unwrap_or_default());
            if self.several {
                say(&format!("note: nothing was found in {sessions} sessions\n"));
            }
        }
        match (self.select.list, self.how.format) {
            (false, _) => print(&self.out)?,
            (true, Format::Json) if self.select.format == Format::Json => {
                output::print_as(true, &self.listed, String::new)?
            }
            (true, _) => print(
                &self
                    .listed
                    .iter()
                    .map(|name| format!("{name}\n"))
                    .collect::<String>(),
            )?,
        };
        Ok(match self.found {
            0 if self.select.fail_if_empty => Exit::Empty,
            _ => Exit::Ok,
        })
    }
}

/// Runs one line of a file; returns the answer as one JSON value, and the number of its rows.
fn run_line(
    session: &Session,
    line: Result<&str, String>,
    how: &How,
) -> Result<(String, usize), Failure> {
    let line = line.map_err(|line| input::not_utf8(&line))?;
    let answer = how.engine.select_with(session, line, &how.options)?;
    for warning in answer.warnings() {
        say(&warning.render(line, how.color.for_errors()));
    }
    let found = Found::new(&answer, how.budget.as_ref())?;
    Ok((found.json(how.count)?, found.count()))
}
