//! `docs/public-api.txt` lists the public interface of the library, so that a change of it shows in
//! review. `.ci/public-api` has rustdoc write the interface as JSON and runs this test on it; with
//! `BLESS=1` it rewrites the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The interface of the crate, as rustdoc sees it: without hidden and private items.
struct Interface {
    index: Value,
    /// The members of each item, by the text of its declaration.
    items: BTreeMap<String, BTreeSet<String>>,
    /// The ids of the exported items.
    exported: BTreeSet<u64>,
    /// The types of this crate that signatures and fields name, with what names them.
    named: BTreeMap<u64, String>,
    /// The exported items and members without a doc comment.
    undocumented: Vec<String>,
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn ids(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

impl Interface {
    fn item(&self, id: &Value) -> Option<(Value, String, Value)> {
        let item = self.index.get(id.to_string())?;
        let (kind, inner) = item["inner"].as_object()?.iter().next()?;
        Some((item.clone(), kind.clone(), inner.clone()))
    }

    /// Adds what a module declares or re-exports, below `path`.
    fn module(&mut self, inner: &Value, path: &str) {
        for id in ids(&inner["items"]) {
            let Some((item, kind, inner)) = self.item(id) else {
                continue;
            };
            match kind.as_str() {
                "module" => {
                    let path = format!("{path}::{}", item["name"].as_str().unwrap());
                    self.items.entry(format!("pub mod {path}")).or_default();
                    self.module(&inner, &path);
                }
                "use" => {
                    if let Some((item, kind, target)) = self.item(&inner["id"]) {
                        let name = inner["name"].as_str().unwrap();
                        if kind == "module" {
                            let path = format!("{path}::{name}");
                            self.items.entry(format!("pub mod {path}")).or_default();
                            self.module(&target, &path);
                        } else {
                            self.declare(&item, &kind, &target, path, name);
                        }
                    }
                }
                _ => {
                    let name = item["name"].as_str().unwrap().to_owned();
                    self.declare(&item, &kind, &inner, path, &name);
                }
            }
        }
    }

    /// Notes the types that a signature names.
    fn note_types(&mut self, value: &Value, whose: &str) {
        match value {
            Value::Object(members) => {
                let path = members.get("resolved_path").or(members.get("trait"));
                if let Some(id) = path.and_then(|path| path["id"].as_u64()) {
                    self.named.entry(id).or_insert_with(|| whose.to_owned());
                }
                members
                    .values()
                    .for_each(|member| self.note_types(member, whose));
            }
            Value::Array(items) => items.iter().for_each(|item| self.note_types(item, whose)),
            _ => {}
        }
    }

    /// Notes the types that a member of an item names. Bodies are not in the JSON.
    fn note_member(&mut self, member: &Value, whose: &str) {
        let name = member["name"].as_str().unwrap_or_default();
        let whose = format!("{whose}::{name}");
        // What a tuple holds has a number.
        if member["docs"].is_null() && !name.starts_with(|first: char| first.is_ascii_digit()) {
            self.undocumented.push(whose.clone());
        }
        self.note_types(&member["inner"], &whose);
        let kind = &member["inner"]["variant"]["kind"];
        let fields = ids(&kind["tuple"]).chain(ids(&kind["struct"]["fields"]));
        let fields: Vec<Value> = fields
            .filter_map(|id| Some(self.item(id)?.0["inner"].clone()))
            .collect();
        fields
            .iter()
            .for_each(|field| self.note_types(field, &whose));
    }

    fn declare(&mut self, item: &Value, kind: &str, inner: &Value, path: &str, name: &str) {
        self.exported.extend(item["id"].as_u64());
        if item["docs"].is_null() {
            self.undocumented.push(name.to_owned());
        }
        if kind == "function" {
            self.note_types(&item["inner"], name);
        }
        let source = source(item);
        let declared = source.split(['(', '{', ';']).next().unwrap_or_default();
        let text = match kind {
            "struct" | "enum" | "trait" => format!("{declared} "),
            _ => format!("{source} "),
        };
        let mut text = text.replacen(&format!(" {name}"), &format!(" {path}::{name}"), 1);
        if item["attrs"].to_string().contains("non_exhaustive") {
            text.insert_str(0, "#[non_exhaustive] ");
        }
        let mut members = BTreeSet::new();
        let kinds = &inner["kind"];
        let fields = ids(&kinds["plain"]["fields"]).chain(ids(&kinds["tuple"]));
        let parts = fields
            .chain(ids(&inner["variants"]))
            .chain(ids(&inner["items"]));
        let parts: Vec<_> = parts.filter_map(|id| self.item(id)).collect();
        for (member, ..) in parts {
            self.note_member(&member, name);
            members.insert(self::source(&member));
        }
        let mut traits = BTreeSet::new();
        let impls: Vec<_> = ids(&inner["impls"])
            .filter_map(|id| self.item(id))
            .collect();
        for (_, _, part) in impls {
            if part["is_synthetic"] == true || !part["blanket_impl"].is_null() {
                continue;
            }
            match part["trait"]["path"].as_str() {
                Some(of) => {
                    self.note_types(&part["trait"], name);
                    traits.insert(of.to_owned());
                }
                None => {
                    let methods: Vec<_> =
                        ids(&part["items"]).filter_map(|id| self.item(id)).collect();
                    for (method, ..) in methods {
                        self.note_member(&method, name);
                        members.insert(self::source(&method));
                    }
                }
            }
        }
        traits.remove("StructuralPartialEq");
        if !traits.is_empty() {
            let traits: Vec<String> = traits.into_iter().collect();
            members.insert(format!("impl {}", traits.join(", ")));
        }
        self.items
            .entry(text.trim().to_owned())
            .or_default()
            .extend(members);
    }
}

impl Interface {
    /// Holds that every type of this crate in a signature can be named, that everything has a doc comment, and that
    /// the root is short.
    fn check(&self, paths: &Value) {
        let undocumented = &self.undocumented;
        assert!(undocumented.is_empty(), "no docs: {undocumented:#?}");
        let hidden = self.named.iter().filter(|(id, _)| {
            let path = &paths[id.to_string()];
            path["crate_id"] == 0 && !self.exported.contains(id)
        });
        let hidden: Vec<String> = hidden
            .map(|(id, whose)| format!("{} in {whose}", paths[id.to_string()]["path"]))
            .collect();
        assert!(hidden.is_empty(), "not exported: {hidden:#?}");
        let at_root = self.items.keys().filter(|item| {
            let path = item.split("pactql::").nth(1).unwrap_or_default();
            let name = path.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            !name.take(1).any(|name| name.contains("::"))
        });
        let at_root = at_root.count();
        assert!(at_root <= 70, "{at_root} items at the root");
    }
}

/// An item as it is written, on one line, without comments, attributes and a body.
fn source(item: &Value) -> String {
    let Some(file) = item["span"]["filename"].as_str() else {
        return item["name"].as_str().unwrap_or_default().to_owned();
    };
    let place = |end: &str, part: usize| item["span"][end][part].as_u64().unwrap() as usize;
    let text = read(file);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.truncate(place("end", 0));
    if let Some(last) = lines.last_mut() {
        *last = &last[..place("end", 1) - 1];
    }
    lines.drain(..place("begin", 0) - 1);
    if let Some(first) = lines.first_mut() {
        *first = &first[place("begin", 1) - 1..];
    }
    let lines = lines.iter().map(|line| line.trim());
    let lines = lines.filter(|line| !line.starts_with("//") && !line.starts_with("#["));
    let text = lines.collect::<Vec<_>>().join(" ");
    let is_fn = item["inner"].get("function").is_some();
    // What a macro declares has the place of its call.
    let word = text.find(['!', '(', ' ']);
    if word.is_some_and(|end| text[end..].starts_with('!')) {
        return declaration(item);
    }
    let text = match text.split_once(" {") {
        Some((declared, _)) if is_fn => declared,
        _ => &text,
    };
    text.replace("( ", "(")
        .replace(", )", ")")
        .trim()
        .to_owned()
}

/// The declaration of an item, made from its JSON.
fn declaration(item: &Value) -> String {
    let name = item["name"].as_str().unwrap_or_default();
    let inner = item["inner"].as_object().and_then(|it| it.iter().next());
    let (kind, inner) = inner.expect("an item has a kind");
    match kind.as_str() {
        "function" => {
            let inputs = ids(&inner["sig"]["inputs"]).map(|input| match input[0].as_str() {
                Some("self") => spelled(&input[1]).replace("Self", "self"),
                name => format!("{}: {}", name.unwrap_or_default(), spelled(&input[1])),
            });
            let inputs = inputs.collect::<Vec<_>>().join(", ");
            match &inner["sig"]["output"] {
                Value::Null => format!("pub fn {name}({inputs})"),
                output => format!("pub fn {name}({inputs}) -> {}", spelled(output)),
            }
        }
        "assoc_const" | "constant" => format!("pub const {name}: {}", spelled(&inner["type"])),
        "struct_field" => format!("pub {name}: {}", spelled(inner)),
        "variant" => name.to_owned(),
        kind => format!("pub {kind} {name}"),
    }
}

/// A type of the JSON, as a declaration spells it.
fn spelled(given: &Value) -> String {
    let parts = given.as_object().and_then(|given| given.iter().next());
    let (kind, inner) = parts.expect("a type has a kind");
    let list = |types: &Value| ids(types).map(spelled).collect::<Vec<_>>().join(", ");
    match kind.as_str() {
        "resolved_path" | "trait_bound" => {
            let named = inner.get("trait").unwrap_or(inner);
            let path = named["path"].as_str().unwrap_or_default();
            match list(&named["args"]["angle_bracketed"]["args"]) {
                none if none.is_empty() => path.to_owned(),
                arguments => format!("{path}<{arguments}>"),
            }
        }
        "borrowed_ref" => match inner["lifetime"].as_str() {
            Some(lifetime) => format!("&{lifetime} {}", spelled(&inner["type"])),
            None => format!("&{}", spelled(&inner["type"])),
        },
        "array" => format!(
            "[{}; {}]",
            spelled(&inner["type"]),
            inner["len"].as_str().unwrap_or_default()
        ),
        "impl_trait" => format!("impl {}", list(inner)),
        "slice" => format!("[{}]", spelled(inner)),
        "tuple" => format!("({})", list(inner)),
        "type" => spelled(inner),
        _ => inner
            .as_str()
            .map_or_else(|| inner.to_string(), str::to_owned),
    }
}

#[test]
fn the_public_api_is_the_one_listed() {
    let Some(described) = std::env::var_os("PACTQL_PUBLIC_API") else {
        return println!("SKIPPED: .ci/public-api compares the public interface");
    };
    let described = fs::read_to_string(described).unwrap();
    let mut json: Value = serde_json::from_str(&described).unwrap();
    let mut interface = Interface {
        index: json["index"].take(),
        items: BTreeMap::new(),
        exported: BTreeSet::new(),
        named: BTreeMap::new(),
        undocumented: Vec::new(),
    };
    let (_, _, root) = interface.item(&json["root"]).unwrap();
    interface.module(&root, "pactql");
    interface.check(&json["paths"]);
    let mut text = String::new();
    for (item, members) in &interface.items {
        text.push_str(item);
        text.push('\n');
        for member in members {
            text.push_str(&format!("    {member}\n"));
        }
    }
    let listed = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/public-api.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&listed, text).unwrap();
        return;
    }
    let known = fs::read_to_string(&listed).unwrap_or_default();
    let (new, old): (BTreeSet<&str>, BTreeSet<&str>) =
        (text.lines().collect(), known.lines().collect());
    assert!(
        text == known,
        "docs/public-api.txt differs; BLESS=1 .ci/public-api rewrites it\nnew: {:#?}\ngone: {:#?}",
        new.difference(&old),
        old.difference(&new)
    );
}
