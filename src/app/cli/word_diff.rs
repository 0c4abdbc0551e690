//! Changed lines with the words that changed in them.

use super::options::{Paint, Tint};
use super::output::verbatim;
use crate::support::edits::{edits, words};

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
            && let Some(marked) = marked(
                &bare(&all[at..middle]),
                &bare(&all[middle..middle + added]),
                paint,
            )
        {
            out.extend(
                marked
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
fn marked(older: &str, newer: &str, paint: Paint) -> Option<String> {
    let (old, new) = (words(older), words(newer));
    if old.len().max(new.len()) > WORDS {
        return None;
    }
    let edits = edits(&old, &new);
    let removed: usize = edits
        .iter()
        .flat_map(|edit| &old[edit.older.clone()])
        .map(|word| word.len())
        .sum();
    if (older.len() - removed) * 2 < older.len().max(newer.len()) {
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
    let same = |words: &[&str], out: &mut String| {
        let text: Vec<String> = words.concat().split('\n').map(verbatim).collect();
        out.push_str(&text.join("\n"));
    };
    let mut at = 0;
    for edit in edits {
        same(&new[at..edit.newer.start], &mut out);
        mark(Tint::Removed, ["[-", "-]"], &old[edit.older], &mut out);
        at = edit.newer.end;
        mark(Tint::Added, ["{+", "+}"], &new[edit.newer], &mut out);
    }
    same(&new[at..], &mut out);
    Some(out)
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
