//! What a log says, read from its JSON by the formats' public shapes alone: which records it has, and which
//! texts are in them. The importers have no part in this.

use std::collections::HashSet;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use super::super::recordings::yaml;

/// The shortest text that is looked for. Shorter ones are found anywhere by chance.
const SHORTEST: usize = 12;

/// A log as its file has it.
#[derive(Debug, Default)]
pub(super) struct RawLog {
    pub(super) records: Vec<RawRecord>,
    /// Lines that are no JSON.
    pub(super) bad: usize,
    /// Records that are only what is around others.
    around: usize,
}

/// A line of JSON Lines, an element of a list, or the one value of a file.
#[derive(Debug)]
pub(super) struct RawRecord {
    /// What it says it is: `type`, and the type or subtype in it.
    pub(super) kinds: Vec<String>,
    /// The texts of it, each with the names of the members it is in.
    pub(super) texts: Vec<(Vec<String>, String)>,
    /// The contents in it that are empty: strings, lists, null.
    pub(super) empty: usize,
    pub(super) value: Value,
}

/// The text of a log; of a ZIP archive of inspect_ai, that of its form as JSON.
pub(super) fn text_of(bytes: &[u8]) -> String {
    if !bytes.starts_with(b"PK") {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("an archive");
    let mut log = Value::Null;
    let mut samples = Vec::new();
    for at in 0..archive.len() {
        let file = archive.by_index(at).expect("a file");
        let name = file.name().expect("a name").into_owned();
        let value = || serde_json::from_reader(file).expect("JSON");
        match &*name {
            "header.json" => log = value(),
            name if name.starts_with("samples/") => samples.push(value()),
            _ => {}
        }
    }
    log["samples"] = samples.into();
    log.to_string()
}

impl RawLog {
    /// Reads a text as one JSON value, else line by line.
    pub(super) fn new(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        let mut log = Self::default();
        let lines = text.lines().take(9);
        if lines.clone().any(|line| line == "interactions:") {
            let cassette = yaml(text);
            below(&cassette, &["interactions"])
                .into_iter()
                .for_each(|one| log.exchange(one));
            return log;
        }
        match serde_json::from_str(text) {
            Ok(Value::Array(elements)) => elements.into_iter().for_each(|value| log.add(value)),
            Ok(value) => log.add(value),
            Err(_) => {
                for line in text.lines().filter(|line| !line.trim().is_empty()) {
                    match serde_json::from_str(line) {
                        Ok(value) => log.add(value),
                        Err(_) => log.bad += 1,
                    }
                }
            }
        }
        log
    }

    /// Adds an exchange of a recording, with what is packed in its bodies.
    fn exchange(&mut self, value: &Value) {
        let mut value = value.clone();
        let request = &value["request"];
        let url = request["uri"].as_str().or(request["url"].as_str());
        let paths = [
            "/chat/completions",
            "/responses",
            "/v1/messages",
            "enerateContent",
            "/converse",
        ];
        let is_call = paths
            .iter()
            .any(|path| url.unwrap_or_default().contains(path));
        let kind = (!is_call).then(|| "exchange with another API".to_owned());
        for side in ["request", "response"] {
            for body in ["body", "postData", "content"] {
                let packed = &mut value[side][body];
                let text = packed.as_str().or(packed["string"].as_str());
                if let Some(text) = text.or(packed["text"].as_str()) {
                    *packed = unpacked(text);
                }
            }
        }
        let mut record = RawRecord::new(value);
        record.kinds.extend(kind);
        self.records.push(record);
    }

    /// Adds a record; of an export of OTLP, those in it.
    fn add(&mut self, value: Value) {
        let mut value = plain(value);
        if value["log"]["entries"].is_array() {
            let entries = below(&value["log"], &["entries"]);
            entries.into_iter().for_each(|one| self.exchange(one));
            return;
        }
        if value["samples"].is_array() || value["epoch"].is_number() {
            self.samples(value);
            return;
        }
        if value["projectHash"].is_string() && value["messages"].is_array() {
            let messages = below(&value, &["messages"])
                .into_iter()
                .cloned()
                .map(RawRecord::new);
            self.around += messages.len();
            self.records.extend(messages);
            value["messages"].take();
        }
        let spans = below(&value, &["resourceSpans", "scopeSpans", "spans"]);
        let events = below(&value, &["resourceLogs", "scopeLogs", "logRecords"]);
        let printed = below(&value, &["spans"]);
        let inner: Vec<&Value> = spans.into_iter().chain(events).chain(printed).collect();
        let is_export = ["resourceSpans", "resourceLogs", "spans"]
            .iter()
            .any(|name| value[*name].is_array());
        let records = if is_export { inner } else { vec![&value] };
        self.records
            .extend(records.into_iter().cloned().map(RawRecord::new));
    }

    /// Adds the samples of inspect_ai, and their events, with what is attached in its place. The log around them is
    /// no line.
    fn samples(&mut self, mut value: Value) {
        let samples = match value["samples"].take() {
            Value::Array(samples) => {
                self.around += 1;
                let mut record = RawRecord::new(value);
                record.kinds.push("eval".to_owned());
                self.records.push(record);
                samples
            }
            _ => vec![value],
        };
        for mut sample in samples {
            let attachments = sample["attachments"].take();
            attach(&mut sample, &attachments);
            let events = sample["events"].take();
            self.records.push(RawRecord::new(sample));
            for event in events.as_array().into_iter().flatten() {
                let mut record = RawRecord::new(event.clone());
                record
                    .kinds
                    .extend(event["event"].as_str().map(str::to_owned));
                self.records.push(record);
            }
        }
    }

    /// The number of records that a report has to account for, bad lines included.
    pub(super) fn expected(&self) -> usize {
        let records = self
            .records
            .iter()
            .map(|record| record_count(&record.value));
        self.bad + records.sum::<usize>() - self.around
    }

    /// How many records are single messages, which are counted as such.
    pub(super) fn bare(&self) -> usize {
        let is_message = |record: &&RawRecord| {
            let value = &record.value;
            let is_item = value["type"].is_string()
                && value["message"].is_null()
                && value["payload"].is_null();
            let event = value["eventName"]
                .as_str()
                .or(value["attributes"]["event.name"].as_str());
            let is_event =
                event.is_some_and(|name| name.ends_with(".message") || name.ends_with(".choice"));
            value["role"].is_string() || is_item || is_event
        };
        self.records.iter().filter(is_message).count()
    }
}

/// Puts texts in the place of their names.
fn attach(value: &mut Value, attachments: &Value) {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix("attachment://");
            if let Some(attached) = name.and_then(|name| attachments.get(name)) {
                *value = attached.clone();
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(|one| attach(one, attachments)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|one| attach(one, attachments)),
        _ => {}
    }
}

/// What is in a body: JSON, the JSON of each event, or that in the frames of an event stream; a body may be in base64
/// and packed.
fn unpacked(text: &str) -> Value {
    let packed: String = text.split_whitespace().collect();
    let bytes = STANDARD
        .decode(packed)
        .unwrap_or_else(|_| text.as_bytes().to_vec());
    let mut whole = Vec::new();
    let bytes = match GzDecoder::new(&*bytes).read_to_end(&mut whole) {
        Ok(_) => whole,
        Err(_) => bytes,
    };
    let text = String::from_utf8_lossy(&bytes);
    if let Ok(value) = serde_json::from_str(&text) {
        return value;
    }
    let mut found = Vec::new();
    let mut rest = &*text;
    while let Some(at) = rest.find('{') {
        rest = &rest[at..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        let length = match values.next() {
            Some(Ok(value)) => {
                found.push(value);
                values.byte_offset()
            }
            _ => 1,
        };
        rest = &rest[length..];
    }
    if found.is_empty() {
        return Value::String(text.into_owned());
    }
    Value::Array(found)
}

/// What is at a path of lists.
fn below<'a>(value: &'a Value, path: &[&str]) -> Vec<&'a Value> {
    let mut level = vec![value];
    for name in path {
        let lists = level.iter().filter_map(|value| value[*name].as_array());
        level = lists.flatten().collect();
    }
    level
}

