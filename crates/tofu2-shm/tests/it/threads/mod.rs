//! Thread ranks over shared memory: collectives, waiting, and every way in which an operation or a
//! rank can fail.

mod losses;
mod transfers;
mod waits;

use rdma_fabric::{Rank, RegionKey, RemoteAddr};
use std::time::Duration;
use tofu2_shm::Threads;

const SMALL: usize = if cfg!(miri) { 1 << 16 } else { 1 << 20 };
/// Far longer than any test here takes on a busy machine.
const HANG: Duration = Duration::from_secs(20);

fn threads(ranks: usize) -> Threads {
    checks::jobs::threads(ranks).segment_bytes(SMALL)
}

fn word(rank: u32, region: RegionKey, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank::new(rank), region, offset }
}
