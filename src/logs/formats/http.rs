//! HTTP exchanges as VCR (cassettes) and browsers or proxies (HAR) record them.
//!
//! An exchange whose address is that of a provider's API is a request and its response, also where the host is a
//! gateway's; [`Apis`] reads it. The model that is in the address, the address without what may authorize
//! (user, query), time and latency go with it. Headers never do. Server-sent events, event streams and lists of
//! chunks are put together. A request that was answered with an error is a failed attempt; all other exchanges are
//! counted as skipped.
//!
//! | | VCR | HAR |
//! |---|---|---|
//! | exchanges | `interactions`, `http_interactions` | `log.entries` |
//! | address | `uri` | `url` |
//! | body of the request | `body` or `parsed_body` | `postData` |
//! | body of the response | `body` or `parsed_body` | `content` |
//! | status | `status.code` | `status` |
//!
//! A body is a text, or an object with a `string`, `text` or `base64_string`; one that is packed with gzip is
//! unpacked.

use super::answer::Answer;
use super::apis::Apis;
use super::prelude::*;
use super::reader::RecordAt;
use crate::logs::events::frames;
use crate::logs::json::value;
use crate::render::Provider;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use std::borrow::Cow;

/// The exchanges of VCR, and the member that has them.
const INTERACTIONS: [&str; 2] = ["interactions", "http_interactions"];

pub(super) fn is_vcr(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let mut lists = INTERACTIONS.iter().map(|name| items(found, name));
    lists
        .any(|list| list.first().is_some_and(|raw| is_exchange(raw)))
        .into()
}

pub(super) fn is_har(_: &LogRecord<'_>, found: &[Member<'_>]) -> Sniff {
    let log = inner(found, "log");
    is(&log, "entries", ValueType::Array).into()
}

fn is_exchange(raw: &str) -> bool {
    let found = members(raw);
    ["request", "response"]
        .iter()
        .all(|name| is(&found, name, ValueType::Object))
}

/// Reads recordings.
#[derive(Default)]
pub(super) struct Http(Apis);

impl LogReader for Http {
    fn record(&mut self, record: &LogRecord<'_>, records: &dyn Records, out: &mut Output) {
        let mut found = members(record.raw);
        let mut place = record.location();
        if is(&found, "log", ValueType::Object) {
            found = inner(&found, "log");
            place.push_str("/log");
        }
        let lists = [INTERACTIONS[0], INTERACTIONS[1], "entries"];
        count_unread(&found, &lists, "", &mut out.report);
        for name in lists {
            let list = format!("{place}/{name}");
            for (number, raw) in items(&found, name).into_iter().enumerate() {
                let Some((provider, call)) = call_of(raw, &mut out.report) else {
                    continue;
                };
                let call = LogRecord {
                    raw: &call,
                    list: &list,
                    at: RecordAt::Element(number),
                    json: Accepted::default(),
                    number,
                };
                self.0.reader(provider).record(&call, records, out);
            }
        }
    }

    fn finish(&mut self, records: &dyn Records, out: &mut Output) {
        self.0.finish(records, out);
    }
}

/// The API that an exchange calls, and the exchange as a request with its response; else it is counted as skipped.
fn call_of(raw: &str, report: &mut ImportReport) -> Option<(Provider, String)> {
    let found = members(raw);
    let (request, response) = (inner(&found, "request"), inner(&found, "response"));
    let url = text(&request, "uri").or_else(|| text(&request, "url"));
    let url = url.as_deref().map(public).unwrap_or_default();
    let is_post =
        text(&request, "method").is_some_and(|method| method.eq_ignore_ascii_case("post"));
    let Some((provider, model)) = api(&url).filter(|_| is_post) else {
        report.line(Fate::Skipped, "exchange with another API");
        return None;
    };
    let body = body(&request);
    let Some(body) = value(&body.text())
        .filter(|body| body.starts_with('{'))
        .map(str::to_owned)
    else {
        report.line(Fate::Skipped, "request without a JSON body");
        return None;
    };
    for (of, found) in [
        ("", &found),
        ("request.", &request),
        ("response.", &response),
    ] {
        count_unread(found, &READ, of, report);
    }
    if get(&request, "uri").is_some() {
        report.skipped_member("response.status.message");
    }
    report.count_record_member(if get(&request, "uri").is_some() {
        "uri"
    } else {
        "url"
    });
    let given = |name| get(&found, name).map(Cow::Borrowed);
    let answer = answer(provider, &response);
    let whole = [
        ("url", Some(quoted(&url).into())),
        ("model", model.map(|model| quoted(&model).into())),
        ("started_at", given("startedDateTime")),
        ("latency_ms", given("time")),
        ("request", Some(body.into())),
        ("response", Some(answer.response.unwrap_or("null".into()))),
        ("error", answer.error),
    ];
    let whole = whole.into_iter();
    let whole = whole.filter_map(|(name, value)| Some((name, value?)));
    Some((provider, object(whole)))
}

