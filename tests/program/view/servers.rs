//! Sessions of a store in PostgreSQL, read, watched and changed over HTTP.

use super::events::EventStream;
use super::{Server, pactql, postgres, quoted, scratch};
use serde_json::json;

#[test]
fn a_store_in_postgresql_is_served() {
    let database = match postgres::Server::start() {
        Ok(database) => database,
        Err(reason) => {
            println!("SKIPPED: {reason}");
            return;
        }
    };
    let directory = scratch();
    let place = directory.path();
    let url = database.url("served");
    let (exit, _) = pactql(
        place,
        &["import", "logs/chat.json", "-o", &format!("{url}#chat")],
    );
    assert_eq!(exit, Some(0));
    let mut server = Server::start(place, &[&url, "--write"]);

    // The answers are those of the same session in a file.
    let list = server.get("/api/sessions").json();
    assert_eq!((&list["total"], &list["write"]), (&json!(1), &json!(true)));
    assert_eq!(list["sessions"][0]["name"], "chat");
    let other = Server::start(place, &["a.db"]);
    for route in ["steps", "show", "tokens", "prefix", "tree"] {
        let found = server.get(&format!("/api/{route}?session=chat"));
        let wanted = other.get(&format!("/api/{route}?session={}", quoted("runs/chat")));
        assert_eq!(found.status, 200, "{route}: {}", found.body);
        assert_eq!(found.json(), wanted.json(), "{route}");
    }
    assert_eq!(server.get("/api/show?session=none").status, 404);

    // A client is told what another program writes.
    let mut events = EventStream::open(&server, "?session=chat");
    let first = events.next("changed");
    let session = format!("{url}#chat");
    let block = "block:text { role=user } \"More?\"";
    let (exit, _) = pactql(place, &["edit", "add", &session, "^ah", block]);
    assert_eq!(exit, Some(0));
    let (exit, _) = pactql(place, &["edit", "commit", &session]);
    assert_eq!(exit, Some(0));
    let mut after = events.next("changed");
    while after["steps"] == first["steps"] {
        after = events.next("changed");
    }
    assert_eq!(
        after["steps"].as_u64(),
        first["steps"].as_u64().map(|steps| steps + 1)
    );

    // A change is done once, also by a server that was started since.
    let change = |server: &Server, route: &str, key: &str, body: &serde_json::Value| {
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
    };
    let hello = json!({"role": "user", "content": "Where is my refund?"});
    let first = change(&server, "append", "k1", &hello);
    assert_eq!(
        (first.status, first.header("idempotency-replayed")),
        (200, None),
        "{}",
        first.body
    );
    let reply = change(&server, "reply", "k2", &json!({"content": "On its way."}));
    assert_eq!(reply.status, 200, "{}", reply.body);
    let committed = change(&server, "commit", "k3", &json!({}));
    assert_eq!(committed.status, 200, "{}", committed.body);
    server.stop("-KILL");
    let server = Server::start(place, &[&url, "--write"]);
    for (route, key, body, wanted) in [
        ("append", "k1", hello, first),
        ("reply", "k2", json!({"content": "On its way."}), reply),
        ("commit", "k3", json!({}), committed),
    ] {
        let again = change(&server, route, key, &body);
        assert_eq!(
            (
                again.status,
                &again.body,
                again.header("idempotency-replayed")
            ),
            (200, &wanted.body, Some("true")),
            "{route}"
        );
    }
    let steps = server.get("/api/steps?session=new").json();
    assert_eq!(steps["steps"].as_array().map(Vec::len), Some(1));
}
