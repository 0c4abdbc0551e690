//! One engine and one session shared by many threads.

use std::sync::Barrier;

use pactql::{Engine as Inner, Prepared, Selection, Session};

use crate::support::documents::Sample;
use crate::support::engine::{self, Engine};
use crate::support::random::Rng;
use crate::support::selector::{Edition, Time};
use crate::support::{selectors, text};

#[test]
fn what_is_shared_can_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Inner>();
    shared::<Session>();
    shared::<Selection>();
    shared::<Prepared>();
}

#[test]
fn many_threads_give_the_bytes_of_one() {
    const EDITION: Edition = Edition::V01;
    let mut asked = Vec::new();
    let mut sessions = Vec::new();
    let alone = Engine::new(EDITION);
    for seed in 0..12 {
        let sample = Sample::new(seed + 40_000);
        let session = engine::open(&sample.text());
        let mut rng = Rng::new(seed);
        for number in 0..40 {
            let mut sel = selectors::selector(&mut rng, &sample.session, EDITION);
            sel.time = match number % 4 {
                0 => Time::All,
                1 => Time::BackRange(Some(0), None),
                _ => Time::Back(0),
            };
            let text = text::variant(&sel, EDITION, &mut rng);
            let answer = alone.ids(&session, &text);
            asked.push((sessions.len(), text, answer));
        }
        sessions.push(session);
    }
    // A small cache, so that plans are evicted while other threads use them.
    let inner = Inner::builder()
        .edition(pactql::Edition::V01)
        .cached_texts(50)
        .build();
    let shared = Engine(inner);
    for threads in [2, 8] {
        let barrier = Barrier::new(threads);
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (asked, sessions, shared, barrier) = (&asked, &sessions, &shared, &barrier);
                scope.spawn(move || {
                    let mut order: Vec<usize> = (0..asked.len()).collect();
                    Rng::new(thread as u64).shuffle(&mut order);
                    barrier.wait();
                    for at in order {
                        let (session, text, answer) = &asked[at];
                        let got = shared.ids(&sessions[*session], text);
                        assert_eq!(got, *answer, "{threads} threads: {text}");
                    }
                });
            }
        });
    }
}

#[test]
fn a_prepared_selector_runs_on_many_threads() {
    let sample = Sample::new(77);
    let session = engine::open(&sample.text());
    let engine = Engine::new(Edition::V01);
    let prepared = engine.0.prepare("@t0 .cb[offset<=0]").unwrap();
    let wanted = engine.ids(&session, "@t0 .cb[offset<=0]").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(prepared.rows(&session).unwrap().to_ids(), wanted);
                }
            });
        }
    });
}
