//! Transfers longer than every limit of a machine or system. Zeros cost time, not memory.

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use tofu2_virt::Platform;

/// Lengths in bytes around the machine's longest transfer, and beyond the range of 31 bits. `cargo
/// xtask long-transfers` tries more.
const LENGTHS: [usize; 4] = [(1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 31) + 1];

/// Measures the time of a put of `len` zeros, and checks the memory afterwards.
async fn zeros(fabric: Fabric, len: usize) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(len).await?;
    let mut took = 0;
    if fabric.rank() == Rank::new(0) {
        let whole = fabric.remote_span::<u8>(region.at(Rank::new(1), 0), len)?;
        let start = fabric.now();
        fabric.put(&whole, vec![0u8; len]).await?;
        fabric.flush_all().await?;
        took = fabric.now().picos_since(start);
    }
    world.barrier().await?;
    Ok(took)
}

#[test]
fn time_grows_with_the_length() {
    let platform = Platform::fx100();
    let mut last = 0;
    for len in LENGTHS {
        let run = checks::jobs::virtual_time(&platform, 2).run(&async |fabric| zeros(fabric, len).await).unwrap();
        let took = run.outs[0];
        assert!(took > last, "{len} bytes take {took} ps, and fewer {last}");
        assert!(run.stats.bytes_per_rank < 1 << 24, "{len} zeros take {} bytes", run.stats.bytes_per_rank);
        last = took;
    }
    // At most 12.5 GB/s: no length was truncated to 32 bits.
    assert!(last > (LENGTHS[3] as u64) * 80 / 2, "{last}");
}

/// Puts only the last byte of a long region, and gets it together with all bytes before it.
async fn ends(fabric: Fabric, len: usize) -> ProgramResult<u8> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(len).await?;
    let mut last = 0;
    if fabric.rank() == Rank::new(0) {
        let whole = fabric.remote_span::<u8>(region.at(Rank::new(1), 0), len)?;
        fabric.put(&whole.slice(len - 1..len)?, [9u8]).await?;
        fabric.flush_all().await?;
        let got = fabric.get(&whole, vec![1u8; len]).await?;
        assert!(got[..len - 1].iter().all(|byte| *byte == 0));
        last = got[len - 1];
    }
    world.barrier().await?;
    Ok(last)
}

#[test]
fn a_get_across_the_limit_is_whole() {
    let out = checks::jobs::virtual_time(&Platform::fx100(), 2)
        .run(&async |fabric| ends(fabric, (1 << 24) + 1).await)
        .unwrap()
        .outs;
    assert_eq!(out, [9, 0]);
}
