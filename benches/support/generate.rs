//! Generated sessions: from a fixed seed, with the same bytes on every machine.
//!
//! # The data model
//! A document of `n` nodes has `n × 0.1182` turns. A turn has 0-3 pre blocks, a core container
//! of 2-8 blocks and 0-2 post blocks; `^sys` has four blocks, `^ah` eight pre blocks
//! (retrieved context gathers there), a core of four and one post block. Ids have 12 characters.
//! Of the blocks, 42 % have the role `assistant`; kinds are `text`, `call` (a fifth of the core
//! blocks), `result`, `image`, `thinking`, `note` and, rarely (1.24 %), `summary`; 6.6 % have a ttl,
//! most of them 1;
//! priorities are 0-9, evenly. Every node carries every required header. Contents are six to
//! thirty words with the odd line break and quote, so that 100,000 nodes are 31 MB of JSON.
//!
//! The last three turns and the head are the same at every size: a query that looks only there
//! has the same answer at 1,000 nodes and at 100,000. Their seed gives two blocks of the assistant
//! in the newest core and seven of the user in the last three turns.

use std::fmt::Write;

/// The seed of everything made here.
const SEED: u64 = 0x0070_6163_7471_6c00;

/// The creation time of the first node, in seconds since 1970.
const EPOCH_SECONDS: u64 = 1_700_000_000;

/// Turns for each node of a document.
const TURNS_PER_NODE: f64 = 0.1182;

/// `splitmix64`: good enough, and independent of the version of any library.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A random index into `weights`, each with the probability of its weight.
    fn weighted(&mut self, weights: &[u64]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, &weight) in weights.iter().enumerate() {
            if left < weight {
                return index;
            }
            left -= weight;
        }
        0
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number of blocks at each place of a turn.
#[derive(Clone, Copy)]
struct Turn {
    pre: u64,
    core: u64,
    post: u64,
}

impl Turn {
    fn nodes(self) -> u64 {
        2 + self.pre + self.core + self.post
    }
}

/// The newest three turns of every document, oldest first.
const LAST_TURNS: [Turn; 3] = [
    Turn {
        pre: 2,
        core: 8,
        post: 1,
    },
    Turn {
        pre: 0,
        core: 6,
        post: 0,
    },
    Turn {
        pre: 1,
        core: 5,
        post: 1,
    },
];

/// The head of every document.
const HEAD: Turn = Turn {
    pre: 8,
    core: 4,
    post: 1,
};

/// Blocks under `^sys`.
const SYSTEM_BLOCKS: u64 = 4;

/// Root, three regions, the head's container, and the blocks under `^sys` and `^ah`.
const FIXED_NODES: u64 = 4 + 1 + SYSTEM_BLOCKS + HEAD.pre + HEAD.core + HEAD.post;

/// The place of a block.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    System,
    Pre,
    Core,
    Post,
}

/// Whether nodes are written nested or as the flat list of a delta line.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Nested,
    Flat,
}

/// A document of exactly `nodes` nodes (at least 200) in one snapshot.
pub(crate) fn document(nodes: usize) -> Vec<u8> {
    let mut random = Random::new(SEED ^ nodes as u64);
    let turns = shapes(nodes as u64, &mut random);
    let mut writer = Writer::new(random, Form::Nested);
    writer.text.reserve(nodes * 330);
    writer.cycle = turns.len() as u64;
    let newest = writer.cycle;
    let _ = write!(
        writer.text,
        r#"{{"spec_version":"1.0","cycle":{newest},"root":"#
    );
    writer.cycle = 0;
    writer.root(|writer| {
        let fixed = turns.len() - LAST_TURNS.len();
        for (index, &turn) in turns.iter().enumerate() {
            if index == fixed {
                // From here on the bytes do not depend on the size, except for ids and times.
                writer.random = Random::new(SEED + 10);
            }
            writer.cycle += 1;
            writer.comma(index > 0);
            writer.turn(turn, "");
        }
    });
    writer.text.push('}');
    writer.text.into_bytes()
}

