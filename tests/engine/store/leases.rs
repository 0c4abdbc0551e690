//! One writer a session (STORE §3): who waits, who may go on, who is refused, and that nothing is lost.

use std::time::Duration;

use pactql::{Code, Context, NewNode, Store};

use super::child::Writer;
use super::place::{Folder, documents, sound};

fn open(path: &str, owner: &str, lease: Duration) -> Store {
    let builder = Store::builder().owner(owner).lease(lease);
    builder.open(path).unwrap()
}

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(30);

fn add(context: &mut Context, text: &str) {
    context.add("^ah", NewNode::text(text)).unwrap();
}

/// What a context has in memory.
fn texts(context: &mut Context) -> Vec<String> {
    let found = context.select("^ah .cb").unwrap();
    found
        .into_iter()
        .map(|node| node.text().to_string())
        .collect()
}

/// Any time can be given, also one that SQLite, which counts milliseconds in 31 bits, cannot wait for.
#[test]
fn a_store_waits_and_holds_leases_for_any_time() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let most = u64::from(i32::MAX.unsigned_abs());
    for millis in [0, most, most + 1, u64::MAX] {
        let time = Duration::from_millis(millis);
        let builder = Store::builder().busy(time).lease(time);
        let store = builder.open(&path).unwrap();
        let mut context = store.write(&format!("a{millis}")).unwrap();
        add(&mut context, "text");
        context.commit().unwrap();
    }
    Store::builder().busy(Duration::MAX).open(&path).unwrap();
}

/// A store that is missing is an input that is missing, not a store that cannot be read.
#[test]
fn a_missing_store_has_a_code_and_advice() {
    let folder = Folder::quick();
    let path = folder.file("none.db");
    for builder in [Store::builder().must_exist(), Store::builder().read_only()] {
        let error = builder.open(&path).unwrap_err();
        assert_eq!(error.code(), Code::Missing);
        assert!(error.first().help.is_some(), "{error}");
    }
}

#[test]
fn a_second_writer_is_refused_and_loses_nothing() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let (one, two) = (open(&path, "one", LONG), open(&path, "two", LONG));
    let mut first = one.write("a").unwrap();
    add(&mut first, "from one");
    for store in [&one, &two] {
        let error = store.write("a").unwrap_err();
        assert_eq!(error.code(), Code::SessionBusy);
        let text = error.to_string();
        assert!(text.contains("`a`") && text.contains("one/"), "{text}");
        // Until when, as a time of this century.
        assert!(text.contains("until 20") && text.contains('Z'), "{text}");
    }
    for refused in [
        two.rename("a", "b").unwrap_err(),
        two.delete("a").unwrap_err(),
        two.erase("a", ["x"]).unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::SessionBusy, "{refused}");
    }
    first.commit().unwrap();
    // Another session is nobody's.
    let mut other = two.write("b").unwrap();
    add(&mut other, "from two");
    other.commit().unwrap();
    drop(first);
    let mut second = two.write("a").unwrap();
    add(&mut second, "from two");
    second.commit().unwrap();
    let session = one.session("a").unwrap();
    assert_eq!(session.history().cycles().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(sound(&one), Ok(()));
}

#[test]
fn a_lease_that_ran_out_is_good_until_it_is_taken() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let (one, two) = (open(&path, "one", SHORT), open(&path, "two", LONG));
    let mut first = one.write("a").unwrap();
    add(&mut first, "before");
    std::thread::sleep(SHORT * 3);
    first.commit().unwrap();
    add(&mut first, "unsaved");
    std::thread::sleep(SHORT * 3);
    let mut second = two.write("a").unwrap();
    for _ in 0..2 {
        for error in [first.commit().unwrap_err(), first.save().unwrap_err()] {
            assert_eq!(error.code(), Code::LeaseLost);
            assert!(error.to_string().contains("two/"), "{error}");
        }
        assert_eq!((first.cycle(), first.is_changed()), (2, true));
        assert_eq!(texts(&mut first), ["unsaved"]);
    }
    add(&mut second, "of two");
    second.commit().unwrap();
    // It does not take back what is another's when it goes.
    drop(first);
    add(&mut second, "more of two");
    second.commit().unwrap();
    assert_eq!(one.write("a").unwrap_err().code(), Code::SessionBusy);
    let (committed, working) = documents(&one.session("a").unwrap()).unwrap();
    assert_eq!((committed.len(), working), (3, None));
    assert!(!committed.concat().contains("unsaved"));
    assert_eq!(sound(&one), Ok(()));
}