/// The records that a value holds; it is one itself, unless it is only the object around them.
fn record_count(value: &Value) -> usize {
    let count = |path: &[&str]| below(value, path).len();
    let is_list = |name: &str| value[name].is_array();
    for list in ["snapshots", "agents"] {
        if is_list(list) {
            return count(&[list]);
        }
    }
    if is_list("steps") {
        let agents = below(value, &["subagent_trajectories"]);
        return 1 + agents.into_iter().map(record_count).sum::<usize>();
    }
    if is_list("trajectory") {
        let steps = below(value, &["trajectory"]);
        let is_exact = |step: &&Value| !step["messages"].is_null() || !step["query"].is_null();
        let history = usize::from(steps.is_empty() || !steps.iter().all(is_exact));
        return history + steps.len();
    }
    1
}

impl RawRecord {
    fn new(value: Value) -> Self {
        let mut kinds = Vec::new();
        for kind in [
            &value["type"],
            &value["payload"]["type"],
            &value["subtype"],
            &value["event"]["type"],
            &value["attributes"]["gen_ai.operation.name"],
            &value["action"],
            &value["observation"],
        ] {
            kinds.extend(kind.as_str().map(str::to_owned));
        }
        let mut record = Self {
            kinds,
            texts: Vec::new(),
            empty: 0,
            value: Value::Null,
        };
        record.walk(&value, &mut Vec::new(), false);
        record.value = value;
        record
    }

