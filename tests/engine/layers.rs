//! The layering of `src`: imports between modules point down, files inside a module do not import
//! each other in a circle, every file says what it is, and functions stay short enough to read.
//!
//! The source is read as text: comments and strings are dropped, and every path that starts with
//! `crate`, `super`, `self` or, in a `mod.rs`, a child module is resolved to the file that defines
//! the name. A re-export counts as an import by the file that uses it, not by the one that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may import, from the top down: the longest entry that a file lies below is its place.
/// `docs/architecture.md` draws the picture.
const MAY_IMPORT: &[(&str, &str)] = &[
    (
        "app::cli",
        "app::serve app::mcp app::measure app::present inspect logs::file store engine advice history runtime query::sql budget logs render index tree json query::ir support",
    ),
    (
        "app::measure",
        "app::present logs::file engine history support",
    ),
    (
        "app::serve",
        "app::calls app::present inspect store engine history logs render runtime tree json query::ir support",
    ),
    (
        "app::mcp",
        "app::calls app::present inspect store engine advice history budget logs render index tree json query::ir support",
    ),
    (
        "app::calls",
        "app::present inspect engine advice history budget render index tree json query::ir support",
    ),
    (
        "app::present",
        "inspect logs::file store engine advice history budget logs render index tree json query::ir query::syntax support",
    ),
    ("logs::file", "engine history logs tree json support"),
    (
        "logs::record",
        "store engine history logs render index tree json support",
    ),
    (
        "inspect",
        "store engine history render index tree json query::ir support",
    ),
    (
        "store",
        "engine history runtime query::sql query::exec query::plan index query::ir tree json support",
    ),
    (
        "engine",
        "advice history runtime query::sql query::exec query::plan budget render index tree json query::ir query::syntax support",
    ),
    (
        "advice",
        "history query::exec query::plan query::ir query::syntax index tree json support",
    ),
    ("logs", "history render index tree json support"),
    ("query::sql", "query::ir tree json support"),
    ("runtime", "index tree json support"),
    (
        "history",
        "query::exec query::plan index tree json query::ir support",
    ),
    (
        "query::exec",
        "query::plan index tree json query::ir support",
    ),
    ("render", "index tree json support"),
    ("index", "tree json support"),
    ("budget", "tree json support"),
    ("tree", "json support"),
    ("json", "support"),
    ("query::plan", "query::ir support"),
    ("query::ir", "query::syntax support"),
    ("query::syntax", "support"),
    ("support", ""),
];

/// The longest function, in lines.
const FUNCTION_LINES: usize = 80;

/// A function that is longer has this comment right above it, with a reason.
const LONG: &str = "// long: ";

/// A path of an import, from the crate's root.
type Segments = Vec<String>;

struct Source {
    /// Relative to `src`.
    name: String,
    /// From the crate's root; empty for `lib.rs`.
    module: Segments,
    lines: Vec<String>,
    /// Without comments, strings and test modules.
    code: String,
    children: BTreeSet<String>,
    /// Names that `use` brings in, with their paths.
    uses: BTreeMap<String, Segments>,
}

struct Sources(Vec<Source>);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

impl Sources {
    fn read() -> Self {
        let mut sources = Vec::new();
        let mut directories = vec![root()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    sources.push(Source::read(&path));
                }
            }
        }
        sources.retain(|source| source.name != "main.rs");
        sources.sort_by(|a, b| a.name.cmp(&b.name));
        Self(sources)
    }

    fn of_module(&self, module: &[String]) -> Option<&Source> {
        self.0.iter().find(|source| source.module == module)
    }

    /// The file that defines what a path names.
    fn defines(&self, path: &[String]) -> &Source {
        let mut path = path.to_vec();
        // A re-export may lead to another one; more than this many would be a circle.
        for _ in 0..8 {
            let longest = (0..=path.len()).rev();
            let found = longest.filter_map(|n| Some((n, self.of_module(&path[..n])?)));
            let (length, source) = found.into_iter().next().expect("lib.rs");
            match path.get(length).and_then(|name| source.uses.get(name)) {
                Some(target) => path = [target, &path[length + 1..]].concat(),
                None => return source,
            }
        }
        panic!("re-exports go round in a circle: {path:?}")
    }

    /// Who imports whom, as names of files.
    fn imports(&self) -> Vec<(&Source, &Source)> {
        let mut imports = Vec::new();
        for source in &self.0 {
            for path in source.imports() {
                let target = self.defines(&path);
                if target.name != source.name {
                    imports.push((source, target));
                }
            }
        }
        imports
    }
}

