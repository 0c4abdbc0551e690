//! Who is answered, and how much of what.

use super::{Reply, Server, quoted, scratch};
use std::fs;
use std::io::{Read as _, Write as _};
use std::time::Duration;

#[test]
fn only_who_has_the_token_is_answered() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["logs"]);
    assert!(server.token.len() >= 43 && server.host.starts_with("127.0.0.1:"));
    let wrong = format!("Bearer {}x", server.token);
    let cookie = |token: &str| {
        let port = server.host.rsplit(':').next().unwrap_or_default();
        format!("a=b; pactql_{port}={token}")
    };
    let (right_cookie, wrong_cookie) = (cookie(&server.token), cookie("x"));
    for path in [
        "/",
        "/metrics",
        "/api/sessions",
        "/api/openapi.json",
        "/api/events",
        "/nothing",
    ] {
        for headers in [
            &[][..],
            &[("Authorization", "Bearer ")],
            &[("Authorization", &*wrong)],
            &[("Authorization", &*server.token)],
            &[("Cookie", &*wrong_cookie)],
        ] {
            let reply = server.send("GET", path, headers, "");
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (401, "E_TOKEN"),
                "{path} {headers:?}"
            );
            assert!(!reply.body.contains(&server.token));
        }
    }
    assert_eq!(server.send("GET", "/?token=wrong", &[], "").status, 401);
    assert_eq!(
        server
            .send(
                "GET",
                &format!("/api/sessions?token={}", server.token),
                &[],
                ""
            )
            .status,
        401
    );
    assert_eq!(
        server
            .send("GET", "/api/sessions", &[("Cookie", &right_cookie)], "")
            .status,
        200
    );

    let opened = server.send("GET", &format!("/?token={}", server.token), &[], "");
    assert_eq!((opened.status, opened.header("location")), (303, Some("/")));
    let set = opened.header("set-cookie").expect("a cookie");
    assert!(
        set.contains("HttpOnly") && set.contains("SameSite=Strict"),
        "{set}"
    );
    let cookie = set.split(';').next().unwrap_or_default();
    let page = server.send("GET", "/", &[("Cookie", cookie)], "");
    assert_eq!(page.status, 200);
    assert!(page.body.contains("<!doctype html>"));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(
        policy.starts_with("default-src 'none'") && policy.ends_with("frame-ancestors 'none'"),
        "{policy}"
    );
    assert!(!policy.contains("http"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-store"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(page.header(name), Some(value));
    }
}

/// A page of another site can send requests, under its own name or under one that it made lead here.
#[test]
fn a_page_of_another_site_is_not_answered() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["logs"]);
    let port = server
        .host
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .to_owned();
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "127.0.0.1",
        "127.0.0.1:1",
        "",
    ] {
        let reply = server.ask("GET", "/api/sessions", &[("Host", host)], "");
        assert_eq!(
            (reply.status, reply.code().as_str()),
            (403, "E_FORBIDDEN"),
            "{host}"
        );
        let page = server.send(
            "GET",
            &format!("/?token={}", server.token),
            &[("Host", host)],
            "",
        );
        assert_eq!(
            (page.status, page.header("set-cookie")),
            (403, None),
            "{host}"
        );
    }
    assert_eq!(
        server
            .ask(
                "GET",
                "/api/sessions",
                &[("Host", &format!("localhost:{port}"))],
                ""
            )
            .status,
        200
    );
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://evil.example:443",
        "file://",
    ] {
        for method in ["GET", "POST", "OPTIONS"] {
            let headers = [
                ("Origin", origin),
                ("Access-Control-Request-Method", "POST"),
            ];
            let reply = server.ask(method, "/api/sessions", &headers, "");
            assert_eq!(
                (reply.status, reply.code().as_str()),
                (403, "E_FORBIDDEN"),
                "{origin}"
            );
            assert!(
                !reply.head.to_lowercase().contains("access-control"),
                "{}",
                reply.head
            );
        }
    }
    let own = format!("http://{}", server.host);
    assert_eq!(
        server
            .ask("GET", "/api/sessions", &[("Origin", &own)], "")
            .status,
        200
    );
    // No origin is allowed to read an answer, its own needs no permission.
    let preflight = server.ask("OPTIONS", "/api/sessions", &[("Origin", &own)], "");
    assert_eq!(preflight.status, 405);
    assert!(!preflight.head.to_lowercase().contains("access-control"));
}

