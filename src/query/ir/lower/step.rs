//! Steps of a chain: roots, types, keys, tags, pseudo-classes, zones (LANGUAGE §2, §4).

use super::faults;
use super::lowerer::Lowerer;
use super::notes::in_step;
use crate::query::ir::depth::DepthSet;
use crate::query::ir::edition::Edition;
use crate::query::ir::name::{normal_type, split_type};
use crate::query::ir::query::{
    Attr, AttrTest, Chain, Class, CompareOp, Literal, NodeStep, Operand, PickOrTest, QueryStep,
    Test, Tests, TypeTest, Zone,
};
use crate::query::syntax::ast::{GroupSyntax, Nth, StepPart, StepSyntax, WordOrParam};
use crate::query::syntax::words::{
    BARE_CONDITIONS, CALLED_PSEUDOS, CONDITIONS, FOREIGN_PSEUDOS, ROOTS,
};
use crate::query::syntax::{Span, Spanned, quote};
use crate::support::diag::{SelectorEdit, nearest};

/// All pseudo-classes, for suggestions.
const PSEUDOS: [&str; 7] = ["pre", "core", "post", "first", "last", "nth", "depth"];

/// Where a step is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StepContext {
    /// One of several of a group.
    Chain,
    /// The whole group, where `^seq` means the turns.
    Sole,
    /// In `:not(…)` and its like: what is written are tests of one node (LANGUAGE §13).
    Test,
}

#[derive(Default)]
struct StepDraft {
    tests: Tests,
    tail: Vec<PickOrTest>,
    /// Whether there is `.mt` without a kind, which with a depth also matches `^sys` and `^ah`.
    plain_turn: bool,
    /// Whether there is anything but `*`, depths and picks, which a depth then narrows.
    basis: bool,
    depth: bool,
}

impl StepDraft {
    /// Adds the test of a pseudo-class: to the tests, or after a pick to the tail.
    fn narrow(&mut self, test: Test) {
        if self.tail.is_empty() {
            self.tests.push(test);
        } else {
            self.tail.push(PickOrTest::Test(test));
        }
    }
}

impl Lowerer {
    pub(super) fn group(&mut self, group: &GroupSyntax<'_>) -> Option<Chain> {
        let context = match group.steps.len() {
            1 => StepContext::Sole,
            _ => StepContext::Chain,
        };
        let mut steps = Vec::with_capacity(group.steps.len());
        let mut sound = true;
        for (axis, step) in &group.steps {
            // The axis of the first step is always `Descendant`.
            match self.step(step, context) {
                Some(step) => steps.push((*axis, step)),
                None => sound = false,
            }
        }
        sound.then(|| Chain {
            steps: steps.into(),
        })
    }

    pub(super) fn step(
        &mut self,
        step: &StepSyntax<'_>,
        context: StepContext,
    ) -> Option<QueryStep> {
        if context != StepContext::Test
            && let [part] = step.parts.as_slice()
            && let StepPart::Pseudo(name) = part.node
            && let Some(zone) = Zone::parse(name)
        {
            return Some(QueryStep::Zone(zone));
        }
        let mut draft = StepDraft {
            tests: Tests::with_capacity(step.parts.len()),
            ..StepDraft::default()
        };
        let mut sound = true;
        let noted = self.noted();
        for part in &step.parts {
            let (tests, tail) = (draft.tests.len(), draft.tail.len());
            sound &= self.part(part, context, &mut draft).is_some();
            if !matches!(part.node, StepPart::Star) {
                let tests = draft.tests.get(tests..).unwrap_or_default();
                let tail = draft.tail.get(tail..).unwrap_or_default();
                self.note(part.span, || in_step(tests, tail));
            }
        }
        if !sound {
            return None;
        }
        if draft.depth {
            if draft.plain_turn {
                for test in &mut draft.tests {
                    if *test == Test::Type(TypeTest::Class(Class::Turn)) {
                        *test = Test::Type(TypeTest::TurnOrAnchor);
                    }
                }
            } else if !draft.basis && context != StepContext::Test {
                // Alone, `:depth(2)` is `depth(2)`. After a pick it narrows.
                let anchor = Test::Type(TypeTest::Anchor);
                if draft.tests.is_empty() {
                    draft.tail.push(PickOrTest::Test(anchor));
                } else {
                    draft.tests.push(anchor);
                    self.note_whole(noted, step.span, || in_step(&draft.tests, &draft.tail));
                }
            }
        }
        Some(QueryStep::Node(NodeStep {
            tests: draft.tests,
            tail: draft.tail.into(),
        }))
    }

