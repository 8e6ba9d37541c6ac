//! Large tables in huge pages: a simulation of a million ranks accesses its tables randomly, and
//! address translation costs as much as the access.

#![allow(unsafe_code)]

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
