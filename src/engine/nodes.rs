//! The nodes and ids of a selection, one by one. It knows nothing of how rows are found.

use super::node::Node;
use crate::history::Snapshots;
use crate::index::Snapshot;
use crate::query::exec::RowIter;

type ManyRows<'a> = (&'a Snapshots, std::slice::Iter<'a, (u32, u32)>);

/// The nodes of a [`Selection`](crate::Selection), in result order. See the example of [`Selection`](crate::Selection).
#[derive(Clone, Debug, Default)]
pub struct Nodes<'a> {
    pub(super) one: Option<(&'a Snapshot, RowIter<'a>)>,
    pub(super) many: Option<ManyRows<'a>>,
    pub(super) left: usize,
}

impl<'a> Iterator for Nodes<'a> {
    type Item = Node<'a>;

    #[inline]
    fn next(&mut self) -> Option<Node<'a>> {
        if let Some((snapshot, rows)) = &mut self.one {
            let row = rows.next()?;
            self.left = self.left.saturating_sub(1);
            return Some(Node::new(snapshot.node(row)));
        }
        let (snapshots, rows) = self.many.as_mut()?;
        let &(snapshot, row) = rows.next()?;
        self.left = self.left.saturating_sub(1);
        Some(Node::new(snapshots[snapshot as usize].node(row)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Nodes<'_> {}

/// The ids of a [`Selection`](crate::Selection), in result order. See the example of [`Selection`](crate::Selection).
#[derive(Clone, Debug)]
pub struct Ids<'a> {
    pub(super) nodes: Nodes<'a>,
}

impl<'a> Iterator for Ids<'a> {
    type Item = &'a str;

    #[inline]
    fn next(&mut self) -> Option<&'a str> {
        self.nodes.next().map(Node::id)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.nodes.size_hint()
    }
}

impl ExactSizeIterator for Ids<'_> {}
