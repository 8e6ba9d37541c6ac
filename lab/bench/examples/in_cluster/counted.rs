//! Counts the bytes that Rust code has allocated and not freed: this project's, but not
//! libfabric's, which calls `malloc` directly.
//!
//! Invariant: each call is passed to the system's allocator with the caller's own arguments.
#![allow(unsafe_code)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

#[global_allocator]
static COUNTED: Counted = Counted;

static LIVE: AtomicUsize = AtomicUsize::new(0);

struct Counted;

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: guaranteed by the caller.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Returns the number of live bytes.
pub(crate) fn live() -> usize {
    LIVE.load(Relaxed)
}
