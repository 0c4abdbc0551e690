//! Gemini: every event is a response with more parts of each candidate.

use super::grown::{Latest, StreamedReply, event, number};
use crate::json::{Member, elements, get, members, string};
use crate::logs::json::{list, object, quoted};
use std::collections::BTreeMap;

#[derive(Default)]
struct Candidate {
    around: Latest,
    /// Members of the content besides its parts.
    content: Latest,
    /// The members of each part, as JSON.
    parts: Vec<BTreeMap<String, String>>,
}

pub(super) fn read(events: &[String]) -> StreamedReply {
    let mut out = StreamedReply::default();
    let mut around = Latest::default();
    let mut candidates: BTreeMap<u64, Candidate> = BTreeMap::new();
    for data in events {
        let found = event(data);
        around.note(&found, &["candidates", "error"]);
        out.error = get(&found, "error").map(str::to_owned).or(out.error);
        for raw in elements(get(&found, "candidates").unwrap_or_default()) {
            let found = members(raw);
            let candidate = candidates.entry(number(&found, "index")).or_default();
            candidate.add(&found);
        }
    }
    let ended = |candidate: &Candidate| candidate.around.0.contains_key("finishReason");
    out.whole = candidates.values().any(ended) || around.0.contains_key("promptFeedback");
    if candidates.is_empty() {
        out.response = (!around.0.is_empty()).then(|| around.with([]));
    } else {
        let all = list(candidates.into_values().map(Candidate::json));
        out.response = Some(around.with([("candidates", all)]));
    }
    out
}

impl Candidate {
    fn add(&mut self, found: &[Member<'_>]) {
        self.around.note(found, &["content"]);
        let content = get(found, "content").map(members).unwrap_or_default();
        self.content.note(&content, &["parts"]);
        for raw in elements(get(&content, "parts").unwrap_or_default()) {
            self.part(raw);
        }
    }

    /// Adds a part: a text goes on with the one before, unless that was signed, which ends it.
    fn part(&mut self, raw: &str) {
        let part = members(raw).into_iter();
        let part: BTreeMap<String, String> = part
            .map(|(name, value)| (name.into_owned(), value.to_owned()))
            .collect();
        let text_of =
            |part: &BTreeMap<String, String>| Some(string(part.get("text")?)?.into_owned());
        let Some(text) = text_of(&part) else {
            self.parts.push(part);
            return;
        };
        let last = self.parts.last_mut().filter(|last| {
            let is_signed = last.contains_key("thoughtSignature");
            last.get("thought") == part.get("thought") && !is_signed
        });
        match last.and_then(|last| Some((text_of(last)?, last))) {
            Some((before, last)) => {
                last.extend(part);
                last.insert("text".to_owned(), quoted(&(before + &text)));
            }
            // An end that says nothing.
            None if text.is_empty() && part.len() == 1 => {}
            None => self.parts.push(part),
        }
    }

    fn json(self) -> String {
        if self.parts.is_empty() && self.content.0.is_empty() {
            return self.around.with([]);
        }
        let parts = list(self.parts.iter().map(object));
        let content = self.content.with([("parts", parts)]);
        self.around.with([("content", content)])
    }
}
