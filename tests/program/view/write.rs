//! Changes over HTTP: each is done once, whatever is sent again.

use super::{Reply, Server, pactql, scratch};
use crate::cases::share;
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;

/// A change of the session `new`.
fn change(server: &Server, route: &str, key: &str, body: &Value) -> Reply {
    let path = format!(
        "/api/{route}?session=new{}",
        if route == "append" {
            "&create=true"
        } else {
            ""
        }
    );
    server.ask(
        "POST",
        &path,
        &[("Idempotency-Key", key)],
        &body.to_string(),
    )
}

#[test]
fn a_change_is_done_once_also_by_another_server() {
    let directory = scratch();
    let place = directory.path();
    let mut server = Server::start(place, &["a.db", "--write"]);
    let hello = json!({"role": "user", "content": "Where is my refund?"});
    let first = change(&server, "append", "k1", &hello);
    assert_eq!(
        (first.status, first.header("idempotency-replayed")),
        (200, None),
        "{}",
        first.body
    );
    let again = change(&server, "append", "k1", &hello);
    assert_eq!(
        (again.body.clone(), again.header("idempotency-replayed")),
        (first.body.clone(), Some("true"))
    );
    let other = change(&server, "append", "k1", &json!({"content": "another"}));
    assert_eq!((other.status, other.code().as_str()), (409, "E_KEY_REUSED"));

    let begun = change(&server, "attempts", "k2", &json!({"begin": "openai"}));
    assert_eq!(begun.json()["attempt"], "a1-1");
    assert_eq!(begun.json()["request"][0]["content"], "Where is my refund?");
    // The process is killed after it has done the change, and its client has no answer.
    server.stop("-KILL");
    let mut server = Server::start(place, &["a.db", "--write"]);
    assert_eq!(
        change(&server, "attempts", "k2", &json!({"begin": "openai"})).body,
        begun.body
    );
    let said = json!({"parts": [{"kind": "call", "content": "{}", "data_call_id": "c1", "data_call_name": "find"}]});
    assert_eq!(change(&server, "reply", "k3", &said).status, 200);
    let committed = change(&server, "commit", "k4", &json!({}));
    assert_eq!(
        (committed.status, &committed.json()["cycle"]),
        (200, &json!(1)),
        "{}",
        committed.body
    );
    server.stop("-KILL");
    let server = Server::start(place, &["a.db", "--write"]);
    let again = change(&server, "commit", "k4", &json!({}));
    assert_eq!(
        (again.body.clone(), again.header("idempotency-replayed")),
        (committed.body, Some("true"))
    );
    assert_eq!(change(&server, "append", "k1", &hello).body, first.body);
    let steps = server.get("/api/steps?session=new").json();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(1));
    let (exit, verified) = pactql(place, &["verify", "a.db"]);
    assert_eq!(exit, Some(0), "{verified}");
    let (_, ids) = pactql(place, &["select", "a.db#new", "@t0 .cb", "--format", "ids"]);
    assert_eq!(ids.lines().count(), 2, "{ids}");
}

/// What a client sends again after a server was killed at some moment is done once, and an answer that came holds.
/// 5 servers with `CI`, 100 with `PACTQL_CASES=20000`.
#[test]
fn killed_servers_do_each_change_once() {
    let directory = scratch();
    let place = directory.path();
    let kills = share(100);
    let mut server = Server::start(place, &["a.db", "--write"]);
    let (mut answered, mut done) = (0, 0);
    for number in 0..kills {
        let (key, body) = (
            format!("k{number}"),
            json!({"content": format!("{number}.")}),
        );
        let bearer = format!("Bearer {}", server.token);
        let headers = [("Authorization", &*bearer), ("Idempotency-Key", &*key)];
        let path = "/api/append?session=new&create=true";
        let request = server.request("POST", path, &headers, &body.to_string());
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).expect("a request");
        // A change takes some ten milliseconds.
        std::thread::sleep(Duration::from_micros(u64::from(number) * 997 % 40_000));
        server.stop("-KILL");
        let first = Reply::read(stream);
        server = Server::start(place, &["a.db", "--write"]);
        let second = change(&server, "append", &key, &body);
        assert_eq!(second.status, 200, "{key}: {}", second.body);
        let is_done = second.header("idempotency-replayed") == Some("true");
        if first.status == 200 {
            assert_eq!((&first.body, is_done), (&second.body, true), "{key}");
            answered += 1;
        }
        done += u32::from(is_done);
    }
    println!("{kills} kills: {done} after the change, {answered} after its answer");
    let (_, nodes) = pactql(
        place,
        &["select", "a.db#new", "^ah .cb", "--format", "nodes"],
    );
    let contents: Vec<Value> = nodes
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["content"].clone())
        .collect();
    let expected: Vec<Value> = (0..kills)
        .map(|number| json!(format!("{number}.")))
        .collect();
    assert_eq!(contents, expected);
    let (exit, verified) = pactql(place, &["verify", "a.db"]);
    assert_eq!(exit, Some(0), "{verified}");
}

