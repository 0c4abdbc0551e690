//! The page: a session as one file that a browser shows, without a request to anywhere.
//!
//! The page is a document, a style, a script, and the session as JSON. The script shows texts as texts
//! only. The policy in the document names the hashes of the style and of the script, so nothing else
//! runs, whatever a text contains. This file must not know how the page looks.

use super::table::{Block, Table, TableStep};
use super::texts::Written;
use crate::history::History;
use crate::inspect::prefix::walk;
use crate::inspect::steps::{events, time_of};
use crate::inspect::{Counts, PrefixStep, StepEvent, Tokenizer, form_of};
use crate::json::Redactor;
use crate::render::Provider;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What a page shows besides the session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PageOptions {
    /// The heading: the name of the session.
    pub title: String,
    /// The form in which requests are compared; without it, that of the session.
    pub provider: Option<Provider>,
}

impl PageOptions {
    /// A page with this heading.
    #[must_use]
    pub fn titled(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            provider: None,
        }
    }

    /// Compares requests in the form of this provider.
    #[must_use]
    pub fn provider(mut self, provider: Option<Provider>) -> Self {
        self.provider = provider;
        self
    }
}

/// A session as a page.
#[derive(Clone, Debug)]
pub struct Page {
    data: String,
}

impl Page {
    /// The session as one JSON value, in which `<` is escaped. Its form may change in any release.
    #[must_use]
    pub fn data(&self) -> &str {
        &self.data
    }

    /// Writes the file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut rest = DOCUMENT;
        while let Some((before, after)) = rest.split_once("{{") {
            out.write_all(before.as_bytes())?;
            let (name, after) = after.split_once("}}").unwrap_or_default();
            let hash;
            let part = match name {
                "style" => STYLE,
                "script" => SCRIPT,
                "data" => &self.data,
                "hash of style" => {
                    hash = integrity(STYLE);
                    &hash
                }
                "hash of script" => {
                    hash = integrity(SCRIPT);
                    &hash
                }
                _ => "",
            };
            out.write_all(part.as_bytes())?;
            rest = after;
        }
        out.write_all(rest.as_bytes())
    }
}

