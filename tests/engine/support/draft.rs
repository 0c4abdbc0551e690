//! Trees that can be changed before they are written as documents, and delta lines between them.

use std::collections::BTreeMap;

use super::json::Json;

/// A node of a tree that is not written yet.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) id: Option<String>,
    pub(crate) fields: Vec<(String, Json)>,
    pub(crate) children: Vec<Draft>,
}

impl Draft {
    pub(crate) fn set(&mut self, name: &str, value: Json) {
        self.unset(name);
        self.fields.push((name.to_owned(), value));
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.fields.retain(|(k, _)| k != name);
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Json> {
        self.fields.iter().find(|(k, _)| k == name).map(|(_, v)| v)
    }

    pub(crate) fn node_type(&self) -> Option<&str> {
        self.get("nodeType").and_then(Json::as_str)
    }

    pub(crate) fn is_region(&self) -> bool {
        self.node_type().is_some_and(|t| t.starts_with('^'))
    }

    pub(crate) fn region(&mut self, node_type: &str) -> Option<&mut Draft> {
        self.children
            .iter_mut()
            .find(|c| c.node_type() == Some(node_type))
    }

    pub(crate) fn count(&self) -> usize {
        1 + self.children.iter().map(Draft::count).sum::<usize>()
    }

    /// The `n`th node of the tree, in the order of the draft (not canonical order).
    pub(crate) fn nth(&mut self, n: &mut usize) -> Option<&mut Draft> {
        if *n == 0 {
            return Some(self);
        }
        *n -= 1;
        self.children.iter_mut().find_map(|child| child.nth(n))
    }

    pub(crate) fn to_json(&self) -> Json {
        let mut members = Vec::new();
        if let Some(id) = &self.id {
            members.push(("id".to_owned(), Json::text(id)));
        }
        members.extend(self.fields.iter().cloned());
        if !self.children.is_empty() {
            let children = self.children.iter().map(Draft::to_json).collect();
            members.push(("children".to_owned(), Json::List(children)));
        }
        Json::Obj(members)
    }

    /// Every node by id, with its parent's id and its fields.
    pub(crate) fn flatten<'a>(&'a self, parent: Option<&'a str>, out: &mut Flat<'a>) {
        let id = self.id.as_deref().unwrap_or("^root");
        out.insert(id, (parent, &self.fields));
        for child in &self.children {
            child.flatten(Some(id), out);
        }
    }

    /// All ids, parents before children.
    pub(crate) fn ids<'a>(&'a self, out: &mut Vec<&'a str>) {
        out.push(self.id.as_deref().unwrap_or("^root"));
        for child in &self.children {
            child.ids(out);
        }
    }
}

pub(crate) type Flat<'a> = BTreeMap<&'a str, (Option<&'a str>, &'a Vec<(String, Json)>)>;

/// Removes the `n`th node, unless it is the root or a region.
pub(crate) fn take(node: &mut Draft, n: &mut usize) -> Option<Draft> {
    if *n == 0 {
        return None;
    }
    for i in 0..node.children.len() {
        if *n == 1 && !node.children[i].is_region() {
            return Some(node.children.remove(i));
        }
        let count = node.children[i].count();
        if *n <= count {
            *n -= 1;
            return take(&mut node.children[i], n);
        }
        *n -= count;
    }
    None
}

/// Only one container of a turn may have an explicit offset 0; the others drop theirs.
pub(crate) fn one_core(node: &mut Draft) {
    let mut said = false;
    for child in &mut node.children {
        let head = child.node_type().and_then(|t| t.split(':').next());
        let container = match head {
            Some(head) => matches!(head, "mc" | "cont"),
            None => !child.children.is_empty(),
        };
        if container && child.get("offset").and_then(Json::as_int) == Some(0) {
            if said {
                child.unset("offset");
            }
            said = true;
        }
        one_core(child);
    }
}

/// The delta line from an earlier snapshot, if the change can be written as one.
pub(crate) fn delta((base_cycle, base): &(i64, Draft), draft: &Draft, cycle: i64) -> Option<Json> {
    let (mut old, mut new) = (Flat::new(), Flat::new());
    base.flatten(None, &mut old);
    draft.flatten(None, &mut new);
    if base.fields != draft.fields || base.id != draft.id {
        return None;
    }
    let above = |flat: &Flat<'_>, id: &str| {
        let mut ids = Vec::new();
        let mut at = flat[id].0;
        while let Some(parent) = at {
            ids.push(parent.to_owned());
            at = flat[parent].0;
        }
        ids
    };
    let mut order = Vec::new();
    draft.ids(&mut order);
    let mut replace = Vec::new();
    for id in order {
        let (parent, fields) = new[id];
        if let Some((old_parent, old_fields)) = old.get(id) {
            if *old_parent == parent && *old_fields == fields {
                continue;
            }
            // A delta cannot move a node below one of its own descendants.
            let turned = |up: &String| {
                old.contains_key(up.as_str()) && above(&old, up).contains(&id.to_owned())
            };
            if above(&new, id).iter().any(turned) {
                return None;
            }
        }
        let mut members = vec![("id".to_owned(), Json::text(id))];
        members.push(("parent_id".to_owned(), Json::text(parent?)));
        members.extend(fields.iter().cloned());
        replace.push(Json::Obj(members));
    }
    let gone = |id: &str| old.contains_key(id) && !new.contains_key(id);
    let remove: Vec<Json> = old
        .iter()
        .filter(|(id, (parent, _))| gone(id) && !parent.is_some_and(gone))
        .map(|(id, _)| Json::text(id))
        .collect();
    Some(Json::Obj(vec![
        ("cycle".to_owned(), Json::int(cycle)),
        ("base".to_owned(), Json::int(*base_cycle)),
        ("replace".to_owned(), Json::List(replace)),
        ("remove".to_owned(), Json::List(remove)),
    ]))
}