    fn part(
        &mut self,
        part: &Spanned<StepPart<'_>>,
        context: StepContext,
        draft: &mut StepDraft,
    ) -> Option<()> {
        let span = part.span;
        match &part.node {
            StepPart::Star => {}
            StepPart::Root(name) => {
                draft.basis = true;
                let sole = context == StepContext::Sole;
                self.root(name, span, sole, &mut draft.tests)?;
            }
            StepPart::Type(word) => {
                draft.basis = true;
                draft.plain_turn |= matches!(*word, "mt" | "seg");
                self.type_word(word, span, &mut draft.tests)?;
            }
            StepPart::Key(word) => {
                draft.basis = true;
                let test = self.key(word, span);
                draft.tests.push(test);
            }
            StepPart::Attrs(attrs) => {
                draft.basis = true;
                return self.attrs(attrs, span, &mut draft.tests).then_some(());
            }
            StepPart::Tag(tag) => {
                draft.basis = true;
                let instead = Some(format!("[tag={}]", quote(tag)));
                self.needs(Edition::Canonical, span, "`+tag`", instead)
                    .then_some(())?;
                draft.tests.push(Test::of_tag(tag));
            }
            StepPart::Anchor(items) => {
                draft.basis = true;
                let fits = self.needs(Edition::Depth, span, "`depth(…)`", None);
                let set = self.depths(items, span)?;
                fits.then_some(())?;
                draft.tests.push(Test::Type(TypeTest::Anchor));
                draft.tests.push(Test::Depth(set));
            }
            StepPart::Depth(items) => {
                let set = self.depths(items, span)?;
                draft.depth = true;
                draft.narrow(Test::Depth(set));
            }
            StepPart::Nth(nth) => {
                let pick = self.nth(nth)?;
                draft.tail.push(pick);
            }
            StepPart::Condition(condition) => {
                draft.basis = true;
                let noted = self.noted();
                let test = self.condition(condition, span);
                self.forget_notes(noted);
                draft.narrow(test?);
            }
            StepPart::Pseudo(name) => self.pseudo(name, span, draft)?,
        }
        Some(())
    }

    fn root(&mut self, name: &str, span: Span, sole: bool, tests: &mut Tests) -> Option<()> {
        let depths = match name {
            "root" => {
                tests.push(Test::Type(TypeTest::Root));
                return Some(());
            }
            "sys" => DepthSet::one(-1),
            "ah" => DepthSet::one(0),
            // As a whole group it means the turns, elsewhere their parent.
            "seq" if sole && self.edition >= Edition::Depth => DepthSet::range(1, i64::MAX),
            "seq" => {
                tests.push(Test::Type(TypeTest::Seq));
                return Some(());
            }
            _ => {
                let fault = match name {
                    "" => faults::NO_ROOT,
                    _ => faults::UNKNOWN_ROOT,
                };
                let root = nearest(name, ROOTS).map(|root| format!("^{root}"));
                let help = match &root {
                    Some(root) => format!("did you mean `{root}`?"),
                    None => "the roots are `^root`, `^sys`, `^seq` and `^ah`".to_owned(),
                };
                let edit = root.map(|root| SelectorEdit::new(span, root));
                return self.mistake(span, fault, &[&name, &help], edit);
            }
        };
        tests.push(Test::Type(TypeTest::Anchor));
        tests.push(Test::Depth(depths));
        Some(())
    }

    /// `.cb`, `.cb:summary`, `.foo`, without the dot.
    fn type_word(&mut self, word: &str, span: Span, tests: &mut Tests) -> Option<()> {
        // Fast path: most types are a class.
        if let Some(class) = Class::from_word(word) {
            tests.push(Test::Type(TypeTest::Class(class)));
            return Some(());
        }
        self.no_empty_part(word, span)?;
        let (head, sub) = split_type(word);
        if let Some(sub) = sub {
            self.no_foreign_pseudo(sub, span)?;
            self.warn_near_pseudo('.', head, sub, span);
        }
        self.warn_of_type(head, span);
        self.class_or_type(head, sub, tests);
        Some(())
    }

