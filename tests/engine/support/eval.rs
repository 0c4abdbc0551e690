//! The interpreter: evaluates a [`Sel`] by walking the tree, one rule after the other as
//! LANGUAGE §4 and §6 state them. It keeps no index and rewrites nothing.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use super::compare::{holds, one_vocabulary};
use super::selector::{
    Axis, Body, Chain, Condition, Controls, Depths, Edition, Filter, Hop, Kind, NodeStep, Op,
    Order, Part, Prop, Pseudo, Region, Search, Sel, Sign, Step, Time, Value,
};
use super::tree::{Class, Item, Node, Session, Tree};

/// The left context of a step.
enum Context {
    Item(Item),
    /// A zone: the level of its owner and its members.
    Zone(i64, Vec<usize>),
}

/// Evaluates selectors on one snapshot.
pub(crate) struct Eval<'a> {
    pub(crate) session: &'a Session,
    pub(crate) tree: &'a Tree,
    pub(crate) edition: Edition,
}

/// The ids of a selector without a range, in result order, or the code of the error.
pub(crate) fn ids(
    session: &Session,
    edition: Edition,
    sel: &Sel,
) -> Result<Vec<String>, &'static str> {
    let rows = rows(session, edition, sel)?;
    Ok(rows
        .iter()
        .map(|(tree, node)| tree.id(*node).to_owned())
        .collect())
}

/// The rows of a selector without a range, each with its snapshot.
pub(crate) fn rows<'a>(
    session: &'a Session,
    edition: Edition,
    sel: &Sel,
) -> Result<Vec<(&'a Tree, usize)>, &'static str> {
    let trees: Vec<&Tree> = match sel.time {
        Time::Omitted if edition != Edition::V01 => {
            let newest = || session.committed.last();
            let tree = session.working.as_ref().or_else(newest);
            vec![tree.ok_or("E_SNAPSHOT_NOT_FOUND")?]
        }
        Time::Omitted => vec![session.back(0)?],
        Time::Back(back) => vec![session.back(back)?],
        Time::Cycle(cycle) => {
            let tree = session.committed.iter().find(|tree| tree.cycle == cycle);
            vec![tree.ok_or("E_SNAPSHOT_NOT_FOUND")?]
        }
        Time::All => session.committed.iter().rev().collect(),
        Time::BackRange(..) | Time::CycleRange(..) => panic!("a range has no plain ids"),
    };
    // Newest snapshot first; each id once, at the place of its newest match.
    let mut seen = HashSet::new();
    let mut rows: Vec<(&Tree, usize)> = Vec::new();
    for tree in trees {
        let eval = Eval {
            session,
            tree,
            edition,
        };
        for node in eval.ordered(sel) {
            if seen.insert(tree.id(node)) {
                rows.push((tree, node));
            }
        }
    }
    Ok(unique_and_window(rows, &sel.controls))
}

/// `@unique`, then the window.
pub(crate) fn unique_and_window<'a>(
    mut rows: Vec<(&'a Tree, usize)>,
    controls: &Controls,
) -> Vec<(&'a Tree, usize)> {
    if controls.unique {
        let mut seen = HashSet::new();
        rows.retain(|(tree, node)| {
            let node = &tree.nodes[*node];
            let key = node.field("key").and_then(super::json::Json::as_str);
            seen.insert((key.is_some(), key.unwrap_or(&node.id)))
        });
    }
    if let Some(size) = controls.limit {
        let skip = size * (controls.page.unwrap_or(1) - 1);
        rows = rows
            .into_iter()
            .skip(skip as usize)
            .take(size as usize)
            .collect();
    }
    rows
}

impl Session {
    /// `@t-back`.
    pub(crate) fn back(&self, back: u64) -> Result<&Tree, &'static str> {
        let tree = self.committed.iter().rev().nth(back as usize);
        tree.ok_or("E_SNAPSHOT_NOT_FOUND")
    }
}

/// The matches of a last step.
fn items_of(contexts: Vec<Context>) -> Vec<Item> {
    let items = contexts.into_iter().flat_map(|context| match context {
        Context::Item(item) => vec![item],
        Context::Zone(_, members) => members.into_iter().map(Item::Node).collect(),
    });
    items.collect()
}

