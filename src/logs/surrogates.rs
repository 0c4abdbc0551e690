//! Halves of surrogate pairs in the text of a log, which no UTF-8 has. It must not know log formats.

const NAMED: usize = 10;

pub(super) fn halves(lines: &[usize]) -> String {
    let named: Vec<String> = lines.iter().take(NAMED).map(usize::to_string).collect();
    let more = match lines.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = if lines.len() == 1 { "" } else { "s" };
    format!(
        "half of a surrogate pair in line{plural} {}{more}: U+FFFD is in its place",
        named.join(", ")
    )
}

/// The text with U+FFFD for each half of a surrogate pair, and their lines, from 1; `None` without any.
pub(super) fn mend_surrogates(text: &str) -> Option<(String, Vec<usize>)> {
    let unit = |at: usize| {
        let escape = text.get(at..at.checked_add(6)?)?;
        let digits = escape.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut copied) = (String::new(), 0);
    let mut lines: Vec<usize> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    let mut next = memchr::memchr(b'\\', text.as_bytes());
    while let Some(at) = next {
        let length = match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(text.get(copied..at)?);
                out.push_str("\\ufffd");
                copied = at + 6;
                let passed = text.as_bytes().get(counted..at).unwrap_or_default();
                line += memchr::memchr_iter(b'\n', passed).count();
                counted = at;
                if lines.last() != Some(&line) {
                    lines.push(line);
                }
                6
            }
            // Of another escape one letter is skipped; the digits after a `u` are plain text.
            _ => 2,
        };
        let after = at + length;
        let rest = text.as_bytes().get(after..).unwrap_or_default();
        next = memchr::memchr(b'\\', rest).map(|found| after + found);
    }
    if copied == 0 {
        return None;
    }
    out.push_str(text.get(copied..)?);
    Some((out, lines))
}