    /// Refuses `.cb:not` and its like, which are never kinds (LANGUAGE §11).
    pub(super) fn no_foreign_pseudo(&mut self, sub: &str, span: Span) -> Option<()> {
        let Some(part) = sub.split(':').find(|part| FOREIGN_PSEUDOS.contains(part)) else {
            return Some(());
        };
        if CONDITIONS.contains(&part) {
            return self.fault(span, faults::CONDITION_ALONE, &[&part]);
        }
        self.fault(span, faults::FOREIGN_PSEUDO, &[&part])
    }

    /// Refuses a type such as `cb:` or `cb::x` (LANGUAGE §2).
    pub(super) fn no_empty_part(&mut self, word: &str, span: Span) -> Option<()> {
        if word.split(':').all(|part| !part.is_empty()) {
            return Some(());
        }
        self.fault(span, faults::EMPTY_PART, &[])
    }

    /// Adds the tests of a type and a kind, as the edition reads them (LANGUAGE §1).
    pub(super) fn class_or_type(&mut self, head: &str, sub: Option<&str>, tests: &mut Tests) {
        let is = |attr, text: &str| Test::new(attr, CompareOp::Eq, Literal::Text(text.into()));
        match (Class::from_word(head), sub) {
            (Some(class), None) => tests.push(Test::Type(TypeTest::Class(class))),
            (_, Some(sub)) if self.edition == Edition::V01 => {
                let whole = format!("{}:{sub}", normal_type(head));
                tests.push(is(Attr::StoredType, &whole));
            }
            (None, None) if self.edition == Edition::V01 => tests.push(is(Attr::StoredType, head)),
            (_, sub) => {
                tests.push(is(Attr::NodeType, &normal_type(head)));
                tests.extend(sub.map(|sub| is(Attr::Kind, sub)));
            }
        }
    }

    fn key(&mut self, word: &WordOrParam<'_>, span: Span) -> Test {
        let operand = match word {
            WordOrParam::Param(name) => Operand::Param((*name).into()),
            WordOrParam::Text(text) => {
                // A quoted word is meant as written. Without quotes the span is sign and word.
                let quoted = (span.end - span.start) as usize != text.len() + 1;
                if !quoted && let Some((head, sub)) = text.split_once(':') {
                    self.warn_near_pseudo('#', head, sub, span);
                }
                Operand::Literal(Literal::Text((**text).into()))
            }
        };
        let op = CompareOp::Eq;
        let attr = match self.edition {
            Edition::V01 | Edition::Depth => Attr::Id,
            Edition::Canonical => Attr::Key,
        };
        Test::Attr(AttrTest { attr, op, operand })
    }

    fn nth(&mut self, nth: &Spanned<Nth<'_>>) -> Option<PickOrTest> {
        match nth.node {
            Nth::Param(name) => Some(PickOrTest::Nth(Operand::Param(name.into()))),
            Nth::Number(1) => Some(PickOrTest::First),
            Nth::Number(number) if number >= 1 => {
                Some(PickOrTest::Nth(Operand::Literal(Literal::Int(number))))
            }
            Nth::Number(_) => self.fault(nth.span, faults::NTH_ZERO, &[]),
        }
    }

    fn pseudo(&mut self, name: &str, span: Span, draft: &mut StepDraft) -> Option<()> {
        if let Some(zone) = Zone::parse(name) {
            draft.basis = true;
            draft.narrow(Test::new(Attr::Offset, zone.offsets(), Literal::Int(0)));
            return Some(());
        }
        match name {
            "first" => draft.tail.push(PickOrTest::First),
            "last" => draft.tail.push(PickOrTest::Last),
            "depth" | "nth" => return self.fault(span, faults::PSEUDO_NUMBER, &[&name]),
            _ if BARE_CONDITIONS.contains(&name) => {
                draft.basis = true;
                let test = self.bare_condition(name, span)?;
                draft.narrow(test);
            }
            _ if CONDITIONS.contains(&name) => {
                return self.fault(span, faults::CONDITION_ALONE, &[&name]);
            }
            _ => {
                if ROOTS.contains(&name) {
                    let edit = SelectorEdit::new(span, format!("^{name}"));
                    let help = format!("did you mean `^{name}`?");
                    return self.mistake(span, faults::UNKNOWN_PSEUDO, &[&name, &help], Some(edit));
                }
                let known = nearest(name, PSEUDOS);
                let help = known.map(|known| format!("did you mean `:{known}`?"));
                let list = "the pseudo-classes are `:pre`, `:core`, `:post`, `:first`, `:last`, \
                            `:nth(…)` and `:depth(…)`, and with selectors inside `:has(…)`, `:not(…)`, \
                            `:is(…)`, `:after(…)`, `:before(…)`, `:has-result` and `:has-call`";
                let help = help.unwrap_or_else(|| list.to_owned());
                let edit = known
                    .map(|known| SelectorEdit::new(span, format!(":{known}{}", called(known))));
                return self.mistake(span, faults::UNKNOWN_PSEUDO, &[&name, &help], edit);
            }
        }
        Some(())
    }

