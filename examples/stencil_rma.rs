//! A stencil with one-sided halo exchange, in the two forms of the lock paper's Figures 4 and 5:
//! between fences with puts, and inside one epoch of all ranks with gets. Each rank checks its
//! tile, bit by bit, against the same tile computed in one loop.
//!
//! ```text
//! cargo example stencil_rma --release -- --ranks 4
//! cargo example stencil_rma --release -- --ranks 4 --fabric virt
//! ```
//!
//! For the time of a step on a modelled machine of any size, see
//! `cargo measure stencil`.

use onesided::{
    ProgramResult, Rank,
    lock::locks::{OneLock, RpLock},
};
use rdma_fabric::Fabric;
use workloads::{Stencil, Tile, with_fences, with_lock_all};

/// Runs both forms, one after another.
async fn stencil_rma(fabric: Fabric, side: usize, steps: u32) -> ProgramResult<()> {
    let stencil = Stencil::of_ranks(fabric.ranks() as u32, side, steps);
    let wanted = stencil.reference()[fabric.rank().index()];
    let tell = |form: &str, tile: Tile| {
        if tile.hash != wanted {
            return Err(format!("{form}: the tile of {} is wrong", fabric.rank()));
        }
        if fabric.rank() == Rank::new(0) {
            let micros = |picos: u64| picos as f64 * 1e-6;
            let (step, lock) = (micros(tile.steps) / f64::from(steps), micros(tile.lock));
            println!("{form:24} {step:8.2} µs a step, lock and unlock {lock:6.2} µs; right after {steps} steps");
        }
        Ok(())
    };
    tell("fence, put, fence", with_fences::<OneLock<RpLock>>(&fabric, stencil).await?)?;
    tell("lock_all, get, flush_all", with_lock_all::<OneLock<RpLock>>(&fabric, stencil).await?)?;
    Ok(())
}

fn main() -> std::process::ExitCode {
    onesided::launch(async move |fabric| stencil_rma(fabric, 32, 200).await)
}
