//! The 24 selectors, and how the other contenders answer them.

use memchr::memmem::Finder;
use pactql::{Engine, Session};

use super::contenders::{Arena, Hand, ids_of};

/// What selectors name of a session.
pub(crate) struct Facts {
    id: String,
    tool: String,
    frequent: Finder<'static>,
    rare: Finder<'static>,
}

impl Facts {
    pub(crate) fn of(session: &Session) -> Self {
        let blocks = Engine::new().rows(session, "@t0 .cb").expect("blocks");
        let ids = blocks.to_ids();
        let mut tools = blocks
            .nodes()
            .filter_map(|node| node.attribute("data_call_name"));
        let tool = tools
            .next()
            .and_then(|tool| Some(tool.as_str()?.to_owned()));
        Self {
            id: ids[ids.len() / 2].to_owned(),
            tool: tool.unwrap_or_else(|| "none".into()),
            frequent: Finder::new(FREQUENT),
            rare: Finder::new(RARE),
        }
    }
}

const FREQUENT: &str = "the";
const RARE: &str = "refund";

/// A question, as each contender answers it.
pub(crate) struct Class {
    pub(crate) name: &'static str,
    /// `{id}` and `{tool}` stand for the facts.
    selector: &'static str,
    sql: &'static str,
    pub(crate) hand: for<'a> fn(&'a Hand, &Facts) -> Vec<&'a str>,
    pub(crate) arena: for<'a> fn(&'a Arena, &Facts) -> Vec<&'a str>,
}

impl Class {
    pub(crate) fn selector(&self, facts: &Facts) -> String {
        named(self.selector, facts)
    }

    pub(crate) fn sql(&self, facts: &Facts) -> String {
        named(self.sql, facts)
    }
}

fn named(text: &str, facts: &Facts) -> String {
    text.replace("{id}", &facts.id)
        .replace("{tool}", &facts.tool)
}

/// A class of the blocks that satisfy a test.
macro_rules! blocks {
    ($name:literal, $selector:literal, $sql:literal, |$node:ident, $facts:tt| $test:expr) => {
        Class {
            name: $name,
            selector: $selector,
            sql: $sql,
            hand: |hand, $facts| hand.all(|$node| $test),
            arena: |arena, $facts| arena.all(|$node| $node.is_block() && $test),
        }
    };
}

