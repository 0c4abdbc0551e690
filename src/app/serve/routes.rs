//! What is at which path.

use super::app::{Answer, App, Refused, arguments, json};
use super::guard::secure;
use super::places::Places;
use super::{events, openapi, write};
use crate::app::calls::arguments::Arguments;
use crate::app::calls::{CallAnswer, TABLE, reports};
use crate::app::present::answer::with_notes_as_json;
use crate::app::present::{Exit, Failure, Result};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use std::sync::Arc;
use std::time::Instant;

/// The most bytes of remarks in the header of an answer.
const SAID_BYTES: usize = 2048;

pub(super) fn router(app: Arc<App>) -> Router {
    let metrics = |State(app): State<Arc<App>>| async move {
        app.metrics.text(app.hub.len(), &app.places.figures())
    };
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

type RouteFunction = fn(&Places, &Arguments) -> Result<CallAnswer>;

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
    let work = move |app: &App| {
        let mut answer = run(&app.places, &arguments)?;
        if let Some(session) = arguments.text("session") {
            answer.said.insert_str(0, &app.places.said(session));
        }
        if !arguments.asks_for_nodes() {
            answer.said = with_notes_as_json(&answer.said);
        }
        Ok(answer)
    };
    let answer = app.work(work).await?;
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
