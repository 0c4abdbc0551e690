//! What is at which path; answers and failures as responses.

use super::events::{self, Hub};
use super::guard::{Guard, secure, status};
use super::metrics::Metrics;
use super::places::Places;
use super::{openapi, write};
use crate::app::calls::arguments::Arguments;
use crate::app::calls::{CallAnswer, CallEntry, TABLE, reports};
use crate::app::present::{Exit, Failure};
use crate::support::cancel::Cancel;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// What all requests share.
#[derive(Debug)]
pub(super) struct App {
    pub(super) places: Places,
    guard: Guard,
    pub(super) metrics: Metrics,
    pub(super) hub: Hub,
    pub(super) writes: write::Writes,
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

/// The most bytes of remarks in the header of an answer.
const SAID_BYTES: usize = 2048;

impl App {
    pub(super) fn new(places: Places, guard: Guard, timeout: Duration) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            places,
            guard,
            metrics: Metrics::default(),
            hub: Hub::default(),
            writes: write::Writes::default(),
            permits: Semaphore::new(processors.min(MOST_ANSWERS)),
            timeout,
        }
    }

    /// Does some work on another thread when there is a processor for it. It is cancelled when its time is over, or when its
    /// client has gone.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
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

pub(super) fn router(app: Arc<App>) -> Router {
    let metrics = |State(app): State<Arc<App>>| async move { app.metrics.text(app.hub.len()) };
    let document = || async { json(openapi::document()) };
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .route("/api/openapi.json", get(document))
        .route("/api/events", get(events::stream))
        .route("/api/append", post(write::append))
        .route("/api/reply", post(write::reply))
        .route("/api/commit", post(write::commit))
        .route("/api/attempts", post(write::attempts))
        .route("/api/{name}", get(answer))
        .fallback(async || Refused::from(no_route()))
        .method_not_allowed_fallback(async || {
            Refused(Failure::coded(
                "E_METHOD",
                Exit::Usage,
                "this path does not take this method",
            ))
        })
        .layer(from_fn_with_state(Arc::clone(&app), guarded))
        .with_state(app)
}

fn no_route() -> Failure {
    let failure = Failure::plain(Exit::Missing, "there is nothing at this path");
    failure.with_help("`/api/openapi.json` lists the paths")
}

/// Checks every request, and counts and logs it. An address is logged without its query, which may have the token.
async fn guarded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let headers = request.headers();
    let with_token = path == "/" && method == Method::GET;
    let allowed = app.guard.check_place(headers).and_then(|()| {
        // The page checks the token itself, which may be in its address.
        if with_token {
            Ok(())
        } else {
            app.guard.check_token(headers)
        }
    });
    let mut response = match allowed {
        Ok(()) => next.run(request).await,
        Err(failure) => Refused(failure).into_response(),
    };
    secure(response.headers_mut());
    let (status, took) = (response.status().as_u16(), began.elapsed());
    // One name for all paths that are none.
    let route = if status == 404
        && !TABLE[1]
            .iter()
            .any(|route| path == format!("/api/{}", route.name))
    {
        "other"
    } else {
        &path
    };
    let route = if matches!(status, 401 | 403 | 405) {
        "refused"
    } else {
        route
    };
    app.metrics.answered(route, status, took);
    let milliseconds = took.as_secs_f64() * 1e3;
    tracing::info!(%method, path, status, milliseconds, "answered");
    response
}

/// The arguments in the query of an address.
///
/// # Errors
/// As [`Arguments::check`]; an argument is there twice.
pub(super) fn arguments(entry: &CallEntry, query: Option<&str>) -> Result<Arguments, Failure> {
    let mut sent = serde_json::Map::new();
    for (name, text) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        let parameter = entry.parameters.iter().find(|one| one.name() == name);
        let value = parameter.map_or_else(|| (&*text).into(), |one| one.of_text(&text));
        if sent.insert(name.clone().into_owned(), value).is_some() {
            return Err(Failure::usage(format!(
                "`{}` is given twice",
                crate::app::present::clean(&name, 80)
            )));
        }
    }
    Arguments::check(&entry.name, &entry.parameters, sent).map_err(|(failure, _)| failure)
}

type RouteFunction = fn(&Places, &Arguments) -> Result<CallAnswer, Failure>;

const RUN: [(&str, RouteFunction); 14] = [
    ("sessions", Places::list),
    ("steps", reports::stepped),
    ("show", reports::shown),
    ("request", reports::request),
    ("diff", reports::diff),
    ("tokens", reports::counted),
    ("prefix", reports::prefixed),
    ("usage", reports::used),
    ("tree", reports::tree),
    ("grep", reports::searched),
    ("select", reports::select),
    ("explain", reports::explain),
    ("fields", reports::fields),
    ("page", reports::paged),
];

/// `GET /api/…`: the answer of a route of the table.
async fn answer(State(app): State<Arc<App>>, Path(name): Path<String>, request: Request) -> Answer {
    let entry = TABLE[1].iter().find(|entry| entry.name == name);
    let run = RUN.iter().find(|(known, _)| *known == name);
    let (entry, (_, run)) = entry.zip(run).ok_or_else(no_route)?;
    let mut arguments = arguments(entry, request.uri().query())?;
    // A page cuts texts where it wants to, and shows all requests.
    match &*name {
        "show" => arguments.or("max_bytes", u64::MAX),
        "prefix" => arguments.or("all", true),
        _ => {}
    }
    let is_list = match &*name {
        "show" | "tree" => true,
        "select" => arguments.flag("nodes") && !arguments.flag("count"),
        _ => false,
    };
    let run = *run;
    let answer = app.work(move |app| run(&app.places, &arguments)).await?;
    let text = if is_list {
        format!("[{}]", answer.result.replace('\n', ","))
    } else {
        answer.result
    };
    let mut response = json(text);
    let said = answer.said.trim_end();
    if !said.is_empty() {
        let said = &said[..said.floor_char_boundary(SAID_BYTES)];
        let said: String = form_urlencoded::byte_serialize(said.as_bytes()).collect();
        let said = HeaderValue::try_from(said.replace('+', "%20"));
        response
            .headers_mut()
            .extend(said.map(|said| (header::HeaderName::from_static("pactql-notes"), said)));
    }
    Ok(response)
}

/// The page. A browser that comes with the token in the address gets a cookie, and the address without it.
async fn page(State(app): State<Arc<App>>, request: Request) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let token = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "token");
    if let Some(cookie) = token.and_then(|(_, token)| app.guard.cookie(&token)) {
        let to = [
            (header::SET_COOKIE, cookie),
            (header::LOCATION, HeaderValue::from_static("/")),
        ];
        return Ok((StatusCode::SEE_OTHER, to).into_response());
    }
    app.guard.check_token(request.headers())?;
    Ok(app.guard.page().into_response())
}

/// The body of a request.
///
/// # Errors
/// It is too long, or comes too slowly.
pub(super) async fn body(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Failure> {
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
