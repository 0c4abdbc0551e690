//! The page: a session as one file that a browser shows, without a request to anywhere.
//!
//! The page is a document, a style, a script, and the session as JSON. The script shows texts as texts only. The
//! policy in the document names the hashes of the style and of the script, so nothing else runs, whatever a text
//! contains.

use super::table::{ShareTable, Splice, TableBlock, TableStep};
use crate::history::History;
use crate::inspect::lists::Numbered;
use crate::inspect::prefix::by_cycle;
use crate::inspect::steps::{events, time_of};
use crate::inspect::{Counts, PrefixStep, StepEvent, Tokenizer, form_of};
use crate::json::Redactor;
use crate::render::Provider;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::io::{self, Write};

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

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
            match name {
                "style" => out.write_all(STYLE.as_bytes())?,
                "script" => out.write_all(SCRIPT.as_bytes())?,
                "data" => out.write_all(self.data.as_bytes())?,
                "hash of style" => out.write_all(integrity(STYLE).as_bytes())?,
                "hash of script" => out.write_all(integrity(SCRIPT).as_bytes())?,
                _ => {}
            }
            rest = after;
        }
        out.write_all(rest.as_bytes())
    }
}

/// The committed snapshots of `history` as a page with a heading, without what `redactor` takes out.
/// Requests are compared in the form of the session. All snapshots have to be in memory
/// ([`History::fetch_all`]).
///
/// Each distinct text is in the page once, and a step is what changed, so the page grows with the
/// session and not with its square. Costs as much as [`PrefixReport`](crate::inspect::PrefixReport), and the distinct texts.
///
/// ```
/// use pactql::Session;
/// use pactql::inspect::share::{Redactor, page};
/// use pactql::inspect::{Counts, Tokenizer};
///
/// let session = Session::open("fixtures/weather.json")?;
/// let mut redactor = Redactor::new(["Bergen"])?;
/// let mut counts = Counts::new(Tokenizer::Bytes4);
/// let page = page(&session.history(), "weather", &mut redactor, &mut counts);
/// let mut html = Vec::new();
/// page.write_html(&mut html)?;
/// assert!(html.starts_with(b"<!doctype html>") && !page.data().contains("Bergen"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn page(history: &History, title: &str, redactor: &mut Redactor, counts: &mut Counts) -> Page {
    let table = ShareTable::new(history, counts);
    let (found, no_prefixes) = by_cycle(history, None, counts);
    let mut writer = PageWriter {
        table: &table,
        names: Numbered::default(),
        hides: !redactor.is_empty(),
        redactor,
    };
    let texts = table.texts.list.iter();
    let texts: Vec<String> = texts.map(|text| writer.text(&text.text)).collect();
    let steps = table.steps.iter();
    let steps = steps.map(|step| writer.step(step, found.get(&step.snapshot.cycle())));
    let steps: Vec<PageStep<'_>> = steps.collect();
    let blocks = table.blocks.list.iter();
    let blocks: Vec<BlockRow<'_>> = blocks.map(|block| writer.block(block)).collect();
    let written = texts.iter().zip(&table.texts.list).map(|(text, of)| {
        let base = of
            .before
            .and_then(|at| Some((at, &**texts.get(at as usize)?)));
        WrittenText::new(text, base)
    });
    let data = Data {
        format: "pactql page 1",
        title: writer.text(title),
        tokenizer: counts.tokenizer(),
        estimate: counts.tokenizer().is_estimate(),
        provider: form_of(history),
        reconstructed: table.steps.iter().any(|step| step.call.reconstructed),
        no_prefixes: no_prefixes.map(|text| writer.text(&text)),
        ids: writer.all(&table.ids.list),
        turns: writer.all(&table.turns.list),
        texts: written.collect(),
        blocks,
        steps,
        redacted: writer.redactor.count(),
        names: writer.names.list,
    };
    // Strings and numbers always have a JSON form.
    let data = serde_json::to_string(&data).unwrap_or_default();
    Page {
        data: data.replace('<', "\\u003c"),
    }
}

#[derive(Serialize)]
struct Data<'a> {
    format: &'static str,
    title: String,
    tokenizer: Tokenizer,
    estimate: bool,
    provider: Provider,
    reconstructed: bool,
    no_prefixes: Option<String>,
    redacted: u64,
    /// Roles, kinds, tools and models.
    names: Vec<String>,
    ids: Vec<String>,
    turns: Vec<String>,
    texts: Vec<WrittenText<'a>>,
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
    changes: &'a [Splice],
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<PagePrefix>,
}

/// What happened: its name, how often, and what it is about.
type PageEvent = (&'static str, usize, Option<String>);

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

struct PageWriter<'a> {
    table: &'a ShareTable,
    redactor: &'a mut Redactor,
    hides: bool,
    /// Redacted names by what they were.
    names: Numbered<String>,
}

