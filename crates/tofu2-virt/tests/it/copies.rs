//! Third-party copies on a machine that supports them: a "what if".

use crate::start::{NETWORKS, at, meet};
use rdma_fabric::{Fabric, FabricError, ProgramResult, Rank, RemoteSpan, op::Copy};
use std::time::Duration;
use tofu2_virt::{Job, NetworkModel, Platform, Torus};

fn job<'a>(ranks: usize, network: NetworkModel) -> Job<'a> {
    let platform = Platform::fx100().with("third_party_copy", 1).unwrap();
    checks::jobs::virtual_time(&platform, ranks).torus(Torus::line(ranks as u32)).network(network)
}

/// Rank 1 measures a copy from rank 0 to rank 2, to its completion and to its visibility.
async fn measured(fabric: Fabric, bytes: usize) -> ProgramResult<[u64; 2]> {
    let home = fabric.alloc_symmetric(64 + bytes).await?;
    let mut out = [0; 2];
    if fabric.rank().index() == 1 {
        let [from, to] = [0, 2].map(|rank| fabric.remote_span::<u8>(at(rank, home.key(), 64), bytes));
        let begin = fabric.now();
        fabric.copy(&to?, &from?).await?;
        out[0] = fabric.now().picos_since(begin);
        fabric.flush(Rank::new(2)).await?;
        out[1] = fabric.now().picos_since(begin);
    }
    meet(&fabric, &home, 48).await?;
    Ok(out)
}

#[test]
fn a_copy_takes_a_request_and_a_put_of_the_source() {
    for network in NETWORKS {
        let times = |bytes| job(3, network).run(&async |fabric| measured(fabric, bytes).await).unwrap().outs[1];
        // A round trip to the source, as for a get. The put from there: everything but the CPU's
        // share, over two links; and the way back over one.
        assert_eq!(times(8), [1_420_000, 710_000 + 660_000 + 710_000], "{network:?}");
        // The payload is moved once.
        assert_eq!(times(1_008), [1_520_000, 2_180_000], "{network:?}");
    }
    let run = job(3, NetworkModel::Latency).run(&async |fabric| measured(fabric, 8).await).unwrap();
    assert_eq!((run.stats.ops.copies, run.stats.ops.bytes_got), (1, 0));
}

/// Rank 1 posts a copy from rank 0 to rank 2; one of them drops its memory while the copy is in
/// flight.
async fn dropped(fabric: Fabric, by: usize, after: Duration) -> ProgramResult<Vec<Option<FabricError>>> {
    let (home, gone) = (fabric.alloc_symmetric(64).await?, fabric.alloc_symmetric(64).await?);
    let mut gone = Some(gone);
    meet(&fabric, &home, 32).await?;
    let mut out = Vec::new();
    if fabric.rank().index() == 1 {
        let span = |rank| -> ProgramResult<RemoteSpan<u64>> {
            Ok(fabric.remote_span(at(rank, gone.as_ref().ok_or("it is there")?.key(), 0), 4)?)
        };
        let copy = fabric.post(Copy { to: &span(2)?, from: &span(0)? }).await?;
        out.push(copy.await.err());
        out.push(fabric.flush(Rank::new(2)).await.err());
        out.push(fabric.flush_all().await.err());
    } else {
        fabric.sleep(after).await;
        if fabric.rank().index() == by {
            drop(gone.take());
        }
    }
    meet(&fabric, &home, 48).await?;
    Ok(out)
}

#[test]
fn memory_that_goes_meanwhile_is_named_at_its_end() {
    let outcome = |by, nanos| {
        let after = Duration::from_nanos(nanos);
        let outs =
            job(3, NetworkModel::Latency).run(&async move |fabric| dropped(fabric, by, after).await).unwrap().outs;
        outs[1].iter().map(|error| error.as_ref().and_then(FabricError::gone)).collect::<Vec<_>>()
    };
    let [source, destination] = [0, 2].map(|rank| Some(Rank::new(rank)));
    assert_eq!(outcome(0, 300), [source, None, None]);
    assert_eq!(outcome(2, 900), [None, destination, None]);
    assert_eq!(outcome(0, 5_000), [None, None, None]);
}

/// If the poster is lost, so are its operations in flight (E4); the same holds for a source.
#[test]
fn a_copy_of_a_lost_rank_ends() {
    for lost in [0, 1, 2] {
        let run = job(4, NetworkModel::Latency).run_through(&async move |fabric: Fabric| {
            let home = fabric.alloc_symmetric(64).await?;
            let part = |rank, offset| fabric.remote_span::<u64>(at(rank, home.key(), offset), 2);
            match fabric.rank().index() {
                1 => {
                    let copy = fabric.post(Copy { to: &part(2, 0)?, from: &part(0, 16)? }).await?;
                    if lost == 1 {
                        return Err("lost on purpose".into());
                    }
                    let ends = [copy.await.err(), fabric.flush_all().await.err()];
                    Ok(ends.into_iter().flatten().filter_map(|error| error.gone()).map(Rank::index).collect())
                }
                me if me == lost => {
                    fabric.sleep(Duration::from_nanos(100)).await;
                    Err("lost on purpose".into())
                }
                _ => {
                    fabric.sleep(Duration::from_micros(20)).await;
                    Ok(Vec::<usize>::new())
                }
            }
        });
        let (run, _) = run.unwrap();
        if lost != 1 {
            let told = run.outs[1].as_ref().expect("it ends");
            assert_eq!(told, &[lost]);
        }
    }
}
