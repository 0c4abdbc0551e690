//! The page: a session as one file that a browser shows, without a request to anywhere.
//!
//! The document is built from `web/`: the page of `pactql view`, which asks its server for sessions. Here the session
//! is in it as JSON, and its policy lets nothing be asked for. The policy names the hashes of the style and of the
//! script, so nothing else runs, whatever a text contains.

use super::table::{ShareTable, Splice, TableBlock, TableStep};
use crate::history::History;
use crate::inspect::call::time_of;
use crate::inspect::lists::Numbered;
use crate::inspect::prefix::by_cycle;
use crate::inspect::{Counts, PrefixStep, Prices, StepEvent, Tokenizer, form_of};
use crate::json::{Redactor, get, members, string};
use crate::render::{Provider, parameters_of};
use serde::{Serialize, Serializer};
use std::io::{self, Write};

/// The page without a session. Its policy allows requests to the server that it came from.
const DOCUMENT: &str = include_str!("../../../web/dist/page.html");
/// That part of the policy.
const SERVER: &str = "connect-src 'self'";
/// Where the session goes: before the script, which is the only one.
const SCRIPT: &str = "<script>";

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
        let (head, script) = DOCUMENT.split_once(SCRIPT).unwrap_or_default();
        let head = head.replacen(SERVER, "connect-src 'none'", 1);
        let data = &self.data;
        write!(
            out,
            "{head}<script id=\"data\" type=\"application/json\">{data}</script>\n{SCRIPT}{script}"
        )
    }
}

/// The committed snapshots of `history` as a page with a heading, without what `redactor` takes out. Calls are priced by
/// `prices`. Requests are compared in the form of the session. All snapshots have to be in memory
/// ([`History::fetch_all`]).
///
/// Each distinct text is in the page once, and a step is what changed, so the page grows with the
/// session and not with its square. Costs as much as [`PrefixReport`](crate::inspect::PrefixReport), and the distinct texts.
///
/// ```
/// use pactql::Session;
/// use pactql::inspect::share::{Redactor, page};
/// use pactql::inspect::{Counts, Prices, Tokenizer};
///
/// let session = Session::open("fixtures/weather.json")?;
/// let mut redactor = Redactor::new(["Bergen"])?;
/// let mut counts = Counts::new(Tokenizer::Bytes4);
/// let page = page(&session.history(), "weather", &mut redactor, &mut counts, &Prices::default());
/// let mut html = Vec::new();
/// page.write_html(&mut html)?;
/// assert!(html.starts_with(b"<!doctype html>") && !page.data().contains("Bergen"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn page(
    history: &History,
    title: &str,
    redactor: &mut Redactor,
    counts: &mut Counts,
    prices: &Prices,
) -> Page {
    let table = ShareTable::new(history, counts);
    let (found, no_prefixes) = by_cycle(history, None, Some(prices), counts);
    let mut writer = PageWriter {
        table: &table,
        prices,
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
        format: "pactql page 2",
        title: writer.text(title),
        about: writer.about(history),
        prices: prices.date(),
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
    /// The session's title, project and agent, as its log says.
    about: [Option<String>; 3],
    /// The day of the prices.
    prices: &'a str,
    tokenizer: Tokenizer,
    estimate: bool,
    provider: Provider,
    reconstructed: bool,
    no_prefixes: Option<String>,
    redacted: u64,
    /// Roles, kinds, tools, models and parameters.
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
    /// Whether the provider was called.
    made: bool,
    /// What the call cost, in nano-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// The parameters of the request, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<u32>,
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
    again: u64,
    /// What the provider did not read from its cache although it could have.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<Unread>,
    #[serde(skip_serializing_if = "Option::is_none")]
    broken: Option<Broken>,
}

#[derive(Serialize)]
struct Unread {
    readable: u64,
    read: u64,
    /// What that cost more, in nano-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    /// Seconds since the reply before.
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<u64>,
    cause: &'static str,
    mend: &'static str,
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
    prices: &'a Prices,
    redactor: &'a mut Redactor,
    hides: bool,
    /// Redacted names by what they were.
    names: Numbered<String>,
}

impl<'a> PageWriter<'a> {
    fn text(&mut self, text: &str) -> String {
        self.redactor.redact(text).into_owned()
    }

    fn about(&mut self, history: &History) -> [Option<String>; 3] {
        let newest = history.latest();
        let meta = newest.and_then(|newest| newest.meta().value("meta"));
        let meta = meta.map(members).unwrap_or_default();
        // A title that is made of a text is cut, maybe in the middle of a match.
        let hides = self.hides;
        ["title", "project", "agent"].map(|name| {
            let text = get(&meta, name).filter(|_| !hides || name != "title")?;
            Some(self.text(&string(text)?))
        })
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
        let parameters = parameters_of(&step.snapshot);
        let priced = self.prices.with_model(call.clone());
        let price = priced
            .model
            .as_deref()
            .and_then(|model| self.prices.find(model));
        let cost = price
            .filter(|_| call.made)
            .and_then(|price| price.of_call(call));
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
            made: call.made,
            cost: cost.map(|cost| cost.0),
            parameters: parameters.map(|parameters| self.name(&parameters)),
            stop,
            events: self.events(step),
            changes: &step.splices,
            prefix: prefix.map(|prefix| self.prefix(prefix)),
        }
    }

    fn events(&mut self, step: &TableStep) -> Vec<PageEvent> {
        let events = step.events.iter().cloned();
        let each = |event| match event {
            StepEvent::Compaction => vec![("compaction", 1, None)],
            StepEvent::Failed { count, error } => {
                vec![("failed", count, error.map(|error| self.text(&error)))]
            }
            StepEvent::Canceled { count } => vec![("canceled", count, None)],
            StepEvent::BrokenOff { reason } => {
                vec![("reply broken off", 1, Some(self.text(&reason)))]
            }
            StepEvent::ToolErrors { count } => vec![("tool errors", count, None)],
            StepEvent::Reply => vec![("reply", 1, None)],
            StepEvent::NoReply { kinds } => {
                let blocks = kinds.iter().map(|(_, count)| count).sum();
                vec![("no reply", blocks, None)]
            }
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
            again: prefix.again_tokens,
            unread: prefix.missed.as_ref().map(|missed| {
                let (cause, mend) = missed.cause.text();
                Unread {
                    readable: missed.readable_tokens,
                    read: missed.read_tokens,
                    cost: missed.nano_dollars.map(|cost| cost.0),
                    gap: missed.gap_ms.map(|gap| gap / 1_000),
                    cause,
                    mend,
                }
            }),
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

#[cfg(test)]
mod tests {
    use super::{DOCUMENT, SCRIPT, SERVER, WrittenText};
    use proptest::prelude::*;

    #[test]
    fn the_document_has_the_places_that_are_changed() {
        let places = [
            SERVER,
            SCRIPT,
            "</script>",
            "<style>",
            "</style>",
            "default-src 'none'",
        ];
        for place in places {
            assert_eq!(DOCUMENT.matches(place).count(), 1, "{place}");
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
