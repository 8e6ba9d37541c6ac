//! Memory files, which are nameless, sealed and of fixed size.

use super::descriptors::above_standard_streams;
use crate::memory::layout;
use rdma_fabric::{FabricError, error::Literal};
use rustix::{
    fs::{self, FallocateFlags, MemfdFlags, SealFlags},
    io::{Errno, retry_on_intr},
    process::{Resource, getrlimit},
};
use std::os::fd::{AsFd, OwnedFd};

/// The seals that every memory file must have before it is mapped.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Returns the error of a refused system call.
pub(crate) fn refused(call: Literal) -> impl Fn(Errno) -> FabricError {
    move |errno| FabricError::System { call, errno: errno.raw_os_error() }
}

/// Creates a sparse file of `len` zero bytes whose size is sealed, with pages reserved for the
/// first `reserved` (not 0) bytes. It is closed on exec.
pub(crate) fn create(name: &str, len: usize, reserved: usize) -> Result<OwnedFd, FabricError> {
    layout::check_page(rustix::param::page_size())?;
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Kernels before 6.3 don't know the flag against execution.
    let file = above_standard_streams(|| {
        fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL).or_else(|_| fs::memfd_create(name, flags))
    })
    .map_err(refused(&"memfd_create"))?;
    // A process that exceeds its file-size limit receives a fatal signal instead of this error.
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < len as u64) {
        return Err(refused(&"ftruncate")(Errno::FBIG));
    }
    retry_on_intr(|| fs::ftruncate(&file, len as u64)).map_err(refused(&"ftruncate"))?;
    fs::fcntl_add_seals(&file, SEALS).map_err(refused(&"fcntl(F_ADD_SEALS)"))?;
    retry_on_intr(|| fs::fallocate(&file, FallocateFlags::empty(), 0, reserved as u64))
        .map_err(refused(&"fallocate"))?;
    Ok(file)
}

/// Checks that `file` is a sealed memory file of `len` bytes; otherwise returns a description of
/// the problem.
pub(crate) fn examine(file: impl AsFd, len: usize) -> Result<(), &'static str> {
    let stat = fs::fstat(&file).map_err(|_| "is not open")?;
    if u64::try_from(stat.st_size) != Ok(len as u64) {
        return Err("has another size");
    }
    match fs::fcntl_get_seals(&file) {
        Ok(seals) if seals.contains(SEALS) => Ok(()),
        Ok(_) => Err("is not sealed"),
        Err(_) => Err("is no memory file"),
    }
}

/// Reserves pages for `len` bytes from `offset` on, so that accessing them can't fail. `Err(None)`
/// means that no pages are left.
pub(crate) fn reserve(file: impl AsFd, offset: usize, len: usize) -> Result<(), Option<FabricError>> {
    // Whole pages: those shared with neighbours are already reserved or will be.
    let start = offset / layout::PAGE * layout::PAGE;
    let len = offset + len - start;
    retry_on_intr(|| fs::fallocate(&file, FallocateFlags::empty(), start as u64, len as u64)).map_err(|errno| {
        match errno {
            Errno::NOSPC | Errno::NOMEM => None,
            errno => Some(refused(&"fallocate")(errno)),
        }
    })
}

/// Returns the pages between two offsets to the system, except those that also hold bytes outside
/// this range. If the system refuses, they stay with the file.
pub(crate) fn release(file: impl AsFd, start: usize, end: usize) {
    let (start, end) = (start.next_multiple_of(layout::PAGE), end / layout::PAGE * layout::PAGE);
    if start < end {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let _ = retry_on_intr(|| fs::fallocate(&file, flags, start as u64, (end - start) as u64));
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_segment_can_neither_shrink_nor_grow() {
        let file = create("onesided-test", 1 << 20, 4096).unwrap();
        assert_eq!(fs::ftruncate(&file, 4096), Err(Errno::PERM));
        assert_eq!(fs::ftruncate(&file, 1 << 21), Err(Errno::PERM));
        assert_eq!(fs::fcntl_add_seals(&file, SealFlags::WRITE), Err(Errno::PERM));
        assert_eq!(examine(&file, 1 << 20), Ok(()));
        assert_eq!(examine(&file, 1 << 19), Err("has another size"));
        assert!(examine(std::fs::File::open("/proc/self/exe").unwrap(), 1).is_err());
    }

    #[test]
    fn reserved_pages_are_there() {
        let file = create("onesided-test", 1 << 20, 1).unwrap();
        let bytes = |file: &OwnedFd| fs::fstat(file).unwrap().st_blocks * 512;
        let before = bytes(&file);
        reserve(&file, 2 * layout::PAGE + 5000, layout::PAGE).unwrap();
        assert!(bytes(&file) >= before + layout::PAGE as i64);
        assert!(reserve(&file, 1 << 21, 64).is_err(), "growing is sealed");
        // A page that also holds a byte outside the range stays.
        release(&file, 2 * layout::PAGE + 1, 4 * layout::PAGE);
        assert_eq!(bytes(&file), before + layout::PAGE as i64);
        release(&file, 2 * layout::PAGE, 4 * layout::PAGE - 1);
        assert_eq!(bytes(&file), before);
    }
}
