//! What comments and documents cite exists: sections of the specification, sections of the
//! sources, links between documents, paths of this repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The text files below these directories, and the documents beside them.
fn texts(directories: &[&str], extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let mut open: Vec<PathBuf> = directories.iter().map(|name| root().join(name)).collect();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            open.extend(entries.map(|entry| entry.unwrap().path()));
        } else if path
            .extension()
            .is_some_and(|e| extensions.iter().any(|known| e == *known))
        {
            let name = path.strip_prefix(root()).unwrap().to_owned();
            files.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    files.sort();
    files
}

/// Joins the lines of comments and prose, so that a citation or a phrase may be wrapped.
fn unwrapped(mut texts: Vec<(PathBuf, String)>) -> Vec<(PathBuf, String)> {
    let wrapped = Regex::new(r"\n *(//[/!]?|#|>)? *").unwrap();
    for (_, text) in &mut texts {
        *text = wrapped.replace_all(text, " ").into_owned();
    }
    texts
}

/// Everything that may cite.
fn citing() -> Vec<(PathBuf, String)> {
    let directories = [
        "src", "tests", "benches", "docs", "grammar", "fuzz/src", "examples",
    ];
    let mut files: Vec<&str> = directories
        .into_iter()
        .filter(|name| root().join(name).exists())
        .collect();
    files.extend(documents_at_the_root());
    unwrapped(texts(&files, &["rs", "md", "txt", "lalrpop"]))
}

fn documents_at_the_root() -> Vec<&'static str> {
    let names = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
    ];
    names
        .into_iter()
        .filter(|name| root().join(name).exists())
        .collect()
}

fn documents() -> Vec<(PathBuf, String)> {
    texts(
        &[&["docs"], documents_at_the_root().as_slice()].concat(),
        &["md"],
    )
}

/// The sections in `§4, §5.1 and §7`.
fn sections(text: &str) -> Vec<&str> {
    let separators = |c: char| c != '.' && !c.is_ascii_alphanumeric();
    let sections = text
        .split(separators)
        .map(|section| section.trim_end_matches('.'));
    sections
        .filter(|section| !section.is_empty() && *section != "and")
        .collect()
}

const SECTIONS: &str = r"(§[0-9A-Z][0-9.]*(?:(?:, | and |–|-)§[0-9A-Z][0-9.]*)*)";

