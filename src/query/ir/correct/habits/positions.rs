//! Positions without parentheses, and with regions where depths belong.

use super::super::scan::{Kind, Scan};
use super::super::slip::Slip;

/// `d0, cont, end`: hops without parentheses around them.
pub(super) fn unwrapped(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    let digits = scan.word(index).strip_prefix('d')?;
    let is_depth = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let foreign = |at: usize| {
        scan.outside(at) && matches!(scan.word(at), "." | "#" | ">" | "^" | "@" | "{" | "?")
    };
    if index != scan.body() || !is_depth || (index..scan.lexemes.len()).any(foreign) {
        return None;
    }
    let span = scan.span(index).start..scan.text.trim_ascii_end().len();
    let message = "a position is written in parentheses";
    let slip = Slip::new(span.clone(), message, "parentheses are missing");
    let (start, end) = (span.start..span.start, span.end..span.end);
    Some(slip.write(start, "(").write(end, ")"))
}

/// `(^ah, end)`, `(sys, block)`: a region as a hop.
pub(super) fn regions(scan: &Scan<'_>, index: usize) -> Option<Slip> {
    if scan.word(index) != "(" || index != scan.body() {
        return None;
    }
    let first = scan.next(index)?;
    let name = match scan.word(first) {
        "^" => first + 1,
        _ => first,
    };
    let depth = match scan.word(name) {
        "ah" => "d0",
        "sys" => "d-1",
        _ => return None,
    };
    let comma = scan.next(name)?;
    let next = scan.next(comma)?;
    // `(^ah, ^sys)` is a union.
    let is_hop = scan.kind(next) == Some(Kind::Word) || matches!(scan.word(next), "+" | "-" | ")");
    if scan.word(comma) != "," || !is_hop {
        return None;
    }
    let message = "the first hop of a position is a depth";
    Some(Slip::new(scan.through(first, name), message, "a region, not a hop").instead(depth))
}
