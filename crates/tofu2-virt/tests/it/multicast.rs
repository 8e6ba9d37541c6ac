//! Multicasts on a machine whose network has them: a "what if".

use crate::start::{NETWORKS, meet};
use rdma_fabric::{
    Deps, Fabric, FabricError, MulticastSpan, Multicasts, ProgramResult, Rank, Region, Time, error::MulticastError,
};
use std::time::Duration;
use tofu2_virt::{Crossbar, Job, NetworkModel, Platform, Torus};

fn job<'a>(lengths: &[u32], on_node: u32, network: NetworkModel) -> Job<'a> {
    let platform = Platform::fx100().with("multicast", 300_000).unwrap();
    let torus = Torus::new(lengths).unwrap();
    checks::jobs::virtual_time(&platform, (torus.nodes() * on_node) as usize)
        .ranks_per_node(on_node)
        .torus(torus)
        .network(network)
}

fn span(
    fabric: &Fabric,
    region: &Region,
    offset: usize,
    members: usize,
    words: usize,
) -> ProgramResult<MulticastSpan<u64>> {
    let at: Vec<_> = (0..members as u32).map(|rank| region.at(Rank::new(rank), offset as u64)).collect();
    Ok(MulticastSpan::new(fabric, &at, words)?)
}

/// Each of `posters` multicasts to the first `members` ranks at the same time. Returns, for a
/// poster, the times at which its source was reusable and at which all puts are known to be
/// visible; for other ranks, the time at which each multicast arrived.
async fn timed(fabric: Fabric, posters: &[usize], members: usize, words: usize) -> ProgramResult<Vec<u64>> {
    let (me, begin) = (fabric.rank().index(), Time::ZERO + Duration::from_millis(1));
    let region = fabric.alloc_symmetric(64 + 8 * words * posters.len()).await?;
    let offset = |number: usize| 64 + 8 * words * number;
    let since = || fabric.now().picos_since(begin);
    let mut times = Vec::new();
    if let Some(number) = posters.iter().position(|poster| *poster == me) {
        let to = span(&fabric, &region, offset(number), members, words)?;
        fabric.sleep_until(begin).await;
        to.put(&fabric, vec![1; words]).await?;
        times.push(since());
        fabric.flush_all().await?;
        times.push(since());
    } else if me < members {
        for number in 0..posters.len() {
            let last = region.word::<u64>(&fabric, offset(number) + 8 * (words - 1))?;
            fabric.wait_until(&last, Deps::All, |word| word == 1).await?;
            times.push(since());
        }
    }
    meet(&fabric, &region, 0).await?;
    Ok(times)
}

/// The CPU and the send engine; a hop to the crossbar, from it to the members, their receive engines.
const THERE: u64 = 150_000 + 150_000 + 260_000 + 300_000 + 150_000;

#[test]
fn all_members_are_reached_at_the_same_moment() {
    for network in NETWORKS {
        for members in [1, 2, 4, 8] {
            let run = job(&[8], 1, network).run(&async |fabric| timed(fabric, &[0], members, 1).await).unwrap();
            // An acknowledgement takes the shorter way around the ring.
            let hops = (members as u64 - 1).min(4);
            let back = if hops == 0 { 0 } else { 260_000 + (hops - 1) * 100_000 };
            assert_eq!(run.outs[0], [300_000, THERE + 450_000 + back], "{members} members, {network:?}");
            let others = &run.outs[1..members];
            assert!(others.iter().all(|times| *times == [THERE]), "{members} members, {network:?}: {others:?}");
            assert!(run.outs[members..].iter().all(Vec::is_empty));
        }
        // The payload is moved once, regardless of the number of members.
        let run = job(&[4], 1, network).run(&async |fabric| timed(fabric, &[3], 4, 1_001).await).unwrap();
        assert_eq!(run.outs[..3], [[THERE + 800_000]; 3], "{network:?}");
        assert_eq!(run.outs[3][0], 300_000 + 800_000);
    }
}

#[test]
fn one_multicast_passes_after_the_other() {
    for (words, busy) in [(1, (8 + 144) * 80), (1_001, 800_000)] {
        let run = job(&[4], 1, NetworkModel::Latency);
        let run = run.run(&async |fabric| timed(fabric, &[0, 3], 4, words).await).unwrap();
        let first = THERE + 800 * (words as u64 - 1);
        assert_eq!(run.outs[1..3], [[first, first + busy]; 2], "{words} words");
        assert_eq!((run.stats.ops.puts, run.stats.ops.bytes_put), (8 + 3, 8 * 8 * words as u64 + 3 * 8));
    }
}

#[test]
fn what_is_no_box_of_nodes_is_named() {
    let refused = |fabric: &Fabric, ranks: &[u32]| {
        Multicasts::reach(fabric, &ranks.iter().map(|rank| Rank::new(*rank)).collect::<Vec<_>>()).err()
    };
    let no_box = |members| Some(FabricError::from(MulticastError::NoBox { members }));
    job(&[3, 4], 1, NetworkModel::Latency)
        .run(&async |fabric: Fabric| {
            // Nodes 0 to 3 are a row.
            for members in [&[][..], &[7], &[1, 2], &[3, 2, 1, 0], &[1, 5, 9], &[5, 6, 9, 10], &[10, 6, 5, 9]] {
                assert_eq!(refused(&fabric, members), None, "{members:?}");
            }
            assert_eq!(refused(&fabric, &(0..12).collect::<Vec<_>>()), None);
            for members in [&[0, 5][..], &[5, 6, 9], &[0, 2], &[0, 1, 5, 6]] {
                assert_eq!(refused(&fabric, members), no_box(members.len()), "{members:?}");
            }
            Ok(())
        })
        .unwrap();
    // FMPL's machine: 9 to 15 nodes are not a box (section 6.3 of its paper).
    let platform = Platform::fx100().with("multicast", 300_000).unwrap();
    checks::jobs::virtual_time(&platform, 16)
        .crossbar(Crossbar::new(8, 2).unwrap())
        .run(&async |fabric: Fabric| {
            for members in 1..=16 {
                let known = if (9..16).contains(&members) { no_box(members) } else { None };
                assert_eq!(refused(&fabric, &(0..members as u32).collect::<Vec<_>>()), known);
            }
            Ok(())
        })
        .unwrap();
    job(&[3], 2, NetworkModel::Latency)
        .run(&async |fabric: Fabric| {
            let shared = MulticastError::SameNode {
                first: Rank::new(2),
                second: Rank::new(3),
                node: fabric.node(Rank::new(3))?,
            };
            assert_eq!(refused(&fabric, &[3, 0, 2]), Some(shared.into()));
            assert_eq!(refused(&fabric, &[1, 2, 4]), None);
            Ok(())
        })
        .unwrap();
}