impl Source {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap();
        let name = name.replace('\\', "/");
        let stem = name.trim_end_matches(".rs");
        let stem = stem.trim_end_matches("/mod").trim_end_matches("lib");
        let code = without_tests(&without_comments(&text));
        let module = stem.split('/').filter(|part| !part.is_empty());
        let mut source = Self {
            module: module.map(str::to_owned).collect(),
            lines: text.lines().map(str::to_owned).collect(),
            children: children(&code),
            uses: BTreeMap::new(),
            code,
            name,
        };
        for statement in statements(&source.code, "use ") {
            for (path, alias) in source.tree(statement) {
                let path = source.absolute(path);
                let name = alias.or_else(|| path.last().cloned());
                source.uses.extend(name.map(|name| (name, path)));
            }
        }
        source
    }

    /// The paths of a use tree, with what each is called.
    fn tree(&self, text: &str) -> Vec<(Segments, Option<String>)> {
        let text = text.trim();
        let Some((head, group)) = text.split_once('{') else {
            let (path, alias) = match text.split_once(" as ") {
                Some((path, alias)) => (path, Some(alias.trim().to_owned())),
                None => (text, None),
            };
            let segments = path.split("::").map(str::trim).filter(|s| !s.is_empty());
            let mut segments: Segments = segments.map(str::to_owned).collect();
            // `a::{self}` and `a::*` name the module `a`.
            let last = segments.last().map(String::as_str);
            if last == Some("*") || segments.len() > 1 && last == Some("self") {
                segments.pop();
            }
            return vec![(segments, alias)];
        };
        let group = group.rsplit_once('}').map_or(group, |(group, _)| group);
        let parts = split_group(group).into_iter();
        let paths = parts.flat_map(|part| self.tree(&format!("{head}{part}")));
        paths.collect()
    }

    /// A path from the crate's root; empty for one into another crate.
    fn absolute(&self, path: Segments) -> Segments {
        let mut base = match path.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("self") => self.module.clone(),
            Some("super") => self.module[..self.module.len() - 1].to_vec(),
            Some(child) if self.children.contains(child) => [&self.module[..], &path[..1]].concat(),
            _ => return path,
        };
        for segment in &path[1..] {
            match segment.as_str() {
                "super" => {
                    base.pop();
                }
                _ => base.push(segment.clone()),
            }
        }
        base
    }

    /// What the file imports, as paths from the crate's root. Declarations and re-exports do not
    /// count.
    fn imports(&self) -> BTreeSet<Segments> {
        let mut code = self.code.clone();
        let re_exports = ["pub use ", "pub(crate) use ", "pub(super) use "];
        for start in re_exports {
            for statement in statements(&self.code, start) {
                code = code.replace(&format!("{start}{statement};"), "");
            }
        }
        let mut found = BTreeSet::new();
        for statement in statements(&code, "use ") {
            for (path, _) in self.tree(statement) {
                found.insert(path);
            }
        }
        // Paths that are written out where they are used.
        let starts = ["crate", "super", "self"].into_iter();
        let starts = starts.chain(self.children.iter().map(String::as_str));
        for start in starts {
            for (at, _) in code.match_indices(&format!("{start}::")) {
                let before = code[..at].chars().next_back();
                if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                    continue;
                }
                let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
                let end = code[at..].find(|c| !is_path(c)).unwrap_or(code.len() - at);
                if code[at + end..].starts_with('{') {
                    continue; // The group of a `use`, which was read above.
                }
                found.extend(
                    self.tree(&code[at..at + end])
                        .into_iter()
                        .map(|(path, _)| path),
                );
            }
        }
        let inside = |path: &Segments| {
            let first = path[0].as_str();
            matches!(first, "crate" | "super" | "self") || self.children.contains(first)
        };
        let found = found.into_iter().filter(inside);
        found.map(|path| self.absolute(path)).collect()
    }
}

/// The code with comments and the insides of strings blanked.
fn without_comments(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("r\"") || rest.starts_with("r#") {
            let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
            let end = format!("\"{}", "#".repeat(hashes));
            if rest[1 + hashes..].starts_with('"') {
                let body = 2 + hashes;
                body + rest[body..].find(&end).unwrap() + end.len()
            } else {
                0
            }
        } else if c == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.unwrap() + 2
        } else if rest.starts_with("'\"'") || rest.starts_with("'{'") || rest.starts_with("'}'") {
            3
        } else if rest.starts_with("'\\") {
            rest[3..].find('\'').unwrap() + 4
        } else {
            0
        };
        if skipped == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            rest = &rest[skipped..];
        }
    }
    code
}

/// The code without its `#[cfg(test)]` items, which end at the first `}` in the first column.
fn without_tests(code: &str) -> String {
    let mut kept = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("\n#[cfg(test)]\n") {
        kept.push_str(&rest[..=at]);
        rest = &rest[at..];
        let end = rest.find("\n}\n").map_or(rest.len(), |end| end + 2);
        rest = &rest[end..];
    }
    kept + rest
}

/// The modules that a file declares.
fn children(code: &str) -> BTreeSet<String> {
    let words = code
        .lines()
        .map(|line| line.trim_start_matches("pub(crate) "));
    let words = words.map(|line| line.trim_start_matches("pub(super) "));
    let words = words.map(|line| line.trim_start_matches("pub "));
    words
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect()
}

/// What is between `start`, at the beginning of a statement, and its semicolon.
fn statements<'a>(code: &'a str, start: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(start) {
        let line = code[..at].rfind('\n').map_or(0, |at| at + 1);
        let before = code[line..at].trim();
        let is_word = code[..at].ends_with(char::is_whitespace);
        if before.is_empty() || (start == "use " && is_word && before.starts_with("pub")) {
            let statement = &code[at + start.len()..];
            found.push(&statement[..statement.find(';').unwrap()]);
        }
    }
    found
}

