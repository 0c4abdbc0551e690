//! Positions: hops from the root's children down, which become child steps, and the insertion point
//! at their end (LANGUAGE §7).

use std::borrow::Cow;
use std::fmt::Display;

use smallvec::smallvec;

use super::faults;
use super::lowerer::{Lowerer, MAX_STEPS};
use crate::query::ir::depth::DepthSet;
use crate::query::ir::edition::Edition;
use crate::query::ir::name::split_type;
use crate::query::ir::purpose::{InsertionPoint, Purpose};
use crate::query::ir::query::{
    Attr, AttrKind, Axis, Chain, Class, CompareOp, Literal, QueryStep, Test, Tests, TypeTest,
};
use crate::query::syntax::ast::{Brackets, DepthItem, Hop, HopHead, HopPart, PositionSyntax};
use crate::query::syntax::words::{CALLED_PSEUDOS, CLASSES, PLAIN_PSEUDOS};
use crate::query::syntax::{Span, Spanned};
use crate::support::diag::{SelectorEdit, nearest};

#[derive(Default)]
struct HopsRead {
    /// The union of the depth hops.
    depths: Option<DepthSet>,
    /// The tests of a `seg` directly after the depth hops.
    anchor: Tests,
    /// Whether there was such a `seg`.
    confirmed: bool,
    steps: Vec<(Axis, QueryStep)>,
}

impl HopsRead {
    fn chain(mut self) -> Chain {
        let first = match self.depths {
            Some(depths) => {
                self.anchor.push(Test::Type(TypeTest::Anchor));
                self.anchor.push(Test::Depth(depths));
                self.anchor
            }
            None => smallvec![Test::Type(TypeTest::Root)],
        };
        self.steps
            .insert(0, (Axis::Descendant, QueryStep::from_tests(first)));
        Chain {
            steps: self.steps.into(),
        }
    }
}

/// An insertion point: a trailing comma, `end`, `+N` or `-N`.
type WrittenInsertion<'a> = Spanned<&'a str>;

const COMMA: &str = ",";

/// What an insertion point is called in messages.
fn named(point: &WrittenInsertion<'_>) -> Cow<'static, str> {
    match point.node {
        COMMA => "a trailing comma".into(),
        written => format!("`{written}`").into(),
    }
}

/// The insertion point that ends a position, and the hops before it.
fn split_insertion<'a, 's>(
    position: &'a PositionSyntax<'s>,
) -> (&'a [Hop<'s>], Option<WrittenInsertion<'s>>) {
    if let Some(span) = position.trailing_comma {
        return (&position.hops, Some(Spanned::new(COMMA, span)));
    }
    let last = position.hops.split_last();
    let split = last.and_then(|(last, before)| Some((before, Some(insertion_of(last)?))));
    split.unwrap_or((&position.hops, None))
}

/// The insertion point that a hop is at the end of a position.
fn insertion_of<'s>(hop: &Hop<'s>) -> Option<WrittenInsertion<'s>> {
    let written = match hop.head {
        HopHead::Word(word @ "end") => word,
        HopHead::Int(written) if written.starts_with(['+', '-']) => written,
        _ => return None,
    };
    let is_alone = hop.parts.is_empty();
    is_alone.then(|| Spanned::new(written, hop.span))
}

impl Lowerer {
    pub(super) fn position(&mut self, position: &PositionSyntax<'_>, place: bool) -> Option<Chain> {
        let mut sound = self.needs(Edition::Depth, position.span, "a position `(…)`", None);
        if position.hops.is_empty() {
            return self.fault(position.span, faults::NO_HOPS, &[]);
        }
        if let Some(hop) = position.hops.get(MAX_STEPS) {
            let words: [&dyn Display; 2] = [&MAX_STEPS, &position.hops.len()];
            return self.fault(hop.span, faults::MANY_HOPS, &words);
        }
        let (named, point) = split_insertion(position);
        if let Some(point) = &point {
            sound &= if place {
                self.insertion_point(point, named).is_some()
            } else {
                self.no_insertion_point(point, named)
            };
        }
        let mut hops = HopsRead::default();
        for hop in named {
            sound &= self.next_hop(hop, &mut hops).is_some();
        }
        sound.then(|| hops.chain())
    }

