//! Random sessions with a request in every cycle: what was sent comes back byte for byte, whatever the
//! tree has become since (RUNTIME §3, RUNTIME §5).

use pactql::{
    Context, Message, NewNode, Policy, Provider,
    context::{ContextState, StepClock, sent},
    render::request,
};

use crate::support::random::{Rng, share};

/// One operation that changes what is sent, or what the tree keeps of it.
fn change(context: &mut Context, rng: &mut Rng, number: usize) {
    let text = format!("text {number} {}", "x".repeat(rng.below(30)));
    let block = NewNode::text(&text).role("user");
    // What is refused changes nothing, and is as good.
    let _ = match rng.below(10) {
        0 | 1 => context.append(Message::user(&text)).map(drop),
        2 => context.add("^ah", block.ttl(0)).map(drop),
        3 => context.add("(d0, end)", block.offset(1).ttl(1)).map(drop),
        4 => context
            .add("^sys", block.priority(rng.range(-2, 2)))
            .map(drop),
        5 => context.set_system([text.as_str(), "always"]).map(drop),
        6 => {
            let tool = format!(
                r#"{{"name":"tool_{}","description":"{text}"}}"#,
                rng.below(3)
            );
            context.set_tools([tool.as_str()]).map(drop)
        }
        7 => context.set_request(&format!(
            r#"{{"model":"m","max_tokens":{}}}"#,
            rng.below(9) + 1
        )),
        8 => context
            .compact(
                "^seq > .mt:depth(2-9)",
                NewNode::text("so far").role("user"),
            )
            .map(drop),
        _ => context
            .remove("^sys > .cb[priority<0], ^seq .cb:post")
            .map(drop),
    };
}

#[test]
fn every_request_comes_back_whatever_happened_since() {
    let runs = u64::from(share(400));
    let mut cycles = 0;
    for seed in 0..runs {
        let mut rng = Rng::new(seed);
        let provider = *rng.pick(&Provider::ALL);
        let policy = Policy::new()
            .nodes(rng.below(40) as u64 + 10)
            .protect(rng.below(3) as u32);
        let builder = || {
            Context::builder()
                .clock(StepClock::new(0, 1_000))
                .policy(policy.clone())
        };
        let mut context = builder().build();
        let mut bodies: Vec<String> = Vec::new();
        for number in 0..rng.below(12) + 3 {
            for _ in 0..rng.below(4) {
                change(&mut context, &mut rng, number);
            }
            context.append(Message::user("and now?")).unwrap();
            if rng.chance(30) {
                context.render(provider).unwrap();
                context.cancel_attempt().unwrap();
                change(&mut context, &mut rng, number);
            }
            bodies.push(context.render(provider).unwrap().body);
            let reply = Message::assistant("done").call(&format!("c{number}"), "tool_0", "{}");
            context.reply(reply).unwrap();
            change(&mut context, &mut rng, number);
            context.commit().unwrap();
            context
                .append(Message::tool(&format!("c{number}"), "ok"))
                .unwrap();
            if rng.chance(20) {
                // Another process goes on with it.
                let kept = serde_json::to_string(&context.kept()).unwrap();
                let kept: ContextState = serde_json::from_str(&kept).unwrap();
                context = builder().resume_kept(&context.session(), &kept).unwrap();
            }
        }
        let history = context.history();
        assert_eq!(history.committed().len(), bodies.len());
        for (snapshot, body) in history.committed().iter().zip(&bodies) {
            let thread = sent(&history, snapshot);
            let again = request(&thread, provider).unwrap();
            assert_eq!(again, *body, "seed {seed}, cycle {}", snapshot.cycle());
        }
        cycles += bodies.len();
    }
    assert!(cycles as u64 >= runs * 5, "{cycles} cycles");
}
