//! Depth expressions (LANGUAGE §4).

use super::faults;
use super::lowerer::{Lowerer, MAX_VALUES};
use crate::query::ir::depth::DepthSet;
use crate::query::ir::edition::Edition;
use crate::query::syntax::ast::{CompareOp, DepthItem};
use crate::query::syntax::{Span, Spanned};

impl Lowerer {
    /// The set of an expression. `span` is the whole construct, for mistakes without a place.
    pub(super) fn depths(&mut self, items: &[Spanned<DepthItem>], span: Span) -> Option<DepthSet> {
        if items.is_empty() {
            return self.fault(span, faults::NO_DEPTH, &[]);
        }
        let values: usize = items
            .iter()
            .map(|item| match &item.node {
                DepthItem::Set(depths) => depths.len().max(1),
                _ => 1,
            })
            .sum();
        if values > MAX_VALUES {
            return self.fault(span, faults::MANY_DEPTHS, &[&MAX_VALUES, &values]);
        }
        let mut ranges = Vec::with_capacity(items.len());
        let mut sound = true;
        for item in items {
            sound &= self.depth_item(item, &mut ranges);
        }
        sound.then(|| DepthSet::from_ranges(ranges))
    }

    fn depth_item(&mut self, item: &Spanned<DepthItem>, ranges: &mut Vec<(i64, i64)>) -> bool {
        let span = item.span;
        match &item.node {
            DepthItem::One(depth) => {
                ranges.push((*depth, *depth));
                *depth >= 1 || {
                    let what = format!("depth {depth}");
                    self.needs(Edition::Depth, span, &what, alias(*depth))
                }
            }
            DepthItem::Range(low, high) if low > high => {
                let turned = format!("{high}..{low}");
                self.mended(span, faults::REVERSED_DEPTHS, &[high, low], span, turned)
            }
            DepthItem::Range(low, high) => {
                ranges.push((*low, *high));
                *low >= 1 || self.needs(Edition::Depth, span, &format!("depth {low}"), None)
            }
            DepthItem::Compare(op, depth) => {
                let range = match op {
                    CompareOp::Lt => depth.checked_sub(1).map(|high| (i64::MIN, high)),
                    CompareOp::Le => Some((i64::MIN, *depth)),
                    CompareOp::Gt => depth.checked_add(1).map(|low| (low, i64::MAX)),
                    CompareOp::Ge => Some((*depth, i64::MAX)),
                    CompareOp::Eq | CompareOp::Ne | CompareOp::Matches => {
                        let plain = depth.to_string();
                        return self.mended(span, faults::EQUAL_DEPTH, &[depth], span, plain);
                    }
                };
                ranges.extend(range);
                self.needs(Edition::Depth, span, "a comparison of depths", None)
            }
            DepthItem::Set(depths) => {
                if depths.is_empty() {
                    return self.fault(span, faults::NO_DEPTH_IN_SET, &[]);
                }
                ranges.extend(depths.iter().map(|&depth| (depth, depth)));
                let list: Vec<String> = depths.iter().map(ToString::to_string).collect();
                let plain = depths.iter().all(|&depth| depth >= 1);
                let instead = plain.then(|| format!(":depth({})", list.join(",")));
                self.needs(Edition::Depth, span, "a set of depths", instead)
            }
        }
    }
}

/// The region of a depth, as `v0.1` spells it.
fn alias(depth: i64) -> Option<String> {
    match depth {
        0 => Some("^ah".to_owned()),
        -1 => Some("^sys".to_owned()),
        _ => None,
    }
}
