//! Any lines as mutations of a session: an error that changes nothing, or a working state that is read
//! back from its export; and a commit after each of them that can be read too.

use pactql::{Context, Message, NewNode, Policy, context::StepClock};

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let policy = Policy::new().nodes(40).protect(1);
    let mut context = Context::builder()
        .clock(StepClock::new(0, 1))
        .policy(policy)
        .build();
    let mut references = Vec::new();
    for line in text.lines().take(40) {
        let mut parts = line.splitn(3, '\t');
        let mut part = || parts.next().unwrap_or_default();
        let (operation, first, second) = (part(), part(), part());
        match operation {
            "add" => drop(context.add(first, second)),
            "text" => drop(context.add(first, NewNode::text(second).ttl(1))),
            "update" => drop(context.update(first, second)),
            "remove" => drop(context.remove(first)),
            "move" => drop(context.move_to(first, second)),
            "replace" => drop(context.replace(first, second)),
            "compact" => drop(context.compact(first, second)),
            "pin" => references.extend(context.pin(first)),
            "unpin" => references.clear(),
            "discard" => context.discard(),
            "fork" => {
                if let Ok(fork) = context.fork(first) {
                    context = fork;
                }
            }
            "system" => drop(context.set_system(second.split('|'))),
            "tools" => drop(context.set_tools(second.split('|'))),
            "reply" => drop(context.reply(Message::assistant(first).call("c", "t", second))),
            "grow" => {
                if let Ok(mut stream) = context.stream(first) {
                    stream.push(second);
                }
            }
            "" => drop(context.commit().expect("a session of this size commits")),
            _ => drop(context.append(Message::user(operation))),
        }
        // The working state is valid whatever came before.
        let all = context.select("*").expect("a selector");
        assert!(all.count() >= 4, "the root and the regions are there");
    }
    context.commit().expect("a session of this size commits");
    let turns = context
        .select("@t0 ^seq > .mt")
        .expect("a selector")
        .count();
    let cores = context
        .select("@t0 ^seq > .mt > .mc[offset=0]")
        .expect("a selector")
        .count();
    assert_eq!(turns, cores, "every turn has one core");
}