#[test]
fn a_store_and_a_session_are_made_where_there_are_none() {
    let directory = scratch();
    let server = Server::start(directory.path(), &["new.db", "--write"]);
    let hello = json!({"content": "hello"});
    assert_eq!(change(&server, "append", "k1", &hello).status, 200);
    let key = [("Idempotency-Key", "k2")];
    let missing = server.ask("POST", "/api/append?session=s1", &key, &hello.to_string());
    assert_eq!(missing.code(), "E_SESSION_NOT_FOUND");
    let help = missing.json()["error"]["help"].to_string();
    assert!(help.contains("create=true"), "{help}");
}

#[test]
fn a_change_without_a_right_to_it_is_refused() {
    let directory = scratch();
    let place = directory.path();
    let hello = json!({"content": "hello"});
    let server = Server::start(place, &["a.db"]);
    let refused = change(&server, "append", "k1", &hello);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (404, "E_READ_ONLY")
    );

    let server = Server::start(place, &["a.db", "--write"]);
    let send = |route: &str, headers: &[(&str, &str)], body: &str| {
        server.ask(
            "POST",
            &format!("/api/{route}?session=runs/chat"),
            headers,
            body,
        )
    };
    for (route, headers, body, status, code) in [
        ("append", &[][..], "{}", 400, "E_USAGE"),
        ("append", &[("Idempotency-Key", "")], "{}", 400, "E_USAGE"),
        (
            "append",
            &[("Idempotency-Key", "a")],
            "{\"content\":",
            400,
            "E_VALUE",
        ),
        (
            "append",
            &[("Idempotency-Key", "a")],
            "{\"contents\":\"x\"}",
            400,
            "E_VALUE",
        ),
        (
            "append",
            &[("Idempotency-Key", "a")],
            "{\"parts\":[7]}",
            422,
            "",
        ),
        (
            "attempts",
            &[("Idempotency-Key", "a")],
            "{\"begin\":\"none\"}",
            400,
            "E_VALUE",
        ),
        (
            "attempts",
            &[("Idempotency-Key", "a")],
            "{\"end\":{}}",
            400,
            "E_PLACEMENT",
        ),
        (
            "append",
            &[("Idempotency-Key", "a"), ("Pactql-Fence", "x")],
            "{}",
            400,
            "E_VALUE",
        ),
        (
            "append",
            &[("Idempotency-Key", "a"), ("Pactql-Fence", "99")],
            "{\"content\":\"x\"}",
            409,
            "E_FENCE",
        ),
    ] {
        let reply = send(route, headers, body);
        let found = (reply.status, reply.code());
        assert!(
            found.0 == status && (code.is_empty() || found.1 == code),
            "{route} {body}: {found:?}"
        );
    }
    for (route, body, status, expected) in [
        ("append", "", 422, "expected `content` or `parts`"),
        ("append", r#"{"role":"user"}"#, 422, "expected `content`"),
        ("reply", r#"{"parts":[]}"#, 422, "expected `content`"),
        ("append", "[]", 400, "expected an object, found a list"),
        ("append", "7", 400, "expected an object at line 1"),
        ("attempts", r#"{"begin":"opnai"}"#, 400, "thread, openai,"),
        ("attempts", "{}", 400, "expected one of `begin` and `end`"),
        (
            "attempts",
            r#"{"start":""}"#,
            400,
            "expected `begin` or `end`",
        ),
        ("attempts", r#"{"end":7}"#, 400, "expected an object at"),
        // The advice is what a client can send.
        (
            "attempts",
            r#"{"end":{}}"#,
            400,
            r#"`{\"begin\": \"openai\"}` begins one"#,
        ),
    ] {
        let reply = send(route, &[("Idempotency-Key", "a")], body);
        assert_eq!(reply.status, status, "{route} {body}: {}", reply.body);
        assert!(reply.body.contains(expected), "{body}: {}", reply.body);
    }
    let missing = server.ask(
        "POST",
        "/api/reply?session=none",
        &[("Idempotency-Key", "a")],
        "{\"content\":\"x\"}",
    );
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (404, "E_SESSION_NOT_FOUND")
    );
    // Nothing was written, so the key is free, and the fence of an answer is right for the next change.
    let first = send("append", &[("Idempotency-Key", "a")], "{\"content\":\"x\"}");
    let fence = first.header("pactql-fence").expect("a fence").to_owned();
    let next = [("Idempotency-Key", "b"), ("Pactql-Fence", &*fence)];
    assert_eq!(send("append", &next, "{\"content\":\"y\"}").status, 200);
    let late = [("Idempotency-Key", "c"), ("Pactql-Fence", &*fence)];
    let refused = send("append", &late, "{\"content\":\"w\"}");
    assert_eq!(refused.status, 409);
    // It says the fence that the next change needs.
    let message = refused.json()["error"]["message"].to_string();
    let fence: String = message.chars().filter(char::is_ascii_digit).collect();
    let next = [("Idempotency-Key", "d"), ("Pactql-Fence", &*fence)];
    assert_eq!(send("append", &next, "{\"content\":\"z\"}").status, 200);
    let (_, ids) = pactql(
        place,
        &[
            "select",
            "a.db#runs/chat",
            "^ah .cb[content~'^[xyz]$']",
            "--format",
            "ids",
        ],
    );
    assert_eq!(ids.lines().count(), 3, "{ids}");
}
