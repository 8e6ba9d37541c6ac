//! Ranks of `onesided run --fabric virt`, whose network and time are simulated.

use rdma_fabric::Fabric;

/// Returns whether a fabric is that of a rank in virtual time.
#[cfg(target_os = "linux")]
pub(crate) fn is_of(fabric: &Fabric) -> bool {
    tofu2_stepped::SteppedRank::of(fabric).is_some()
}

/// Returns whether this process is a rank in virtual time.
#[cfg(target_os = "linux")]
pub(crate) fn is_here() -> bool {
    tofu2_stepped::is_rank()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_of(_: &Fabric) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_here() -> bool {
    false
}