    /// Collects the texts below a value. What is in `free` values is of the user: there every name may be.
    fn walk(&mut self, value: &Value, path: &mut Vec<String>, free: bool) {
        let name = path.last().map_or("", String::as_str);
        let is_content = matches!(
            name,
            "content"
                | "text"
                | "thinking"
                | "message"
                | "output"
                | "arguments"
                | "input"
                | "value"
                | "summary"
        );
        match value {
            Value::String(text) => {
                if text.is_empty() && is_content {
                    self.empty += 1;
                }
                let is_envelope = is_envelope(name) || path.len() == 1 && name == "name";
                if text.chars().count() >= SHORTEST && (free || !is_envelope) {
                    self.texts.push((path.clone(), text.clone()));
                }
            }
            Value::Array(elements) => {
                if elements.is_empty() && is_content {
                    self.empty += 1;
                }
                elements
                    .iter()
                    .for_each(|element| self.walk(element, path, free));
            }
            Value::Object(members) => {
                let is_result = ["tool_use_id", "source_call_id"]
                    .iter()
                    .any(|name| members.contains_key(*name));
                self.empty += usize::from(is_result && !members.contains_key("content"));
                for (name, value) in members {
                    path.push(name.clone());
                    self.walk(value, path, free || is_free(name, value));
                    path.pop();
                }
            }
            Value::Null if is_content => self.empty += 1,
            _ => {}
        }
    }
}

/// Whether the members of a value have names that no format gives.
fn is_free(name: &str, value: &Value) -> bool {
    value.is_object()
        && matches!(
            name,
            "arguments" | "args" | "input" | "parameters" | "input_schema"
        )
}

/// Whether a member says which record it is, of what kind, when, where or how it was written: no text of a
/// message.
fn is_envelope(name: &str) -> bool {
    let ends = [
        "id", "Id", "ID", "_ids", "uuid", "Uuid", "UUID", "_at", "At", "Time", "_time", "imestamp",
        "Updated", "Nano", "ignature", "hash", "Hash", "odel", "ype", "_name",
    ];
    let kinds = [
        "role",
        "kind",
        "status",
        "finish_reason",
        "stop_reason",
        "stopReason",
        "from",
        "cwd",
        "version",
        "modelVersion",
        "p",
        "slug",
        "phase",
        "subtype",
        "encrypted_content",
        "created",
        "completed",
        "object",
        "key",
        "api",
        "trigger",
        "eventName",
        "event.name",
        "gen_ai.operation.name",
        "server.address",
    ];
    ends.iter().any(|end| name.ends_with(end)) && name != "function_name" && name != "tool_name"
        || kinds.contains(&name)
}

