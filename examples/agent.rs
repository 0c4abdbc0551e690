//! An agent with tools and a scripted model: `cargo run --example agent -- session.jsonl`.
//!
//! Every cycle is: put in front of the model what it needs, render the request, send it, note the reply,
//! commit. The session is saved after each commit, so a crash costs the cycle in progress at most.
//! Afterwards `pactql select session.jsonl …` answers what the model had in front of it at any step.

use std::error::Error;

use Reply::{Call, Stopped, Text};
use pactql::{Context, Engine, Message, NewNode, Policy, Provider, SessionFile};

/// What the model answers.
enum Reply {
    /// A text, in the pieces in which it is streamed.
    Text(&'static [&'static str]),
    /// A tool call: id, name, arguments.
    Call(&'static str, &'static str, &'static str),
    /// The beginning of a text: the user pressed stop.
    Stopped(&'static str),
}

/// A scripted model, which goes by the last words of the request. A real one is an HTTP call with
/// `request` as its body.
fn model(request: &str, stopped: &mut bool) -> Reply {
    let known = ["squeal.", "L-88", "pickup,", "9 to 12", "writing", "sent"];
    let newest = known.into_iter().max_by_key(|words| request.rfind(words));
    match newest.unwrap_or_default() {
        "squeal." => Call("c1", "find_order", r#"{"by":"Ahlgren"}"#),
        "L-88" => Text(&["It came ten days ago; ", "you have ", "thirty."]),
        "pickup," if !std::mem::replace(stopped, true) => Stopped("I could"),
        "pickup," => Call("c2", "book", r#"{"order":"L-88"}"#),
        "9 to 12" => Text(&["Booked: 3 March, ", "9 to 12."]),
        "writing" => Call("c3", "send_mail", r#"{"about":"L-88"}"#),
        _ => Text(&["Sent."]),
    }
}

fn run_tool(name: &str) -> &'static str {
    match name {
        "find_order" => "order L-88, delivered on 18 February",
        "book" => "3 March, 9 to 12",
        _ => "sent",
    }
}

/// The page of the handbook that is worth reading for a question.
fn retrieve(question: &str) -> Option<&'static str> {
    match question {
        _ if question.contains("squeal") => Some("2.4: new brakes may squeal."),
        _ if question.contains("pickup") => Some("3.1: pickups are free."),
        _ if question.contains("money") => Some("5.1: refunds take five working days."),
        _ => None,
    }
}

const TOOLS: [&str; 3] = [
    r#"{"name":"find_order","parameters":{"type":"object"}}"#,
    r#"{"name":"book","parameters":{"type":"object"}}"#,
    r#"{"name":"send_mail","parameters":{"type":"object"}}"#,
];

/// Sealed turns may take this many tokens; then the older ones become a summary.
const BUDGET: usize = 40;

/// A new session: the system prompt, the tools, and a rule that stays whatever happens.
fn begin(path: &str) -> Result<SessionFile, Box<dyn Error>> {
    let policy = Policy::new().tokens(100_000).protect(3);
    let mut file = SessionFile::create(path, Context::builder().policy(policy).build())?;
    let context = file.context();
    context.set_system(["You are the support agent of Larkspur Cycles."])?;
    context.set_tools(TOOLS)?;
    context.set_request(r#"{"model":"scripted-1","temperature":0}"#)?;
    let rule = NewNode::text("Never promise a date for a refund.").role("system");
    context.add("^sys", rule.key("rule").ttl(0))?;
    // Its ttl has run out at once, but the reference keeps it.
    context.pin_as("rule", "#rule")?;
    Ok(file)
}

/// Puts a question, and what there is to read about it, into the turn in progress.
fn ask(context: &mut Context, question: &str) -> Result<(), pactql::Error> {
    context.append(Message::user(question))?;
    if let Some(page) = retrieve(question) {
        // Before the core of the turn, and gone two cycles later.
        let page = NewNode::new().kind("doc").role("system").content(page);
        context.add("^ah", page.offset(-1).ttl(2))?;
    }
    Ok(())
}

/// Has the model answer until it asks for no more tools. Each call of the model is a cycle.
fn answer(file: &mut SessionFile, stopped: &mut bool) -> Result<(), Box<dyn Error>> {
    loop {
        let context = file.context();
        let request = context.render(Provider::OpenAi)?;
        let mut call = None;
        match model(&request.body, stopped) {
            Stopped(piece) => {
                let id = context.begin_reply(Message::assistant(""))?.remove(0);
                context.stream(&id)?.push(piece);
                context.cancel_attempt()?; // what came stays, and the same request is sent again
                continue;
            }
            Call(id, name, arguments) => {
                context.reply(Message::assistant("").call(id, name, arguments))?;
                call = Some((id, name));
            }
            Text(pieces) => {
                let id = context.begin_reply(Message::assistant(""))?.remove(0);
                let mut stream = context.stream(&id)?;
                for piece in pieces {
                    stream.push(piece); // readers see it at the next flush
                }
                drop(stream);
                context.complete_attempt(120, 12)?; // as the provider counted
            }
        }
        compact(context)?;
        let commit = context.commit()?;
        file.save()?;
        eprintln!(
            "{}: {} expired, {} compacted",
            commit.turn,
            commit.expired.len(),
            commit.compacted.len()
        );
        match call {
            None => return Ok(()),
            Some((id, name)) => file.context().append(Message::tool(id, run_tool(name)))?,
        };
    }
}

/// Replaces all turns but the three newest by a summary, if the sealed turns have become too long.
fn compact(context: &mut Context) -> Result<(), pactql::Error> {
    let sealed = context.select("^seq .cb")?;
    let tokens: usize = sealed.nodes().map(|node| node.text().len() / 4).sum();
    // A result has to stay with its call, which is in the turn before it.
    let cuts_a_call = context
        .select("^seq > .mt:depth(3) .cb[kind='result']")?
        .count()
        > 0;
    let older = context.select("^seq > .mt:depth(4-999)")?.count();
    if tokens > BUDGET && older > 0 && !cuts_a_call {
        // A model would write it, and would be shown the summary that it takes the place of.
        let summary = NewNode::text("Order L-88 goes back, because of its brakes.");
        let summary = summary.role("system").key("summary");
        context.compact("^seq > .mt:depth(4-999), ^seq > #summary", summary)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args()
        .nth(1)
        .ok_or("usage: agent SESSION.jsonl")?;
    run(&path, &mut std::io::stdout())
}

/// The conversation, and what can be asked about it afterwards.
pub(crate) fn run(path: &str, out: &mut impl std::io::Write) -> Result<(), Box<dyn Error>> {
    let mut file = begin(path)?;
    let mut stopped = false;
    for question in [
        "Can I return it? The brakes squeal.",
        "Then book a pickup, please.",
        "Send me that in writing.",
    ] {
        ask(file.context(), question)?;
        answer(&mut file, &mut stopped)?;
    }
    ask(file.context(), "When will I have the money back?")?;
    file.save()?;

    let session = file.context().session();
    let engine = Engine::new();
    for (question, selector) in [
        (
            "Which tools did the last three turns call?",
            "@t0 .mt:depth(1-3) .cb[kind='call']",
        ),
        (
            "What was put in front of the turn in progress?",
            "^ah > .cb[offset<0]",
        ),
    ] {
        writeln!(out, "{question}")?;
        for node in &engine.rows(&session, selector)? {
            writeln!(out, "  {}: {}", node.id(), node.text())?;
        }
    }
    writeln!(out, "When did retrieved documents come and go?")?;
    for pair in engine.range(&session, "@history .cb[kind='doc']")?.diffs {
        if pair.added_ids.is_empty() && pair.removed_ids.is_empty() {
            continue;
        }
        let (came, went) = (pair.added_ids.join(" "), pair.removed_ids.join(" "));
        writeln!(out, "  @c{}: +{came} -{went}", pair.from.cycle)?;
    }
    writeln!(out, "Which requests were sent, and how did they end?")?;
    for attempt in file.context().attempts().iter() {
        writeln!(out, "  {} {}", attempt.attempt_id, attempt.status.as_str())?;
    }
    Ok(())
}
