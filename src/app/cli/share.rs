//! `pactql share`: a session to give away, as a page or as a receipt without content.

use super::command::{Invocation, RunCommand, print, say};
use super::options::TokenizerArgs;
use super::output::{clean, printable};
use super::session_args::PriceArgs;
use super::{input, sessions};
use crate::app::present::folders::LogSource;
use crate::app::present::stores::StoreAddress;
use crate::app::present::{Exit, Failure, Result, answer, counted};
use crate::inspect::share::{Receipt, ReceiptStep, Redactor, page, receipt};
use crate::inspect::{Counts, Tokenizer};
use clap::{ArgGroup, Args};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::path::Path;

/// How is a session shown to somebody else? As one page for a browser, or as a receipt without content.
///
/// `--html` is one file that asks for nothing from anywhere, the page of `pactql view` with this session inside: all
/// steps, and of each what is new, the request, what changed, tokens, cost, and what broke the prompt cache. It has the
/// texts of the session, except what `--redact` takes out. `--receipt` has none of them: counts, sizes
/// and SHA-256 of each block, and names of tools and models.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("form").required(true).args(["html", "receipt"]))]
#[command(mut_arg("prices", |prices| prices.conflicts_with("receipt")))]
#[command(mut_arg("model", |model| model.conflicts_with("receipt")))]
pub(super) struct ShareArgs {
    /// The session: a file, a directory, `STORE#name`, or `-` for standard input.
    session: String,
    /// A page for a browser.
    #[arg(long)]
    html: bool,
    /// Counts, sizes and hashes, without content.
    #[arg(long)]
    receipt: bool,
    /// With --html: write `[redacted]` for what this regular expression matches, in texts, names and ids.
    #[arg(long, value_name = "PATTERN", conflicts_with = "receipt")]
    #[arg(allow_hyphen_values = true)]
    redact: Vec<String>,
    /// The file to write, or `-` for standard output [default: of a page SESSION.html, of a receipt standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<String>,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    #[command(flatten)]
    prices: PriceArgs,
}

impl RunCommand for ShareArgs {
    fn run(&self, with: &Invocation) -> Result<Exit> {
        let stem = LogSource::new(&self.own_name()).stem;
        let named = format!("{}.html", stem.replace('/', "-"));
        let named = self.output.as_deref().or(self.html.then_some(&*named));
        let output = named.filter(|path| *path != input::STDIN);
        let mut redactor = Redactor::new(&self.redact).map_err(|error| {
            let help = error.help;
            Failure::value(error.to_string()).with_help(help)
        })?;
        if let Some(path) = output {
            input::check_output(path, &[&*self.session], self.force)?;
        }
        let session = sessions::open(&self.session, with.limits)?;
        let history = session.history();
        history.fetch_all()?;
        let fitting = || Tokenizer::fitting(history.committed().iter(), None);
        let mut counts = Counts::new(self.tokenizer.tokenizer.unwrap_or_else(fitting));
        if history.working().is_some() {
            say("note: the working state is left out: it is not a step yet\n");
        }
        if self.receipt {
            let receipt = receipt(&history, &mut counts);
            // A file is for a program.
            let json = with.is_json() || (with.format.is_none() && output.is_some());
            let text = if json {
                answer::json(&receipt)? + "\n"
            } else {
                text_of(&receipt)
            };
            return input::put(with, output, |out| out.write_all(text.as_bytes()));
        }
        // A path of this machine is private.
        let title = session.name().map(str::to_owned);
        let title = title.unwrap_or_else(|| self.own_name());
        let prices = self.prices.table()?;
        let page = page(&history, &title, &mut redactor, &mut counts, &prices);
        if !redactor.is_empty() {
            say(&remarks(&redactor));
        }
        input::put(with, output, |out| page.write_html(out))?;
        // The name of a file that was not given one.
        match output.filter(|_| self.output.is_none() && !with.is_json()) {
            Some(file) => print(&format!("{}\n", printable(file))),
            None => Ok(Exit::Ok),
        }
    }
}

