//! An allocator that counts, for the figures on memory.
//!
//! Bytes are those asked for, not what the system allocator rounds them up to, so the figures
//! are the same on every machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes held through it. Make one with `#[global_allocator]`.
pub(crate) struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Bytes held now.
pub(crate) fn held() -> usize {
    HELD.load(Ordering::Relaxed)
}

/// Bytes asked for since the process began, whatever became of them: a measure of work that is
/// the same on every machine.
pub(crate) fn asked() -> usize {
    ASKED.load(Ordering::Relaxed)
}

/// Runs `make` and returns what it made, with the bytes it holds and the most that was held on
/// the way beyond what was held before.
pub(crate) fn measure<T>(make: impl FnOnce() -> T) -> (T, usize, usize) {
    let before = held();
    PEAK.store(before, Ordering::Relaxed);
    let made = make();
    let kept = held().saturating_sub(before);
    (
        made,
        kept,
        PEAK.load(Ordering::Relaxed).saturating_sub(before),
    )
}

fn grow(bytes: usize) {
    ASKED.fetch_add(bytes, Ordering::Relaxed);
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// Everything is passed on to the system allocator unchanged, whose contract is this one's.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}
