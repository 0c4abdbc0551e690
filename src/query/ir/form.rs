//! What the form of a pattern tells of its matches. The module must not know how patterns are searched for.

use regex_syntax::hir::{Hir, HirKind, Repetition};

/// The longest text that every match contains; empty if there is none.
pub(super) fn literal(hir: &Hir) -> Vec<u8> {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.to_vec(),
        HirKind::Capture(capture) => literal(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => literal(&repetition.sub),
        HirKind::Concat(parts) => {
            let found = parts.iter().map(literal);
            found.max_by_key(Vec::len).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The same pattern without repetitions that repeat the one before: `.*.*` is `.*`.
pub(super) fn simplified(hir: Hir) -> Hir {
    match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(simplified(*repetition.sub)),
            ..repetition
        }),
        HirKind::Capture(capture) => simplified(*capture.sub),
        HirKind::Concat(parts) => {
            let mut parts: Vec<Hir> = parts.into_iter().map(simplified).collect();
            parts.dedup_by(|next, before| next == before && is_star(before));
            Hir::concat(parts)
        }
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.into_iter().map(simplified).collect())
        }
    }
}

/// Whether a part is repeated without limits, and may be left out.
fn is_star(hir: &Hir) -> bool {
    matches!(
        hir.kind(),
        HirKind::Repetition(Repetition {
            min: 0,
            max: None,
            ..
        })
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_match_has_the_literal() {
        for (pattern, expected) in [
            ("refund", "refund"),
            ("a(refund)+b?", "refund"),
            (".*abc.*defg.*", "defg"),
            ("(abc|abd)x?", ""),
            ("(?i)refund", ""),
            ("(abc)?", ""),
            ("abc|def", ""),
        ] {
            let hir = simplified(regex_syntax::parse(pattern).expect(pattern));
            assert_eq!(literal(&hir), expected.as_bytes(), "{pattern}");
        }
    }
}
