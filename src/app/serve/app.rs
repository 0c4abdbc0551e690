//! What all requests share; work on other threads; failures as responses; arguments and bodies of requests.

use super::guard::{Guard, status};
use super::hub::Hub;
use super::metrics::Metrics;
use super::places::Places;
use crate::app::calls::CallEntry;
use crate::app::calls::arguments::Arguments;
use crate::app::present::{Exit, Failure, Result, clean};
use crate::support::cancel::Cancel;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;

/// What all requests share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) places: Places,
    pub(super) guard: Guard,
    pub(super) metrics: Metrics,
    pub(super) hub: Hub,
    /// One change at a time: writers of one server wait for each other, and are not refused.
    pub(super) writes: Mutex<()>,
    /// One permit for each answer that is being made.
    permits: Semaphore,
    timeout: Duration,
}

/// The most answers that are made at a time, so that they fit in memory on any machine.
const MOST_ANSWERS: usize = 8;

/// The most requests that wait for a permit.
const MOST_WAITING: i64 = 256;

/// The most bytes of the body of a request.
const BODY_BYTES: usize = 8 << 20;

/// How long a client may take to send a body.
const BODY_TIME: Duration = Duration::from_secs(20);

impl App {
    pub(super) fn new(places: Places, guard: Guard, timeout: Duration) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            places,
            guard,
            metrics: Metrics::default(),
            hub: Hub::default(),
            writes: Mutex::default(),
            permits: Semaphore::new(processors.min(MOST_ANSWERS)),
            timeout,
        }
    }

    /// Does some work on another thread when there is a processor for it. It is cancelled when its time is over, or when its
    /// client has gone.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        struct CancelOnDrop(Cancel);
        impl Drop for CancelOnDrop {
            fn drop(&mut self) {
                self.0.cancel();
            }
        }
        if self.metrics.waiting.get() >= MOST_WAITING {
            let failure = Failure::coded("E_BUSY", Exit::Io, "too many requests at once");
            return Err(failure.with_help("ask again in a second"));
        }
        let waiting = self.metrics.waiting.enter();
        let permit = tokio::time::timeout(self.timeout, self.permits.acquire()).await;
        let late = || {
            let failure = Failure::plain(Exit::Late, format!("not done within {:?}", self.timeout));
            failure.with_help("ask for less, or start the server with a longer `--timeout`")
        };
        let permit = permit.map_err(|_| late())?;
        drop(waiting);
        let cancel = Cancel::after(self.timeout);
        let guard = CancelOnDrop(cancel.clone());
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let _running = app.metrics.running.enter();
            cancel.run(|| work(&app))
        });
        let done = done.await;
        drop((permit, guard));
        match done {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => Err(late()),
            // A panic fails this request alone; its message went to standard error.
            Err(_) => Err(Failure::internal(
                "the request failed; the log of the server says why",
            )),
        }
    }
}

pub(super) type Answer = Result<Response, Refused>;

/// A failure on its way to a client.
pub(super) struct Refused(pub(super) Failure);

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl axum::response::IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = status(&self.0);
        let mut response = json(self.0.json().to_string());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                // Who may not ask keeps no connection.
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            StatusCode::FORBIDDEN => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

pub(super) fn json(text: String) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json; charset=utf-8")];
    (kind, text + "\n").into_response()
}

/// The arguments in the query of an address.
///
/// # Errors
/// As [`Arguments::check`]; an argument is there twice.
pub(super) fn arguments(entry: &CallEntry, query: Option<&str>) -> Result<Arguments> {
    let mut sent = serde_json::Map::new();
    for (name, text) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let parameter = entry.parameters.iter().find(|one| one.name() == name);
        let value = parameter.map_or_else(|| (&*text).into(), |one| one.of_text(&text));
        if sent.insert(name.clone().into_owned(), value).is_some() {
            return Err(Failure::usage(format!(
                "`{}` is given twice",
                clean(&name, 80)
            )));
        }
    }
    Arguments::check(&entry.name, &entry.parameters, sent).map_err(|(failure, _)| failure)
}

/// The body of a request.
///
/// # Errors
/// It is too long, or comes too slowly.
pub(super) async fn body(headers: &HeaderMap, body: Body) -> Result<Vec<u8>> {
    let too_long = || {
        let failure = Failure::coded("E_TOO_LONG", Exit::Usage, "the body is too long");
        failure.with_help(format!("a body has at most {BODY_BYTES} bytes"))
    };
    let length = headers.get(header::CONTENT_LENGTH);
    let length: Option<usize> = length.and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length| length > BODY_BYTES) {
        return Err(too_long());
    }
    match tokio::time::timeout(BODY_TIME, to_bytes(body, BODY_BYTES)).await {
        Ok(Ok(bytes)) => Ok(bytes.into()),
        Ok(Err(_)) => Err(too_long()),
        Err(_) => Err(Failure::coded(
            "E_SLOW",
            Exit::Usage,
            "the body did not come in time",
        )),
    }
}
