//! Depth expressions (LANGUAGE §4).

use super::lowerer::{Lowerer, MAX_VALUES};
use crate::query::ir::depth::DepthSet;
use crate::query::ir::edition::Edition;
use crate::query::syntax::ast::{CompareOp, DepthItem};
use crate::query::syntax::{Span, Spanned};
use crate::support::diag::Code;

impl Lowerer {
    /// The set of an expression. `span` is the whole construct, for mistakes without a place.
    pub(super) fn depths(&mut self, items: &[Spanned<DepthItem>], span: Span) -> Option<DepthSet> {
        if items.is_empty() {
            self.invalid(span, "expected a depth, found nothing", "no depth is named")
                .help("write `:depth(1)`, `:depth(1-3)` or `:depth(>=1)`");
            return None;
        }
        let values: usize = items
            .iter()
            .map(|item| match &item.node {
                DepthItem::Set(depths) => depths.len().max(1),
                _ => 1,
            })
            .sum();
        if values > MAX_VALUES {
            self.error(
                Code::Limit,
                span,
                format!("a depth set has at most {MAX_VALUES} values, this one has {values}"),
                "too many",
            );
            return None;
        }
        let mut ranges = Vec::with_capacity(items.len());
        let mut sound = true;
        for item in items {
            sound &= self.depth_item(item, &mut ranges);
        }
        sound.then(|| DepthSet::from_ranges(ranges))
    }

    /// Adds the ranges of one item; false if it has a mistake.
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
                self.invalid(
                    span,
                    "reversed depth range",
                    "the smaller depth comes first",
                )
                .write(span, format!("{high}..{low}"))
                .help(format!("write `{high}..{low}`"));
                false
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
                        self.invalid(span, "a depth takes no `=`", "write the number alone")
                            .write(span, depth.to_string())
                            .help(format!("write `:depth({depth})`"));
                        return false;
                    }
                };
                ranges.extend(range);
                self.needs(Edition::Depth, span, "a comparison of depths", None)
            }
            DepthItem::Set(depths) => {
                if depths.is_empty() {
                    self.invalid(span, "expected a depth, found nothing", "no depth is named")
                        .help("write `:depth({1,2})`");
                    return false;
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