#[test]
fn cited_sections_of_the_specification_exist() {
    let heading = Regex::new(r"(?m)^#+ (\d+(?:\.\d+)*)\.? ").unwrap();
    let mut known: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for name in ["LANGUAGE", "RUNTIME", "STORE", "INSPECT", "LOGS"] {
        let path = root().join(format!("docs/spec/{}.md", name.to_lowercase()));
        let text = fs::read_to_string(path).unwrap();
        let numbers = heading
            .captures_iter(&text)
            .map(|found| found[1].to_owned());
        known.insert(name, numbers.collect());
    }
    let citation = Regex::new(&format!(
        r"\b(LANGUAGE|RUNTIME|STORE|INSPECT|LOGS) {SECTIONS}"
    ))
    .unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (file, text) in citing() {
        for found in citation.captures_iter(&text) {
            for section in sections(&found[2]) {
                count += 1;
                if !known[&found[1]].contains(section) {
                    wrong.push(format!("{}: {} §{section}", file.display(), &found[1]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 150, "only {count} citations found");
}

/// `docs/spec/sources.md` lists the sections of the sources, by chapter where there are chapters.
/// A section of source 002 without a chapter is one of chapter 02.
#[test]
fn cited_sections_of_the_sources_exist() {
    let list = fs::read_to_string(root().join("docs/spec/sources.md")).unwrap();
    let section = Regex::new(r"(?:^|; )§([0-9A-Z][0-9.]*) ").unwrap();
    let mut known: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let (mut source, mut chapter, mut paragraph) = (String::new(), String::new(), String::new());
    for line in list.lines() {
        if let Some(heading) = line.strip_prefix("## Source ") {
            source = heading[..3].to_owned();
            chapter.clear();
        } else if let Some(heading) = line.strip_prefix("### Chapter ") {
            chapter = heading[..2].to_owned();
        } else if line.is_empty() {
            paragraph.clear();
        } else {
            // A heading may go on in the next line, and begins after `; `.
            paragraph += line;
            paragraph.push(' ');
            let sections = known.entry((source.clone(), chapter.clone())).or_default();
            sections.extend(
                section
                    .captures_iter(&paragraph)
                    .map(|found| found[1].to_owned()),
            );
        }
    }
    let citation = Regex::new(&format!(
        r"\bsources? (00\d(?:(?:, | and )00\d)*)(?: chapter (\d\d))? {SECTIONS}"
    ))
    .unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (file, text) in citing() {
        for found in citation.captures_iter(&text) {
            for source in sections(&found[1]) {
                let chapter = found.get(2).map_or("", |chapter| chapter.as_str());
                let chapter = match (source, chapter) {
                    ("002", "") => "02",
                    _ => chapter,
                };
                let known = known.get(&(source.to_owned(), chapter.to_owned()));
                for section in sections(&found[3]) {
                    count += 1;
                    if !known.is_some_and(|known| known.contains(section)) {
                        wrong.push(format!(
                            "{}: source {source} {chapter} §{section}",
                            file.display()
                        ));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 150, "only {count} citations found");
}

/// A heading as the anchor of a link.
fn anchor(heading: &str) -> String {
    let kept = heading
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn links_between_documents_resolve() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let fence = Regex::new(r"(?ms)^ *```.*?^ *```").unwrap();
    let code = Regex::new(r"`[^`\n]*`").unwrap();
    let mut wrong = Vec::new();
    for (file, text) in documents() {
        let text = fence.replace_all(&text, "");
        let text = code.replace_all(&text, "");
        for found in link.captures_iter(&text) {
            let target = &found[1];
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, part) = target.split_once('#').unwrap_or((target, ""));
            let path = match path {
                "" => file.clone(),
                path => file.parent().unwrap().join(path),
            };
            let target_file = root().join(&path);
            let exists = match part {
                "" => target_file.exists(),
                part => fs::read_to_string(target_file).is_ok_and(|text| {
                    let headings = text.lines().filter(|line| line.starts_with('#'));
                    let mut headings = headings.map(|line| anchor(line.trim_start_matches('#')));
                    headings.any(|heading| heading == part)
                }),
            };
            if !exists {
                wrong.push(format!("{}: {target}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn paths_in_documents_exist() {
    let path = Regex::new(
        r"`((?:src|tests|benches|docs|fixtures|grammar|fuzz|examples|\.ci)/[^`\s*…<>{}]*)`",
    )
    .unwrap();
    let mut wrong = Vec::new();
    for (file, text) in documents() {
        for found in path.captures_iter(&text) {
            let name = found[1].split(':').next().unwrap_or_default();
            if !root().join(name).exists() {
                wrong.push(format!("{}: {name}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// `file.rs::function` in the page on conformance is a test of this directory.
#[test]
fn tests_that_prove_conformance_exist() {
    let page = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let named = Regex::new(r"`([a-z_/]+\.rs)::(\w+)`").unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for found in named.captures_iter(&page) {
        count += 1;
        let path = root().join("tests/engine").join(&found[1]);
        let text = fs::read_to_string(path).unwrap_or_default();
        if !text.contains(&format!("fn {}(", &found[2])) {
            wrong.push(found[0].to_owned());
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 40, "only {count} tests named");
}

/// Wordings that readers stumbled over, and what to write instead (`docs/architecture.md`, Words).
const REFUSED: &[(&str, &str)] = &[
    (r"\bso many\b", "a number, `this number of`, `N`"),
    (r"\bwhoever\b", "the reader, the caller, the process"),
    (r"\banew\b", "again, or a verb with `re`"),
    (
        r"\b(?:is|are|was|were|be|been) asked\b",
        "queried, polled, read, requested",
    ),
    (r"\bnobody\b", "no caller, no process, nothing"),
    (r"\bwhat (?:it is|they are) of\b", "name the thing"),
    (r"\bcom(?:es|e|ing) to stand\b", "is placed"),
    (r"\b(?:is|are) told\b", "gets, reads"),
    (r"\b(?:is|are|was|were|be|been) no [a-z`{]", "is not a"),
];

/// What the refused wordings may be part of.
const PLAIN: &[&str] = &[
    "there is no ",
    "there are no ",
    "there was no ",
    "there were no ",
    "asked for",
    "no longer",
    "no more",
    "no less",
    "'nobody'",
];

/// The tests and fuzz targets that the threat model names, one at least for each threat.
#[test]
fn tests_of_the_threat_model_exist() {
    let sources = texts(&["tests", "src", "web/test"], &["rs", "mjs"]);
    let targets = std::fs::read_to_string(root().join("fuzz/src/main.rs")).expect("a file");
    let model = std::fs::read_to_string(root().join("SECURITY.md")).expect("a file");
    let mut rows = 0;
    for row in model
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| threat"))
    {
        let shown = row
            .trim_end_matches(" |")
            .rsplit(" | ")
            .next()
            .expect("a cell");
        let names: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "a threat without a test: {row}");
        for name in names {
            let found = match name.strip_prefix("fuzz ") {
                Some(target) => targets.contains(&format!("(\"{target}\", {target}::run)")),
                None => {
                    // A test in a browser has a sentence as its name.
                    let begins = [format!("fn {name}("), format!("test('{name}'")];
                    let names = |text: &str| begins.iter().any(|begin| text.contains(begin));
                    sources.iter().any(|(_, text)| names(text))
                }
            };
            assert!(found, "SECURITY.md names `{name}`, which does not exist");
        }
        rows += 1;
    }
    assert!(rows > 10, "{rows}");
}

#[test]
fn words_are_plain() {
    let patterns: Vec<(Regex, &str)> = REFUSED
        .iter()
        .map(|(pattern, instead)| (Regex::new(pattern).unwrap(), *instead))
        .collect();
    // The longest context is `there ` before a match, and the rest of `asked for` after one.
    let plain = |text: &str, found: regex::Match<'_>| {
        let from = text.floor_char_boundary(found.start().saturating_sub(6));
        let to = text.ceil_char_boundary(found.end() + 6);
        PLAIN.iter().any(|plain| text[from..to].contains(plain))
    };
    let files = [&["src", "docs"], documents_at_the_root().as_slice()].concat();
    let files = texts(&files, &["rs", "md", "txt", "html", "js", "json"]);
    let (mut wrong, read) = (Vec::new(), files.len());
    for (file, text) in unwrapped(files) {
        let text = text.to_lowercase();
        for (pattern, instead) in &patterns {
            let refused = pattern
                .find_iter(&text)
                .filter(|found| !plain(&text, *found));
            wrong.extend(refused.map(|found| {
                let context = &text[text.floor_char_boundary(found.start().saturating_sub(40))..];
                let context = &context[..context.ceil_char_boundary(80)];
                format!("{}: …{context}…: {instead}", file.display())
            }));
        }
    }
    assert!(read > 100, "only {read} files");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