impl Eval<'_> {
    /// The matches in this snapshot, filtered and in result order, before `@unique` and windows.
    pub(crate) fn ordered(&self, sel: &Sel) -> Vec<usize> {
        let nodes = self.items(sel).into_iter().filter_map(|item| match item {
            Item::Node(node) => Some(node),
            // Implicit cores are never in a result.
            Item::Core(_) => None,
        });
        let found: HashSet<usize> = nodes.collect();
        let mut rows: Vec<usize> = found.into_iter().collect();
        rows.sort_unstable();
        self.sort(&mut rows, sel);
        rows
    }

    /// The matches in this snapshot, filtered, in any order: also the implicit cores among them.
    pub(crate) fn items(&self, sel: &Sel) -> Vec<Item> {
        let mut found: Vec<Item> = match &sel.body {
            Body::Union(chains) => chains.iter().flat_map(|chain| self.chain(chain)).collect(),
            Body::Position(hops, search) => self.position(hops, search.as_ref()),
            Body::Search(props) => {
                let all = (0..self.tree.nodes.len()).map(Item::Node);
                all.filter(|item| self.all_hold(*item, props)).collect()
            }
        };
        found.retain(|item| sel.filters.iter().all(|filter| self.filter(*item, filter)));
        found
    }

    fn filter(&self, item: Item, filter: &Filter) -> bool {
        match filter {
            Filter::Braces(props) | Filter::Brackets(props) => self.all_hold(item, props),
            Filter::Tag(tag) => self.has_tag(item, tag),
        }
    }

    fn all_hold(&self, item: Item, props: &[Prop]) -> bool {
        props.iter().all(|prop| self.holds(item, prop))
    }

    fn holds(&self, item: Item, prop: &Prop) -> bool {
        holds(self.session, self.tree, self.edition, item, prop)
    }

    fn has_tag(&self, item: Item, tag: &str) -> bool {
        self.holds(item, &Prop::new("tags", Op::Eq, Value::text(tag)))
    }

    /// The items that one group matches, in any order: also implicit cores.
    pub(crate) fn chain(&self, chain: &Chain) -> Vec<Item> {
        self.chain_from(None, Axis::Descendant, chain)
    }

    /// The items that a group matches from a left context, its first step on an axis of it.
    fn chain_from(&self, from: Option<Item>, first: Axis, chain: &Chain) -> Vec<Item> {
        let mut left: Option<Vec<Context>> = from.map(|item| vec![Context::Item(item)]);
        let alone = chain.steps.len() == 1;
        for (index, (axis, step)) in chain.steps.iter().enumerate() {
            let axis = if index == 0 { &first } else { axis };
            left = Some(match step {
                Step::Zone(sign) => self.zones(left.as_deref(), *axis, *sign),
                Step::Node(step) => self
                    .step(left.as_deref(), *axis, step, alone)
                    .into_iter()
                    .map(Context::Item)
                    .collect(),
            });
        }
        items_of(left.unwrap_or_default())
    }

    /// One zone for each left-context node, or one for the whole tree if there is no left context.
    fn zones(&self, left: Option<&[Context]>, axis: Axis, sign: Sign) -> Vec<Context> {
        let members = |items: Vec<Item>| {
            let nodes = items.into_iter().filter_map(|item| match item {
                Item::Node(node) => Some(node),
                Item::Core(_) => None,
            });
            nodes
                .filter(|node| sign.holds(self.tree.nodes[*node].offset))
                .collect()
        };
        match left {
            None => vec![Context::Zone(-1, members(self.tree.order.clone()))],
            Some(left) => left
                .iter()
                .map(|context| {
                    let members = members(self.reach(context, axis));
                    Context::Zone(self.context_height(context), members)
                })
                .collect(),
        }
    }

    fn context_height(&self, context: &Context) -> i64 {
        match context {
            Context::Item(item) => self.tree.height(*item),
            Context::Zone(height, _) => *height,
        }
    }

    /// The items that a combinator reaches from one left-context node.
    fn reach(&self, context: &Context, axis: Axis) -> Vec<Item> {
        match (context, axis) {
            (Context::Item(item), Axis::Child) => self.tree.children(*item),
            (Context::Item(item), Axis::Descendant) => self.tree.below(*item),
            (Context::Zone(_, members), Axis::Child) => {
                members.iter().copied().map(Item::Node).collect()
            }
            (Context::Zone(_, members), Axis::Descendant) => {
                let mut items = Vec::new();
                for member in members {
                    items.push(Item::Node(*member));
                    items.extend(self.tree.below(Item::Node(*member)));
                }
                items
            }
        }
    }

    /// The items a step matches from its left context, in document order.
    fn step(
        &self,
        left: Option<&[Context]>,
        axis: Axis,
        step: &NodeStep,
        alone: bool,
    ) -> Vec<Item> {
        // A candidate belongs to the deepest left-context node that reaches it.
        let mut groups: HashMap<Item, (i64, usize)> = HashMap::new();
        match left {
            None => groups.extend(self.tree.order.iter().map(|item| (*item, (0, 0)))),
            Some(left) => {
                for (number, context) in left.iter().enumerate() {
                    let height = self.context_height(context);
                    for item in self.reach(context, axis) {
                        let group = groups.entry(item).or_insert((height, number));
                        if group.0 < height {
                            *group = (height, number);
                        }
                    }
                }
            }
        }
        let mut matched: Vec<Item> = (self.tree.order.iter().copied())
            .filter(|item| groups.contains_key(item) && self.step_matches(*item, step, alone))
            .collect();
        for pseudo in &step.pseudos {
            if pseudo.is_pick() {
                matched = self.pick(matched, pseudo, step, |item| groups[item].1);
            } else {
                matched.retain(|item| self.pseudo_holds(*item, pseudo));
                if is_depth(pseudo) && depth_alone(step) {
                    matched.retain(|item| self.is_anchor(*item, |_| true));
                }
            }
        }
        matched
    }

    fn pick(
        &self,
        matched: Vec<Item>,
        pick: &Pseudo,
        step: &NodeStep,
        group_of: impl Fn(&Item) -> usize,
    ) -> Vec<Item> {
        let mut groups: HashMap<usize, Vec<Item>> = HashMap::new();
        for item in &matched {
            groups.entry(group_of(item)).or_default().push(*item);
        }
        let mut kept: HashSet<Item> = HashSet::new();
        for (_, mut group) in groups {
            if self.step_keys(step).len() == 1 {
                group.sort_by_key(|item| match item {
                    Item::Node(node) => key_order(&self.tree.nodes[*node]),
                    Item::Core(_) => unreachable!("an implicit core has no key"),
                });
            }
            kept.extend(match pick {
                Pseudo::First => group.first(),
                Pseudo::Last => group.last(),
                Pseudo::Nth(n) => group.get(n - 1),
                _ => None,
            });
        }
        matched
            .into_iter()
            .filter(|item| kept.contains(item))
            .collect()
    }

    /// The tests of the step, without its pseudo-classes.
    fn step_matches(&self, item: Item, step: &NodeStep, alone: bool) -> bool {
        let before_picks = step.pseudos.iter().take_while(|pseudo| !pseudo.is_pick());
        let named = || {
            before_picks.clone().any(|pseudo| match pseudo {
                Pseudo::Condition(condition) => self.names_core(item, condition),
                _ => false,
            })
        };
        if matches!(item, Item::Core(_)) && !names_container(step) && !named() {
            return false;
        }
        let tests_depth = step.pseudos.iter().any(is_depth);
        if depth_alone(step)
            && before_picks.clone().any(is_depth)
            && !self.is_anchor(item, |_| true)
        {
            return false;
        }
        self.parts_hold(item, step, alone, tests_depth)
    }

    fn parts_hold(&self, item: Item, step: &NodeStep, alone: bool, tests_depth: bool) -> bool {
        step.parts.iter().all(|part| match part {
            Part::Star => true,
            Part::Root(Region::Seq) if alone && self.edition != Edition::V01 => {
                self.is_anchor(item, |depth| depth >= 1)
            }
            Part::Root(region) => self.is_region(item, *region),
            Part::Anchor(depths) => self.is_anchor(item, |depth| depths.contains(depth)),
            Part::Type(head, sub) => self.has_type(item, head, sub.as_deref(), tests_depth),
            Part::Hash(word) => {
                let name = if self.edition == Edition::Canonical {
                    "key"
                } else {
                    "id"
                };
                self.holds(item, &Prop::new(name, Op::Eq, Value::text(word)))
            }
            Part::Attr(prop) => self.holds(item, prop),
            Part::Tag(tag) => self.has_tag(item, tag),
        })
    }

    fn pseudo_holds(&self, item: Item, pseudo: &Pseudo) -> bool {
        match pseudo {
            Pseudo::Offset(sign) => sign.holds(match item {
                Item::Node(node) => self.tree.nodes[node].offset,
                Item::Core(_) => 0,
            }),
            Pseudo::Depth(depths) => self.depth(item).is_some_and(|depth| depths.contains(depth)),
            Pseudo::Condition(condition) => self.condition_holds(item, condition),
            Pseudo::First | Pseudo::Last | Pseudo::Nth(_) => true,
        }
    }

    // ---- LANGUAGE §13 ------------------------------------------------------------------------

    fn condition_holds(&self, item: Item, condition: &Condition) -> bool {
        let chains = || condition.list.iter().map(|(_, chain)| chain);
        let is_one = |item: Item| {
            let mut tests = chains();
            tests.any(|test| self.test_holds(item, test))
        };
        let answers = |other: Item| condition.list.is_empty() || is_one(other);
        match condition.kind {
            Kind::Is => is_one(item),
            Kind::Not => !is_one(item),
            Kind::Has => condition
                .list
                .iter()
                .any(|(axis, chain)| !self.chain_from(Some(item), *axis, chain).is_empty()),
            Kind::After | Kind::Before => chains().any(|chain| {
                let matches = self.chain(chain).into_iter();
                matches.filter(|m| matches!(m, Item::Node(_))).any(|m| {
                    let (first, second) = match condition.kind {
                        Kind::After => (m, item),
                        _ => (item, m),
                    };
                    let near = condition.within.is_none_or(|within| {
                        match (self.depth(item), self.depth(m)) {
                            (Some(a), Some(b)) => a.abs_diff(b) <= within.unsigned_abs(),
                            _ => false,
                        }
                    });
                    near && self.ends(first) < self.begins(second)
                })
            }),
            Kind::HasResult => {
                self.is_kind(item, "call")
                    && self
                        .tree
                        .order
                        .iter()
                        .any(|other| self.call_of(*other) == Some(item) && answers(*other))
            }
            Kind::HasCall => self.call_of(item).is_some_and(answers),
        }
    }

    /// The tests of a step hold, wherever it is: `:depth(2)` tests the depth, `:pre` the offset, `^seq` is the node.
    fn test_holds(&self, item: Item, test: &Chain) -> bool {
        match &test.steps[0].1 {
            Step::Zone(sign) => self.pseudo_holds(item, &Pseudo::Offset(*sign)),
            Step::Node(step) => {
                let tests_depth = step.pseudos.iter().any(is_depth);
                self.parts_hold(item, step, false, tests_depth)
                    && step
                        .pseudos
                        .iter()
                        .all(|pseudo| self.pseudo_holds(item, pseudo))
            }
        }
    }

    /// Whether a test that holds on an implicit core is one of the class of containers.
    fn names_core(&self, item: Item, condition: &Condition) -> bool {
        condition.kind == Kind::Is
            && condition.list.iter().any(|(_, test)| {
                let Step::Node(step) = &test.steps[0].1 else {
                    return false;
                };
                let named = step.pseudos.iter().any(|pseudo| match pseudo {
                    Pseudo::Condition(inner) => self.names_core(item, inner),
                    _ => false,
                });
                (named || names_container(step)) && self.test_holds(item, test)
            })
    }

    fn begins(&self, item: Item) -> usize {
        let mut order = self.tree.order.iter();
        order.position(|other| *other == item).unwrap()
    }

    /// The place of the last item inside.
    fn ends(&self, item: Item) -> usize {
        let below = self.tree.below(item).into_iter();
        let last = below.map(|item| self.begins(item)).max();
        last.unwrap_or(0).max(self.begins(item))
    }

    fn is_kind(&self, item: Item, kind: &str) -> bool {
        matches!(item, Item::Node(_))
            && self.class(item) == Class::Block
            && self.holds(item, &Prop::new("kind", Op::Eq, Value::text(kind)))
    }

    fn call_id(&self, item: Item) -> Option<&str> {
        let Item::Node(node) = item else { return None };
        self.tree.nodes[node].field("data_call_id")?.as_str()
    }

    /// The call that an item is a result of: the nearest before it with its id.
    fn call_of(&self, item: Item) -> Option<Item> {
        let id = self.call_id(item)?;
        let before = &self.tree.order[..self.begins(item)];
        let mut calls = before.iter().rev().copied();
        let call =
            calls.find(|other| self.is_kind(*other, "call") && self.call_id(*other) == Some(id));
        call.filter(|_| self.is_kind(item, "result"))
    }

    fn depth(&self, item: Item) -> Option<i64> {
        let (Item::Node(node) | Item::Core(node)) = item;
        self.tree.nodes[node].depth
    }

    fn class(&self, item: Item) -> Class {
        match item {
            Item::Node(node) => self.tree.nodes[node].class,
            Item::Core(_) => Class::Container,
        }
    }

    fn is_region(&self, item: Item, region: Region) -> bool {
        self.class(item)
            == match region {
                Region::Root => Class::Root,
                Region::Sys => Class::Sys,
                Region::Seq => Class::Seq,
                Region::Head => Class::Head,
            }
    }

    /// Whether the item is `^sys`, `^ah` or a turn directly under `^seq` with a depth of the set.
    fn is_anchor(&self, item: Item, accepts: impl Fn(i64) -> bool) -> bool {
        let Item::Node(node) = item else { return false };
        let n = &self.tree.nodes[node];
        let sealed = |parent: usize| self.tree.nodes[parent].class == Class::Seq;
        let on_axis = match n.class {
            Class::Sys | Class::Head => true,
            Class::Turn => n.parent.is_some_and(sealed),
            _ => false,
        };
        on_axis && n.depth.is_some_and(accepts)
    }

    fn has_type(&self, item: Item, head: &str, sub: Option<&str>, tests_depth: bool) -> bool {
        let node_type =
            |text: &str| self.holds(item, &Prop::new("nodeType", Op::Eq, Value::text(text)));
        let class = self.class(item);
        match (one_vocabulary(head).as_str(), sub) {
            ("mt", None) => {
                class == Class::Turn || tests_depth && matches!(class, Class::Sys | Class::Head)
            }
            ("mc", None) => class == Class::Container,
            ("cb", None) => class == Class::Block,
            (other, None) => node_type(other),
            (head, Some(sub)) if self.edition == Edition::V01 => {
                node_type(&format!("{head}:{sub}"))
            }
            (head, Some(sub)) => {
                node_type(head) && self.holds(item, &Prop::new("kind", Op::Eq, Value::text(sub)))
            }
        }
    }

    /// The keys a step pins by `=`.
    fn step_keys(&self, step: &NodeStep) -> HashSet<String> {
        let keys = step.parts.iter().filter_map(|part| match part {
            Part::Hash(word) if self.edition == Edition::Canonical => Some(word.clone()),
            Part::Attr(prop) => pinned_key(prop),
            _ => None,
        });
        let mut keys: HashSet<String> = keys.collect();
        // `:is(T)` alone is T, and `:not([key!='K'])` is `[key='K']`.
        let before_picks = step.pseudos.iter().take_while(|pseudo| !pseudo.is_pick());
        for pseudo in before_picks {
            let Pseudo::Condition(condition) = pseudo else {
                continue;
            };
            let mut tests = condition.list.iter().map(|(_, chain)| &chain.steps[0].1);
            match condition.kind {
                Kind::Is => {
                    let first = tests.next();
                    if let Some(Step::Node(test)) = first
                        && tests.all(|other| Some(other) == first)
                    {
                        keys.extend(self.step_keys(test));
                    }
                }
                Kind::Not => keys.extend(tests.filter_map(|test| match test {
                    Step::Node(test) if test.pseudos.is_empty() => match test.parts.as_slice() {
                        [Part::Attr(prop)] | [Part::Star, Part::Attr(prop)] => unpinned_key(prop),
                        _ => None,
                    },
                    _ => None,
                })),
                _ => {}
            }
        }
        keys
    }

    /// Hops go child by child, from the depth-axis containers or the root (LANGUAGE §7).
    fn position(&self, hops: &[Hop], search: Option<&Search>) -> Vec<Item> {
        let scopes: Vec<&Depths> = hops
            .iter()
            .map_while(|hop| match hop {
                Hop::Depth(depths) => Some(depths),
                _ => None,
            })
            .collect();
        let mut at: Vec<Item> = if scopes.is_empty() {
            vec![Item::Node(0)]
        } else {
            let in_scope = |depth: i64| scopes.iter().any(|depths| depths.contains(depth));
            let all = self.tree.order.iter().copied();
            all.filter(|item| self.is_anchor(*item, in_scope)).collect()
        };
        for (number, hop) in hops.iter().enumerate().skip(scopes.len()) {
            let confirms = number == scopes.len() && !scopes.is_empty();
            at = match hop {
                Hop::Class(head, None, props) if confirms && one_vocabulary(head) == "mt" => at
                    .into_iter()
                    .filter(|item| self.all_hold(*item, props))
                    .collect(),
                _ => {
                    let mut children: Vec<Item> = at
                        .iter()
                        .flat_map(|item| self.tree.children(*item))
                        .collect();
                    let mut seen = HashSet::new();
                    children.retain(|item| seen.insert(*item) && self.hop_matches(*item, hop));
                    children
                }
            };
        }
        if let Some(search) = search {
            let reach = at.iter().flat_map(|item| match search.axis {
                Axis::Child => self.tree.children(*item),
                Axis::Descendant => self.tree.below(*item),
            });
            let found: HashSet<Item> = reach.collect();
            at = found
                .into_iter()
                .filter(|item| matches!(item, Item::Node(_)) && self.all_hold(*item, &search.props))
                .collect();
        }
        at
    }

    fn hop_matches(&self, item: Item, hop: &Hop) -> bool {
        let is_core = matches!(item, Item::Core(_));
        match hop {
            Hop::Depth(_) => false,
            Hop::Class(head, kind, props) => {
                (!is_core || one_vocabulary(head) == "mc")
                    && self.has_type(item, head, kind.as_deref(), false)
                    && self.all_hold(item, props)
            }
            Hop::Offset(offset, class, props) => {
                let Item::Node(node) = item else {
                    let names_core = class.as_deref().map(one_vocabulary).as_deref() == Some("mc");
                    return names_core
                        && offset.is_none_or(|offset| offset == 0)
                        && self.all_hold(item, props);
                };
                offset.is_none_or(|offset| self.tree.nodes[node].offset == offset)
                    && class
                        .as_ref()
                        .is_none_or(|head| self.has_type(item, head, None, false))
                    && self.all_hold(item, props)
            }
            Hop::Props(props) => !is_core && self.all_hold(item, props),
        }
    }

    /// Whether the last step of every group, or a filter on the final set, pins the same key.
    fn pins_one_key(&self, sel: &Sel) -> bool {
        let props_keys = |props: &[Prop]| props.iter().filter_map(pinned_key).collect();
        let by_filters: HashSet<String> = sel
            .filters
            .iter()
            .flat_map(|filter| match filter {
                Filter::Braces(props) | Filter::Brackets(props) => props_keys(props),
                Filter::Tag(_) => HashSet::new(),
            })
            .collect();
        let by_groups: Vec<HashSet<String>> = match &sel.body {
            Body::Union(chains) => chains
                .iter()
                .filter(|chain| !never(chain, self.edition))
                .map(|chain| match chain.steps.last() {
                    Some((_, Step::Node(step))) => self.step_keys(step),
                    _ => HashSet::new(),
                })
                .collect(),
            Body::Position(_, Some(search)) => vec![props_keys(&search.props)],
            Body::Position(hops, None) => vec![match hops.last() {
                Some(Hop::Class(_, _, props) | Hop::Offset(_, _, props) | Hop::Props(props)) => {
                    props_keys(props)
                }
                _ => HashSet::new(),
            }],
            Body::Search(props) => vec![props_keys(props)],
        };
        let mut all: HashSet<&String> = by_filters.iter().collect();
        all.extend(by_groups.iter().flatten());
        let each = by_groups
            .iter()
            .all(|keys| !keys.is_empty() || !by_filters.is_empty());
        each && all.len() == 1
    }

    fn sort(&self, rows: &mut [usize], sel: &Sel) {
        let nodes = &self.tree.nodes;
        match sel.controls.order {
            None if self.pins_one_key(sel) => rows.sort_by_key(|row| key_order(&nodes[*row])),
            None | Some(Order::Pre) => {}
            Some(Order::Post) => {
                let mut ends = vec![0; nodes.len()];
                self.post_order(0, &mut ends, &mut 0);
                rows.sort_by_key(|row| ends[*row]);
            }
            Some(Order::Bfs) => rows.sort_by_key(|row| nodes[*row].level),
            Some(Order::Path) => rows.sort_by_key(|row| self.path(*row)),
            Some(Order::TurnDesc) => rows.sort_by_key(|row| turn_group(nodes[*row].depth)),
            Some(Order::TurnAsc) => {
                rows.sort_by_key(|row| Reverse(turn_group(nodes[*row].depth)));
            }
        }
    }

    fn post_order(&self, node: usize, ends: &mut [usize], next: &mut usize) {
        for child in &self.tree.nodes[node].children {
            self.post_order(*child, ends, next);
        }
        ends[node] = *next;
        *next += 1;
    }

    fn path(&self, node: usize) -> Vec<&str> {
        let mut path = match self.tree.nodes[node].parent {
            Some(parent) => self.path(parent),
            None => Vec::new(),
        };
        path.push(self.tree.id(node));
        path
    }
}

