//! Readers in other threads while a writer mutates and commits (source 002 chapter 08 §4.1).

use std::sync::atomic::{AtomicBool, Ordering};

use pactql::{Context, Engine, NewNode};

use super::properties::Hand;

/// Two blocks are always there together: added in one operation, removed in one, so an answer with
/// one of them would be of no state there ever was.
#[test]
fn readers_see_whole_states() {
    let mut ctx = Context::builder().clock(Hand::default()).build();
    ctx.commit().unwrap();
    let session = ctx.session();
    let done = AtomicBool::new(false);
    let read = || {
        let engine = Engine::new();
        let (mut answers, mut full, mut newest) = (0_u32, 0_u32, 0);
        while !done.load(Ordering::Relaxed) || answers < 100 {
            for selector in [
                ".cb+pair",
                "@t0 .cb+pair",
                "@t0 ^seq .cb+pair",
                "@* .cb+pair",
            ] {
                let rows = engine.rows(&session, selector).unwrap();
                let mut tags: Vec<String> =
                    rows.into_iter().map(|n| n.text().to_string()).collect();
                answers += 1;
                assert_eq!(tags.len() % 2, 0, "{selector}: {tags:?}");
                full += u32::from(!tags.is_empty());
                // Every left one has its right one, of the same number.
                tags.sort();
                for pair in tags.chunks(2) {
                    assert_eq!(pair[0].replace("left", ""), pair[1].replace("right", ""));
                }
            }
            let cycle = session.history().committed().last().unwrap().cycle();
            assert!(cycle >= newest, "the newest cycle went back");
            newest = cycle;
        }
        full
    };
    std::thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read)];
        for number in 0..120 {
            let pair = format!(
                r#"{{"nodeType":"mc","offset":1,"children":[
                    {{"tags":["pair"],"content":"{number:04} left","ttl":3}},
                    {{"tags":["pair"],"content":"{number:04} right","ttl":3}}]}}"#
            );
            ctx.add("^ah", NewNode::json(&pair).unwrap()).unwrap();
            if number % 3 == 0 {
                assert_eq!(ctx.remove("^ah .cb+pair").unwrap().len(), 2);
            }
            ctx.commit().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        let full: u32 = readers
            .into_iter()
            .map(|reader| reader.join().unwrap())
            .sum();
        println!("{full} answers with blocks");
    });
    let rows = ctx.select("@* +pair").unwrap();
    assert_eq!(rows.count(), 160);
}
