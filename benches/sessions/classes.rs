//! The 24 selectors, and how the other contenders answer them.

use memchr::memmem::Finder;
use pactql::{Engine, Session};

use super::contenders::{Arena, Hand};

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

    pub(crate) fn all() -> Vec<Self> {
        all().into()
    }
}

fn named(text: &str, facts: &Facts) -> String {
    text.replace("{id}", &facts.id)
        .replace("{tool}", &facts.tool)
}

fn first(ids: Option<&str>) -> Vec<&str> {
    ids.into_iter().collect()
}

fn all() -> [Class; 24] {
    [
        Class {
            name: "by-id",
            selector: "@t0 [id='{id}']",
            sql: "select id from node where id = '{id}'",
            hand: |hand, facts| {
                first(
                    hand.messages
                        .iter()
                        .map(|message| &*message.id)
                        .find(|id| *id == facts.id),
                )
            },
            arena: |arena, facts| {
                first(
                    arena
                        .nodes
                        .iter()
                        .map(|node| &*node.id)
                        .find(|id| *id == facts.id),
                )
            },
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
        Class {
            name: "role",
            selector: "@t0 .cb[role='user']",
            sql: "select id from node where class = 'cb' and role = 'user' order by pre",
            hand: |hand, _| hand.all(|message| message.role == "user"),
            arena: |arena, _| arena.all(|node| node.is_block() && node.role == "user"),
        },
        Class {
            name: "last-of-role",
            selector: "@t0 .cb[role='user']:last",
            sql: "select id from node where class = 'cb' and role = 'user' order by pre desc limit 1",
            hand: |hand, _| {
                let mut newest = hand.messages.iter().rev();
                first(
                    newest
                        .find(|message| message.role == "user")
                        .map(|message| &*message.id),
                )
            },
            arena: |arena, _| {
                let mut newest = arena.nodes.iter().rev();
                first(
                    newest
                        .find(|node| node.is_block() && node.role == "user")
                        .map(|node| &*node.id),
                )
            },
        },
        Class {
            name: "third-of-role",
            selector: "@t0 .cb[role='assistant']:nth(3)",
            sql: "select id from node where class = 'cb' and role = 'assistant' order by pre limit 1 offset 2",
            hand: |hand, _| {
                let mut found = hand
                    .messages
                    .iter()
                    .filter(|message| message.role == "assistant");
                first(found.nth(2).map(|message| &*message.id))
            },
            arena: |arena, _| {
                let mut found = arena
                    .nodes
                    .iter()
                    .filter(|node| node.is_block() && node.role == "assistant");
                first(found.nth(2).map(|node| &*node.id))
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
                arena.all(|node| {
                    node.is_block() && node.depth.is_some_and(|depth| (1..=3).contains(&depth))
                })
            },
        },
        Class {
            name: "three-turns-role",
            selector: "@t0 ^seq .mt:depth(1-3) .cb[role='user']",
            sql: "select id from node where class = 'cb' and depth between 1 and 3 and role = 'user' order by pre",
            hand: |hand, _| hand.some(hand.newest(3), |message| message.role == "user"),
            arena: |arena, _| {
                arena.all(|node| {
                    node.role == "user"
                        && node.is_block()
                        && node.depth.is_some_and(|depth| (1..=3).contains(&depth))
                })
            },
        },
        Class {
            name: "call-chain",
            selector: "@t0 ^seq .mt .mc .cb[kind='call']",
            sql: "select id from node where class = 'cb' and kind = 'call' and depth > 0 order by pre",
            hand: |hand, _| hand.some(hand.newest(usize::MAX), |message| message.kind == "call"),
            arena: |arena, _| {
                arena
                    .below("^seq")
                    .filter(|node| node.is_block() && node.kind == "call")
                    .map(|node| &*node.id)
                    .collect()
            },
        },
        Class {
            name: "first-of-turns",
            selector: "@t0 ^seq > .mt > .mc > .cb:first",
            sql: "select (select b.id from node b where b.parent = c.pre and b.class = 'cb' order by b.pre limit 1) \
                  from node t join node c on c.parent = t.pre and c.class = 'mc' where t.class = 'mt' order by t.pre",
            hand: |hand, _| {
                let turns = hand.turns.iter().filter_map(|turn| {
                    hand.messages[turn.clone()]
                        .iter()
                        .find(|message| message.key.is_empty())
                });
                turns.map(|message| &*message.id).collect()
            },
            arena: |arena, _| {
                let cores = (0..arena.nodes.len()).filter(|&at| arena.nodes[at].class == "mc");
                cores.map(|at| &*arena.nodes[at + 1].id).collect()
            },
        },
        Class {
            name: "last-of-turns",
            selector: "@t0 ^seq > .mt:depth(2,4,6) > .mc > .cb:last",
            sql: "select (select b.id from node b where b.parent = c.pre and b.class = 'cb' order by b.pre desc limit 1) \
                  from node t join node c on c.parent = t.pre and c.class = 'mc' \
                  where t.class = 'mt' and t.depth in (2, 4, 6) order by t.pre",
            hand: |hand, _| {
                let turns = [6, 4, 2]
                    .into_iter()
                    .filter_map(|depth| hand.turns.len().checked_sub(depth));
                let turns = turns.filter_map(|turn| {
                    hand.messages[hand.turns[turn].clone()]
                        .iter()
                        .rfind(|message| message.key.is_empty())
                });
                turns.map(|message| &*message.id).collect()
            },
            arena: |arena, _| {
                let cores = (0..arena.nodes.len()).filter(|&at| arena.nodes[at].class == "mc");
                let cores = cores.filter(|&at| matches!(arena.nodes[at].depth, Some(2 | 4 | 6)));
                cores
                    .map(|at| &*arena.nodes[arena.nodes[at].end - 1].id)
                    .collect()
            },
        },
        Class {
            name: "second-turn",
            selector: "@t0 .mt:nth(2) .cb",
            sql: "select b.id from node t join node b on b.pre > t.pre and b.pre < t.end where t.pre = \
                  (select pre from node where class = 'mt' order by pre limit 1 offset 1) and b.class = 'cb' order by b.pre",
            hand: |hand, _| hand.some(hand.turns[1].clone(), |_| true),
            arena: |arena, _| {
                let turn = arena.turns().nth(1).expect("two turns");
                let nodes = arena.nodes[turn..arena.nodes[turn].end].iter();
                nodes
                    .filter(|node| node.is_block())
                    .map(|node| &*node.id)
                    .collect()
            },
        },
        Class {
            name: "system",
            selector: "@t0 ^sys .cb",
            sql: "select id from node where class = 'cb' and depth = -1 order by pre",
            hand: |hand, _| hand.some(hand.sys.clone(), |_| true),
            arena: |arena, _| {
                arena
                    .below("^sys")
                    .filter(|node| node.is_block())
                    .map(|node| &*node.id)
                    .collect()
            },
        },
        Class {
            name: "head",
            selector: "@t0 ^ah .cb",
            sql: "select id from node where class = 'cb' and depth = 0 order by pre",
            hand: |hand, _| hand.some(hand.head.clone(), |_| true),
            arena: |arena, _| {
                arena
                    .below("^ah")
                    .filter(|node| node.is_block())
                    .map(|node| &*node.id)
                    .collect()
            },
        },
        Class {
            name: "frequent-word",
            selector: "@t0 .cb[content~'the']",
            sql: "select id from node where class = 'cb' and instr(content, 'the') > 0 order by pre",
            hand: |hand, facts| {
                hand.all(|message| facts.frequent.find(message.content.as_bytes()).is_some())
            },
            arena: |arena, facts| {
                arena.all(|node| {
                    node.is_block() && facts.frequent.find(node.content.as_bytes()).is_some()
                })
            },
        },
        Class {
            name: "rare-word",
            selector: "@t0 .cb[content~'refund']",
            sql: "select id from node where class = 'cb' and instr(content, 'refund') > 0 order by pre",
            hand: |hand, facts| {
                hand.all(|message| facts.rare.find(message.content.as_bytes()).is_some())
            },
            arena: |arena, facts| {
                arena.all(|node| {
                    node.is_block() && facts.rare.find(node.content.as_bytes()).is_some()
                })
            },
        },
        Class {
            name: "one-tool",
            selector: "@t0 .cb[data_call_name='{tool}']",
            sql: "select id from node where tool = '{tool}' order by pre",
            hand: |hand, facts| hand.all(|message| message.tool == facts.tool),
            arena: |arena, facts| arena.all(|node| node.tool == facts.tool),
        },
        Class {
            name: "calls-and-results",
            selector: "@t0 .cb[kind='result'], .cb[kind='call']",
            sql: "select id from node where class = 'cb' and kind in ('call', 'result') order by pre",
            hand: |hand, _| hand.all(|message| matches!(&*message.kind, "call" | "result")),
            arena: |arena, _| {
                arena.all(|node| node.is_block() && matches!(&*node.kind, "call" | "result"))
            },
        },
        Class {
            name: "not-text-not-tool",
            selector: "@t0 .cb[kind!='text'][role!='tool']",
            sql: "select id from node where class = 'cb' and kind != 'text' and role != 'tool' order by pre",
            hand: |hand, _| hand.all(|message| message.kind != "text" && message.role != "tool"),
            arena: |arena, _| {
                arena.all(|node| node.is_block() && node.kind != "text" && node.role != "tool")
            },
        },
        Class {
            name: "expiring",
            selector: "@t0 [ttl<=2]",
            sql: "select id from node where ttl <= 2 order by pre",
            hand: |hand, _| hand.all(|message| message.ttl.is_some_and(|ttl| ttl <= 2)),
            arena: |arena, _| arena.all(|node| node.ttl.is_some_and(|ttl| ttl <= 2)),
        },
        Class {
            name: "important",
            selector: "@t0 .cb[priority>=7]",
            sql: "select id from node where class = 'cb' and priority >= 7 order by pre",
            hand: |hand, _| hand.all(|message| message.priority >= 7),
            arena: |arena, _| arena.all(|node| node.is_block() && node.priority >= 7),
        },
        Class {
            name: "newest-of-key",
            selector: "@t0 .cb[key='plan'] @first",
            sql: "select id from node where key = 'plan' order by pre desc limit 1",
            hand: |hand, _| {
                let mut newest = hand.messages.iter().rev();
                first(
                    newest
                        .find(|message| message.key == "plan")
                        .map(|message| &*message.id),
                )
            },
            arena: |arena, _| {
                let mut newest = arena.nodes.iter().rev();
                first(newest.find(|node| node.key == "plan").map(|node| &*node.id))
            },
        },
        Class {
            name: "first-five",
            selector: "@t0 .cb[role='tool'] @limit=5",
            sql: "select id from node where class = 'cb' and role = 'tool' order by pre limit 5",
            hand: |hand, _| {
                let found = hand
                    .messages
                    .iter()
                    .filter(|message| message.role == "tool");
                found.take(5).map(|message| &*message.id).collect()
            },
            arena: |arena, _| {
                let found = arena
                    .nodes
                    .iter()
                    .filter(|node| node.is_block() && node.role == "tool");
                found.take(5).map(|node| &*node.id).collect()
            },
        },
    ]
}
