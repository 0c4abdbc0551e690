//! Reading the nodes of one long document on several threads.
//!
//! Where a document can be cut is only known to who has read it up to there. So the other threads
//! guess: each looks for a place, somewhere in its share of the text, where one object of an array
//! ends and another begins, and reads from there as if these were nodes. The thread that reads
//! from the start takes over such a part when it comes, between two children of a node, to
//! exactly the place where the part begins, and reads itself whatever no part has. A wrong guess
//! costs time and nothing else: a part in which anything is wrong is dropped, so faults are found
//! and worded in one place.
//!
//! This knows the text and the rows of a draft. It does not know what a node's members mean.

use std::collections::VecDeque;
use std::ops::Range;

use rayon::prelude::*;

use super::draft::{Draft, Form, NodeReader, ParentClaim};
use super::fault::Faults;
use super::json::{Halt, MAX_NESTING, Reader};
use super::model::{Dictionary, NONE};

/// A thread's share is at least this long, in bytes; below, starting it costs more than it gains.
const SHARE: usize = 1 << 20;

/// Nodes that stand side by side, read by another thread. Parents and levels count from here.
pub(super) struct Part<'a> {
    /// Where the first of them begins in the text.
    start: usize,
    /// Where the last of them ends.
    pub(super) end: usize,
    pub(super) draft: Draft<'a>,
}

/// The parts that have not been taken over, in the order of the text.
pub(super) struct Parts<'a> {
    list: VecDeque<Part<'a>>,
    next: usize,
    awaited: bool,
}

impl Default for Parts<'_> {
    /// None.
    fn default() -> Self {
        Self {
            list: VecDeque::new(),
            next: usize::MAX,
            awaited: false,
        }
    }
}

impl<'a> Parts<'a> {
    /// Parts that are being read, the first from `next` on.
    pub(super) fn awaited(next: usize) -> Self {
        Self {
            next,
            awaited: true,
            ..Self::default()
        }
    }

    /// Whether they are still being read.
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited
    }

    /// Before this place there is nothing to take over.
    #[inline]
    pub(super) fn next(&self) -> usize {
        self.next
    }

    /// The part that begins at `at`. Those before it are of no use any more.
    pub(super) fn take(&mut self, at: usize) -> Option<Part<'a>> {
        while self.list.pop_front_if(|part| part.start < at).is_some() {}
        let found = self.list.pop_front_if(|part| part.start == at);
        self.next = self.list.front().map_or(usize::MAX, |part| part.start);
        found
    }
}

/// Where the threads of the current rayon pool begin, but for the one that begins at `from`.
pub(super) fn cuts(text: &str, from: usize) -> Vec<usize> {
    let length = text.len() - from;
    // A short text starts no thread pool.
    let shares = match length / SHARE {
        0 | 1 => return Vec::new(),
        most => rayon::current_num_threads().min(most),
    };
    let share = length / shares;
    (1..shares)
        .map(|index| from + index * share)
        .filter_map(|at| second_object(text.as_bytes(), at..at + share))
        .collect()
}

/// The first place in `range` where an object surely begins that follows another one in an array.
///
/// What is looked for is `},{"` and a letter, with or without white space. Inside a string it
/// would have to be the end of that string, since the quote is not escaped, and behind a string
/// stands no letter.
fn second_object(bytes: &[u8], range: Range<usize>) -> Option<usize> {
    let space = |byte: &&u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
    memchr::memchr_iter(b'{', &bytes[range.clone()])
        .map(|at| range.start + at)
        .find(|&at| {
            let mut before = bytes[..at].iter().rev().filter(|byte| !space(byte));
            let mut behind = bytes[at + 1..].iter().skip_while(space);
            before.next() == Some(&b',')
                && before.next() == Some(&b'}')
                && behind.next() == Some(&b'"')
                && behind.next().is_some_and(u8::is_ascii_alphabetic)
        })
}

/// Reads from each of the cuts to the next one, in parallel.
pub(super) fn read<'a>(text: &'a str, cuts: &[usize]) -> Parts<'a> {
    let stops = cuts.iter().skip(1).copied().chain([text.len()]);
    let shares: Vec<(usize, usize)> = cuts.iter().copied().zip(stops).collect();
    let parts: Vec<Vec<Part<'a>>> = shares
        .into_par_iter()
        .map(|(start, stop)| read_share(text, start, stop))
        .collect();
    let mut list: VecDeque<Part<'a>> = parts.into_iter().flatten().collect();
    // A share may reach into the next one, to the end of the node it is in.
    list.make_contiguous().sort_by_key(|part| part.start);
    Parts {
        next: list.front().map_or(usize::MAX, |part| part.start),
        list,
        awaited: false,
    }
}