/// A session of `turns + 1` snapshots, one a line: the first has no turn, and each commit seals
/// one, so that the newest has `turns`. Every line but the first names only what is new.
pub(crate) fn committed(turns: usize) -> Vec<u8> {
    let mut writer = Writer::new(Random::new(SEED ^ 1), Form::Nested);
    writer.text.push_str(r#"{"cycle":1,"root":"#);
    writer.cycle = 1;
    let seq = writer.root(|_| {});
    writer.text.push_str("}\n");
    writer.form = Form::Flat;
    for commit in 0..turns {
        writer.commit(commit as u64 + 2, &seq);
    }
    writer.text.into_bytes()
}

/// The same session with every snapshot written whole, as a client without deltas writes it. The
/// bytes grow with the square of `turns`.
pub(crate) fn committed_whole(turns: usize) -> Vec<u8> {
    let mut writer = Writer::new(Random::new(SEED ^ 2), Form::Nested);
    let mut sealed: Vec<String> = Vec::new();
    let mut text = String::new();
    writer.cycle = 1;
    writer.root(|_| {});
    let frame = std::mem::take(&mut writer.text);
    let mark = frame.find(SEQ_MARK).map_or(0, |at| at + SEQ_MARK.len());
    for commit in 0..=turns {
        let cycle = commit as u64 + 1;
        if commit > 0 {
            writer.cycle = cycle;
            writer.created = 1000 * cycle;
            let shape = writer.shape();
            writer.turn(shape, "");
            sealed.push(std::mem::take(&mut writer.text));
        }
        let _ = write!(text, r#"{{"cycle":{cycle},"root":"#);
        text.push_str(&frame[..mark]);
        text.push_str(&sealed.join(","));
        text.push_str(&frame[mark..]);
        text.push_str("}\n");
    }
    text.into_bytes()
}

/// A live session as lines: regions without blocks, `turns` sealed turns of ten nodes without ttls,
/// and then `commits` lines that seal one more each. With `whole`, the first turns are in the first
/// line, so that there are `commits + 1` lines; else each is a line of its own.
pub(crate) fn live(turns: usize, commits: usize, whole: bool) -> Vec<u8> {
    let mut writer = Writer::new(Random::new(SEED ^ 3), Form::Nested);
    writer.plain = true;
    let (first, lines) = if whole {
        (turns, commits)
    } else {
        (0, turns + commits)
    };
    writer.cycle = first as u64 + 1;
    let _ = write!(writer.text, r#"{{"cycle":{},"root":"#, writer.cycle);
    let seq = writer.root(|writer| {
        for turn in 0..first {
            writer.comma(turn > 0);
            writer.turn(LIVE_TURN, "");
        }
    });
    writer.text.push_str("}\n");
    writer.form = Form::Flat;
    for line in 0..lines {
        writer.commit_turn((first + line) as u64 + 2, &seq, LIVE_TURN);
    }
    writer.text.into_bytes()
}

/// A turn of [`live`]: ten nodes.
const LIVE_TURN: Turn = Turn {
    pre: 0,
    core: 8,
    post: 0,
};

/// Blocks as JSON texts for a session that is written: role, kind and content.
pub(crate) fn new_blocks(count: usize) -> Vec<String> {
    const ROLES: [(&str, &str); 4] = [
        ("assistant", "text"),
        ("assistant", "call"),
        ("user", "text"),
        ("tool", "result"),
    ];
    let mut writer = Writer::new(Random::new(SEED ^ 4), Form::Nested);
    let block = |_| {
        let (role, kind) = ROLES[writer.random.weighted(&[21, 21, 28, 30])];
        let _ = write!(writer.text, r#"{{"role":"{role}","kind":"{kind}""#);
        writer.content();
        writer.text.push('}');
        std::mem::take(&mut writer.text)
    };
    (0..count).map(block).collect()
}

/// The text before the turns, which occurs nowhere else.
const SEQ_MARK: &str = r#""nodeType":"^seq","children":["#;

/// The turns of a document of `nodes` nodes: random ones, whose cores are then adjusted until the
/// sum is right.
fn shapes(nodes: u64, random: &mut Random) -> Vec<Turn> {
    let count = (nodes as f64 * TURNS_PER_NODE).round() as usize;
    let drawn = count.saturating_sub(LAST_TURNS.len());
    let mut turns: Vec<Turn> = (0..drawn).map(|_| draw(random)).collect();
    turns.extend(LAST_TURNS);
    let mut total = FIXED_NODES + turns.iter().map(|turn| turn.nodes()).sum::<u64>();
    while total != nodes && drawn > 0 {
        let turn = &mut turns[random.below(drawn as u64) as usize];
        if total < nodes && turn.core < 8 {
            turn.core += 1;
            total += 1;
        } else if total > nodes && turn.core > 2 {
            turn.core -= 1;
            total -= 1;
        }
    }
    turns
}

/// The shape of one turn: 8.46 nodes on average.
fn draw(random: &mut Random) -> Turn {
    Turn {
        pre: random.weighted(&[40, 30, 20, 10]) as u64,
        core: 2 + random.below(7),
        post: random.weighted(&[65, 24, 11]) as u64,
    }
}

/// Writes nodes as JSON, with consecutive ids and times.
struct Writer {
    text: String,
    random: Random,
    form: Form,
    /// The cycle of the nodes being written.
    cycle: u64,
    /// Nodes written in this cycle.
    creation_index: u64,
    /// The cycle `creation_index` belongs to.
    indexed_cycle: u64,
    /// Nodes made so far, for ids and times.
    created: u64,
    /// Whether no node has a ttl and the regions have no blocks.
    plain: bool,
}

impl Writer {
    fn new(random: Random, form: Form) -> Self {
        Self {
            text: String::new(),
            random,
            form,
            cycle: 0,
            creation_index: 0,
            indexed_cycle: 0,
            created: 0,
            plain: false,
        }
    }

    fn comma(&mut self, wanted: bool) {
        if wanted {
            self.text.push(',');
        }
    }

    fn shape(&mut self) -> Turn {
        draw(&mut self.random)
    }

    /// The root and its regions, nested; `turns` writes the children of `^seq`. Returns the id of
    /// `^seq`.
    fn root(&mut self, turns: impl FnOnce(&mut Self)) -> String {
        self.open("^root", 0, "");
        self.begin_children();
        self.open("^sys", 0, "");
        self.begin_children();
        let blocks = if self.plain { 0 } else { SYSTEM_BLOCKS };
        for index in 0..blocks {
            self.comma(index > 0);
            self.block(Place::System, 0, "");
        }
        self.end_children();
        self.comma(true);
        let seq = self.open("^seq", 0, "");
        self.begin_children();
        turns(self);
        self.end_children();
        self.comma(true);
        self.open("^ah", 0, "");
        self.begin_children();
        if !self.plain {
            self.inside(HEAD, "");
        }
        self.end_children();
        self.end_children();
        seq
    }

    /// One line that seals a turn in `cycle`.
    fn commit(&mut self, cycle: u64, seq: &str) {
        let shape = self.shape();
        self.commit_turn(cycle, seq, shape);
    }

    fn commit_turn(&mut self, cycle: u64, seq: &str, shape: Turn) {
        self.cycle = cycle;
        let _ = write!(
            self.text,
            r#"{{"cycle":{cycle},"base":{},"replace":["#,
            cycle - 1
        );
        self.turn(shape, seq);
        self.text.push_str("],\"remove\":[]}\n");
    }

    fn turn(&mut self, turn: Turn, parent: &str) {
        let id = self.open("mt", 0, parent);
        self.begin_children();
        self.inside(turn, &id);
        self.end_children();
    }

    /// The descendants of a turn or of the head.
    fn inside(&mut self, turn: Turn, parent: &str) {
        for index in 0..turn.pre {
            self.comma(index > 0);
            self.block(Place::Pre, index as i64 - turn.pre as i64, parent);
        }
        self.comma(turn.pre > 0);
        let core = self.open("mc", 0, parent);
        self.begin_children();
        for index in 0..turn.core {
            self.comma(index > 0);
            self.block(Place::Core, 0, &core);
        }
        self.end_children();
        for index in 0..turn.post {
            self.comma(true);
            self.block(Place::Post, index as i64 + 1, parent);
        }
    }

    /// Writes what is between a node's headers and its children. In the flat form the node ends
    /// here and its children follow it.
    fn begin_children(&mut self) {
        self.text.push_str(match self.form {
            Form::Nested => r#","children":["#,
            Form::Flat => "},",
        });
    }

    fn end_children(&mut self) {
        if self.form == Form::Nested {
            self.text.push_str("]}");
        }
    }

    fn block(&mut self, place: Place, offset: i64, parent: &str) {
        const ROLES: [&str; 4] = ["assistant", "user", "tool", "system"];
        let role = match place {
            Place::System => 3,
            _ => self.random.weighted(&[42, 25, 27, 6]),
        };
        let kind = if self.random.below(10_000) < 124 {
            "summary"
        } else {
            match (ROLES[role], place) {
                ("assistant", Place::Core) => {
                    ["call", "text", "thinking"][self.random.weighted(&[49, 36, 15])]
                }
                ("assistant", _) => ["text", "note"][self.random.weighted(&[50, 50])],
                ("tool", _) => ["result", "image"][self.random.weighted(&[94, 6])],
                ("user", _) => ["text", "image", "note"][self.random.weighted(&[80, 5, 15])],
                _ => ["text", "note"][self.random.weighted(&[70, 30])],
            }
        };
        self.open("cb", offset, parent);
        let _ = write!(self.text, r#","role":"{}","kind":"{kind}""#, ROLES[role]);
        if kind == "call" || kind == "result" {
            const TOOLS: [&str; 5] = ["bash", "read_file", "search", "edit", "browser"];
            let tool = TOOLS[self.random.below(5) as usize];
            let _ = write!(self.text, r#","data_tool":"{tool}""#);
        }
        self.content();
        self.text.push('}');
    }

    /// Opens a node and writes its headers. Returns its id.
    fn open(&mut self, node_type: &str, offset: i64, parent: &str) -> String {
        if self.indexed_cycle != self.cycle {
            self.indexed_cycle = self.cycle;
            self.creation_index = 0;
        }
        let id = id(self.created);
        let _ = write!(self.text, r#"{{"id":"{id}","offset":{offset}"#);
        let block = node_type == "cb";
        if block && !self.plain && self.random.below(1000) < 66 {
            let ttl = [1, 2, 3, 5, 8][self.random.weighted(&[78, 8, 6, 5, 3])];
            let _ = write!(self.text, r#","ttl":{ttl}"#);
        } else {
            self.text.push_str(r#","ttl":null"#);
        }
        let priority = self.random.below(10);
        let nanoseconds = EPOCH_SECONDS * 1_000_000_000 + self.created * 250_000_000;
        let _ = write!(
            self.text,
            r#","priority":{priority},"cycle":{},"created_at_ns":{nanoseconds},"created_at_iso":"{}","creation_index":{}"#,
            self.cycle,
            Iso(nanoseconds / 1_000_000_000),
            self.creation_index,
        );
        if self.form == Form::Flat {
            let _ = write!(self.text, r#","parent_id":"{parent}""#);
        }
        // Last, so that the text before the turns is the same for every document.
        let _ = write!(self.text, r#","nodeType":"{node_type}""#);
        self.created += 1;
        self.creation_index += 1;
        id
    }

    fn content(&mut self) {
        const WORDS: [&str; 32] = [
            "the", "session", "returned", "an", "error", "after", "reading", "file", "and",
            "retrying", "with", "smaller", "window", "because", "token", "budget", "was",
            "exceeded", "by", "tool", "output", "from", "previous", "turn", "so", "summary",
            "replaces", "older", "context", "in", "place", "now",
        ];
        self.text.push_str(r#","content":""#);
        let words = 6 + self.random.below(24);
        for index in 0..words {
            if index > 0 {
                match self.random.below(40) {
                    0 => self.text.push_str("\\n"),
                    1 => self.text.push_str(", \\\"quoted\\\" "),
                    _ => self.text.push(' '),
                }
            }
            self.text.push_str(WORDS[self.random.below(32) as usize]);
        }
        self.text.push('"');
    }
}

/// The id of the `n`-th node: a letter and 11 more characters, unique for `n`.
pub(crate) fn id(n: u64) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bits = mix(n.wrapping_add(SEED));
    let mut text = String::with_capacity(12);
    text.push(char::from(DIGITS[(bits & 15) as usize]));
    bits >>= 4;
    for _ in 0..11 {
        text.push(char::from(DIGITS[(bits & 31) as usize]));
        bits >>= 5;
    }
    text
}

/// Seconds since 1970 as an ISO 8601 time.
struct Iso(u64);

impl std::fmt::Display for Iso {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (days, seconds) = (self.0 / 86_400, self.0 % 86_400);
        // Days to a date, by shifting to a year that starts in March.
        let shifted = days + 719_468;
        let era = shifted / 146_097;
        let of_era = shifted % 146_097;
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        write!(
            f,
            "{:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
            year + era * 400 + next,
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )
    }
}