/// OTLP spells members as lists of keys and values of a type each: the same as objects and values.
fn plain(value: Value) -> Value {
    match value {
        Value::Array(elements) if elements.iter().all(is_attribute) && !elements.is_empty() => {
            let mut members = Map::new();
            for mut element in elements {
                let key = element["key"].as_str().unwrap_or_default().to_owned();
                members.insert(key, plain(element["value"].take()));
            }
            Value::Object(members)
        }
        Value::Array(elements) => elements.into_iter().map(plain).collect(),
        Value::Object(mut members) => {
            for name in ["stringValue", "intValue", "boolValue", "doubleValue"] {
                if members.len() == 1
                    && let Some(value) = members.remove(name)
                {
                    return value;
                }
            }
            for name in ["arrayValue", "kvlistValue"] {
                if members.len() == 1
                    && let Some(value) = members.get_mut(name)
                {
                    return plain(value["values"].take());
                }
            }
            let members = members.into_iter();
            members.map(|(name, value)| (name, plain(value))).collect()
        }
        value => value,
    }
}

fn is_attribute(value: &Value) -> bool {
    value["key"].is_string() && value["value"].is_object()
}

/// The texts that `show` printed, as they are and, of JSON, those in it.
#[derive(Debug, Default)]
pub(super) struct Shown {
    whole: HashSet<String>,
    /// All of them, for those that are a part of another.
    joined: String,
}

impl Shown {
    pub(super) fn add(&mut self, text: &str) {
        if text.is_empty() || self.whole.contains(text) {
            return;
        }
        self.joined.push_str(text);
        self.joined.push('\0');
        self.whole.insert(text.to_owned());
        if let Some(value) = structure(text) {
            self.add_inner(&value);
        }
    }

    fn add_inner(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(elements) => {
                self.whole.insert(sorted(value));
                elements.iter().for_each(|element| self.add_inner(element));
            }
            Value::Object(members) => {
                self.whole.insert(sorted(value));
                members.values().for_each(|value| self.add_inner(value));
            }
            _ => {}
        }
    }

    /// Whether a text was printed: as it is or, if it is JSON, all that is in it.
    pub(super) fn has(&self, text: &str) -> bool {
        self.whole.contains(text)
            || self.joined.contains(text)
            || structure(text).is_some_and(|value| self.has_inner(&value))
    }

    /// Whether all texts in a value were printed; a list or an object without any, as a whole.
    fn has_inner(&self, value: &Value) -> bool {
        let inner: Vec<(&str, &Value)> = match value {
            Value::String(text) => return self.has(text),
            Value::Array(elements) => elements.iter().map(|element| ("", element)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (&**name, value))
                .collect(),
            _ => return true,
        };
        let is_said = |value: &Value| value.is_string() || value.is_array() || value.is_object();
        inner.is_empty()
            || self.whole.contains(&sorted(value))
            || inner.iter().any(|(_, value)| is_said(value))
                && inner
                    .iter()
                    .all(|(name, value)| is_envelope(name) || self.has_inner(value))
    }

    /// Whether a text was printed line by line, with something before or after each.
    pub(super) fn has_lines(&self, text: &str) -> bool {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| line.len() >= SHORTEST);
        let mut lines = lines.peekable();
        lines.peek().is_some() && lines.all(|line| self.joined.contains(line))
    }
}

/// A value with the members of objects in order.
fn sorted(value: &Value) -> String {
    match value {
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(sorted).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Object(members) => {
            let mut members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{name:?}:{}", sorted(value)))
                .collect();
            members.sort();
            format!("{{{}}}", members.join(","))
        }
        value => value.to_string(),
    }
}

/// The JSON object or list that a text is.
fn structure(text: &str) -> Option<Value> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// The name of a format that is known but that not every version reads, by the shape of its records.
pub(super) fn known_by_name(log: &RawLog) -> Option<&'static str> {
    let has = |value: &Value, names: &[&str]| names.iter().all(|name| !value[*name].is_null());
    let of = |record: &RawRecord| {
        let value = &record.value;
        let kind = value["type"].as_str().unwrap_or_default();
        let event = value["kind"].as_str().unwrap_or_default();
        [
            ("Droid", kind == "session_start"),
            ("Kimi", has(value, &["protocol_version"])),
            ("Letta Code", has(value, &["kind", "captured_at"])),
            (
                "OpenHands",
                event.ends_with("Event") || value["items"].is_array(),
            ),
            (
                "Hermes",
                has(value, &["observed", "active"])
                    || has(&value["messages"][0], &["observed", "active"]),
            ),
        ]
        .into_iter()
        .find_map(|(name, is)| is.then_some(name))
    };
    log.records.iter().find_map(of)
}
