//! Changes of sessions of a store, each done once.
//!
//! A client names each request with an `Idempotency-Key`. What was done, and the answer, are kept in the session by the
//! transaction that makes the change, so a request that is sent again after a lost answer, also to a server that was
//! started since, gets that answer. A session remembers its last 256 requests.
//!
//! Each request takes the session's lease and gives it back. Its fence grows with each writer, and is in the header
//! `Pactql-Fence` of an answer; a request that has the header is refused if another has written since.

use super::app::{Answer, App, arguments, body, json};
use crate::app::calls::TABLE;
use crate::app::present::{Exit, Failure, Result};
use crate::engine::{Context, Message, attempted};
use crate::render::{Provider, Source, request as request_of};
use crate::runtime::{DoneAnswer, DoneRequest, NewNode, Policy};
use crate::support::diag::Code;
use crate::support::lock;
use crate::tree::hash::{hex, text_hash};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const FENCE: HeaderName = HeaderName::from_static("pactql-fence");

/// Whether the answer is one that was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct MessageBody {
    role: Option<String>,
    content: Option<String>,
    #[serde(default)]
    parts: Vec<Box<RawValue>>,
}

impl MessageBody {
    fn message(self, role: &str) -> Result<Message> {
        if self.content.is_none() && self.parts.is_empty() {
            let message = "the message is empty: expected `content` or `parts`";
            return Err(Failure::plain(Exit::Input, message)
                .with_help("{\"role\": \"user\", \"content\": \"Where is my refund?\"}"));
        }
        let mut message = Message::new(self.role.as_deref().unwrap_or(role));
        if let Some(content) = &self.content {
            message = message.text(content);
        }
        for part in self.parts {
            message = message.part(NewNode::json(part.get())?);
        }
        Ok(message)
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
struct CommitBody {
    window: Option<u32>,
    protect: Option<u32>,
    prune_tokens: Option<u64>,
    prune_nodes: Option<u64>,
}

impl CommitBody {
    fn policy(&self) -> Policy {
        use crate::runtime::{Measure, Scope};
        let mut policy = Policy::new().protect(self.protect.unwrap_or(1));
        if let Some(turns) = self.window {
            policy = policy.window(turns);
        }
        let limits = [
            (Measure::Tokens, self.prune_tokens),
            (Measure::Nodes, self.prune_nodes),
        ];
        for (measure, most) in limits {
            if let Some(most) = most {
                policy = policy.limit(Scope::Whole, measure, most);
            }
        }
        policy
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct AttemptBody {
    begin: Option<String>,
    end: Option<Ending>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct Ending {
    tokens_in: Option<u64>,
    tokens_out: Option<u64>,
    #[serde(default)]
    canceled: bool,
    error: Option<String>,
}

/// What a request does with the context.
enum Change {
    /// An edit, which returns the answer; it is saved after it.
    Edit(Edit),
    /// A commit under this policy, which is its own answer, and saves.
    Commit(Policy),
}

type Edit = Box<dyn FnOnce(&mut Context) -> Result<Value> + Send>;

pub(super) async fn append(State(app): State<Arc<App>>, request: Request) -> Answer {
    change(app, request, "append", |body: MessageBody| {
        let message = body.message("user")?;
        let edit = move |context: &mut Context| Ok(json!(context.append(message)?));
        Ok(Change::Edit(Box::new(edit)))
    })
    .await
}

pub(super) async fn reply(State(app): State<Arc<App>>, request: Request) -> Answer {
    change(app, request, "reply", |body: MessageBody| {
        let message = body.message("assistant")?;
        let edit = move |context: &mut Context| Ok(json!(context.reply(message)?));
        Ok(Change::Edit(Box::new(edit)))
    })
    .await
}

pub(super) async fn commit(State(app): State<Arc<App>>, request: Request) -> Answer {
    change(app, request, "commit", |body: CommitBody| {
        Ok(Change::Commit(body.policy()))
    })
    .await
}

pub(super) async fn attempts(State(app): State<Arc<App>>, request: Request) -> Answer {
    change(app, request, "attempts", |body: AttemptBody| {
        let edit: Edit = match (body.begin, body.end) {
            (Some(name), None) => {
                let provider = Provider::parse(&name).ok_or_else(|| {
                    let forms = Provider::ALL.map(Provider::name).join(", ");
                    Failure::value(format!("there is no form `{name}`"))
                        .with_help(format!("the forms are {forms}"))
                })?;
                Box::new(move |context| Ok(json!({"attempt": context.render(provider)?.attempt})))
            }
            (None, Some(ending)) => Box::new(move |context| {
                let attempts = context.attempts();
                let id = attempts.iter().next().map(|it| it.attempt_id.clone());
                let ended = match &ending.error {
                    Some(error) => context.fail_attempt(error),
                    None if ending.canceled => context.cancel_attempt(),
                    None => context.complete_attempt(ending.tokens_in, ending.tokens_out),
                };
                ended.map_err(|error| match error.code() {
                    // The advice names what a program in this process calls.
                    Code::Placement => {
                        Failure::from(error).advised("`{\"begin\": \"openai\"}` begins one")
                    }
                    _ => error.into(),
                })?;
                Ok(json!([id]))
            }),
            _ => {
                return Err(Failure::value("expected one of `begin` and `end`")
                    .with_help("{\"begin\": \"openai\"}"));
            }
        };
        Ok(Change::Edit(edit))
    })
    .await
}

/// A header of one line of visible characters.
fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Reads a request, and does what it asks for unless it was done before.
// long: each check must come before the next, and all before the change.
async fn change<B: DeserializeOwned>(
    app: Arc<App>,
    request: Request,
    route: &'static str,
    change: impl FnOnce(B) -> Result<Change> + Send + 'static,
) -> Answer {
    let entry = TABLE[2].iter().find(|entry| entry.name == route);
    let entry = entry.ok_or_else(|| Failure::internal("the route is not described"))?;
    let arguments = arguments(entry, request.uri().query())?;
    let (parts, sent) = request.into_parts();
    let key = text(&parts.headers, &KEY).unwrap_or_default().to_owned();
    if key.is_empty() || key.len() > 128 {
        let failure = Failure::usage(
            "a change needs the header `Idempotency-Key`, of 1 to 128 visible characters",
        );
        return Err(failure
            .with_help("a new one for each change, and the same one when it is sent again")
            .into());
    }
    let fence = match text(&parts.headers, &FENCE).map(str::parse::<i64>) {
        None => None,
        Some(Ok(fence)) => Some(fence),
        Some(Err(_)) => return Err(Failure::value("`Pactql-Fence` is a whole number").into()),
    };
    let sent = body(&parts.headers, sent).await?;
    let done = app
        .work(move |app| {
            let sent = std::str::from_utf8(&sent);
            let sent = sent.map_err(|_| Failure::value("the body is not UTF-8"))?;
            let sent = if sent.trim().is_empty() { "{}" } else { sent };
            let refused = |why: &dyn fmt::Display| {
                Failure::value(format!("the body cannot be read: {why}")).with_help(&*entry.about)
            };
            if sent.trim_start().starts_with('[') {
                // A list would be taken for the members in their order.
                return Err(refused(&"expected an object, found a list"));
            }
            let read: B = serde_json::from_str(sent).map_err(|error| refused(&error))?;
            let change = change(read)?;
            let policy = match &change {
                Change::Edit(_) => Policy::new(),
                Change::Commit(policy) => policy.clone(),
            };
            let _one = lock(&app.writes);
            let (store, name) = app.places.stored(arguments.needed("session"))?;
            if !arguments.flag("create") {
                // A session that is missing would be made.
                store.session(&name).map_err(|error| {
                    let help = error.first().help.as_ref();
                    let help = help.map_or(String::new(), |help| format!("{help}; "));
                    let create = "`append` with `create=true` in the query makes it";
                    Failure::from(error).advised(help + create)
                })?;
            }
            let before = store.fence(&name)?;
            let mut context = store.write_with(&name, Context::builder().policy(policy))?;
            let now = store.fence(&name)?;
            let hash = hex(&text_hash(&format!("{route} {sent}")));
            if let Some(done) = context.done(&key) {
                if done.hash != hash {
                    let message = "this `Idempotency-Key` was used for another change";
                    return Err(Failure::coded("E_KEY_REUSED", Exit::Usage, message));
                }
                let DoneAnswer::Said(answer) = done.answer.clone() else {
                    return Err(Failure::internal("the commit was kept without its answer"));
                };
                return Ok((whole(&context, answer)?, now, true));
            }
            // Between the two looks another may have written.
            if fence.is_some_and(|fence| fence != before || now != before + 1) {
                // This request has taken the lease, too.
                let message =
                    format!("the session was opened for writing since: its fence is {now} now");
                return Err(Failure::coded("E_FENCE", Exit::Usage, message)
                    .with_help("read the session, then send the change with this fence"));
            }
            let done = |answer| DoneRequest { key, hash, answer };
            let answer = match change {
                Change::Edit(edit) => {
                    let answer = edit(&mut context)?.to_string();
                    context.note_done(done(DoneAnswer::Said(answer.clone())));
                    context.save()?;
                    whole(&context, answer)?
                }
                Change::Commit(_) => {
                    context.note_done(done(DoneAnswer::OfCommit));
                    json!(context.commit()?).to_string()
                }
            };
            Ok((answer, now, false))
        })
        .await;
    let (answer, fence, replayed) = done?;
    let mut response = json(answer);
    let headers = response.headers_mut();
    headers.insert(FENCE, fence.into());
    if replayed {
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// An answer with the request of an attempt that began: the store has that once.
fn whole(context: &Context, answer: String) -> Result<String> {
    let begun: Value = serde_json::from_str(&answer).unwrap_or_default();
    let Some(id) = begun["attempt"].as_str() else {
        return Ok(answer);
    };
    let history = context.history();
    history.fetch_attempts()?;
    let mut attempts = history.attempts().iter();
    let provider = attempts.find(|attempt| attempt.attempt_id == id);
    let provider = provider.and_then(|attempt| Provider::parse(&attempt.provider));
    let lost = || {
        Failure::coded(
            Code::Store.as_str(),
            Exit::Io,
            "the attempt is in the store no more",
        )
    };
    let thread = attempted(&history, id).ok_or_else(lost)?;
    let request = request_of(Source::from(&thread), provider.unwrap_or_default())?;
    Ok(format!(
        "{{\"attempt\":{},\"request\":{}}}",
        json!(id),
        request.trim_end()
    ))
}