/// How many parts are made of a share at most: as many as a place has levels around it, in nodes
/// and in a value of one. A part takes far more memory than the few bytes it may be made of, and
/// text that is no document could hold any number of them.
const MAX_PARTS: usize = 2 * MAX_NESTING;

/// The parts that begin between `start` and `stop`: the nodes beside the first, then what stands
/// beside the node these are in, and so on outwards. Linear in the text that is read.
fn read_share(text: &str, mut start: usize, stop: usize) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut reader = Reader::new(text);
    for _ in 0..MAX_PARTS {
        reader.go_to(start);
        let mut faults = Faults::default();
        let nodes = NodeReader::new(&mut reader, &mut faults, Form::Part, stop - start);
        let Ok((draft, end)) = nodes.read_part(stop) else {
            return parts;
        };
        if !reader.problems().is_empty() {
            return parts;
        }
        if faults.is_empty() {
            parts.push(Part { start, end, draft });
        }
        if end >= stop {
            break;
        }
        reader.go_to(end);
        match further_out(&mut reader) {
            Ok(Some(next)) if next < stop => start = next,
            _ => break,
        }
    }
    parts
}

/// Behind a value, in arrays and objects that began somewhere before: where the next object
/// begins that is an element of one of them; `None` at the end of the text.
fn further_out(reader: &mut Reader<'_>) -> Result<Option<usize>, Halt> {
    while let Some(byte) = reader.peek() {
        reader.go_to(reader.offset() + 1);
        match byte {
            b'}' | b']' => {}
            b',' if reader.peek() == Some(b'{') => return Ok(Some(reader.offset())),
            b',' => {
                reader.skip_value()?;
                if reader.take(b':') {
                    reader.skip_value()?;
                }
            }
            _ => return Ok(None),
        }
    }
    Ok(None)
}

impl<'a> Draft<'a> {
    /// Whether the nodes of a part can stand at `level` behind those of this draft: they do not
    /// nest too deep, and are not too many.
    pub(super) fn can_take(&self, part: &Part<'_>, level: usize) -> bool {
        let (own, more) = (&self.tree, &part.draft.tree);
        let deepest = more.rows.iter().map(|row| row.level as usize).max();
        let fits = |a: usize, b: usize| a.saturating_add(b) < NONE as usize - 1;
        deepest.is_none_or(|deepest| level + deepest < MAX_NESTING)
            && fits(own.rows.len(), more.rows.len())
            && fits(own.ids.len(), more.ids.len())
            && fits(self.payload.len(), part.draft.payload.len())
    }

    /// Puts the nodes of a part behind those of this draft, as children of `parent` at `level`.
    /// Names get the codes they would have if they had been read here.
    pub(super) fn append(&mut self, part: Draft<'a>, parent: u32, level: u32) {
        let (own, more) = (&mut self.tree, part.tree);
        let rows = own.rows.len() as u32;
        let ids = own.ids.len() as u32;
        let payload = self.payload.len() as u32;
        let types = take_over(&mut own.types, &more.types);
        let roles = take_over(&mut own.roles, &more.roles);
        let kinds = take_over(&mut own.kinds, &more.kinds);
        let keys = take_over(&mut own.keys, &more.keys);
        let code = |codes: &[u32], code: u32| codes.get(code as usize).copied().unwrap_or(NONE);
        own.rows.extend(more.rows.into_iter().map(|mut row| {
            row.parent = match row.parent {
                NONE => parent,
                within => within + rows,
            };
            row.end += rows;
            row.level += level;
            row.id = (row.id.0 + ids, row.id.1 + ids);
            row.payload = (row.payload.0 + payload, row.payload.1 + payload);
            row.node_type = code(&types, row.node_type);
            row.role = code(&roles, row.role);
            row.kind = code(&kinds, row.kind);
            row.key = code(&keys, row.key);
            row
        }));
        own.ids.push_str(&more.ids);
        self.payload.extend_from_slice(&part.payload);
        self.starts.extend_from_slice(&part.starts);
        self.claims
            .extend(part.claims.into_iter().map(|claim| ParentClaim {
                row: claim.row + rows,
                ..claim
            }));
    }
}

