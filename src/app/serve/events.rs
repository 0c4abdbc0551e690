//! What has grown, as server-sent events.
//!
//! One thread looks at the sessions that clients watch, as `--follow` does, and sends each client what is new. A client
//! that does not read what it is sent is given up.

use super::app::{Answer, App, arguments};
use super::hub::{CLIENTS, Client, WAITING};
use super::places::SeenSession;
use crate::app::calls::{SessionSource as _, TABLE};
use crate::app::present::{Exit, Failure, Result};
use crate::engine::Engine;
use crate::history::Session;
use crate::inspect::{Part, Report as _, ReportOptions, StepReport};
use crate::query::ir::Edition;
use crate::support::cancel::Cancel;
use crate::support::lock;
use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_core::Stream;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The time between two looks. It is longer if looking took longer.
const PAUSE: Duration = Duration::from_millis(500);

/// The time between two looks at the list.
const LIST_PAUSE: Duration = Duration::from_secs(2);

/// How long one look at a session may take.
const LOOK_TIME: Duration = Duration::from_secs(30);

/// A stream without events has a line of comment as often as this.
const ALIVE: Duration = Duration::from_secs(15);

/// The thread that looks; it ends when this is dropped.
pub(super) struct Watcher(Arc<App>);

impl Drop for Watcher {
    fn drop(&mut self) {
        *lock(&self.0.hub.wake) = None;
    }
}

/// Begins to look.
pub(super) fn watch(app: &Arc<App>) -> Watcher {
    let (wake, woken) = mpsc::channel();
    *lock(&app.hub.wake) = Some(wake);
    let of_thread = Arc::clone(app);
    // Without a thread there are no events, and everything else works.
    let _ = std::thread::Builder::new().spawn(move || look(&of_thread, &woken));
    Watcher(Arc::clone(app))
}

fn look(app: &App, woken: &mpsc::Receiver<()>) {
    let mut seen: HashMap<String, SeenSession> = HashMap::new();
    let (mut mark, mut looked_at_list) = (None, Instant::now());
    let mut pause = PAUSE;
    loop {
        match woken.recv_timeout(pause) {
            Err(RecvTimeoutError::Disconnected) => return,
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
        }
        let began = Instant::now();
        let (mut wanted, mut fresh) = (HashSet::new(), HashSet::new());
        {
            let mut clients = lock(&app.hub.clients);
            clients.retain(|client| !client.events.is_closed());
            if clients.is_empty() {
                seen.clear();
                (mark, pause) = (None, PAUSE);
                continue;
            }
            for client in &*clients {
                wanted.extend(client.session.clone());
                fresh.extend(client.session.clone().filter(|_| client.is_new));
            }
        }
        seen.retain(|name, _| wanted.contains(name));
        for name in wanted {
            let seen = seen.entry(name.clone()).or_default();
            // What cannot be read now, as a file that is being replaced, is looked at again.
            let _ =
                Cancel::after(LOOK_TIME).run(|| session(app, &name, seen, fresh.contains(&name)));
        }
        if mark.is_none() || looked_at_list.elapsed() >= LIST_PAUSE {
            looked_at_list = Instant::now();
            let now = Cancel::after(LOOK_TIME).run(|| app.places.mark());
            if let Ok(Ok((now, total))) = now {
                if mark.is_some_and(|before| before != now) {
                    let data = json!({ "total": total }).to_string();
                    app.hub.send("sessions", &data, |_| true);
                }
                mark = Some(now);
            }
        }
        pause = PAUSE.max(began.elapsed());
    }
}

/// Tells the clients of a session that it has grown, and new ones how it is.
fn session(app: &App, name: &str, seen: &mut SeenSession, is_fresh: bool) -> Result<()> {
    let is_of = |client: &Client| client.session.as_deref() == Some(name);
    let engine = app.places.engine(Edition::default())?;
    if let Some(session) = app.places.grown(name, seen)? {
        let data = newest(engine, &session, name)?;
        app.hub.send("changed", &data, is_of);
    } else if is_fresh {
        let data = newest(engine, &*app.places.session(name)?, name)?;
        app.hub
            .send("changed", &data, |client| client.is_new && is_of(client));
    }
    Ok(())
}

/// How many steps a session has, and the newest one.
fn newest(engine: &Engine, session: &Session, name: &str) -> Result<String> {
    let history = session.history();
    history.fetch_cycles()?;
    let steps = history.committed().len();
    let step = if steps == 0 {
        None
    } else {
        let range = if steps == 1 { "@t0" } else { "@t-1..@t0" };
        let options = ReportOptions::new(Part::default().over(range));
        StepReport::new(engine, session, &options)?.steps.pop()
    };
    Ok(json!({"session": name, "steps": steps, "step": step}).to_string())
}

/// `GET /api/events`.
pub(super) async fn stream(State(app): State<Arc<App>>, request: Request) -> Answer {
    let entry = TABLE[1].iter().find(|entry| entry.name == "events");
    let entry = entry.ok_or_else(|| Failure::internal("the route is not described"))?;
    let arguments = arguments(entry, request.uri().query())?;
    let session = arguments.text("session").map(str::to_owned);
    if let Some(name) = session.clone() {
        app.work(move |app| app.places.session(&name)).await?;
    }
    let (events, receiver) = tokio::sync::mpsc::channel(WAITING);
    {
        let mut clients = lock(&app.hub.clients);
        clients.retain(|client| !client.events.is_closed());
        if clients.len() >= CLIENTS {
            let failure = Failure::coded("E_BUSY", Exit::Io, "too many clients get events");
            return Err(failure
                .with_help(format!("at most {CLIENTS} do at a time"))
                .into());
        }
        clients.push(Client {
            session,
            is_new: true,
            events,
        });
    }
    if let Some(wake) = &*lock(&app.hub.wake) {
        let _ = wake.send(());
    }
    let events = Sse::new(Events(receiver)).keep_alive(KeepAlive::new().interval(ALIVE));
    Ok(events.into_response())
}

struct Events(tokio::sync::mpsc::Receiver<Event>);

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|event| event.map(Ok))
    }
}