/// The members of an exchange, its request and its response that are read.
const READ: [&str; 14] = words![
    request response uri url method body parsed_body postData content status startedDateTime time bodySize
    httpVersion
];

/// An address without user, query and fragment.
fn public(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
            let host = host.rsplit('@').next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// The API at an address, and the model that is in it.
fn api(url: &str) -> Option<(Provider, Option<String>)> {
    let mut steps = url.trim_end_matches('/').rsplit('/');
    let (last, before) = (steps.next()?, steps.next().unwrap_or_default());
    let provider = match (before, last) {
        ("chat", "completions") => Provider::OpenAi,
        (_, "responses") => Provider::OpenAiResponses,
        ("v1", "messages") => Provider::Anthropic,
        (model, "converse" | "converse-stream") if steps.next() == Some("model") => {
            return Some((Provider::Bedrock, Some(decoded(model))));
        }
        _ => {
            let (model, method) = last.split_once(':')?;
            let is_call = matches!(method, "generateContent" | "streamGenerateContent");
            return is_call.then(|| (Provider::Gemini, Some(decoded(model))));
        }
    };
    Some((provider, None))
}

/// A step of an address without the signs `%3A`, … in it.
fn decoded(step: &str) -> String {
    percent_decode_str(step).decode_utf8_lossy().into_owned()
}

/// What came back: the response in one piece, and what went wrong.
fn answer(provider: Provider, response: &[Member<'_>]) -> Answer<'static> {
    let status = get(response, "status").unwrap_or("0");
    let status = get(&members(status), "code").unwrap_or(status);
    let body = body(response);
    let text = body.text();
    let failed = status
        .parse::<u16>()
        .map_or(true, |status| !(200..400).contains(&status));
    match &body {
        _ if failed => Answer::failed(status, &text),
        Body::Bytes(bytes) if provider == Provider::Bedrock && value(&text).is_none() => {
            Answer::of_events(provider, &frames(bytes))
        }
        _ => Answer::of_text(provider, &text),
    }
}

/// What was sent or came back.
enum Body {
    /// JSON or events.
    Text(String),
    /// Bytes that are not a text.
    Bytes(Vec<u8>),
}

impl Body {
    fn from_bytes(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes(unpacked(error.into_bytes())),
        }
    }

    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes),
        }
    }
}

/// The body of a request or a response.
fn body(found: &[Member<'_>]) -> Body {
    if let Some(json) = get(found, "parsed_body").filter(|json| *json != "null") {
        return Body::Text(json.to_owned());
    }
    let of = |name| get(found, name);
    let raw = of("body")
        .or_else(|| of("postData"))
        .or_else(|| of("content"));
    let raw = raw.unwrap_or_default();
    let mut inside = members(raw);
    // `body: {string: !!binary …}`
    if let Some(string) = get(&inside, "string").filter(|raw| value_type(raw) == ValueType::Object)
    {
        inside = members(string);
    }
    let texts = ["string", "text", "base64_string"];
    let own = texts
        .iter()
        .find_map(|name| Some((*name, text(&inside, name)?)));
    let (name, text) = own.unwrap_or(("", string(raw).unwrap_or_default()));
    let encoding = self::text(&inside, "encoding");
    let is_packed = name == "base64_string" || encoding.as_deref() == Some("base64");
    let packed = || text.split_ascii_whitespace().collect::<String>();
    let bytes = is_packed.then(|| STANDARD.decode(packed()).ok()).flatten();
    bytes.map_or_else(|| Body::Text(text.clone().into_owned()), Body::from_bytes)
}

/// Bytes without the gzip around them, as far as they can be unpacked and are not many.
fn unpacked(bytes: Vec<u8>) -> Vec<u8> {
    #[cfg(feature = "gzip")]
    if bytes.starts_with(&[0x1f, 0x8b]) {
        use std::io::Read as _;
        let mut whole = Vec::new();
        let read = flate2::read::MultiGzDecoder::new(&*bytes)
            .take(MOST_UNPACKED)
            .read_to_end(&mut whole);
        return read.map_or(bytes, |_| whole);
    }
    bytes
}

/// The most bytes of a body that was packed.
#[cfg(feature = "gzip")]
const MOST_UNPACKED: u64 = 256 << 20;
