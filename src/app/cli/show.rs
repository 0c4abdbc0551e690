//! `pactql show`: a snapshot as a person reads it.

use super::command::{Run, print, say};
use super::inspected::Inspected;
use super::options::Color;
use super::pager::page;
use super::show_text::{Look, markdown, text};
use super::tokens::{append_json, tokenizer};
use crate::app::present::{Exit, Failure, counted};
use crate::engine::Engine;
use crate::inspect::{ShowOptions, Tokenizer, show};
use clap::{Args, ValueEnum};

/// Show what the model saw: the request of a snapshot, block by block.
///
/// `+` marks blocks that are new since the snapshot before, `~` those that changed. Long texts are cut,
/// with their size; of tools only the names are listed. With a range each snapshot is shown.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  pactql show session.jsonl
  pactql show session.jsonl --at @c3 --before-reply
  pactql show session.jsonl --where \".cb[kind='result']\" --full
  pactql show agents.db#support-42 --at @t-1 --format markdown > step.md
  pactql show session.jsonl --over @t-2..@t0 --format json")]
pub(super) struct Show {
    #[command(flatten)]
    inspected: Inspected,
    /// Without the reply of the cycle: what was sent.
    #[arg(long)]
    before_reply: bool,
    /// Whole texts, and the definitions of tools.
    #[arg(long)]
    full: bool,
    /// The same as `--format markdown`.
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    /// How tokens are counted: o200k, cl100k or bytes/4 [default: the one that fits the model of the
    /// request].
    #[arg(long, value_name = "NAME", value_parser = tokenizer)]
    tokenizer: Option<Tokenizer>,
    /// Text, Markdown or JSON. JSON has whole texts.
    #[arg(long, value_enum, default_value_t)]
    format: ShowFormat,
    /// Print long text on a terminal at once.
    #[arg(long)]
    no_pager: bool,
}

/// How a snapshot is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ShowFormat {
    /// Text.
    #[default]
    Text,
    /// Markdown.
    Markdown,
    /// JSON, for errors on standard error too.
    Json,
}

impl Run for Show {
    fn run(&self, color: Color) -> Result<Exit, Failure> {
        let engine = Engine::new();
        let part = self.inspected.part();
        let options = ShowOptions::default().before_reply(self.before_reply);
        let look = Look {
            full: self.full,
            paint: color.for_results(),
        };
        let mut out = String::new();
        self.inspected.each(|opened| {
            let shown = show(&engine, &opened.session, &part, options, self.tokenizer)
                .map_err(|error| opened.failure(error))?;
            if shown.iter().all(|shown| shown.blocks.is_empty()) {
                let labels: Vec<&str> = shown.iter().map(|shown| &*shown.label).collect();
                let place = match labels[..] {
                    [only] => only.to_owned(),
                    _ => counted(labels.len() as u64, "snapshot"),
                };
                say(&format!(
                    "note: no block of {place} is asked for; `--over @history` looks in all snapshots\n"
                ));
            }
            for shown in &shown {
                if self.format == ShowFormat::Json {
                    append_json(opened, shown, &mut out)?;
                    continue;
                }
                opened.title(look.paint, &mut out);
                out.push_str(
                    &if self.markdown || self.format == ShowFormat::Markdown { markdown(shown, look) } else { text(shown, look) },
                );
            }
            Ok(())
        })?;
        match self.format {
            ShowFormat::Text if !self.markdown => page(&out, !self.no_pager),
            _ => print(&out),
        }
    }
}
