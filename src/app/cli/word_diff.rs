//! Changed lines with the words that changed in them.

use super::options::{Paint, Tint};
use super::output::verbatim;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// More words than these are not compared one by one.
const WORDS: usize = 20_000;

/// The lines of a unified diff, without its two lines of names. Where lines were replaced by similar ones,
/// they are one line with `~`, in which removed words are in `[-…-]` and added ones in `{+…+}`, or in
/// colour.
pub(super) fn lines(diff: &str, paint: Paint) -> Vec<String> {
    let all: Vec<&str> = diff.lines().skip(2).collect();
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(line) = all.get(at) {
        let run = |from: usize, sign: char| {
            let lines = all[from..].iter();
            lines.take_while(|line| line.starts_with(sign)).count()
        };
        let removed = run(at, '-');
        let added = run(at + removed, '+');
        let middle = at + removed;
        let bare = |lines: &[&str]| -> String {
            let lines = lines.iter().map(|line| line.get(1..).unwrap_or_default());
            lines.collect::<Vec<_>>().join("\n")
        };
        if removed > 0
            && added > 0
            && let Some(words) = words(
                &bare(&all[at..middle]),
                &bare(&all[middle..middle + added]),
                paint,
            )
        {
            out.extend(
                words
                    .lines()
                    .map(|line| format!("{} {line}", paint.tint(Tint::Changed, "~"))),
            );
            at = middle + added;
            continue;
        }
        let line = verbatim(line);
        out.push(match line.as_bytes().first() {
            Some(b'+') => paint.tint(Tint::Added, &line),
            Some(b'-') => paint.tint(Tint::Removed, &line),
            Some(b'@') => paint.tint(Tint::Place, &line),
            _ => line,
        });
        at += 1;
    }
    out
}

/// The newer text with what was removed and added in it; `None` if less than half is the same.
fn words(older: &str, newer: &str, paint: Paint) -> Option<String> {
    let (old, new) = (split(older), split(newer));
    if old.len().max(new.len()) > WORDS {
        return None;
    }
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let same: usize = ops
        .iter()
        .filter_map(|op| match op {
            DiffOp::Equal { old_index, len, .. } => Some(
                old[*old_index..old_index + len]
                    .iter()
                    .map(|word| word.len())
                    .sum::<usize>(),
            ),
            _ => None,
        })
        .sum();
    if same * 2 < older.len().max(newer.len()) {
        return None;
    }
    let plain = paint.tint(Tint::Added, "x") == "x";
    let mark = |tint: Tint, signs: [&str; 2], words: &[&str], out: &mut String| {
        // A mark does not go past the end of a line.
        let text = words.concat();
        for (index, line) in text.split('\n').enumerate() {
            if index > 0 {
                out.push('\n');
            }
            let line = verbatim(line);
            match (line.is_empty(), plain) {
                (true, _) => {}
                (false, true) => out.extend([signs[0], &line, signs[1]]),
                (false, false) => out.push_str(&paint.tint(tint, &line)),
            }
        }
    };
    let mut out = String::new();
    for op in ops {
        let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
        if let DiffOp::Equal { .. } = op {
            let text: Vec<String> = new.concat().split('\n').map(verbatim).collect();
            out.push_str(&text.join("\n"));
            continue;
        }
        mark(Tint::Removed, ["[-", "-]"], old, &mut out);
        mark(Tint::Added, ["{+", "+}"], new, &mut out);
    }
    Some(out)
}

/// Words, runs of white space, and single signs.
fn split(text: &str) -> Vec<&str> {
    let class = |letter: char| match letter {
        '\n' => 0,
        letter if letter.is_whitespace() => 1,
        letter if letter.is_alphanumeric() || letter == '_' => 2,
        _ => 3,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, letter) in text.char_indices() {
        let here = class(letter);
        if last.is_some_and(|last| last != here || matches!(here, 0 | 3)) {
            words.push(&text[start..at]);
            start = at;
        }
        last = Some(here);
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::lines;
    use crate::app::cli::options::Paint;

    #[test]
    fn similar_lines_become_one_and_others_stay() {
        for (older, newer, expected) in [
            (
                "-the quick brown fox",
                "+the quick red fox",
                "~ the quick [-brown-]{+red+} fox",
            ),
            ("-n = 1", "+n = 2", "~ n = [-1-]{+2+}"),
            ("-yes", "+certainly not", "-yes\n+certainly not"),
            (
                "-one two three\n-four five six",
                "+one two three four five six",
                "~ one two three\n~ {+ +}four five six",
            ),
        ] {
            let diff = format!("--- a\n+++ b\n@@\n{older}\n{newer}");
            let found = lines(&diff, Paint::default())[1..].join("\n");
            assert_eq!(found, expected);
        }
    }
}