impl ShareArgs {
    /// The name of the session or of its file, without the folder.
    fn own_name(&self) -> String {
        let name = &self.session;
        match StoreAddress::parse(name) {
            _ if name == input::STDIN => input::STDIN_NAME.to_owned(),
            Some(address) => address.one().unwrap_or(name).to_owned(),
            None => {
                let file = Path::new(name).file_name().unwrap_or_default();
                file.to_string_lossy().into_owned()
            }
        }
    }
}

fn remarks(redactor: &Redactor) -> String {
    let mut text = format!("redacted {}\n", counted(redactor.count(), "match"));
    for pattern in redactor.unmatched() {
        let _ = writeln!(text, "warning: nothing matches `{}`", clean(pattern, 80));
    }
    text
}

/// A receipt as lines: a step, what it is made of, and the blocks that come and go.
fn text_of(receipt: &Receipt) -> String {
    let steps = counted(receipt.steps.len() as u64, "step");
    let blocks = counted(receipt.blocks.len() as u64, "distinct block");
    let (by, form) = (receipt.tokenizer, receipt.provider.name());
    let mut out = format!("{steps}, {blocks}; tokens by {by}, requests as {form}\n");
    if receipt.reconstructed {
        out.push_str("requests are reconstructed from a transcript\n");
    }
    let mut list: Vec<u32> = Vec::new();
    for step in &receipt.steps {
        write_step(&mut out, step);
        for (at, removed, added) in &step.changes {
            let gone = list.splice(*at..*at + *removed, added.iter().copied());
            for block in gone {
                let _ = writeln!(out, "  - {}", block + 1);
            }
            for at in added {
                let Some(block) = receipt.blocks.get(*at as usize) else {
                    continue;
                };
                let _ = write!(
                    out,
                    "  + {}  {}  {} {}",
                    at + 1,
                    block.sha256,
                    block.role,
                    block.kind
                );
                let error = block.error.then_some("error");
                for word in [block.tool.as_deref(), error].into_iter().flatten() {
                    let _ = write!(out, " {word}");
                }
                let bytes = counted(block.bytes, "byte");
                let _ = writeln!(out, ", {bytes}, {}", counted(block.tokens, "token"));
            }
        }
    }
    out
}

fn listed(counts: &BTreeMap<impl Display, impl Display>) -> String {
    let counts = counts.iter().map(|(name, count)| format!("{name} {count}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn write_step(out: &mut String, step: &ReceiptStep) {
    let _ = write!(out, "\n@c{}", step.cycle);
    for word in [&step.time, &step.model].into_iter().flatten() {
        let _ = write!(out, "  {word}");
    }
    let blocks = counted(step.blocks as u64, "block");
    let (bytes, tokens) = (counted(step.bytes, "byte"), counted(step.tokens, "token"));
    let _ = writeln!(out, "  {blocks}, {bytes}, {tokens}");
    let failed = (step.failed > 0).then(|| counted(step.failed as u64, "call"));
    let prefix = step.prefix.as_ref().map(|prefix| {
        let mut text = counted(prefix.bytes, "byte");
        if let Some(percent) = prefix.reused_percent {
            let _ = write!(text, ", {percent} % of the request before kept");
        }
        if let (Some(cause), Some(place)) = (&prefix.cause, &prefix.place) {
            let _ = write!(text, ", broken by {} in {place}", cause.replace('_', " "));
        }
        text
    });
    for (title, text) in [
        ("roles  ", Some(listed(&step.by_role))),
        ("kinds  ", Some(listed(&step.by_kind))),
        (
            "calls  ",
            Some(listed(&step.calls)).filter(|calls| !calls.is_empty()),
        ),
        ("compaction", step.compaction.then(String::new)),
        ("failed ", failed),
        ("prefix ", prefix),
    ] {
        if let Some(text) = text {
            let _ = writeln!(out, "{}", format!("  {title} {text}").trim_end());
        }
    }
}
