//! The payload records of a segment that is built.

use std::sync::Arc;

/// Payload records.
pub(super) enum Records {
    /// Copied from several trees or segments.
    Own(Vec<u8>),
    /// Those of the only tree that is read.
    Shared(Arc<Vec<u8>>),
}

impl Default for Records {
    fn default() -> Self {
        Self::Own(Vec::new())
    }
}

impl Records {
    /// Reserves memory for more bytes, unless nothing is copied.
    pub(super) fn reserve(&mut self, bytes: usize) {
        if let Self::Own(own) = self {
            own.reserve(bytes);
        }
    }

    /// Adds a record of `source` and returns its byte range here.
    #[inline]
    pub(super) fn add(&mut self, source: &[u8], (from, to): (u32, u32)) -> (u32, u32) {
        match self {
            Self::Shared(_) => (from, to),
            Self::Own(bytes) => {
                let start = bytes.len() as u32;
                bytes.extend_from_slice(&source[from as usize..to as usize]);
                (start, bytes.len() as u32)
            }
        }
    }

    /// All bytes so far.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// The bytes, without reserved memory.
    pub(super) fn finish(self) -> Arc<Vec<u8>> {
        match self {
            Self::Shared(bytes) => bytes,
            Self::Own(mut bytes) => {
                bytes.shrink_to_fit();
                Arc::new(bytes)
            }
        }
    }
}
