//! Times (LANGUAGE §3): addresses, ranges, and the default for an omitted time.

use super::lowerer::Lowerer;
use crate::query::ir::edition::Edition;
use crate::query::ir::purpose::Purpose;
use crate::query::ir::query::{Address, QueryTime, RangeEnd};
use crate::query::syntax::{Span, Spanned, ast};
use crate::support::diag::Code;

impl Lowerer {
    pub(super) fn time(&mut self, time: Option<&Spanned<ast::TimeSyntax>>) -> Option<QueryTime> {
        let Some(time) = time else {
            return Some(match self.edition {
                _ if self.purpose != Purpose::Select => QueryTime::Working,
                Edition::V01 => {
                    self.note(Span::default(), || "@t0".to_owned());
                    QueryTime::At(Address::Back(0))
                }
                Edition::Depth | Edition::Canonical => QueryTime::Working,
            });
        };
        if self.purpose != Purpose::Select {
            self.invalid(
                time.span,
                "a mutation takes no time, it changes the working state",
                "no time is expected here",
            )
            .write(time.span, "")
            .help("leave the time out");
            return None;
        }
        let lowered = self.written_time(time)?;
        self.note(time.span, || lowered.to_string());
        Some(lowered)
    }

    fn written_time(&mut self, time: &Spanned<ast::TimeSyntax>) -> Option<QueryTime> {
        match &time.node {
            ast::TimeSyntax::History => {
                let instead = Some("@t0..@t-*".to_owned());
                self.needs(Edition::Canonical, time.span, "`@history`", instead)
                    .then_some(QueryTime::Range(RangeEnd::Back(0), RangeEnd::Oldest))
            }
            ast::TimeSyntax::Point(point) => self.point(&Spanned::new(*point, time.span)),
            ast::TimeSyntax::Range(ends) => self.range(&ends.0, &ends.1),
        }
    }

    fn point(&mut self, point: &Spanned<ast::TimePoint>) -> Option<QueryTime> {
        let span = point.span;
        match point.node {
            ast::TimePoint::Back(commits) => return Some(QueryTime::At(Address::Back(commits))),
            ast::TimePoint::Cycle(cycle) => return Some(QueryTime::At(Address::Cycle(cycle))),
            ast::TimePoint::All => return Some(QueryTime::All),
            ast::TimePoint::Ahead(commits) => self.ahead(point, commits),
            ast::TimePoint::Oldest => self
                .invalid(span, "`@t-*` is an end of a range", "no snapshot by itself")
                .help("write `@t0..@t-*` for all snapshots as a range, `@*` for all as a list"),
            ast::TimePoint::Wild(kind) => self
                .invalid(
                    span,
                    format!("`@{kind}*` is not a time"),
                    "no snapshot by itself",
                )
                .help("write `@*` for all snapshots"),
        }
        None
    }

    fn ahead(&mut self, point: &Spanned<ast::TimePoint>, commits: u64) {
        self.invalid(
            point.span,
            format!("`@t{commits}` is not a time"),
            "nothing is newer than `@t0`",
        )
        .write(point.span, format!("@t-{commits}"))
        .help(format!("write `@t-{commits}` for {commits} commits back"));
    }

    fn range(
        &mut self,
        from: &Spanned<ast::TimePoint>,
        to: &Spanned<ast::TimePoint>,
    ) -> Option<QueryTime> {
        let (a, b) = (self.end(from), self.end(to));
        let (a, b) = (a?, b?);
        if matches!(a, RangeEnd::Cycle(_)) != matches!(b, RangeEnd::Cycle(_)) {
            self.error(
                Code::SnapshotRangeKindMismatch,
                from.span.to(to.span),
                "both ends of a range are of one kind",
                "one counts commits, the other names a cycle",
            )
            .help("write `@t-3..@t0` or `@c10..@c20`");
            return None;
        }
        // The newer end first: the direction of a range has no meaning.
        let swap = match (a, b) {
            (RangeEnd::Oldest, RangeEnd::Back(_)) => true,
            (RangeEnd::Back(a), RangeEnd::Back(b)) => b < a,
            (RangeEnd::Cycle(a), RangeEnd::Cycle(b)) => a < b,
            _ => false,
        };
        Some(if swap {
            QueryTime::Range(b, a)
        } else {
            QueryTime::Range(a, b)
        })
    }

    fn end(&mut self, point: &Spanned<ast::TimePoint>) -> Option<RangeEnd> {
        match point.node {
            ast::TimePoint::Back(commits) => return Some(RangeEnd::Back(commits)),
            ast::TimePoint::Oldest => return Some(RangeEnd::Oldest),
            ast::TimePoint::Cycle(cycle) => return Some(RangeEnd::Cycle(cycle)),
            ast::TimePoint::Ahead(commits) => self.ahead(point, commits),
            ast::TimePoint::All | ast::TimePoint::Wild(_) => self
                .error(
                    Code::SnapshotRangeWildcard,
                    point.span,
                    "`*` cannot be an end of a range",
                    "not an end",
                )
                .write(point.span, "@t-*")
                .help("write `@t-*` for the oldest snapshot, or `@*` alone for all"),
        }
        None
    }
}
