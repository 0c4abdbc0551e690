//! An allocator that counts, for the figures on memory.
//!
//! Bytes are the requested ones, not what the system allocator rounds them up to, so the figures
//! are the same on every machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};

/// Counts bytes while [`measure`] or [`asked_by`] runs. Otherwise it costs next to nothing, so that
/// timings are not affected. Install it with `#[global_allocator]`.
pub(crate) struct Counting;

static COUNTING: AtomicBool = AtomicBool::new(false);
static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);
static ASKED: AtomicUsize = AtomicUsize::new(0);
static BLOCKS: AtomicUsize = AtomicUsize::new(0);

/// Runs `make` and returns its result, the bytes it allocated and kept, and the peak above the
/// bytes allocated before. Not reentrant.
pub(crate) fn measure<T>(make: impl FnOnce() -> T) -> (T, usize, usize) {
    for counter in [&HELD, &PEAK] {
        counter.store(0, Ordering::Relaxed);
    }
    let made = counted(make);
    let [kept, peak] = [&HELD, &PEAK].map(|counter| counter.load(Ordering::Relaxed));
    (made, kept.max(0) as usize, peak as usize)
}

/// All bytes that `work` requests, freed or not: a measure of work that is the same on every
/// machine.
pub(crate) fn asked_by<T>(work: impl FnOnce() -> T) -> usize {
    ASKED.store(0, Ordering::Relaxed);
    counted(work);
    ASKED.load(Ordering::Relaxed)
}

/// What `work` returns, and how many allocations it makes.
#[allow(dead_code, reason = "one bench counts them")]
pub(crate) fn counted_blocks<T>(work: impl FnOnce() -> T) -> (T, usize) {
    BLOCKS.store(0, Ordering::Relaxed);
    let made = counted(work);
    (made, BLOCKS.load(Ordering::Relaxed))
}

fn counted<T>(work: impl FnOnce() -> T) -> T {
    COUNTING.store(true, Ordering::SeqCst);
    let made = work();
    COUNTING.store(false, Ordering::SeqCst);
    made
}

fn grow(bytes: usize) {
    if COUNTING.load(Ordering::Relaxed) {
        ASKED.fetch_add(bytes, Ordering::Relaxed);
        BLOCKS.fetch_add(1, Ordering::Relaxed);
        let held = HELD.fetch_add(bytes as isize, Ordering::Relaxed) + bytes as isize;
        PEAK.fetch_max(held, Ordering::Relaxed);
    }
}

fn shrink(bytes: usize) {
    if COUNTING.load(Ordering::Relaxed) {
        HELD.fetch_sub(bytes as isize, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system allocator, which has the same contract.
#[allow(unsafe_code, reason = "a global allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrink(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // What becomes smaller stays where it is; what grows may be there twice.
        if size < layout.size() {
            shrink(layout.size());
            grow(size);
        } else {
            grow(size);
            shrink(layout.size());
        }
        unsafe { System.realloc(pointer, layout, size) }
    }
}
