//! How many allocations this thread has made.
//!
//! They are counted by the allocator of a binary that was built with the feature `count-allocations`; without it,
//! binaries have the allocator of the system, and nothing is counted. It must not know who asks.

/// Whether this build counts.
pub(crate) const ARE_COUNTED: bool = cfg!(feature = "count-allocations");

/// The allocations of this thread so far; 0 where they are not counted.
#[cfg(not(feature = "count-allocations"))]
pub(crate) fn here() -> u64 {
    0
}

#[cfg(feature = "count-allocations")]
pub(crate) use counting::here;

#[cfg(feature = "count-allocations")]
pub use counting::CountingAllocator;

#[cfg(feature = "count-allocations")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;

    thread_local! {
        // Constant and without a destructor, so that reading it neither allocates nor fails at the end of a thread.
        static MADE: Cell<u64> = const { Cell::new(0) };
    }

    /// The allocations of this thread so far, those that an allocation made larger included.
    pub(crate) fn here() -> u64 {
        MADE.get()
    }

    fn count() {
        MADE.set(MADE.get() + 1);
    }

    /// The allocator of the system, which counts for each thread.
    pub struct CountingAllocator;

    // SAFETY: every call is passed on unchanged to the system allocator, which has the same contract.
    #[allow(unsafe_code, reason = "a global allocator cannot be written without")]
    unsafe impl GlobalAlloc for CountingAllocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            count();
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            unsafe { System.dealloc(pointer, layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            count();
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            count();
            unsafe { System.realloc(pointer, layout, size) }
        }
    }
}
