//! A text that grows while it is received.

use std::sync::Arc;

/// The text of a block that grows: chunks as they came. Adding one costs its own length and, over many, a
/// logarithm of their number; so does cloning, for a reader of the working state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Growing {
    /// Runs of chunks, each longer than the next, their lengths powers of two as in a binary counter.
    runs: Vec<Arc<[Arc<str>]>>,
}

impl Growing {
    pub(super) fn push(&mut self, text: &str) {
        let mut run: Arc<[Arc<str>]> = Arc::new([text.into()]);
        while let Some(last) = self.runs.pop_if(|last| last.len() == run.len()) {
            run = last.iter().chain(&*run).cloned().collect();
        }
        self.runs.push(run);
    }

    /// The chunks from the one at `from` on. Logarithmic in those skipped.
    pub(super) fn chunks(&self, from: usize) -> impl Iterator<Item = &Arc<str>> {
        let mut before = 0;
        self.runs.iter().flat_map(move |run| {
            let start = from.saturating_sub(before).min(run.len());
            before += run.len();
            &run[start..]
        })
    }

    /// The whole text. Linear in it.
    pub(super) fn text(&self) -> String {
        self.chunks(0).map(|chunk| &**chunk).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Growing;

    #[test]
    fn chunks_come_in_order_and_from_any_of_them() {
        let mut growing = Growing::default();
        for chunk in 0..1_000 {
            growing.push(&format!("{chunk} "));
            assert!(growing.runs.len() <= 10, "{} runs", growing.runs.len());
        }
        let all: String = (0..1_000).map(|chunk| format!("{chunk} ")).collect();
        assert_eq!(growing.text(), all);
        for from in [0, 1, 511, 512, 513, 999, 1_000, 2_000] {
            let left: Vec<String> = growing
                .chunks(from)
                .map(|chunk| chunk.to_string())
                .collect();
            let wanted: Vec<String> = (from..1_000).map(|chunk| format!("{chunk} ")).collect();
            assert_eq!(left, wanted);
        }
    }
}