    fn next_hop(&mut self, hop: &Hop<'_>, hops: &mut HopsRead) -> Option<()> {
        self.check_spelling(hop)?;
        let start = hops.steps.is_empty() && !hops.confirmed;
        if let Some(set) = self.depth_hop(hop) {
            let set = set?;
            if !start {
                return self.fault(hop.span, faults::LATE_DEPTH, &[]);
            }
            hops.depths = Some(match hops.depths.take() {
                Some(depths) => depths.union(&set),
                None => set,
            });
        } else if start && hops.depths.is_some() && is_turn(hop) {
            // `seg` directly after the depths names the depth-axis container itself.
            hops.confirmed = true;
            self.confirm(hop, &mut hops.anchor)?;
        } else {
            let tests = self.hop(hop)?;
            hops.steps.push((Axis::Child, QueryStep::from_tests(tests)));
        }
        Some(())
    }

    /// Refuses white space inside a hop, and a group that does not directly follow a class
    /// (LANGUAGE §7).
    fn check_spelling(&mut self, hop: &Hop<'_>) -> Option<()> {
        let (start, length) = (hop.span.start, head_length(&hop.head));
        let is_depth = match &hop.head {
            HopHead::Word(word) => depth_word(word).is_some(),
            HopHead::Range(..) | HopHead::Depth(_) => true,
            HopHead::Star | HopHead::Int(_) | HopHead::Search => false,
        };
        if is_depth && !hop.parts.is_empty() {
            // It takes no parts, which says more.
            return Some(());
        }
        let mut at = length.map(|length| start + length);
        // Whether the part before is a class, with or without a kind.
        let mut class = matches!(&hop.head, HopHead::Word(_));
        for part in &hop.parts {
            if at.is_some_and(|at| at != part.span.start) {
                at = None;
                break;
            }
            if let HopPart::Attrs(attrs) = &part.node
                && attrs.form == Brackets::Group
                && !class
            {
                return self.fault(part.span, faults::LOOSE_GROUP, &[]);
            }
            class = !matches!(part.node, HopPart::Attrs(_));
            at = Some(part.span.end);
        }
        if at == Some(hop.span.end) || length.is_none() {
            return Some(());
        }
        self.fault(hop.span, faults::SPACED_HOP, &[])
    }

    /// The depths of `d1`, `d1..d3`, `depth(…)`; `None` for any other hop, `Some(None)` for a
    /// depth hop with a mistake.
    fn depth_hop(&mut self, hop: &Hop<'_>) -> Option<Option<DepthSet>> {
        let set = match &hop.head {
            HopHead::Depth(items) => self.depths(items, hop.span),
            HopHead::Word(word) => Some(DepthSet::one(depth_word(word)?)),
            HopHead::Range(low, high) => match (depth_word(low), depth_word(high)) {
                (Some(low), Some(high)) => {
                    let item = Spanned::new(DepthItem::Range(low, high), hop.span);
                    self.depths(&[item], hop.span)
                }
                _ => self.fault(hop.span, faults::RANGE_OF_HOPS, &[]),
            },
            HopHead::Star | HopHead::Int(_) | HopHead::Search => return None,
        };
        Some(match hop.parts.first() {
            Some(part) => self.fault(part.span, faults::DEPTH_WITH_PARTS, &[]),
            None => set,
        })
    }

    /// `seg`, `seg.sub` or `seg[…]` directly after the depths.
    fn confirm(&mut self, hop: &Hop<'_>, tests: &mut Tests) -> Option<()> {
        let HopHead::Word(word) = &hop.head else {
            return None;
        };
        let (_, sub) = split_type(word);
        let sub = self.hop_parts(hop, &hop.parts, sub, tests)?;
        if sub.is_some() {
            self.class_or_type("mt", sub, tests);
        }
        Some(())
    }

