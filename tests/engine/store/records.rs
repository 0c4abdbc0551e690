//! What is beside the snapshots of a session: attempts, and how large they are (STORE §2).

use pactql::{Context, Message, Provider, Store};
use rusqlite::Connection;

use super::place::{Folder, sound};

/// The bytes of all requests of a store, after so many turns of one session that each send all before it.
fn bytes_of_requests(turns: usize) -> (i64, i64) {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = Store::open(&path).unwrap();
    let builder = Context::builder().clock(pactql::context::StepClock::new(0, 1_000_000_007));
    let mut context = store.write_with("a", builder).unwrap();
    context.set_system(["You are brief."]).unwrap();
    let mut sent = 0;
    for number in 0..turns {
        let text = format!("question {number} {}", "words ".repeat(50));
        context.append(Message::user(&text)).unwrap();
        let request = context.render(Provider::OpenAi).unwrap();
        sent += request.body.len() as i64;
        context.reply(Message::assistant("An answer.")).unwrap();
        context.commit().unwrap();
    }
    drop(context);
    assert_eq!(sound(&store), Ok(()));
    let connection = Connection::open(&path).unwrap();
    let sum = "select count(*), sum(length(request)) from attempt";
    let (attempts, bytes): (i64, i64) = connection
        .query_row(sum, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert_eq!(attempts, turns as i64);
    (bytes, sent)
}

/// An attempt has what the one before was not sent: twice the turns are twice the bytes, although what was
/// sent is four times as much.
#[test]
fn requests_that_grow_are_stored_as_differences() {
    if crate::support::random::left_to_ci() {
        return;
    }
    let (half, _) = bytes_of_requests(100);
    let (whole, sent) = bytes_of_requests(200);
    println!("200 attempts: {sent} bytes were sent, {whole} are stored; of 100: {half}");
    assert!(whole < 5 * half / 2, "{half} {whole}");
    assert!(whole * 20 < sent, "{whole} {sent}");
}
