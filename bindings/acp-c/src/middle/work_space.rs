//! Work spaces.

#![allow(unsafe_code, reason = "exported names; nothing is dereferenced")]

use super::{
    call::{Result, call, run},
    handles::Handle,
    state,
    types::address,
};
use acp::{Striping, WorkSpace};
use core::{
    ffi::c_int,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use rdma_fabric::Rank;
use std::sync::Arc;

/// `ACP_WSD_NULL`.
const NONE: Handle = core::ptr::without_provenance_mut(usize::MAX);

static FIRST_RANK: AtomicUsize = AtomicUsize::new(0);
static BYTES_PER_RANK: AtomicUsize = AtomicUsize::new(1 << 20);

/// Sets the distribution of work spaces created later, which is checked then.
// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_setparams_ws(first_rank: usize, bytes_per_rank: usize) -> c_int {
    FIRST_RANK.store(first_rank, Relaxed);
    BYTES_PER_RANK.store(bytes_per_rank, Relaxed);
    0
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_create_ws(size: usize) -> Handle {
    call("acp_create_ws", NONE, async |acp| {
        // All ranks get an error for a rank that cannot exist.
        let first_rank = Rank::new(u32::try_from(FIRST_RANK.load(Relaxed)).unwrap_or(u32::MAX));
        let striping = Striping { first_rank, bytes_per_rank: BYTES_PER_RANK.load(Relaxed) };
        let space = WorkSpace::create_with(acp, size, striping).await?;
        state::add(Arc::new(space), |objects| &mut objects.spaces)
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_destroy_ws(space: Handle) {
    run("acp_destroy_ws", async |_| {
        match Arc::into_inner(state::with(|objects| objects.spaces.take(space))?) {
            Some(space) => Ok(space.release()?),
            // A call of another thread still uses it, so its memory stays until the library ends.
            None => Ok(()),
        }
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_read_ws(space: Handle, ga: u64, size: usize, offset: usize) -> c_int {
    call("acp_read_ws", 1, async |_| Ok(opened(space)?.copy_to(offset, address(ga)?, size).await.map(|()| 0)?))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_write_ws(space: Handle, ga: u64, size: usize, offset: usize) -> c_int {
    call("acp_write_ws", 1, async |_| Ok(opened(space)?.copy_from(offset, address(ga)?, size).await.map(|()| 0)?))
}

fn opened(space: Handle) -> Result<Arc<WorkSpace>> {
    state::with(|objects| objects.spaces.get(space).cloned())
}