#[test]
fn a_path_that_is_not_listed_is_no_session() {
    let directory = scratch();
    let place = directory.path();
    let server = Server::start(place, &["logs"]);
    let outside = place.join("outside.jsonl").display().to_string();
    for name in [
        "outside.jsonl",
        "logs/../outside.jsonl",
        "logs/./agent.jsonl",
        "./logs/agent.jsonl",
        &outside,
        "/etc/passwd",
        "a.db#runs/chat",
        "sqlite:a.db#runs/chat",
        "logs/agent.jsonl#x",
        "logs/agent.jsonl\0",
        "logs",
        "",
        "-",
        "postgres://u:p@h/d#x",
    ] {
        let reply = server.get(&format!("/api/show?session={}", quoted(name)));
        assert_eq!(reply.status, 404, "{name}: {}", reply.body);
        assert!(!reply.body.contains("p@h"));
    }
    for path in [
        "/../etc/passwd",
        "/api/../../x",
        "/api/%2e%2e/x",
        "//",
        "/api/",
    ] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
    // A store that is named has its sessions, and those of a pattern alone where one is given.
    let server = Server::start(place, &["a.db#other*"]);
    assert_eq!(server.get("/api/show?session=runs%2Fchat").status, 404);
}

#[test]
fn what_is_too_long_or_too_slow_is_refused() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["a.db", "--write"]);
    let key = ("Idempotency-Key", "k1");
    // A body that says how long it is, and one that does not.
    let long = [("Content-Length", "999999999"), key];
    let mut head = format!(
        "POST /api/append?session=runs/chat HTTP/1.1\r\nHost: {}\r\n",
        server.host
    );
    head.push_str(&format!(
        "Authorization: Bearer {}\r\nConnection: close\r\n",
        server.token
    ));
    let [(name, value), (key_name, key_value)] = long;
    let said = format!("{head}{name}: {value}\r\n{key_name}: {key_value}\r\n\r\n");
    let reply = server.raw(said.as_bytes());
    assert_eq!((reply.status, reply.code().as_str()), (413, "E_TOO_LONG"));
    let mut chunked =
        format!("{head}{key_name}: {key_value}\r\nTransfer-Encoding: chunked\r\n\r\n").into_bytes();
    for _ in 0..9 {
        chunked.extend_from_slice(b"100000\r\n");
        chunked.extend(std::iter::repeat_n(b'x', 1 << 20));
        chunked.extend_from_slice(b"\r\n");
    }
    let reply = server.raw(&chunked);
    assert!(matches!(reply.status, 413 | 0), "{}", reply.head);
    let header = format!(
        "GET / HTTP/1.1\r\nHost: {}\r\nX: {}\r\n\r\n",
        server.host,
        "x".repeat(100_000)
    );
    assert_eq!(server.raw(header.as_bytes()).status, 431);
    for garbage in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ] {
        assert!(matches!(server.raw(garbage).status, 0 | 400 | 505));
    }

    // Clients that send a header a byte at a time, or nothing, keep nobody from being answered.
    let slow: Vec<_> = (0..300)
        .map(|number| {
            let mut stream = server.connect();
            let part = if number % 2 == 0 { "GET /api" } else { "" };
            stream.write_all(part.as_bytes()).expect("a part");
            stream
        })
        .collect();
    assert_eq!(server.get("/api/steps?session=runs/chat").status, 200);
    let open = server.get("/metrics").body;
    let open = open
        .lines()
        .find_map(|line| line.strip_prefix("pactql_http_connections "));
    assert!(
        open.and_then(|open| open.parse::<u32>().ok())
            .is_some_and(|open| open >= 300)
    );
    if crate::cases::few() {
        println!("SKIPPED: slow connections are waited for in CI alone");
        return;
    }
    // They are closed.
    for mut stream in slow {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a time");
        let mut rest = Vec::new();
        assert!(stream.read_to_end(&mut rest).is_ok());
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"));
    }
}