    /// The tests of a hop that is neither a depth nor the `seg` after it.
    fn hop(&mut self, hop: &Hop<'_>) -> Option<Tests> {
        let mut tests = Tests::new();
        let (mut class, mut sub) = self.hop_head(hop, &mut tests)?;
        let mut parts = hop.parts.as_slice();
        // `*:block.call`: the class is the first word after the star.
        if class.is_none()
            && let [first, rest @ ..] = parts
            && let HopPart::Class(word) = first.node
            && let Some(word) = word.strip_prefix(':')
        {
            let (head, kind) = split_type(word);
            class = Some(self.hop_class(head, first.span)?);
            sub = kind;
            parts = rest;
        }
        let is_kind = |part: &&Spanned<HopPart<'_>>| !matches!(part.node, HopPart::Attrs(_));
        if class.is_none()
            && let Some(part) = parts.iter().find(is_kind)
        {
            return self.fault(part.span, faults::KIND_ALONE, &[]);
        }
        let sub = self.hop_parts(hop, parts, sub, &mut tests)?;
        if let Some(class) = class {
            self.class_or_type(class, sub, &mut tests);
        }
        Some(tests)
    }

    /// The class word and the kind in the head of a hop. Adds a test of the offset, if it has one.
    fn hop_head<'s>(
        &mut self,
        hop: &Hop<'s>,
        tests: &mut Tests,
    ) -> Option<(Option<&'s str>, Option<&'s str>)> {
        match hop.head {
            HopHead::Star => Some((None, None)),
            HopHead::Search => self
                .needs(Edition::Canonical, hop.span, "`? {…}`", None)
                .then_some((None, None)),
            HopHead::Int(written) => {
                let offset = self.offset(written, hop)?;
                tests.push(Test::new(Attr::Offset, CompareOp::Eq, Literal::Int(offset)));
                Some((None, None))
            }
            HopHead::Word("end") => {
                self.misplaced("end", hop, "write it as the last thing of the position")
            }
            HopHead::Word(word) => {
                let (head, sub) = split_type(word);
                match (Class::from_word(head), head.parse(), sub) {
                    (Some(_), ..) => Some((Some(head), sub)),
                    // `1:block`: the word after the colon is the class.
                    (None, Ok(offset), Some(sub)) => {
                        tests.push(Test::new(Attr::Offset, CompareOp::Eq, Literal::Int(offset)));
                        let (class, rest) = split_type(sub);
                        Some((Some(self.hop_class(class, hop.span)?), rest))
                    }
                    _ => self.unknown_hop(head, hop.span),
                }
            }
            // These are depth hops.
            HopHead::Range(..) | HopHead::Depth(_) => None,
        }
    }

    fn offset(&mut self, written: &str, hop: &Hop<'_>) -> Option<i64> {
        if written.starts_with('+') {
            return self.misplaced(written, hop, "write the offset without a sign");
        }
        self.integer(written, hop.span, AttrKind::Number)
    }

    /// Adds the properties among `parts`, and returns the kind: `sub`, or the one in `parts`.
    fn hop_parts<'s>(
        &mut self,
        hop: &Hop<'s>,
        parts: &[Spanned<HopPart<'s>>],
        sub: Option<&'s str>,
        tests: &mut Tests,
    ) -> Option<Option<&'s str>> {
        let mut kind = sub;
        let mut sound = true;
        for part in parts {
            match &part.node {
                HopPart::Attrs(attrs) => sound &= self.attrs(attrs, part.span, tests),
                HopPart::Sub(word) | HopPart::Class(word) => {
                    let is_sub = matches!(part.node, HopPart::Sub(_)) || word.starts_with(':');
                    if kind.is_some() || !is_sub {
                        sound = self.fault(part.span, faults::BEHIND_HOP, &[word]);
                        continue;
                    }
                    kind = Some(word.strip_prefix(':').unwrap_or(word));
                }
            }
        }
        if let Some(word) = kind {
            sound &= self.no_empty_part(word, hop.span).is_some();
            sound &= self.no_foreign_pseudo(word, hop.span).is_some();
            let is_pseudo =
                |part: &&str| PLAIN_PSEUDOS.contains(part) || CALLED_PSEUDOS.contains(part);
            if let Some(pseudo) = word.split(':').find(is_pseudo) {
                sound = self.fault(hop.span, faults::PSEUDO_IN_HOP, &[&pseudo]);
            }
        }
        sound.then_some(kind)
    }

    fn hop_class<'s>(&mut self, word: &'s str, span: Span) -> Option<&'s str> {
        if Class::from_word(word).is_some() {
            return Some(word);
        }
        let class = nearest(word, CLASSES).map(|class| format!("did you mean `{class}`?"));
        let help = class.unwrap_or_else(|| "the classes are `seg`, `cont` and `block`".to_owned());
        self.fault(span, faults::NO_CLASS, &[&word, &help])
    }

    fn unknown_hop<T: Default>(&mut self, word: &str, span: Span) -> T {
        let digits = word
            .strip_prefix('d')
            .map(|word| word.trim_start_matches('-'));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if digits.is_some_and(|digits| !digits.is_empty() && is_number(digits)) {
            return self.fault(span, faults::DEEP_HOP, &[]);
        }
        let (edit, help) = match word {
            _ if self.purpose != Purpose::Place => (None, ""),
            "last" | "append" | "bottom" => (Some("end"), "write `end` for after the last child"),
            "first" | "start" | "begin" | "prepend" | "top" => (
                Some(""),
                "write a trailing comma for before the first child",
            ),
            _ => (None, ""),
        };
        let help = match nearest(word, CLASSES.into_iter().chain(["end"])) {
            _ if edit.is_some() => help.to_owned(),
            Some(hop) => format!("did you mean `{hop}`?"),
            None => {
                "hops are depths such as `d1`, `seg`, `cont`, `block`, `*` and offsets".to_owned()
            }
        };
        let edit = edit.map(|text| SelectorEdit::new(span, text));
        self.mistake(span, faults::UNKNOWN_HOP, &[&word, &help], edit)
    }

    /// Refuses an insertion point that is not the end of a position.
    fn misplaced<T: Default>(&mut self, written: &str, hop: &Hop<'_>, help: &str) -> T {
        let fault = if hop.parts.is_empty() {
            faults::EARLY_INSERTION
        } else {
            faults::INSERTION_WITH_PARTS
        };
        self.fault(hop.span, fault, &[&written, &help])
    }

    /// Takes the insertion point after the hops of a place.
    fn insertion_point(&mut self, point: &WrittenInsertion<'_>, hops: &[Hop<'_>]) -> Option<()> {
        self.insertion = match point.node {
            COMMA => {
                if let Some(other) = hops.last().and_then(insertion_of) {
                    let (other, span) = (named(&other), point.span);
                    return self.mended(span, faults::TWO_INSERTIONS, &[&other], span, "");
                }
                InsertionPoint::Start
            }
            "end" => InsertionPoint::End,
            written => {
                let child = self.child(written, point.span)?;
                if written.starts_with('-') {
                    InsertionPoint::Before(child)
                } else {
                    InsertionPoint::After(child)
                }
            }
        };
        Some(())
    }

    fn child(&mut self, written: &str, span: Span) -> Option<u32> {
        let digits = written.get(1..).unwrap_or_default();
        match digits.parse() {
            Ok(0) => self.fault(span, faults::CHILD_ZERO, &[]),
            Ok(child) => Some(child),
            // The only fault that digits can have.
            Err(_) => self.fault(span, faults::LATE_CHILD, &[]),
        }
    }

    /// Refuses the insertion point after the hops of a position that names nodes; false.
    fn no_insertion_point(&mut self, point: &WrittenInsertion<'_>, hops: &[Hop<'_>]) -> bool {
        let help = match point.node {
            written if written.starts_with('-') => {
                let before: String = hops.iter().map(|hop| format!("{hop}, ")).collect();
                format!("write `({before}*[offset={written}])` for the children at that offset")
            }
            _ => "only `add` and `move` take an insertion point".to_owned(),
        };
        self.fault(point.span, faults::INSERTION, &[&named(point), &help])
    }
}

/// The length in bytes of the head of a hop that parts may follow.
fn head_length(head: &HopHead<'_>) -> Option<u32> {
    let length = match head {
        HopHead::Word(word) | HopHead::Int(word) => word.len(),
        HopHead::Range(low, high) => low.len() + "..".len() + high.len(),
        HopHead::Star | HopHead::Search => 1,
        HopHead::Depth(_) => return None,
    };
    u32::try_from(length).ok()
}

/// `d1`, `d-1`.
fn depth_word(word: &str) -> Option<i64> {
    word.strip_prefix('d')?.parse().ok()
}

fn is_turn(hop: &Hop<'_>) -> bool {
    matches!(&hop.head, HopHead::Word(word) if Class::from_word(split_type(word).0) == Some(Class::Turn))
}
