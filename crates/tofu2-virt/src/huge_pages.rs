//! Large tables in huge pages: a simulation of a million ranks accesses its tables randomly, and
//! address translation costs as much as the access.

#![allow(unsafe_code)]

use std::hint::black_box;

/// Tables smaller than this, in bytes, are not worth the system call.
#[cfg(all(target_os = "linux", not(miri)))]
const LARGE: usize = 8 << 20;

/// Asks the system to back a vector's memory, used or not, with huge pages. The system may ignore
/// this.
pub(super) fn in_huge_pages<T>(table: &mut Vec<T>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 4096;
        let (start, len) = (table.as_mut_ptr().cast::<u8>(), table.capacity() * size_of::<T>());
        let skip = start.align_offset(PAGE);
        if len >= LARGE && skip < len {
            // SAFETY: these are whole pages of an allocation that is borrowed mutably; the advice
            // changes neither their contents nor the permitted accesses. It may be ignored without
            // harm.
            let _ =
                unsafe { madvise(start.wrapping_add(skip).cast(), (len - skip) / PAGE * PAGE, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = table;
}

/// Memory of the allocator that is backed by huge pages when it is first used: what the ranks of a large
/// job allocate for themselves, a few hundred bytes each.
///
/// This raises glibc's threshold for mappings of their own (`M_MMAP_THRESHOLD`, which glibc adapts by itself)
/// to 32 MiB for the rest of the process. Without it the load `k` of `cargo measure simulator` takes 1.5 times
/// the CPU time; `readers`, whose ranks allocate nothing, as much as with it.
#[derive(Debug)]
pub(super) struct HugeHeap {
    /// The last block, which keeps those before it, which are free, from being returned to the system.
    _last: Vec<u8>,
}

impl HugeHeap {
    /// Prepares the allocator for `bytes` bytes in small pieces. Takes address space, not memory. An
    /// allocator other than glibc's may ignore this.
    pub(super) fn new(bytes: usize) -> Option<Self> {
        /// glibc takes blocks of this size from its heap once a larger one was freed (`mallopt(3)`,
        /// `M_MMAP_THRESHOLD`), and splits free blocks for small requests.
        const BLOCK: usize = 16 << 20;
        if !cfg!(target_env = "gnu") || bytes < BLOCK {
            return None;
        }
        drop(black_box(Vec::<u8>::with_capacity(2 * BLOCK - (64 << 10))));
        let mut blocks = Vec::new();
        for _ in 0..=bytes.div_ceil(BLOCK) {
            let mut block = Vec::new();
            block.try_reserve_exact(BLOCK).ok()?;
            in_huge_pages(&mut block);
            blocks.push(block);
        }
        blocks.pop().map(|_last| HugeHeap { _last })
    }
}