/// Whether a group can match nothing by its form: a step compares one number with literals that
/// no number satisfies all of. Knows this one form only.
fn never(chain: &Chain, edition: Edition) -> bool {
    let of_step = |(_, step): &(Axis, Step)| {
        let Step::Node(step) = step else { return false };
        let tests = step.parts.iter().filter_map(|part| match part {
            Part::Attr(prop) => prop
                .test
                .as_ref()
                .map(|(op, value)| (&prop.name, *op, value)),
            _ => None,
        });
        let tests: Vec<_> = tests.collect();
        tests.iter().any(|(name, ..)| {
            let of_name = tests.iter().filter(|(other, ..)| other == name);
            let of_name = of_name.map(|(_, op, value)| (*op, *value));
            super::compare::is_numeric(name, edition)
                && super::compare::no_number(&of_name.collect::<Vec<_>>())
        })
    };
    chain.steps.iter().any(of_step)
}

fn names_container(step: &NodeStep) -> bool {
    let mut parts = step.parts.iter();
    parts.any(|part| matches!(part, Part::Type(head, None) if one_vocabulary(head) == "mc"))
}

fn is_depth(pseudo: &Pseudo) -> bool {
    matches!(pseudo, Pseudo::Depth(_))
}

/// Whether the step has no type, id, key, tag or attribute, so that its `:depth(…)` is an
/// anchor. An offset pseudo-class is a test of an attribute.
fn depth_alone(step: &NodeStep) -> bool {
    let only_star = step.parts.iter().all(|part| *part == Part::Star);
    let offset = step
        .pseudos
        .iter()
        .any(|p| matches!(p, Pseudo::Offset(_) | Pseudo::Condition(_)));
    only_star && !offset && step.pseudos.iter().any(is_depth)
}

