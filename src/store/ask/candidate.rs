//! What a bound selector requires of a session before any node of it can match: for the query that asks a
//! store which sessions are worth opening.

use crate::query::ir::{Address, Attr, Axis, Class, QueryTime, TypeTest};
use crate::query::plan::{Bound, BoundChain, BoundStep, BoundTest, BoundTests, Compare, TextTest};
use crate::store::ask::candidates::{Candidate, Hit};
use crate::tree::{NodeClass, is_header};

/// One requirement for each chain, any of which must hold; `None` if a chain requires nothing that a store
/// has an index for.
pub(crate) fn candidate(bound: &Bound) -> Option<Vec<Candidate>> {
    bound.chains.iter().map(of_chain).collect()
}

/// The most selective requirement of a chain: an id, a value of a custom attribute, a key.
fn of_chain(chain: &BoundChain) -> Option<Candidate> {
    let ids = chain.filters().filter_map(|filter| filter.id.as_deref());
    if let Some(id) = ids.last() {
        return Some(Candidate::Id(id.into()));
    }
    let tests = || chain.filters().flat_map(|filter| &filter.tests);
    let value = tests().find_map(|test| match test {
        BoundTest::Attr(condition) => match (&condition.attr, &condition.compare) {
            (Attr::Custom(name), Compare::Value(test)) => {
                let text = test
                    .only()
                    .filter(|text| is_indexed(text) && name.len() <= 200)?;
                Some(Candidate::Attr(name.to_string(), text.to_owned()))
            }
            _ => None,
        },
        _ => None,
    });
    value.or_else(|| {
        tests().find_map(|test| match test {
            BoundTest::Attr(condition) => match (&condition.attr, &condition.compare) {
                (
                    Attr::Key,
                    Compare::Text(TextTest::In {
                        texts,
                        null: false,
                        negated: false,
                    }),
                ) => match &texts[..] {
                    [key] => Some(Candidate::Key(key.to_string())),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        })
    })
}

/// A selector whose answer the rows of a store give, as whatever decides it is in the row of each node.
#[derive(Debug)]
pub(crate) struct Exact<'b> {
    /// What the nodes have.
    pub(crate) candidate: Candidate,
    /// Whether the working state is read where there is one.
    pub(crate) working: bool,
    /// Further conditions on them.
    tests: &'b BoundTests,
}

/// What the rows of a store have to be asked for; `None` if they do not show the answer.
pub(crate) fn exact(time: QueryTime, bound: &Bound) -> Option<Exact<'_>> {
    let working = match time {
        QueryTime::At(Address::Back(0)) => false,
        QueryTime::Working => true,
        QueryTime::At(_) | QueryTime::Range(..) | QueryTime::All => return None,
    };
    let ([chain], [], true) = (&*bound.chains, &*bound.filters, bound.is_bare) else {
        return None;
    };
    let ([BoundStep::Filter(filter)], None) = (&*chain.steps, &chain.scope) else {
        return None;
    };
    let anywhere = filter.axis == Axis::Descendant && filter.level.is_none();
    if !anywhere || !filter.picks.is_empty() {
        return None;
    }
    let candidate = of_chain(chain)?;
    let own = match &candidate {
        Candidate::Attr(name, _) => Some(&**name).filter(|name| !is_header(name)),
        Candidate::Id(_) | Candidate::Key(_) => None,
    };
    let mut values = 0;
    for test in &filter.tests {
        match test {
            BoundTest::Type(TypeTest::Class(Class::Turn | Class::Block)) => {}
            BoundTest::Attr(test) => match (&test.attr, &test.compare) {
                (Attr::Id | Attr::Role | Attr::Key, Compare::Text(_)) => {}
                (Attr::Custom(name), Compare::Value(_)) if own == Some(&**name) => values += 1,
                _ => return None,
            },
            BoundTest::Type(_) | BoundTest::Depth(_) => return None,
        }
    }
    let is_attr = matches!(candidate, Candidate::Attr(..));
    (values == usize::from(is_attr)).then_some(Exact {
        candidate,
        working,
        tests: &filter.tests,
    })
}

impl Exact<'_> {
    /// Whether a node is in the answer; `None` if its row does not show that.
    pub(crate) fn holds(&self, hit: &Hit<'_>) -> Option<bool> {
        // A value that is a member of a list.
        if hit.is_member {
            return None;
        }
        let mut all = true;
        for test in self.tests {
            let holds = match test {
                BoundTest::Type(TypeTest::Class(Class::Turn)) => hit.class == NodeClass::Turn,
                BoundTest::Type(_) => hit.class == NodeClass::Block,
                BoundTest::Attr(test) => match (&test.attr, &test.compare) {
                    (Attr::Id, Compare::Text(test)) => test.holds(Some(hit.id)),
                    (Attr::Role, Compare::Text(test)) => test.holds(hit.header(hit.role)?),
                    (Attr::Key, Compare::Text(test)) => test.holds(hit.header(hit.key)?),
                    // That of the candidate.
                    _ => true,
                },
                BoundTest::Depth(_) => false,
            };
            all &= holds;
        }
        Some(all)
    }
}

/// Whether only texts of nodes equal this one, and a store has an index of them: not a number, not a truth
/// value, and not long.
fn is_indexed(text: &str) -> bool {
    let number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    !number && !matches!(text, "true" | "false" | "null") && text.len() <= 200
}
