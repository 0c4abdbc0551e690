//! Selectors with one slip of the fingers: the first error is where the slip is, and its
//! correction is a selector.

use super::{file, ir};
use crate::support::advised::compile;
use crate::support::random;

/// How far the place of an error may be from the slip, in characters.
const NEAR: usize = 6;

/// The characters that are typed by mistake.
const TYPED: &str = " .#>[](){}'\"=,:@*+-~^?!<_/abcdeiklmnoprstuxy0123é’世";

/// A generator of pseudo-random numbers with a fixed seed (Knuth's MMIX generator).
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Every valid selector of the cases, with its edition.
fn selectors() -> Vec<(pactql::Edition, Vec<char>)> {
    let mut found = Vec::new();
    for kind in ["answers", "language", "explain"] {
        for file in file::files(kind) {
            for case in &file.cases {
                for edition in case.editions().into_iter().map(ir) {
                    for text in &case.selectors {
                        if text.len() < 200 && compile(text, edition).is_ok() {
                            found.push((edition, text.chars().collect()));
                        }
                    }
                }
            }
        }
    }
    found.sort_by(|a: &(pactql::Edition, Vec<char>), b| (&a.1, a.0 as u8).cmp(&(&b.1, b.0 as u8)));
    found.dedup();
    found
}

/// `text` with one character dropped, doubled, swapped or replaced, and which were changed.
fn damaged(text: &[char], lcg: &mut Lcg) -> (Vec<char>, std::ops::Range<usize>) {
    let mut damaged = text.to_vec();
    let at = lcg.below(text.len());
    let changed = match lcg.below(4) {
        0 => {
            damaged.remove(at);
            at..at
        }
        1 => {
            damaged.insert(at, text[at]);
            at..at + 2
        }
        2 if at + 1 < text.len() => {
            damaged.swap(at, at + 1);
            at..at + 2
        }
        _ => {
            let typed: Vec<char> = TYPED.chars().collect();
            damaged[at] = typed[lcg.below(typed.len())];
            at..at + 1
        }
    };
    (damaged, changed)
}

#[test]
fn errors_are_where_the_slip_is() {
    let selectors = selectors();
    assert!(selectors.len() > 500, "only {}", selectors.len());
    let mut lcg = Lcg(7);
    let (mut errors, mut far, mut corrected) = (0_u32, Vec::new(), 0_u32);
    for _ in 0..random::cases() {
        let (edition, whole) = &selectors[lcg.below(selectors.len())];
        let (text, changed) = damaged(whole, &mut lcg);
        let text: String = text.into_iter().collect();
        let Err(error) = compile(&text, *edition) else {
            continue;
        };
        errors += 1;
        for span in error.diagnostics().flat_map(|one| &one.labels) {
            let whole = text.get(span.span.clone());
            assert!(
                whole.is_some(),
                "`{text}`: {:?} cuts a character",
                span.span
            );
        }
        let span = error.first().labels[0].span.clone();
        let chars = |byte: usize| text[..byte].chars().count();
        let span = chars(span.start)..chars(span.end);
        let distance = span.start.saturating_sub(changed.end);
        let distance = distance.max(changed.start.saturating_sub(span.end));
        if distance > NEAR {
            let whole: String = whole.iter().collect();
            let shown = error.to_text(pactql::ColorChoice::Never);
            far.push(format!(
                "{whole}\n{edition} {distance} from {changed:?}\n{shown}"
            ));
        }
        if let Some(correction) = error.first().correction() {
            corrected += 1;
            let again = compile(correction, *edition);
            assert!(
                again.is_ok(),
                "`{text}` became `{correction}`: {:?}",
                again.err()
            );
        }
    }
    let share = 100.0 - 100.0 * far.len() as f64 / f64::from(errors);
    println!("{errors} errors, {share:.2} % near, {corrected} corrected");
    assert!(
        share >= 95.0,
        "{share:.2} % of {errors} errors are near the slip; {corrected} corrected:\n{}",
        far[..far.len().min(60)].join("\n")
    );
}