/// The parts of `a, b::{c, d}, e`.
fn split_group(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(group[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(group[from..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

/// The entry of the table that a module lies below; none for the crate's root, and for what only
/// declares modules that are in the table.
fn place(module: &[String]) -> Option<&'static str> {
    let path = module.join("::");
    let below = |name: &str| {
        let rest = path.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let mut entries = MAY_IMPORT.iter().map(|(name, _)| *name);
    let found = entries
        .clone()
        .filter(|name| below(name))
        .max_by_key(|name| name.len());
    let declares = path.is_empty() || entries.any(|name| name.starts_with(&format!("{path}::")));
    assert!(
        found.is_some() || declares,
        "`{path}` has no place in the table"
    );
    found
}

#[test]
fn imports_between_modules_point_down() {
    let sources = Sources::read();
    let allowed: BTreeMap<&str, Vec<&str>> = MAY_IMPORT
        .iter()
        .map(|(module, below)| (*module, below.split_whitespace().collect()))
        .collect();
    let mut wrong = BTreeSet::new();
    for (from, to) in sources.imports() {
        let (Some(above), Some(below)) = (place(&from.module), place(&to.module)) else {
            continue;
        };
        if above != below && !allowed[above].contains(&below) {
            wrong.insert(format!("{} imports {}", from.name, to.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The table itself has an order: what a module imports comes later.
#[test]
fn the_table_has_no_circle() {
    let at = |name| MAY_IMPORT.iter().position(|(module, _)| *module == name);
    for (module, below) in MAY_IMPORT {
        for below in below.split_whitespace() {
            assert!(at(below) > at(module), "{module} above {below}");
        }
    }
}

#[test]
fn files_of_a_module_do_not_import_each_other_in_a_circle() {
    let sources = Sources::read();
    let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in sources.imports() {
        // The crate's root declares everything.
        if !from.module.is_empty() && !to.module.is_empty() {
            below.entry(&from.name).or_default().insert(&to.name);
        }
    }
    let reached = |from: &str| {
        let mut reached: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = below.get(from).into_iter().flatten().copied().collect();
        while let Some(file) = open.pop() {
            if reached.insert(file) {
                open.extend(below.get(file).into_iter().flatten());
            }
        }
        reached
    };
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        below.keys().map(|file| (*file, reached(file))).collect();
    let circles: BTreeSet<Vec<&str>> = reached
        .iter()
        .filter(|(file, reached)| reached.contains(*file))
        .map(|(file, reaches)| {
            let back = |other: &&&str| reached.get(**other).is_some_and(|r| r.contains(file));
            reaches.iter().filter(back).copied().collect()
        })
        .collect();
    let shown: Vec<String> = circles
        .iter()
        .map(|circle| {
            let edges = circle.iter().flat_map(|file| {
                let to = below[file].iter().filter(|to| circle.contains(to));
                to.map(move |to| format!("  {file} -> {to}"))
            });
            let edges: Vec<String> = edges.collect();
            format!("{} files\n{}", circle.len(), edges.join("\n"))
        })
        .collect();
    assert!(circles.is_empty(), "\n{}", shown.join("\n"));
}

/// Files that are still too long, or have functions that are.
const KNOWN_LONG: &[&str] = &["engine/explain.rs"];

fn known_long(name: &str) -> bool {
    KNOWN_LONG.iter().any(|start| name.starts_with(start))
}

#[test]
fn files_say_what_they_are() {
    for source in Sources::read().0 {
        let (name, lines) = (&source.name, &source.lines);
        assert!(lines[0].starts_with("//! "), "{name} has no module doc");
    }
}

#[test]
fn functions_are_short_or_say_why_not() {
    let mut wrong = Vec::new();
    for source in Sources::read().0 {
        let lines = &source.lines;
        for (at, line) in lines.iter().enumerate() {
            let code = line.trim_start();
            let indent = &line[..line.len() - code.len()];
            let before = code.split("fn ").next().unwrap_or_default();
            let modifiers = |word: &str| {
                matches!(word, "const" | "async" | "unsafe") || word.starts_with("pub")
            };
            if !code.contains("fn ") || !before.split_whitespace().all(modifiers) {
                continue;
            }
            // The first line of the same indentation that ends something.
            let ends = |line: &String| {
                let same = line.starts_with(indent) && !line[indent.len()..].starts_with(' ');
                same && (line.ends_with('}') || line.ends_with(';'))
            };
            let length = lines[at..].iter().position(ends).unwrap() + 1;
            let above = lines[..at].iter().rev();
            let mut above = above.take_while(|line| {
                let line = line.trim_start();
                line.starts_with("//") || line.starts_with("#[")
            });
            let long = length > FUNCTION_LINES && !known_long(&source.name);
            if long && !above.any(|line| line.trim_start().starts_with(LONG)) {
                wrong.push(format!("{}:{}: {length} lines", source.name, at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