pub(crate) fn all() -> [Class; 24] {
    [
        Class {
            name: "by-id",
            selector: "@t0 [id='{id}']",
            sql: "select id from node where id = '{id}'",
            hand: |hand, facts| ids_of(hand.messages.iter().find(|message| message.id == facts.id)),
            arena: |arena, facts| ids_of(arena.nodes.iter().find(|node| node.id == facts.id)),
        },
        Class {
            name: "blocks",
            selector: "@t0 .cb",
            sql: "select id from node where class = 'cb' order by pre",
            hand: |hand, _| hand.all(|_| true),
            arena: |arena, _| arena.all(|node| node.is_block()),
        },
        Class {
            name: "turns",
            selector: "@t0 ^seq > .mt",
            sql: "select id from node where class = 'mt' order by pre",
            hand: |hand, _| hand.turn_ids.iter().map(|id| &**id).collect(),
            arena: |arena, _| arena.all(|node| node.class == "mt"),
        },
        blocks!(
            "role",
            "@t0 .cb[role='user']",
            "select id from node where class = 'cb' and role = 'user' order by pre",
            |node, _| node.role == "user"
        ),
        Class {
            name: "last-of-role",
            selector: "@t0 .cb[role='user']:last",
            sql: "select id from node where class = 'cb' and role = 'user' order by pre desc limit 1",
            hand: |hand, _| ids_of(hand.messages.iter().rfind(|message| message.role == "user")),
            arena: |arena, _| {
                let mut nodes = arena.nodes.iter();
                ids_of(nodes.rfind(|node| node.is_block() && node.role == "user"))
            },
        },
        Class {
            name: "third-of-role",
            selector: "@t0 .cb[role='assistant']:nth(3)",
            sql: "select id from node where class = 'cb' and role = 'assistant' order by pre limit 1 offset 2",
            hand: |hand, _| {
                let messages = hand.messages.iter();
                let mut found = messages.filter(|message| message.role == "assistant");
                ids_of(found.nth(2))
            },
            arena: |arena, _| {
                let nodes = arena.nodes.iter();
                let mut found = nodes.filter(|node| node.is_block() && node.role == "assistant");
                ids_of(found.nth(2))
            },
        },
        Class {
            name: "newest-turn",
            selector: "@t0 ^seq .mt:depth(1) .cb",
            sql: "select id from node where class = 'cb' and depth = 1 order by pre",
            hand: |hand, _| hand.some(hand.newest(1), |_| true),
            arena: |arena, _| arena.all(|node| node.is_block() && node.depth == Some(1)),
        },
        Class {
            name: "three-turns",
            selector: "@t0 .mt:depth(1-3) .cb",
            sql: "select id from node where class = 'cb' and depth between 1 and 3 order by pre",
            hand: |hand, _| hand.some(hand.newest(3), |_| true),
            arena: |arena, _| {
                arena.all(|node| node.is_block() && matches!(node.depth, Some(1..=3)))
            },
        },
        Class {
            name: "three-turns-role",
            selector: "@t0 ^seq .mt:depth(1-3) .cb[role='user']",
            sql: "select id from node where class = 'cb' and depth between 1 and 3 and role = 'user' order by pre",
            hand: |hand, _| hand.some(hand.newest(3), |message| message.role == "user"),
            arena: |arena, _| {
                arena.all(|node| {
                    node.role == "user" && node.is_block() && matches!(node.depth, Some(1..=3))
                })
            },
        },
        Class {
            name: "call-chain",
            selector: "@t0 ^seq .mt .mc .cb[kind='call']",
            sql: "select id from node where class = 'cb' and kind = 'call' and depth > 0 order by pre",
            hand: |hand, _| hand.some(hand.newest(usize::MAX), |message| message.kind == "call"),
            arena: |arena, _| {
                let nodes = arena.below("^seq").iter();
                ids_of(nodes.filter(|node| node.is_block() && node.kind == "call"))
            },
        },
        Class {
            name: "first-of-turns",
            selector: "@t0 ^seq > .mt > .mc > .cb:first",
            sql: "select (select b.id from node b where b.parent = c.pre and b.class = 'cb' order by b.pre limit 1) \
                  from node t join node c on c.parent = t.pre and c.class = 'mc' where t.class = 'mt' order by t.pre",
            hand: |hand, _| {
                ids_of(hand.turns.iter().filter_map(|turn| {
                    let mut messages = hand.messages[turn.clone()].iter();
                    messages.find(|message| message.key.is_empty())
                }))
            },
            arena: |arena, _| ids_of(arena.of_class("mc").map(|at| &arena.nodes[at + 1])),
        },
        Class {
            name: "last-of-turns",
            selector: "@t0 ^seq > .mt:depth(2,4,6) > .mc > .cb:last",
            sql: "select (select b.id from node b where b.parent = c.pre and b.class = 'cb' order by b.pre desc limit 1) \
                  from node t join node c on c.parent = t.pre and c.class = 'mc' \
                  where t.class = 'mt' and t.depth in (2, 4, 6) order by t.pre",
            hand: |hand, _| {
                let turns = [6, 4, 2].into_iter();
                let turns = turns.filter_map(|depth| hand.turns.len().checked_sub(depth));
                ids_of(turns.filter_map(|turn| {
                    let mut messages = hand.messages[hand.turns[turn].clone()].iter();
                    messages.rfind(|message| message.key.is_empty())
                }))
            },
            arena: |arena, _| {
                let cores = arena.of_class("mc");
                let cores = cores.filter(|&at| matches!(arena.nodes[at].depth, Some(2 | 4 | 6)));
                ids_of(cores.map(|at| &arena.nodes[arena.nodes[at].end - 1]))
            },
        },
        Class {
            name: "second-turn",
            selector: "@t0 .mt:nth(2) .cb",
            sql: "select b.id from node t join node b on b.pre > t.pre and b.pre < t.end where t.pre = \
                  (select pre from node where class = 'mt' order by pre limit 1 offset 1) and b.class = 'cb' order by b.pre",
            hand: |hand, _| hand.some(hand.turns[1].clone(), |_| true),
            arena: |arena, _| {
                let turn = arena.of_class("mt").nth(1).expect("two turns");
                let nodes = arena.nodes[turn..arena.nodes[turn].end].iter();
                ids_of(nodes.filter(|node| node.is_block()))
            },
        },
        Class {
            name: "system",
            selector: "@t0 ^sys .cb",
            sql: "select id from node where class = 'cb' and depth = -1 order by pre",
            hand: |hand, _| hand.some(hand.sys.clone(), |_| true),
            arena: |arena, _| ids_of(arena.below("^sys").iter().filter(|node| node.is_block())),
        },
        Class {
            name: "head",
            selector: "@t0 ^ah .cb",
            sql: "select id from node where class = 'cb' and depth = 0 order by pre",
            hand: |hand, _| hand.some(hand.head.clone(), |_| true),
            arena: |arena, _| ids_of(arena.below("^ah").iter().filter(|node| node.is_block())),
        },
        blocks!(
            "frequent-word",
            "@t0 .cb[content~'the']",
            "select id from node where class = 'cb' and instr(content, 'the') > 0 order by pre",
            |node, facts| facts.frequent.find(node.content.as_bytes()).is_some()
        ),
        blocks!(
            "rare-word",
            "@t0 .cb[content~'refund']",
            "select id from node where class = 'cb' and instr(content, 'refund') > 0 order by pre",
            |node, facts| facts.rare.find(node.content.as_bytes()).is_some()
        ),
        blocks!(
            "one-tool",
            "@t0 .cb[data_call_name='{tool}']",
            "select id from node where tool = '{tool}' order by pre",
            |node, facts| node.tool == facts.tool
        ),
        blocks!(
            "calls-and-results",
            "@t0 .cb[kind='result'], .cb[kind='call']",
            "select id from node where class = 'cb' and kind in ('call', 'result') order by pre",
            |node, _| matches!(&*node.kind, "call" | "result")
        ),
        blocks!(
            "not-text-not-tool",
            "@t0 .cb[kind!='text'][role!='tool']",
            "select id from node where class = 'cb' and kind != 'text' and role != 'tool' order by pre",
            |node, _| node.kind != "text" && node.role != "tool"
        ),
        Class {
            name: "expiring",
            selector: "@t0 [ttl<=2]",
            sql: "select id from node where ttl <= 2 order by pre",
            hand: |hand, _| hand.all(|message| message.ttl.is_some_and(|ttl| ttl <= 2)),
            arena: |arena, _| arena.all(|node| node.ttl.is_some_and(|ttl| ttl <= 2)),
        },
        blocks!(
            "important",
            "@t0 .cb[priority>=7]",
            "select id from node where class = 'cb' and priority >= 7 order by pre",
            |node, _| node.priority >= 7
        ),
        Class {
            name: "newest-of-key",
            selector: "@t0 .cb[key='plan'] @first",
            sql: "select id from node where key = 'plan' order by pre desc limit 1",
            hand: |hand, _| ids_of(hand.messages.iter().rfind(|message| message.key == "plan")),
            arena: |arena, _| ids_of(arena.nodes.iter().rfind(|node| node.key == "plan")),
        },
        Class {
            name: "first-five",
            selector: "@t0 .cb[role='tool'] @limit=5",
            sql: "select id from node where class = 'cb' and role = 'tool' order by pre limit 5",
            hand: |hand, _| {
                let messages = hand.messages.iter();
                ids_of(messages.filter(|message| message.role == "tool").take(5))
            },
            arena: |arena, _| {
                let nodes = arena.nodes.iter();
                ids_of(
                    nodes
                        .filter(|node| node.is_block() && node.role == "tool")
                        .take(5),
                )
            },
        },
    ]
}