/// A body that has no end is refused when it is longer than a body may be, and not read on.
#[test]
fn a_body_of_a_gigabyte_is_refused_early() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["a.db", "--write"]);
    let head = format!(
        "POST /api/append?session=runs/chat HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Idempotency-Key: k\r\n",
        server.host, server.token
    );
    let block = vec![b'x'; 1 << 20];
    for form in ["Content-Length: 1073741824", "Transfer-Encoding: chunked"] {
        let mut stream = server.connect();
        let begun = format!("{head}{form}\r\n\r\n");
        stream.write_all(begun.as_bytes()).expect("a header");
        let mut write = |bytes: &[u8]| stream.write_all(bytes);
        let sent = (0..1024).find(|_| {
            let chunk = if form.starts_with('T') {
                write(b"100000\r\n")
                    .and_then(|()| write(&block))
                    .and_then(|()| write(b"\r\n"))
            } else {
                write(&block)
            };
            chunk.is_err()
        });
        // Some megabytes are on their way before the client notices.
        assert!(
            sent.is_some_and(|megabytes| megabytes < 64),
            "{form}: {sent:?}"
        );
        let reply = Reply::read(stream);
        assert!(matches!(reply.status, 413 | 0), "{form}: {}", reply.head);
        assert_eq!(server.get("/api/steps?session=runs/chat").status, 200);
    }
}

/// As many files as this process may have open, and at most 10,000 connections.
#[cfg(target_os = "linux")]
fn most_connections() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
    let files = getrlimit(Resource::Nofile).current.unwrap_or(20_000);
    usize::try_from(files / 2).unwrap_or(10_000).min(10_000)
}

/// Ten thousand clients that send nothing, or a part of a header, keep nobody from being answered: the oldest make room.
/// So it is, too, where the server may have fewer files open.
#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_slow_connections_are_closed_for_others() {
    let directory = scratch();
    let few_files = || {
        let mut command = std::process::Command::new("sh");
        let script = "ulimit -n 256; exec \"$0\" serve logs";
        command.args(["-c", script, env!("CARGO_BIN_EXE_pactql")]);
        Server::run(command.current_dir(directory.path()))
    };
    let usual = Server::start(directory.path(), &["logs"]);
    let most = if crate::cases::few() { 2_000 } else { 10_000 };
    for (server, count) in [(usual, most_connections().min(most)), (few_files(), 1_000)] {
        let mut slow = Vec::new();
        for number in 0..count {
            let mut stream = server.connect();
            let part = ["", "GET /api", "GET / HTTP/1.1\r\nHost: x\r\n"][number % 3];
            // It may be closed already.
            let _ = stream.write_all(part.as_bytes());
            slow.push(stream);
            if number % 500 == 499 {
                let reply = server.get("/api/steps?session=logs/chat.json");
                assert_eq!(reply.status, 200, "after {number}");
            }
        }
        let metrics = server.get("/metrics").body;
        let open = metrics
            .lines()
            .find_map(|line| line.strip_prefix("pactql_http_connections "));
        let open = open.and_then(|open| open.parse::<usize>().ok());
        assert!(open.is_some_and(|open| open <= 1_024), "{open:?}");
        // The first ones were closed long before their time.
        let mut rest = Vec::new();
        let _ = slow[0].read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
}

#[test]
fn other_machines_need_a_token_of_the_user() {
    let directory = scratch();
    let place = directory.path();
    let run = |arguments: &[&str]| super::pactql(place, arguments).0;
    assert_eq!(run(&["serve", "logs", "--listen", "0.0.0.0"]), Some(1));
    fs::write(place.join("token"), "short\n").expect("a file");
    let narrow = |mode: &str| {
        let done = std::process::Command::new("chmod")
            .args([mode, "token"])
            .current_dir(place)
            .status();
        assert!(done.expect("`chmod` starts").success());
    };
    narrow("600");
    assert_eq!(run(&["serve", "logs", "--token-file", "token"]), Some(3));
    fs::write(place.join("token"), "0123456789abcdef\n").expect("a file");
    narrow("644");
    assert_eq!(run(&["serve", "logs", "--token-file", "token"]), Some(3));
    assert_eq!(run(&["serve", "logs", "--token-file", "none"]), Some(4));
    narrow("600");
    let server = Server::start(
        place,
        &["logs", "--token-file", "token", "--host", "page.example"],
    );
    assert_eq!(server.token, "0123456789abcdef");
    assert_eq!(
        server
            .ask(
                "GET",
                "/api/sessions",
                &[("Host", "page.example"), ("Origin", "https://page.example")],
                ""
            )
            .status,
        200
    );
    assert_eq!(run(&["serve", "logs", "--write"]), Some(1));
    assert_eq!(run(&["serve", "missing"]), Some(4));
}
