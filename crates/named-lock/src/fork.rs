//! Detects a forked child by a load instead of a system call: a page that is zeroed by a fork.
//!
//! # Safety
//! The page is private memory of this process, mapped once and never unmapped, and accessed only
//! through the one atomic at its start.

#![allow(unsafe_code)]

use core::{
    ptr,
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::sync::OnceLock;

/// A multiple of every page size.
const LENGTH: usize = 65_536;

/// Returns the word that holds this process's ID, or 0 in a child that has not called
/// [`this_process`] yet; `None` if the system does not support such pages.
#[inline]
fn page() -> Option<&'static AtomicU64> {
    static PAGE: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    *PAGE.get_or_init(map)
}

fn map() -> Option<&'static AtomicU64> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: given no address, the system picks one where nothing is mapped.
    let start = unsafe { mmap_anonymous(ptr::null_mut(), LENGTH, access, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: these bytes were just mapped and contain no data yet.
    unsafe { madvise(start, LENGTH, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: mapped permanently, aligned to a page, zero, and accessed through this reference
    // only.
    Some(unsafe { AtomicU64::from_ptr(start.cast()) })
}

/// Returns the ID of this process, also in a forked child. Makes no system call if the system
/// supports pages that are zeroed by a fork (Linux 4.14).
#[inline]
pub fn this_process() -> u32 {
    match page().map(|page| (page, page.load(Relaxed))) {
        Some((_, number)) if number != 0 => number as u32,
        Some((page, _)) => {
            let number = std::process::id();
            page.store(number.into(), SeqCst);
            number
        }
        None => std::process::id(),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_knows_its_number() {
        assert_eq!((super::this_process(), super::this_process()), (std::process::id(), std::process::id()));
        assert!(super::page().is_some(), "Linux has had such pages since 4.14");
    }
}
