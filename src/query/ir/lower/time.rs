//! Times (LANGUAGE §3): addresses, ranges, and the default for an omitted time.

use super::faults;
use super::lowerer::Lowerer;
use crate::query::ir::edition::Edition;
use crate::query::ir::purpose::Purpose;
use crate::query::ir::query::{Address, QueryTime, RangeEnd};
use crate::query::syntax::{Span, Spanned, ast};

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
            return self.mended(time.span, faults::NO_TIME_HERE, &[], time.span, "");
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
            ast::TimePoint::Back(commits) => Some(QueryTime::At(Address::Back(commits))),
            ast::TimePoint::Cycle(cycle) => Some(QueryTime::At(Address::Cycle(cycle))),
            ast::TimePoint::All => Some(QueryTime::All),
            ast::TimePoint::Ahead(commits) => self.ahead(span, commits),
            ast::TimePoint::Oldest => self.fault(span, faults::OLDEST_ALONE, &[]),
            ast::TimePoint::Wild(kind) => self.fault(span, faults::WILD_TIME, &[&kind]),
        }
    }

    fn ahead<T: Default>(&mut self, span: Span, commits: u64) -> T {
        let back = format!("@t-{commits}");
        self.mended(span, faults::FUTURE, &[&commits], span, back)
    }

    fn range(
        &mut self,
        from: &Spanned<ast::TimePoint>,
        to: &Spanned<ast::TimePoint>,
    ) -> Option<QueryTime> {
        let (a, b) = (self.end(from), self.end(to));
        let (a, b) = (a?, b?);
        if matches!(a, RangeEnd::Cycle(_)) != matches!(b, RangeEnd::Cycle(_)) {
            return self.fault(from.span.to(to.span), faults::MIXED_RANGE, &[]);
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
        let span = point.span;
        match point.node {
            ast::TimePoint::Back(commits) => Some(RangeEnd::Back(commits)),
            ast::TimePoint::Oldest => Some(RangeEnd::Oldest),
            ast::TimePoint::Cycle(cycle) => Some(RangeEnd::Cycle(cycle)),
            ast::TimePoint::Ahead(commits) => self.ahead(span, commits),
            ast::TimePoint::All | ast::TimePoint::Wild(_) => {
                self.mended(span, faults::WILD_END, &[], span, "@t-*")
            }
        }
    }
}