/// The committed snapshots of `history` as a page, without what `redactor` takes out. All snapshots
/// have to be in memory ([`History::fetch_all`]).
///
/// Each distinct text is in the page once, and a step is what changed, so the page grows with the
/// session and not with its square. Costs as much as [`PrefixReport`](crate::inspect::PrefixReport), and the distinct texts.
///
/// ```
/// use pactql::Session;
/// use pactql::inspect::share::{PageOptions, Redactor, page};
/// use pactql::inspect::{Counts, Tokenizer};
///
/// let session = Session::open("fixtures/weather.json")?;
/// let mut redactor = Redactor::new(["Bergen"])?;
/// let mut counts = Counts::new(Tokenizer::Bytes4);
/// let page = page(&session.history(), &PageOptions::titled("weather"), &mut redactor, &mut counts);
/// let mut html = Vec::new();
/// page.write_html(&mut html)?;
/// assert!(html.starts_with(b"<!doctype html>") && !page.data().contains("Bergen"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn page(
    history: &History,
    options: &PageOptions,
    redactor: &mut Redactor,
    counts: &mut Counts,
) -> Page {
    let table = Table::of(history, counts);
    let found = walk(
        history,
        history.committed().iter(),
        options.provider,
        counts,
    );
    let (found, no_prefixes) = match found {
        Ok(found) => (found.steps, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let found: BTreeMap<i64, PrefixStep> =
        found.into_iter().map(|step| (step.cycle, step)).collect();
    let mut writer = PageWriter {
        names: HashMap::new(),
        list: Vec::new(),
        hides: !redactor.is_empty(),
        redactor,
    };
    let texts = table.texts.iter();
    let texts: Vec<String> = texts.map(|text| writer.text(&text.text)).collect();
    let ids: HashMap<&str, u32> = table.ids.iter().map(String::as_str).zip(0..).collect();
    let steps = table.steps.iter();
    let steps: Vec<PageStep<'_>> = steps
        .map(|step| writer.step(step, found.get(&step.snapshot.cycle()), &ids))
        .collect();
    let blocks = table.blocks.iter();
    let blocks: Vec<BlockRow<'_>> = blocks.map(|block| writer.block(block, &table)).collect();
    let written = texts.iter().zip(&table.texts).map(|(text, of)| {
        let base = of
            .before
            .and_then(|at| Some((at, &**texts.get(at as usize)?)));
        Written::of(text, base)
    });
    let data = Data {
        format: "pactql page 1",
        title: writer.text(&options.title),
        tokenizer: counts.tokenizer(),
        estimate: counts.tokenizer().is_estimate(),
        provider: options.provider.unwrap_or_else(|| form_of(history)).name(),
        reconstructed: table.steps.iter().any(|step| step.call.reconstructed),
        no_prefixes: no_prefixes.map(|text| writer.text(&text)),
        ids: table.ids.iter().map(|id| writer.text(id)).collect(),
        turns: table.turns.iter().map(|id| writer.text(id)).collect(),
        texts: written.collect(),
        blocks,
        steps,
        redacted: writer.redactor.count(),
        names: writer.list,
    };
    // Strings and numbers always have a JSON form.
    let data = serde_json::to_string(&data).unwrap_or_default();
    Page {
        data: data.replace('<', "\\u003c"),
    }
}

/// What the script reads.
#[derive(Serialize)]
struct Data<'a> {
    format: &'static str,
    title: String,
    tokenizer: Tokenizer,
    estimate: bool,
    provider: &'static str,
    reconstructed: bool,
    no_prefixes: Option<String>,
    redacted: u64,
    /// Roles, kinds, tools and models.
    names: Vec<String>,
    ids: Vec<String>,
    turns: Vec<String>,
    texts: Vec<Written<'a>>,
    blocks: Vec<BlockRow<'a>>,
    steps: Vec<PageStep<'a>>,
}

/// Id, region, turn, role, kind, tool, id of the call, cycle whose reply it is, whether it is an
/// error, bytes, tokens, text. What is absent is null.
type BlockRow<'a> = (
    u32,
    u8,
    Option<u32>,
    u32,
    Option<u32>,
    Option<u32>,
    Option<String>,
    Option<&'a str>,
    u8,
    usize,
    u64,
    u32,
);

/// A cycle, which is a string because it can be more than a script can count to.
#[derive(Serialize)]
struct PageStep<'a> {
    cycle: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<u32>,
    tokens: u64,
    bytes: u64,
    /// Input, cached, written to the cache, output, as the provider counted.
    usage: [Option<u64>; 4],
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<String>,
    events: Vec<PageEvent>,
    /// Where, how many places go, what comes.
    changes: Vec<(usize, usize, &'a [u32])>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<PagePrefix>,
}

/// What happened: its name, how often, and what it is about.
type PageEvent = (&'static str, usize, Option<String>);

/// The request beside the one before.
#[derive(Serialize)]
struct PagePrefix {
    bytes: u64,
    tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u64>,
    shared: u64,
    missed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<Broken>,
}

#[derive(Serialize)]
struct Broken {
    at: u64,
    place: String,
    /// The index of the id of the block.
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u32>,
    cause: String,
    mend: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    older: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    newer: Option<String>,
}

/// Writes what comes from the session, redacted.
struct PageWriter<'r> {
    redactor: &'r mut Redactor,
    /// Whether anything is redacted.
    hides: bool,
    names: HashMap<String, u32>,
    list: Vec<String>,
}