impl<'a> PageWriter<'a> {
    fn text(&mut self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    fn all(&mut self, texts: &[String]) -> Vec<String> {
        texts.iter().map(|text| self.text(text)).collect()
    }

    fn name(&mut self, name: &str) -> u32 {
        let redacted = || self.redactor.redact(name).into_owned();
        self.names.number(name, redacted)
    }

    fn block(&mut self, block: &'a TableBlock) -> BlockRow<'a> {
        // Anything but the number of a cycle is not a reply.
        let is_cycle = |cycle: &&str| cycle.parse::<i64>().is_ok();
        (
            block.id,
            block.region as u8,
            block.turn,
            self.name(&block.role),
            block.kind.as_deref().map(|kind| self.name(kind)),
            block.tool.as_deref().map(|tool| self.name(tool)),
            block.call_id.as_deref().map(|id| self.text(id)),
            block.reply.as_deref().filter(is_cycle),
            u8::from(block.error),
            self.table.text(block).text.len(),
            block.tokens,
            block.text,
        )
    }

    fn step(&mut self, step: &'a TableStep, prefix: Option<&PrefixStep>) -> PageStep<'a> {
        let call = &step.call;
        let time = time_of(&step.snapshot).map(|time| self.text(&time));
        let stop = call.stop_reason.as_deref().map(|stop| self.text(stop));
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
            changes: &step.splices,
            prefix: prefix.map(|prefix| self.prefix(prefix)),
        }
    }

    fn events(&mut self, step: &TableStep) -> Vec<PageEvent> {
        let events = events(&step.snapshot, &step.call).into_iter();
        let each = |event| match event {
            StepEvent::Compaction => vec![("compaction", 1, None)],
            StepEvent::Failed { count, error } => {
                vec![("failed", count, error.map(|error| self.text(&error)))]
            }
            StepEvent::ToolErrors { count } => vec![("tool errors", count, None)],
            StepEvent::Reply => vec![("reply", 1, None)],
            StepEvent::Calls { tools } => {
                let calls = tools.iter();
                let calls = calls.map(|(tool, count)| ("call", *count, Some(self.text(tool))));
                calls.collect()
            }
        };
        events.flat_map(each).collect()
    }

    fn prefix(&mut self, prefix: &PrefixStep) -> PagePrefix {
        let broken = prefix.difference.as_ref().map(|found| Broken {
            at: found.at,
            place: self.text(&found.place.to_string()),
            block: found.block.as_ref().and_then(|id| self.table.ids.find(id)),
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

/// Texts of fewer bytes are written whole.
const LEAST_BYTES: usize = 256;

/// A text, whole or as what another text lacks: a prompt that has the time in it is written once, not at every
/// step. Lengths are in UTF-16 code units, as scripts of a page count them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WrittenText<'a> {
    Whole(&'a str),
    /// The start of text `base`, then `middle`, then the end of text `base`.
    Of {
        base: u32,
        head: usize,
        tail: usize,
        middle: &'a str,
    },
}

impl<'a> WrittenText<'a> {
    /// `text` by the text `base`, which has a number, if that is less than half as long. Linear in both.
    pub(super) fn new(text: &'a str, base: Option<(u32, &str)>) -> Self {
        let Some((base, other)) = base.filter(|_| text.len() >= LEAST_BYTES) else {
            return Self::Whole(text);
        };
        let pairs = text.chars().zip(other.chars());
        let same = pairs.take_while(|(a, b)| a == b).map(|(letter, _)| letter);
        let (bytes, head) = sizes(same);
        let (rest, other) = (&text[bytes..], &other[bytes..]);
        let pairs = rest.chars().rev().zip(other.chars().rev());
        let same = pairs.take_while(|(a, b)| a == b).map(|(letter, _)| letter);
        let (bytes, tail) = sizes(same);
        let middle = &rest[..rest.len() - bytes];
        if middle.len() <= text.len() / 2 {
            Self::Of {
                base,
                head,
                tail,
                middle,
            }
        } else {
            Self::Whole(text)
        }
    }
}

/// Letters in bytes and in UTF-16 code units.
fn sizes(letters: impl Iterator<Item = char>) -> (usize, usize) {
    letters.fold((0, 0), |(bytes, units), letter| {
        (bytes + letter.len_utf8(), units + letter.len_utf16())
    })
}

impl Serialize for WrittenText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Whole(text) => serializer.serialize_str(text),
            Self::Of {
                base,
                head,
                tail,
                middle,
            } => (base, head, tail, middle).serialize(serializer),
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
    use super::{DOCUMENT, SCRIPT, STYLE, WrittenText, base64};
    use proptest::prelude::*;

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

    fn read(text: &WrittenText<'_>, bases: &[&str]) -> String {
        match text {
            WrittenText::Whole(text) => (*text).to_owned(),
            WrittenText::Of {
                base,
                head,
                tail,
                middle,
            } => {
                let base: Vec<u16> = bases[*base as usize].encode_utf16().collect();
                let mut units = base[..*head].to_vec();
                units.extend(middle.encode_utf16());
                units.extend(&base[base.len() - tail..]);
                String::from_utf16(&units).expect("whole characters")
            }
        }
    }

    proptest! {
        #[test]
        fn a_text_comes_back(
            start in "[aé😀]{0,200}", end in "[aé😀]{0,200}", a in "[aé😀]{0,9}", b in "[aé😀]{0,9}",
        ) {
            let (base, text) = (format!("{start}{a}{end}"), format!("{start}{b}{end}"));
            let written = WrittenText::new(&text, Some((0, &base)));
            prop_assert_eq!(read(&written, &[&base]), text);
        }
    }

    #[test]
    fn a_long_text_is_what_changed() {
        let rules = "Answer in one sentence. ".repeat(40);
        let (base, text) = (format!("10:00 {rules}"), format!("10:01 {rules}"));
        let written = WrittenText::new(&text, Some((7, &base)));
        let (head, tail) = (4, 1 + rules.len());
        assert_eq!(
            written,
            WrittenText::Of {
                base: 7,
                head,
                tail,
                middle: "1"
            }
        );
        assert_eq!(WrittenText::new(&rules, None), WrittenText::Whole(&rules));
        assert_eq!(
            WrittenText::new("short", Some((7, "short"))),
            WrittenText::Whole("short")
        );
    }
}
