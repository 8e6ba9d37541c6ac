//! Probes of the system whose answers are cached.

use rdma_fabric::{FabricError, Result};
use rustix::io::Errno;
use std::sync::OnceLock;

/// Returns the value that `open` created the first time it succeeded, or its permanent error. A
/// temporary error, such as no free descriptor, is returned but not cached: the next call tries
/// again.
pub(super) fn kept<T>(cell: &OnceLock<Result<T>>, open: impl FnOnce() -> Result<T>) -> Result<&T> {
    const FOR_NOW: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN, Errno::INTR];
    let opened = match cell.get() {
        Some(known) => known,
        None => match open() {
            Err(FabricError::System { call, errno }) if FOR_NOW.iter().any(|now| now.raw_os_error() == errno) => {
                return Err(FabricError::System { call, errno });
            }
            made => cell.get_or_init(|| made),
        },
    };
    opened.as_ref().map_err(Clone::clone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_fails_for_now_is_made_again() {
        let system = |errno: Errno| FabricError::System { call: &"open", errno: errno.raw_os_error() };
        let probed = OnceLock::new();
        for errno in [Errno::MFILE, Errno::NOMEM] {
            assert_eq!(kept(&probed, || Err::<u8, _>(system(errno))), Err(system(errno)));
        }
        assert_eq!(kept(&probed, || Ok(7)), Ok(&7));
        assert_eq!(kept(&probed, || Ok(8)), Ok(&7));
        for errno in [Errno::PERM, Errno::ACCESS, Errno::NOSYS, Errno::NOENT] {
            let probed = OnceLock::new();
            assert_eq!(kept(&probed, || Err::<u8, _>(system(errno))), Err(system(errno)));
            assert_eq!(kept(&probed, || Ok(7)), Err(system(errno)));
        }
    }
}