/// The same holder's name in another process, or after a restart, is another holder.
#[test]
fn a_fence_tells_holders_of_one_name_apart() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let (one, two) = (open(&path, "same", SHORT), open(&path, "same", SHORT));
    let mut first = one.write("a").unwrap();
    std::thread::sleep(SHORT * 3);
    let mut second = two.write("a").unwrap();
    add(&mut first, "x");
    assert_eq!(first.commit().unwrap_err().code(), Code::LeaseLost);
    add(&mut second, "y");
    second.commit().unwrap();
    assert_eq!(sound(&one), Ok(()));
}

/// What others do to a session whose writer has slept past its lease.
#[test]
fn a_sleeper_finds_its_session_changed() {
    let folder = Folder::quick();
    for what in ["erase", "delete", "delete and make", "rename", "prune"] {
        let path = folder.file(&format!("{what}.db"));
        let (one, two) = (open(&path, "one", SHORT), open(&path, "two", LONG));
        let mut first = one.write("a").unwrap();
        add(&mut first, "one");
        first.commit().unwrap();
        add(&mut first, "two");
        let id = first.add("^sys", NewNode::text("secret")).unwrap();
        first.commit().unwrap();
        std::thread::sleep(SHORT * 3);
        match what {
            "erase" => drop(two.erase("a", [&*id]).unwrap()),
            "delete" => two.delete("a").unwrap(),
            "delete and make" => {
                two.delete("a").unwrap();
                let mut made = two.write("a").unwrap();
                add(&mut made, "new");
                made.commit().unwrap();
            }
            "rename" => two.rename("a", "b").unwrap(),
            _ => {
                let keep = pactql::store::Retention::default().keep(1);
                assert_eq!(two.prune(&keep).unwrap().snapshots, 1);
            }
        }
        add(&mut first, "three");
        let committed = first.commit();
        println!(
            "{what}: {:?}",
            committed.as_ref().map(|_| ()).map_err(ToString::to_string)
        );
        assert_eq!(sound(&two), Ok(()), "{what}");
        match what {
            // A lease that ran out and was not taken is still good.
            "rename" | "prune" => assert!(committed.is_ok(), "{what}"),
            _ => {
                let error = committed.unwrap_err();
                let known = [Code::LeaseLost, Code::SessionNotFound];
                assert!(known.contains(&error.code()), "{what}: {error}");
                assert_eq!(texts(&mut first), ["three"]);
            }
        }
        drop(first);
        assert_eq!(sound(&two), Ok(()), "{what}");
    }
}

#[test]
fn threads_and_processes_take_turns() {
    let folder = Folder::quick();
    let path = folder.file("x.db");
    let store = open(&path, "threads", LONG);
    let commits = std::thread::scope(|scope| {
        let work = || {
            let mut commits = 0;
            while commits < 10 {
                match store.write("a") {
                    Ok(mut context) => {
                        add(&mut context, "x");
                        context.commit().unwrap();
                        commits += 1;
                    }
                    Err(error) => assert_eq!(error.code(), Code::SessionBusy),
                }
                std::thread::yield_now();
            }
            commits
        };
        let threads = [scope.spawn(work), scope.spawn(work), scope.spawn(work)];
        threads
            .map(|thread| thread.join().unwrap())
            .iter()
            .sum::<usize>()
    });
    let session = store.session("a").unwrap();
    assert_eq!(session.history().committed().len(), commits);
    // Another process holds it, and says who it is.
    let mut child = Writer::start("hold", &path, &[]);
    assert_eq!(child.line().as_deref(), Some("held"));
    let error = store.write("a").unwrap_err();
    assert_eq!(error.code(), Code::SessionBusy);
    assert!(error.to_string().contains("the child/"), "{error}");
    child.kill();
    // Its lease has not run out, but it is dead, and this machine knows.
    if cfg!(target_os = "linux") {
        add(&mut store.write("a").unwrap(), "x");
    }
    assert_eq!(sound(&store), Ok(()));
}
