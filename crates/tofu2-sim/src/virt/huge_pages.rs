//! Large tables in large pages: a machine of a million ranks is touched all over, and finding a
//! page costs as much as the access.

#![allow(unsafe_code)]

/// Less than this, in bytes, is not worth the question.
#[cfg(all(target_os = "linux", not(miri)))]
const LARGE: usize = 8 << 20;

/// Asks the system to back the memory of a vector, used or not, by huge pages. It may, or may not.
pub(super) fn in_huge_pages<T>(table: &mut Vec<T>) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use rustix::mm::{Advice, madvise};
        const PAGE: usize = 4096;
        let (start, len) = (table.as_mut_ptr().cast::<u8>(), table.capacity() * size_of::<T>());
        let skip = start.align_offset(PAGE);
        if len >= LARGE && skip < len {
            // SAFETY: whole pages of an allocation that is borrowed mutably; the advice changes
            // neither their contents nor what may be done with them. Not to be heard does no harm.
            let _ =
                unsafe { madvise(start.wrapping_add(skip).cast(), (len - skip) / PAGE * PAGE, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = table;
}