impl PageWriter<'_> {
    fn text(&mut self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    /// The number of a name.
    fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        let number = self.list.len() as u32;
        let redacted = self.text(name);
        self.list.push(redacted);
        self.names.insert(name.to_owned(), number);
        number
    }

    fn block<'a>(&mut self, block: &'a Block, table: &Table) -> BlockRow<'a> {
        let bytes = table.texts.get(block.text as usize);
        (
            block.id,
            block.region as u8,
            block.turn,
            self.name(&block.role),
            block.kind.as_deref().map(|kind| self.name(kind)),
            block.tool.as_deref().map(|tool| self.name(tool)),
            block.call_id.as_deref().map(|id| self.text(id)),
            // Anything but the number of a cycle is no reply.
            block
                .reply
                .as_deref()
                .filter(|cycle| cycle.parse::<i64>().is_ok()),
            u8::from(block.error),
            bytes.map_or(0, |text| text.text.len()),
            block.tokens,
            block.text,
        )
    }

    fn step<'a>(
        &mut self,
        step: &'a TableStep,
        prefix: Option<&PrefixStep>,
        ids: &HashMap<&str, u32>,
    ) -> PageStep<'a> {
        let call = &step.call;
        let time = time_of(&step.snapshot).map(|time| self.text(&time));
        let stop = call.stop_reason.as_deref().map(|stop| self.text(stop));
        let changes = step.splices.iter();
        PageStep {
            cycle: step.snapshot.cycle().to_string(),
            time,
            model: call.model.as_deref().map(|model| self.name(model)),
            tokens: step.tokens,
            bytes: step.bytes,
            usage: [
                call.input_tokens,
                call.cached_tokens,
                call.cache_write_tokens,
                call.output_tokens,
            ],
            stop,
            events: self.events(step),
            changes: changes
                .map(|change| (change.at, change.removed, &*change.added))
                .collect(),
            prefix: prefix.map(|prefix| self.prefix(prefix, ids)),
        }
    }

    fn events(&mut self, step: &TableStep) -> Vec<PageEvent> {
        let mut all = Vec::new();
        for event in events(&step.snapshot, &step.call) {
            match event {
                StepEvent::Compaction => all.push(("compaction", 1, None)),
                StepEvent::Failed { count, error } => {
                    all.push(("failed", count, error.map(|error| self.text(&error))));
                }
                StepEvent::ToolErrors { count } => all.push(("tool errors", count, None)),
                StepEvent::Reply => all.push(("reply", 1, None)),
                StepEvent::Calls { tools } => {
                    for (tool, count) in tools {
                        all.push(("call", count, Some(self.text(&tool))));
                    }
                }
            }
        }
        all
    }

    fn prefix(&mut self, prefix: &PrefixStep, ids: &HashMap<&str, u32>) -> PagePrefix {
        let broken = prefix.difference.as_ref().map(|found| Broken {
            at: found.at,
            place: self.text(&found.place.to_string()),
            block: found.block.as_deref().and_then(|id| ids.get(id)).copied(),
            cause: self.text(&found.cause.text()),
            mend: found.mend,
            // A text that is cut can begin in the middle of a match, which then is none.
            older: (!self.hides).then(|| found.older.clone()),
            newer: (!self.hides).then(|| found.newer.clone()),
        });
        PagePrefix {
            bytes: prefix.bytes,
            tokens: prefix.tokens,
            percent: prefix.before.map(|_| prefix.reused_percent()),
            shared: prefix.shared_bytes,
            missed: prefix.missed_tokens(),
            broken,
        }
    }
}

/// The hash of a style or a script, as a policy names it.
fn integrity(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())))
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let index = bits >> (18 - 6 * at) & 63;
            let letter = LETTERS.get(index as usize).copied().unwrap_or(b'=');
            out.push(char::from(if at <= group.len() { letter } else { b'=' }));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{DOCUMENT, SCRIPT, STYLE, base64};

    #[test]
    fn bytes_in_base64() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_parts_of_the_page_fit_together() {
        for name in ["style", "script", "data", "hash of style", "hash of script"] {
            assert_eq!(
                DOCUMENT.matches(&format!("{{{{{name}}}}}")).count(),
                1,
                "{name}"
            );
        }
        assert_eq!(DOCUMENT.matches("{{").count(), 5);
        // What would end them early, or make markup of a text.
        for part in [STYLE, SCRIPT] {
            assert!(!part.contains("</"));
        }
        for name in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "fetch(",
            "http",
        ] {
            assert!(!SCRIPT.contains(name), "{name}");
        }
    }
}