    /// Warns of `.mt:frist`, which is a type where `:first` was probably meant.
    fn warn_near_pseudo(&mut self, sign: char, head: &str, sub: &str, span: Span) {
        for part in sub.split(':') {
            if let Some(pseudo) = near_pseudo(part) {
                let message = if pseudo == part {
                    format!("`:{part}` is part of the word here, not a pseudo-class")
                } else {
                    format!(
                        "`:{part}` is part of the word, and almost the pseudo-class `:{pseudo}`"
                    )
                };
                let called = called(pseudo);
                let help = if sub == part {
                    format!("write `{sign}{head}:{pseudo}{called}` for the pseudo-class")
                } else {
                    format!("write `:{pseudo}{called}` at the end of the word for the pseudo-class")
                };
                self.warn(span, message, "taken as one word", help);
                return;
            }
        }
    }
}

/// What follows the name of a pseudo-class.
fn called(pseudo: &str) -> &'static str {
    if CALLED_PSEUDOS.contains(&pseudo) {
        "(1)"
    } else if CONDITIONS.contains(&pseudo) && !BARE_CONDITIONS.contains(&pseudo) {
        "(…)"
    } else {
        ""
    }
}

/// The pseudo-class that `part` equals or nearly equals: one letter more, one less, or two
/// swapped. One different letter counts only in pseudo-classes of five letters and more, because
/// `code` and `list` are ordinary kinds.
fn near_pseudo(part: &str) -> Option<&'static str> {
    // Hot path: called for each type with a kind.
    if part.len() < 2 || part.len() > 11 {
        return None;
    }
    let part = part.as_bytes();
    // Words such as `note` and `hash` are kinds as well.
    let conditions = CONDITIONS
        .into_iter()
        .filter(|condition| condition.len() >= 5);
    PSEUDOS.into_iter().chain(conditions).find(|pseudo| {
        let pseudo = pseudo.as_bytes();
        if part.eq_ignore_ascii_case(pseudo) {
            return true;
        }
        let same = part.iter().zip(pseudo).take_while(|(a, b)| a == b).count();
        let (rest, meant) = (
            part.get(same..).unwrap_or_default(),
            pseudo.get(same..).unwrap_or_default(),
        );
        match (rest, meant) {
            ([], []) => true,
            ([a, b, rest @ ..], [x, y, meant @ ..]) if a == y && b == x => rest == meant,
            ([_, more @ ..], meant) if more == meant => true,
            (rest, [_, more @ ..]) if rest == more => true,
            ([_, rest @ ..], [_, meant @ ..]) => pseudo.len() >= 5 && rest == meant,
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::near_pseudo;

    #[test]
    fn near_misses_are_one_edit_away() {
        for (part, pseudo) in [
            ("frist", "first"),
            ("firs", "first"),
            ("firsst", "first"),
            ("fxrst", "first"),
            ("lats", "last"),
            ("dept", "depth"),
            ("first", "first"),
            ("nht", "nth"),
            ("before", "before"),
            ("aftr", "after"),
            ("has-results", "has-result"),
        ] {
            assert_eq!(near_pseudo(part), Some(pseudo), "{part}");
        }
        for part in [
            "code", "list", "text", "call", "summary", "u2", "", "host", "note", "hash",
        ] {
            assert_eq!(near_pseudo(part), None, "{part}");
        }
    }
}
