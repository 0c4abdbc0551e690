//! Who may ask: the token, the host and the origin of a request; the headers of security; the page.
//!
//! A page of another site can make a browser send requests here, so three things hold: the `Host` is a name of this server
//! (or an attacker's name that leads to this address would be one origin with it), an `Origin` is this server's own, and
//! the token is in a cookie that no other site's request carries. Nothing allows an answer to be read by another origin.

use crate::app::present::{Exit, Failure, Result};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The built page: one file.
const PAGE: &str = include_str!("../../../web/dist/page.html");

/// A token that cannot be guessed: 256 random bits.
///
/// # Errors
/// The system gives no random bytes.
pub(crate) fn new_token() -> Result<String> {
    let mut bytes = [0; 32];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| Failure::plain(Exit::Io, format!("no random bytes: {error}")))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// The token in a file: its text without white space at the ends.
///
/// # Errors
/// The file cannot be read, others may read it, or it has less than 16 visible ASCII characters.
pub(crate) fn read_token(path: &str) -> Result<String> {
    let failed = |error| Failure::file(path, &error);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let about = std::fs::metadata(path).map_err(failed)?;
        if about.is_file() && about.mode() & 0o077 != 0 {
            return Err(
                Failure::value(format!("others may read the token in {path}"))
                    .with_help(format!("chmod 600 {path}")),
            );
        }
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let token = text.trim();
    if token.len() < 16
        || !token
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b';')
    {
        return Err(Failure::value(format!(
            "expected a token of at least 16 visible ASCII characters in {path}"
        ))
        .with_help("openssl rand -base64 32 > FILE makes one"));
    }
    Ok(token.to_owned())
}

#[derive(Debug)]
pub(super) struct Guard {
    /// The hash of the token: comparing hashes says nothing of where texts differ.
    token: [u8; 32],
    /// What the cookie is called, with the port: browsers give a cookie to all ports of a host.
    cookie: String,
    /// What a `Host` may be, in lower case.
    hosts: Vec<String>,
    policy: String,
}

impl Guard {
    pub(super) fn new(token: &str, port: u16, hosts: Vec<String>) -> Self {
        Self {
            token: Sha256::digest(token).into(),
            cookie: format!("pactql_{port}"),
            hosts,
            policy: policy(PAGE),
        }
    }

    /// # Errors
    /// 403: the request is for another host, or of another origin.
    pub(super) fn check_place(&self, headers: &HeaderMap) -> Result<()> {
        let text = |name| headers.get(name).map(|value: &HeaderValue| value.to_str());
        let is_own = |host: &str| self.hosts.iter().any(|own| host.eq_ignore_ascii_case(own));
        match text(header::HOST) {
            Some(Ok(host)) if is_own(host) => {}
            _ => {
                let failure = Failure::coded(
                    "E_FORBIDDEN",
                    Exit::Usage,
                    "this is not the host that was asked for",
                );
                return Err(failure.with_help(format!(
                    "ask {}; behind a proxy, `--host NAME` adds its name",
                    self.hosts.first().map_or("", String::as_str)
                )));
            }
        }
        let origin = text(header::ORIGIN);
        let origin_host = |origin: &str| {
            let host = origin.strip_prefix("http://");
            is_own(
                host.or_else(|| origin.strip_prefix("https://"))
                    .unwrap_or_default(),
            )
        };
        match origin {
            None => Ok(()),
            Some(Ok(origin)) if origin_host(origin) => Ok(()),
            Some(_) => Err(Failure::coded(
                "E_FORBIDDEN",
                Exit::Usage,
                "pages of other sites may not ask this server",
            )),
        }
    }

    fn is_token(&self, text: &str) -> bool {
        <[u8; 32]>::from(Sha256::digest(text)) == self.token
    }

    /// # Errors
    /// 401: neither the cookie nor `Authorization: Bearer` has the token.
    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<()> {
        let bearer = headers.get(header::AUTHORIZATION);
        let bearer = bearer.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let cookies = headers.get_all(header::COOKIE).iter();
        let cookies = cookies.filter_map(|value| value.to_str().ok());
        let mut cookies = cookies
            .flat_map(|value| value.split(';'))
            .filter_map(|cookie| {
                let (name, value) = cookie.trim().split_once('=')?;
                (name == self.cookie).then_some(value)
            });
        if bearer
            .into_iter()
            .chain(cookies.by_ref())
            .any(|token| self.is_token(token))
        {
            return Ok(());
        }
        let failure = Failure::coded(
            "E_TOKEN",
            Exit::Usage,
            "the request has no token, or a wrong one",
        );
        Err(failure.with_help(
            "open the address that `pactql` printed, or send `Authorization: Bearer TOKEN`",
        ))
    }

    /// The cookie for a browser that has the token in its address; `None` of a wrong token.
    pub(super) fn cookie(&self, token: &str) -> Option<HeaderValue> {
        let cookie = format!("{}={token}; HttpOnly; SameSite=Strict; Path=/", self.cookie);
        HeaderValue::try_from(cookie)
            .ok()
            .filter(|_| self.is_token(token))
    }

    /// The page and its policy.
    pub(super) fn page(&self) -> ([(HeaderName, String); 2], &'static str) {
        let html = "text/html; charset=utf-8".to_owned();
        let headers = [
            (header::CONTENT_TYPE, html),
            (header::CONTENT_SECURITY_POLICY, self.policy.clone()),
        ];
        (headers, PAGE)
    }
}

/// Headers of every answer.
pub(super) fn secure(headers: &mut HeaderMap) {
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(
            "default-src 'none'; frame-ancestors 'none'",
        ));
}

/// The content policy that the page has in itself, and what only a header can say.
fn policy(page: &str) -> String {
    let own = page.split_once("\"Content-Security-Policy\" content=\"");
    let own = own.and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    format!(
        "{}; frame-ancestors 'none'",
        own.unwrap_or("default-src 'none'")
    )
}

/// The status of a failure (docs/http.md has the table).
pub(super) fn status(failure: &Failure) -> StatusCode {
    let error = failure.json();
    match (
        error["error"]["code"].as_str().unwrap_or_default(),
        failure.exit(),
    ) {
        ("E_TOKEN", _) => StatusCode::UNAUTHORIZED,
        ("E_FORBIDDEN", _) => StatusCode::FORBIDDEN,
        ("E_SNAPSHOT_NOT_FOUND", _) | (_, Exit::Missing) => StatusCode::NOT_FOUND,
        ("E_METHOD", _) => StatusCode::METHOD_NOT_ALLOWED,
        ("E_SLOW", _) => StatusCode::REQUEST_TIMEOUT,
        ("E_SESSION_BUSY" | "E_LEASE_LOST" | "E_FENCE" | "E_KEY_REUSED", _) => StatusCode::CONFLICT,
        ("E_TOO_LONG", _) => StatusCode::PAYLOAD_TOO_LARGE,
        ("E_BUSY", _) => StatusCode::TOO_MANY_REQUESTS,
        (_, Exit::Usage | Exit::Value | Exit::Selector) => StatusCode::BAD_REQUEST,
        (_, Exit::Input) => StatusCode::UNPROCESSABLE_ENTITY,
        (_, Exit::Late | Exit::Interrupted) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE, policy};

    #[test]
    fn the_header_has_the_policy_of_the_page() {
        let policy = policy(PAGE);
        for part in [
            "default-src 'none'; ",
            "connect-src 'self'; ",
            "script-src 'sha256-",
            "style-src 'sha256-",
            "; frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(
            !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
        assert_eq!(
            super::policy("<p>"),
            "default-src 'none'; frame-ancestors 'none'"
        );
    }
}
