//! Long contents that several sessions have, each in memory once.
//!
//! A process that serves many sessions of one agent has its system prompt and its tools in each of them. The table
//! keeps no content alive: it forgets those that no segment has any more. It must not know what a content says.

use crate::support::lock;
use std::sync::{Arc, Mutex, Weak};

use hashbrown::HashTable;

use crate::tree::hash_text;

static CONTENTS: Mutex<ContentTable> = Mutex::new(ContentTable {
    table: HashTable::new(),
    sweep_at: 64,
});

struct ContentTable {
    table: HashTable<(u64, Weak<String>)>,
    /// The size at which those that are gone are looked for.
    sweep_at: usize,
}

/// The one copy of a content. Linear in it; at times linear in the number of contents.
pub(super) fn interned(content: &str) -> Arc<String> {
    let hash = hash_text(content);
    let mut contents = lock(&CONTENTS);
    let known = contents.table.find(hash, |(other, known)| {
        *other == hash && known.upgrade().is_some_and(|known| *known == content)
    });
    if let Some(known) = known.and_then(|(_, known)| known.upgrade()) {
        return known;
    }
    if contents.table.len() >= contents.sweep_at {
        contents.table.retain(|(_, known)| known.strong_count() > 0);
        contents.sweep_at = 2 * contents.table.len() + 64;
    }
    let made = Arc::new(content.to_owned());
    let entry = (hash, Arc::downgrade(&made));
    contents.table.insert_unique(hash, entry, |(hash, _)| *hash);
    made
}

#[cfg(test)]
mod tests {
    use super::{CONTENTS, interned};
    use std::sync::Arc;

    #[test]
    fn equal_contents_are_one_while_one_is_kept() {
        let kept = interned("one text of a test");
        assert!(Arc::ptr_eq(&kept, &interned("one text of a test")));
        assert!(!Arc::ptr_eq(&kept, &interned("another text of a test")));
        for number in 0..10_000 {
            interned(&format!("text {number} of a test"));
        }
        let table = CONTENTS.lock().expect("no panic").table.len();
        assert!(table < 5_000, "{table} contents");
        assert!(Arc::ptr_eq(&kept, &interned("one text of a test")));
    }
}