/// The key that `[key=…]` pins: one text, or a list of one.
fn pinned_key(prop: &Prop) -> Option<String> {
    let (Op::Eq, value) = prop.test.as_ref()? else {
        return None;
    };
    let value = match value {
        // A repeated value counts once.
        Value::List(values) if values.windows(2).all(|pair| pair[0] == pair[1]) => {
            values.first()?
        }
        other => other,
    };
    match value {
        Value::Text(text) | Value::Num(text) if prop.name == "key" => Some(text.clone()),
        _ => None,
    }
}

/// The key that the complement of `[key!=…]` pins.
fn unpinned_key(prop: &Prop) -> Option<String> {
    let (op, value) = prop.test.clone()?;
    let complement = (op == Op::Ne).then_some((Op::Eq, value));
    pinned_key(&Prop {
        test: Some(complement?),
        ..prop.clone()
    })
}

/// Depth 0, 1, 2, …, then negative, then none.
fn turn_group(depth: Option<i64>) -> (u8, i64) {
    match depth {
        Some(depth) if depth >= 0 => (0, depth),
        Some(depth) => (1, depth),
        None => (2, 0),
    }
}

/// Newest first (LANGUAGE §6).
type KeyOrder = ((u8, i64), Reverse<i64>, Reverse<i64>, String);

fn key_order(node: &Node) -> KeyOrder {
    let depth = turn_group(node.depth);
    let (time, index) = (node.created_at_ns, node.creation_index);
    (depth, Reverse(time), Reverse(index), node.id.clone())
}
