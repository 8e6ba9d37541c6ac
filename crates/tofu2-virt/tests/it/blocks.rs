//! The time of puts of several blocks: the same as that of a control queue's command with several
//! blocks.

use crate::start::{NETWORKS, at, meet, opened};
use rdma_fabric::{
    BlockPut, Blocks, Deps, Fabric, ProgramResult, Rank,
    control_queue::{Command, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use tofu2_virt::{Job, NetworkModel, Platform, Run, Torus};

const COUNT: u32 = 5;

fn job<'a>(platform: &Platform, network: NetworkModel) -> Job<'a> {
    checks::jobs::virtual_time(platform, 2).torus(Torus::line(2)).network(network)
}

/// Rank 0 puts blocks of `len` bytes: returns the times at which the source is reusable and at
/// which all blocks are visible.
async fn measured(fabric: Fabric, len: usize) -> ProgramResult<[u64; 2]> {
    let blocks = Blocks { count: COUNT, stride: 3 * len as u64 };
    let extent = blocks.extent(len).ok_or("small")?;
    let home = fabric.alloc_symmetric(64 + extent).await?;
    meet(&fabric, &home, 16).await?;
    let mut times = [0; 2];
    if fabric.rank().index() == 0 {
        let (to, from) = (fabric.remote_span::<u8>(at(1, home.key(), 64), extent)?, home.span(&fabric, 64, extent)?);
        let begin = fabric.now();
        BlockPut::new(&to, &from, len, blocks)?.put(&fabric).await?;
        times[0] = fabric.now().picos_since(begin);
        fabric.flush(Rank::new(1)).await?;
        times[1] = fabric.now().picos_since(begin);
    }
    meet(&fabric, &home, 32).await?;
    Ok(times)
}

/// The same through a control queue of rank 0; the end is the last acknowledgement.
async fn queued(fabric: Fabric, len: usize) -> ProgramResult<[u64; 2]> {
    let blocks = Blocks { count: COUNT, stride: 3 * len as u64 };
    let (home, queue) = opened(&fabric, 64 + 16 * len, QueueSpec::new(QueueMode::Normal).on(0)).await?;
    meet(&fabric, &home, 16).await?;
    let mut times = [0; 2];
    if fabric.rank().index() == 0 {
        let (to, place) = (QueueId::new(Rank::new(1), 0, 0, 0), Stadd::fixed(0) + 64);
        let begin = fabric.now();
        let put = Command::Put { to, from: place, at: place, len: len as u32, blocks };
        queue.post(Posting::new(put).tcq(0).local(0), Deps::All).await?;
        for _ in 0..COUNT {
            queue.next_completion(Deps::All).await?.status?;
        }
        times[0] = fabric.now().picos_since(begin);
        for _ in 0..COUNT {
            queue.next_notice(Deps::All).await?.status?;
        }
        times[1] = fabric.now().picos_since(begin);
    }
    meet(&fabric, &home, 32).await?;
    Ok(times)
}

#[test]
fn blocks_cost_one_posting_and_a_command_each() {
    for network in NETWORKS {
        for len in [1, 8, 9, 100, 1_000, 5_000] {
            let tofu2 = Platform::fx100();
            let times = |run: Run<[u64; 2]>| run.outs[0];
            let whole = job(&tofu2, network).run(&async |fabric| measured(fabric, len).await).unwrap();
            assert_eq!(whole.stats.ops.bytes_put, u64::from(COUNT) * len as u64 + 8 * 2, "{network:?}");
            let queued = job(&tofu2, network).run(&async |fabric| queued(fabric, len).await).unwrap();
            let (whole, queued) = (times(whole), times(queued));
            assert_eq!(whole, queued, "{network:?}, {len} bytes");
            // The send engine takes a command at most every 100 ns; the CPU writes one in 150 ns.
            let without = tofu2.with("block_puts", 0).unwrap();
            let each = times(job(&without, network).run(&async |fabric| measured(fabric, len).await).unwrap());
            let payload = (len as u64).saturating_sub(8) * 100;
            let apart = |cpu: u64| u64::from(COUNT - 1) * cpu.max(payload) + payload;
            assert_eq!(whole[0], 300_000 + apart(100_000), "{network:?}, {len} bytes");
            assert_eq!(each[0], 300_000 + apart(150_000), "{network:?}, {len} bytes");
            assert_eq!(each[1] - whole[1], each[0] - whole[0], "{network:?}, {len} bytes");
        }
    }
}
