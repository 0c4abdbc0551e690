//! Putting a difference on a snapshot: the tree a delta line stands for (RUNTIME §1).

use hashbrown::HashMap;

use super::Snapshot;
use crate::tree::{Delta, InputError, NONE, Present, Row, Tree};

/// The tree of `base` with `delta` on it. Linear in the tree.
///
/// # Errors
/// Ids that are not there, a node below itself, and whatever makes the outcome no valid tree.
pub fn apply(base: &Snapshot, delta: &Delta) -> Result<Tree, InputError> {
    let fault = |message: String| InputError::at_document(message);
    let (mut tree, snapshot_rows) = base.to_tree();
    let known = tree.rows.len();
    let mut fresh: HashMap<&str, u32> = HashMap::new();
    let place = |id: &str, fresh: &HashMap<&str, u32>| {
        fresh.get(id).copied().or_else(|| {
            let row = base.find(id)?.row();
            snapshot_rows.binary_search(&row).ok().map(|at| at as u32)
        })
    };

    // First every node in, so that a parent may stand behind its children.
    let patch = &delta.replace.nodes;
    let mut places = Vec::with_capacity(patch.rows.len());
    for (at, row) in patch.rows.iter().enumerate() {
        let id = patch.id(at as u32);
        let own = match place(id, &fresh) {
            Some(own) => own,
            None => {
                let own = tree.rows.len() as u32;
                let start = tree.ids.len() as u32;
                tree.ids.push_str(id);
                let id_at = (start, tree.ids.len() as u32);
                tree.rows.push(Row {
                    id: id_at,
                    ..row.clone()
                });
                fresh.insert(id, own);
                own
            }
        };
        let target = &tree.rows[own as usize];
        let (id_at, parent, implied) = (
            target.id,
            target.parent,
            target.present.0 & Present::ID_IMPLIED,
        );
        let start = tree.payload.len() as u32;
        let (from, to) = row.payload;
        tree.payload
            .extend_from_slice(&patch.payload[from as usize..to as usize]);
        let code = |own: &mut crate::tree::Dictionary, text: Option<&str>| {
            text.map_or(NONE, |text| own.intern(text))
        };
        let mut next = Row {
            id: id_at,
            parent,
            payload: (start, tree.payload.len() as u32),
            node_type: code(&mut tree.types, patch.types.get(row.node_type)),
            role: code(&mut tree.roles, patch.roles.get(row.role)),
            kind: code(&mut tree.kinds, patch.kinds.get(row.kind)),
            key: code(&mut tree.keys, patch.keys.get(row.key)),
            ..row.clone()
        };
        next.present.0 |= implied;
        tree.rows[own as usize] = next;
        places.push(own);
    }
    for (own, parent) in places.iter().zip(&delta.replace.parents) {
        tree.rows[*own as usize].parent = match parent {
            None if *own == 0 => NONE,
            None => {
                let id = tree.id(*own);
                return Err(fault(format!("`{id}` needs a parent_id")));
            }
            Some(_) if *own == 0 => return Err(fault("the root has no parent".to_owned())),
            Some(id) => place(id, &fresh)
                .ok_or_else(|| fault(format!("the parent_id `{id}` is not in the tree")))?,
        };
    }

    let mut gone = vec![false; tree.rows.len()];
    for id in &delta.remove {
        match place(id, &fresh) {
            None => return Err(fault(format!("`{id}`, to be removed, is not in the tree"))),
            Some(0) => return Err(fault("the root cannot be removed".to_owned())),
            Some(at) => gone[at as usize] = true,
        }
    }

    // Children of each node, then the rows again with every parent before its children.
    let mut first = vec![0_u32; tree.rows.len() + 1];
    for row in &tree.rows {
        if row.parent != NONE {
            first[row.parent as usize + 1] += 1;
        }
    }
    for at in 1..first.len() {
        first[at] += first[at - 1];
    }
    let mut next = first.clone();
    let mut children = vec![0_u32; tree.rows.len().saturating_sub(1)];
    for (at, row) in tree.rows.iter().enumerate() {
        if row.parent != NONE {
            let slot = &mut next[row.parent as usize];
            children[*slot as usize] = at as u32;
            *slot += 1;
        }
    }
    let mut rows: Vec<Row> = Vec::with_capacity(tree.rows.len());
    let mut seen = vec![false; tree.rows.len()];
    // Nodes to visit, with the row of their parent; a closing entry has `NONE` for the node.
    let mut stack: Vec<(u32, u32)> = vec![(0, NONE)];
    while let Some((at, parent)) = stack.pop() {
        if at == NONE {
            let end = rows.len() as u32;
            rows[parent as usize].end = end;
            continue;
        }
        seen[at as usize] = true;
        if gone[at as usize] {
            // All below goes with it.
            let mut below: Vec<u32> = vec![at];
            while let Some(at) = below.pop() {
                seen[at as usize] = true;
                let (from, to) = (first[at as usize], first[at as usize + 1]);
                below.extend(&children[from as usize..to as usize]);
            }
            continue;
        }
        let own = rows.len() as u32;
        let mut row = tree.rows[at as usize].clone();
        row.parent = parent;
        row.level = if parent == NONE {
            0
        } else {
            rows[parent as usize].level + 1
        };
        if row.level >= crate::tree::json::MAX_NESTING as u32 {
            return Err(fault("nested more than 1000 levels deep".to_owned()));
        }
        rows.push(row);
        stack.push((NONE, own));
        let (from, to) = (first[at as usize], first[at as usize + 1]);
        stack.extend(
            children[from as usize..to as usize]
                .iter()
                .rev()
                .map(|&child| (child, own)),
        );
    }
    if let Some(at) = seen.iter().position(|seen| !seen) {
        let id = tree.id(at as u32);
        return Err(fault(format!("`{id}` is moved below itself")));
    }
    for (own, row) in rows.iter_mut().enumerate() {
        if row.end > own as u32 + 1 {
            row.present.0 &= !Present::EMPTY_CHILDREN;
        }
    }
    debug_assert!(known <= tree.rows.len());
    tree.rows = rows;
    crate::tree::check::settle_patched(&mut tree)?;
    Ok(tree)
}
