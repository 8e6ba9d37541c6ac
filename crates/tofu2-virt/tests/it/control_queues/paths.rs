//! A command takes the path that it requests.

use super::script::AT;
use crate::start::{NETWORKS, fx100, opened};
use rdma_fabric::{
    Deps, Fabric, FabricError, ProgramResult, Rank, Refused,
    control_queue::{Command, Inline, Posting, QueueError, QueueId, QueueMode, QueueSpec},
};
use std::time::Duration;
use tofu2_virt::{Path, System};

/// Returns the bits of a path id, which packs in-group coordinates.
fn bits(path: Path) -> u8 {
    path.a | path.b << 1 | path.c << 3
}

/// Measures the time until a put to the last rank is acknowledged by each of these paths, in
/// picoseconds.
async fn acknowledged(fabric: Fabric, paths: Vec<Option<u8>>) -> ProgramResult<Vec<u64>> {
    let (me, last) = (fabric.rank().number(), fabric.ranks() as u32 - 1);
    let (_home, queue) = opened(&fabric, 64, QueueSpec::new(QueueMode::Normal).on(0)).await?;
    fabric.sleep(Duration::from_micros(1)).await;
    let mut took = vec![];
    if me == 0 {
        let put = Command::PutInline { to: QueueId::new(Rank::new(last), 0, 0, 0), bytes: Inline::word(1), at: AT };
        for path in paths {
            let start = fabric.now();
            queue.post(Posting { path, ..Posting::new(put).local(0) }, Deps::All).await?;
            queue.next_notice(Deps::All).await?.status?;
            took.push((fabric.now() - start).as_nanos() as u64);
        }
        for wrong in [6, 7, 14, 16, 255] {
            let refused = queue.try_post(Posting { path: Some(wrong), ..Posting::new(put) });
            let limit = matches!(&refused, Err(Refused::Failed(FabricError::Queue(error), ()))
                if matches!(**error, QueueError::Limit { .. }));
            assert!(limit, "path {wrong}: {refused:?}");
        }
    }
    fabric.sleep(Duration::from_micros(100)).await;
    Ok(took)
}

#[test]
fn a_longer_path_takes_its_hops_longer() {
    let paths: Vec<Path> =
        (0..2).flat_map(|a| (0..3).flat_map(move |b| (0..2).map(move |c| Path { a, b, c }))).collect();
    for network in NETWORKS {
        let job = fx100(36).shape(System::FX100_36.shape()).network(network);
        let (first, last) = (Rank::new(0), Rank::new(35));
        let hops = |path| job.route(first, last, path).unwrap().count() as u64;
        let asked: Vec<_> = std::iter::once(None).chain(paths.iter().map(|path| Some(bits(*path)))).collect();
        let took = job.run(&async |fabric| acknowledged(fabric, asked.clone()).await).unwrap().outs.swap_remove(0);
        assert_eq!(took.len(), 13);
        let mut longer = 0;
        for (path, took_by) in paths.iter().zip(&took[1..]) {
            let more = hops(Some(*path)) - hops(None);
            // 100 ns per hop, on the way there only.
            assert_eq!(took_by - took[0], 100 * more, "{path:?}, {network:?}");
            longer += u64::from(more > 0);
        }
        assert!(longer >= 4, "{longer} paths are longer than the usual one");
    }
}