/// The own code of each of `other`'s strings.
fn take_over(own: &mut Dictionary, other: &Dictionary) -> Vec<u32> {
    other
        .values()
        .iter()
        .map(|value| own.intern(value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json::Problem;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    /// What came of reading a document whose first byte begins the root: the draft as text, or
    /// what was wrong.
    type Outcome = Result<(String, usize), (String, Vec<Problem>)>;

    fn outcome(text: &str, cuts: &[usize]) -> Outcome {
        let mut reader = Reader::new(text);
        let mut faults = Faults::default();
        let nodes = NodeReader::new(&mut reader, &mut faults, Form::Nested, text.len());
        let draft = nodes.read_root_cut(cuts);
        let end = reader.offset();
        let problems = reader.problems().to_vec();
        match draft {
            Ok(draft) if faults.is_empty() && problems.is_empty() => {
                let claims = draft.claims.iter();
                let claims: Vec<_> = claims.map(|c| (c.row, c.id.raw, c.offset)).collect();
                let Draft {
                    tree,
                    payload,
                    starts,
                    ..
                } = &draft;
                Ok((format!("{tree:?} {payload:?} {starts:?} {claims:?}"), end))
            }
            _ => Err((format!("{:?}", faults.resolve(text)), problems)),
        }
    }

    /// A document with what could mislead a cut: strings and lists that look like nodes, fields
    /// behind children, uneven depths, names that come late.
    const DOCUMENT: &str = r#"{"nodeType":"^root","children":[
      {"id":"s","nodeType":"^sys","children":[{"id":"s1","nodeType":"mc","children":[]}]},
      {"children":[
        {"id":"t1","children":[{"id":"c1","nodeType":"mc","offset":0,"children":[
          {"id":"b1","role":"user","content":"},{\"id\":\"x\"},{"},
          {"id":"b2","role":"tool","content":[{"id":"no"},{"id":"node"},{"a":1}],"kind":"k"},
          {"id":"b3","parent_id":"c1","data":{"x":[{"id":"y"},{"id":"z"}],"y":[[{"id":"w"},{"id":"v"}]]}}
        ]},{"id":"c2","offset":1,"created_at_ns":5}],"role":"late"},
        {"id":"t2","kind":"other","parent_id":"q"} , {"id":"t3","children":[{"id":"b4"},{"id":"b5"}]}
      ],"id":"q","nodeType":"^seq","key":"after"},
      {"id":"a","nodeType":"^ah","children":[{"id":"b6","offset":-1,"role":"user"},{"id":"b7","key":"k"}]}
    ],"extra":[{"id":"r"},{"id":"r"}]} , {"id":"beyond"}"#;

    #[test]
    fn a_document_reads_the_same_wherever_it_is_cut() {
        let whole = outcome(DOCUMENT, &[]);
        assert!(whole.is_ok(), "{whole:?}");
        for first in 0..=DOCUMENT.len() {
            assert_eq!(outcome(DOCUMENT, &[first]), whole, "cut at {first}");
            for second in (first..=DOCUMENT.len()).step_by(37) {
                let cuts = [first, second];
                assert_eq!(outcome(DOCUMENT, &cuts), whole, "cut at {cuts:?}");
            }
        }
    }

    /// A node of a random document, with white space, values that look like nodes, and few things
    /// wrong. What it is like comes from `dice`; where none are left, it is the shortest.
    fn random_node(dice: &mut dyn Iterator<Item = u8>, depth: usize) -> String {
        let mut roll = |sides: u8| usize::from(dice.next().unwrap_or(0) % sides);
        let space = ["", "", " ", "\r\n\t"][roll(4)];
        let mut members = vec![format!(r#""id":"n{}""#, roll(250))];
        let first = roll(14);
        for which in first..first + roll(4) {
            members.push(match which {
                0 => format!(r#""role":"r{}""#, roll(5)),
                1 => format!(r#""kind" : "k{}é""#, roll(5)),
                2 => format!(r#""nodeType":"m{}""#, roll(3)),
                3 => format!(r#""key":"\u004{}""#, roll(10)),
                4 => format!(r#""offset":{}"#, roll(9)),
                5 => format!(r#""parent_id":"n{}""#, roll(250)),
                6 => r#""a":"},{\"id\":","b":"},{""#.to_owned(),
                7 => r#""content":[{"id":1},{"id":"x"},"y",{"id":"z"}]"#.to_owned(),
                8 => r#""data":{"x":[[{"id":"y"},{"id":"z"}]],"y":{"children":[{"id":"n"}]}}"#
                    .to_owned(),
                9 if roll(8) == 0 => r#""x":[1e400,"\ud800"]"#.to_owned(),
                10 if roll(8) == 0 => r#""children":null"#.to_owned(),
                11 if roll(8) == 0 => r#""id":7"#.to_owned(),
                _ => continue,
            });
        }
        let place = roll(4).min(members.len());
        let (children, odd) = (if depth == 0 { 0 } else { roll(5) }, roll(60));
        let child = |index| match (index, odd) {
            (1, 0) => "7".to_owned(),
            (1, 1) => r#"[{"id":"n"},{"id":"m"}]"#.to_owned(),
            _ => random_node(dice, depth - 1),
        };
        let list: Vec<String> = (0..children).map(child).collect();
        if children > 0 {
            let list = list.join(&format!("{space},{space}"));
            members.insert(place, format!(r#""children":[{list}{space}]"#));
        }
        format!("{{{space}{}{space}}}", members.join(&format!(",{space}")))
    }

    /// What is put into a text to break it: nothing, and these, a space between them.
    const PIECES: &str = r#" { } [ ] , : " \ é },{"a ]} {}, "children":[ "id": ,"children":[{"id":"c"},{"id":"d"}] {"id":"e"},"#;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn random_documents_read_the_same_wherever_they_are_cut(
            dice in vec(any::<u8>(), 0..400),
            breaks in vec((any::<Index>(), select(PIECES.split(' ').collect::<Vec<_>>()), 0usize..3), 0..2),
            cuts in vec((any::<Index>(), any::<bool>()), 1..5),
        ) {
            let mut text = random_node(&mut dice.into_iter(), 6);
            text.push_str(r#","root":{"children":[{"id":"beyond"},{"id":"more"}]}}"#);
            for (at, piece, gone) in breaks {
                let at = text.floor_char_boundary(at.index(text.len()));
                let end = text.ceil_char_boundary((at + gone).min(text.len()));
                text.replace_range(at..end, piece);
            }
            let braces: Vec<usize> = text.match_indices('{').map(|(at, _)| at).collect();
            let mut cuts: Vec<usize> = cuts
                .into_iter()
                .map(|(at, brace)| match brace && !braces.is_empty() {
                    true => braces[at.index(braces.len())],
                    false => at.index(text.len() + 1),
                })
                .collect();
            cuts.sort_unstable();
            let whole = outcome(&text, &[]);
            prop_assert_eq!(outcome(&text, &cuts), whole, "{} cut at {:?}", text, cuts);
        }
    }

    #[test]
    fn parts_go_outwards() {
        let starts = |from: &str, stop: usize| {
            let parts = read_share(DOCUMENT, DOCUMENT.find(from).unwrap_or(0), stop);
            let id = |part: &Part<'_>| {
                let rows = part.draft.tree.rows.iter().filter(|row| row.parent == NONE);
                let ids: Vec<_> = rows
                    .map(|row| &part.draft.tree.ids[row.id.0 as usize..row.id.1 as usize])
                    .collect();
                ids.join(" ")
            };
            parts.iter().map(id).collect::<Vec<_>>()
        };
        let end = DOCUMENT.len();
        assert_eq!(
            starts(r#"{"id":"b2""#, end),
            ["b2 b3", "c2", "t2 t3", "a", "beyond"]
        );
        assert_eq!(
            starts(r#"{"id":"y""#, end),
            ["y z", "c2", "t2 t3", "a", "beyond"]
        );
        let stop = DOCUMENT.find("t2").unwrap_or(0);
        assert_eq!(starts(r#"{"id":"b2""#, stop), ["b2 b3", "c2", "t2"]);
        // Elements of content that are no nodes.
        assert_eq!(
            starts(r#"{"a":1}"#, end),
            ["b3", "c2", "t2 t3", "a", "beyond"]
        );
        // A list whose elements are not all objects.
        let mixed = r#"[{"id":"a"},7,"},{",[{}],{"id":"b"},{"id":"c"}],"k":{}},{"id":"d"}"#;
        let parts = read_share(mixed, 1, mixed.len());
        let begin: Vec<_> = parts.iter().map(|part| part.start).collect();
        let at = |what: &str| mixed.find(what).unwrap_or(0);
        assert_eq!(begin, [1, at(r#"{"id":"b"#), at(r#"{"id":"d"#)]);
        // Text that is no document makes no more parts than one that is.
        let endless = r#"{"id":"a"}]},"#.repeat(2 * MAX_PARTS);
        assert_eq!(read_share(&endless, 0, endless.len()).len(), MAX_PARTS);
        // A string that looks like one.
        assert_eq!(starts(r#"{\"id\":\"x\"}"#, end), [""; 0]);
    }

    #[test]
    fn a_part_is_taken_over_where_it_begins() {
        let at = |what: &str| DOCUMENT.find(what).unwrap_or(0);
        let read = |start: usize| read_share(DOCUMENT, start, DOCUMENT.len());
        let mut parts = Parts {
            list: read(at(r#"{"id":"b2""#)).into(),
            next: 0,
            awaited: false,
        };
        assert!(
            parts.take(at(r#"{"id":"b1""#)).is_none(),
            "before the first"
        );
        assert_eq!(parts.next(), at(r#"{"id":"b2""#));
        assert!(parts.take(at(r#"{"id":"b2""#)).is_some());
        assert!(
            parts.take(at(r#"{"id":"t3""#)).is_none(),
            "in the middle of one"
        );
        let part = parts.take(at(r#"{"id":"a""#));
        assert!(part.is_some_and(|part| part.draft.tree.rows.len() == 3));
        assert_eq!(parts.next(), at(r#"{"id":"beyond""#), "never comes");
    }

    #[test]
    fn what_is_wrong_is_told_the_same_wherever_a_document_is_cut() {
        for (good, bad) in [
            (r#""id":"b5""#, r#""id":5"#),
            (r#""id":"t3","#, ""),
            (r#""role":"late""#, r#""role":"late","role":"again""#),
            (r#""offset":1"#, r#""offset":1e400"#),
            (
                r#""content":[{"id":"no"}"#,
                r#""content":[{"id":"no","id":"no"}"#,
            ),
            (r#"{"id":"b7","key":"k"}"#, r#"{"id":"b7","key":"k""#),
            (r#"{"id":"b4"},"#, r#"{"id":"b4"},7,"#),
            (r#"{"id":"b4"},"#, r#"{"id":"b4"},,"#),
        ] {
            let text = DOCUMENT.replace(good, bad);
            let whole = outcome(&text, &[]);
            assert!(whole.is_err(), "{bad} is wrong");
            for cut in 0..=text.len() {
                assert_eq!(outcome(&text, &[cut]), whole, "{bad}, cut at {cut}");
            }
        }
    }

    #[test]
    fn depth_counts_from_the_root_in_a_part_too() {
        let chain = |levels: usize| {
            let open = r#"{"id":"n","children":[{"id":"m"},"#.repeat(levels);
            format!(r#"{open}{{"id":"last"}}{}"#, "]}".repeat(levels))
        };
        for levels in [MAX_NESTING - 1, MAX_NESTING] {
            let text = chain(levels);
            let whole = outcome(&text, &[]);
            assert_eq!(whole.is_ok(), levels < MAX_NESTING);
            let half = second_object(text.as_bytes(), text.len() / 4..text.len());
            assert!(half.is_some());
            assert_eq!(outcome(&text, half.as_slice()), whole);
        }
    }

    #[test]
    fn cuts_are_where_objects_surely_begin() {
        for (text, found) in [
            (r#"[{"a":1},{"b":2}]"#, Some(9)),
            ("[{} ,\n {\t\"b\":2}]", Some(7)),
            (r#"["},{","x"]"#, None),
            (r#"["},{\"b\":"]"#, None),
            (r#"[{"a":1},{}]"#, None),
            (r#"[1,{"a":1}]"#, None),
            ("{", None),
        ] {
            assert_eq!(
                second_object(text.as_bytes(), 0..text.len()),
                found,
                "{text}"
            );
        }
        assert!(
            cuts(DOCUMENT, 0).is_empty(),
            "a short text is read by one thread"
        );
        let long = format!("[{}{{}}]", r#"{"id":"x"},"#.repeat(SHARE / 2));
        let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let cut = |threads| pool(threads).map(|pool| pool.install(|| cuts(&long, 0).len()));
        assert_eq!(cut(1).ok(), Some(0));
        assert_eq!(cut(2).ok(), Some(1));
        assert_eq!(cut(64).ok(), Some(long.len() / SHARE - 1));
    }
}
