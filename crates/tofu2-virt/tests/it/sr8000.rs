//! The Hitachi SR8000: the parts that it has, those that it lacks, and the sums from its table.

use crate::start::{NETWORKS, at};
use fabric_offload::{
    ControlQueue,
    barrier::{Barrier, BarrierLimits, ColourBarrier, ColourError, GateUnit},
    control_queue::{QueueMode, QueueSpec},
};
use rdma_fabric::{
    Atomics, Deps, Fabric, FabricError, Group, Prepared, ProgramResult, Rank, Region, RemoteSpan, Result, op::Put,
};
use std::time::Duration;
use tofu2_virt::{Job, NetworkModel, Platform};

fn sr8000<'a>(ranks: usize) -> Job<'a> {
    checks::jobs::virtual_time(&Platform::sr8000(), ranks)
}

#[test]
fn what_it_lacks_is_refused_by_name() {
    let program = async |fabric: Fabric| {
        let caps = fabric.caps();
        assert_eq!((caps.atomics, caps.puts_in_order, caps.session_queues), (Atomics::None, true, false));
        assert_eq!(GateUnit::of(&fabric).limits(), BarrierLimits::NONE);
        let refused = GateUnit::of(&fabric).alloc(1).map(drop);
        assert_eq!(refused, Err(FabricError::Unsupported { feature: &"a barrier unit" }));
        let limits = ControlQueue::limits(&fabric);
        assert_eq!((limits.engines, limits.free), (0, 0));
        let refused = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal)).map(drop);
        assert!(matches!(refused, Err(FabricError::Unsupported { .. })), "{refused:?}");
        let mut world = Group::world(&fabric).await?;
        let refused = Barrier::new(&mut world).await.map(drop);
        assert!(matches!(refused, Err(FabricError::Unsupported { .. })), "{refused:?}");
        Ok(ColourBarrier::colours(&fabric))
    };
    assert_eq!(sr8000(2).run(&program).unwrap().outs, [8; 2]);
    // Tofu has gates, but no colours.
    let none = async |fabric: Fabric| Ok(ColourBarrier::colours(&fabric));
    assert_eq!(checks::jobs::virtual_time(&Platform::fx100(), 1).run(&none).unwrap().outs, [0]);
}

#[test]
fn nodes_are_rows_of_eight_on_crossbars() {
    let job = sr8000(16);
    let hops = |a, b| job.hops(Rank::new(a), Rank::new(b)).unwrap();
    assert_eq!((hops(0, 7), hops(0, 8), hops(0, 15)), (1, 1, 2));
    // 64 nodes are the maximum of the real machine's two dimensions; fewer than a row are one
    // crossbar.
    assert_eq!(sr8000(64).hops(Rank::new(0), Rank::new(63)), Ok(2));
    assert_eq!(sr8000(3).hops(Rank::new(0), Rank::new(2)), Ok(1));
    assert!(sr8000(1000).run(&async |_| Ok(())).is_err());
}

/// Returns a word at the other of two ranks.
fn there(fabric: &Fabric, home: &Region, offset: usize) -> Result<RemoteSpan<u64>> {
    fabric.remote_span(at(1 - fabric.rank().index(), home.key(), offset), 1)
}

/// Returns the times of FMPL's two calls for a message of 8 bytes, in nanoseconds: init, header
/// wait and data of a send, init, header and data wait of a receive; and half a round trip.
async fn ping_pong(fabric: Fabric) -> ProgramResult<[u64; 7]> {
    const ROUNDS: u64 = 20;
    let home = fabric.alloc_symmetric(64).await?;
    let me = fabric.rank().index();
    let peer = Rank::new(1 - me as u32);
    let (header, flag) = (home.word::<u64>(&fabric, 0)?, home.word::<u64>(&fabric, 8)?);
    let source = home.word::<u64>(&fabric, 16)?;
    let to_data = there(&fabric, &home, 24)?;
    let prepare = async |to| {
        let to = there(&fabric, &home, to)?;
        Prepared::new(&fabric, Put { to: &to, from: home.span::<u64>(&fabric, 16, 1)?, notice: None }).await
    };
    let (post_header, post_flag) = (prepare(0).await?, prepare(8).await?);
    let mut last = [0; 7];
    let nanos = |from, to: rdma_fabric::Time| to.picos_since(from) / 1000;
    for round in 1..=ROUNDS {
        let begun = fabric.now();
        for half in 0..2 {
            let start = fabric.now();
            fabric.charge("fmpl.init").await;
            let ready = fabric.now();
            if (me == 0) == (half == 0) {
                fabric.wait_until(&header, Deps::One(peer), |it| it == round).await?;
                let come = fabric.now();
                fabric.store(&source, round)?;
                let sent = fabric.post(Put { to: &to_data, from: [round], notice: None }).await?;
                let said = post_flag.post().await?;
                fabric.charge("fmpl.data").await;
                sent.await?;
                said.await?;
                last[0..3].copy_from_slice(&[nanos(start, ready), nanos(ready, come), nanos(come, fabric.now())]);
            } else {
                fabric.store(&source, round)?;
                let sent = post_header.post().await?;
                fabric.charge("fmpl.header").await;
                sent.await?;
                let sent = fabric.now();
                fabric.wait_until(&flag, Deps::One(peer), |it| it == round).await?;
                last[3..6].copy_from_slice(&[nanos(start, ready), nanos(ready, sent), nanos(sent, fabric.now())]);
            }
        }
        last[6] = nanos(begun, fabric.now()) / 2;
    }
    Ok(last)
}

/// Held out: half the round trip (12.8 us) and the receive's data wait (5.6 us). Both follow from
/// constants that other figures set.
#[test]
fn layers_add_up_to_fmpls_table() {
    for network in NETWORKS {
        let outs = sr8000(2).network(network).run(&ping_pong).unwrap().outs;
        let [init, header_wait, data, receive_init, header, data_wait, half] = outs[0];
        println!("{network:?}: {outs:?}");
        assert_eq!((init, data, receive_init, header), (500, 8_100, 500, 6_100), "{network:?}");
        let near = |value: u64, published: u64| 100 * value.abs_diff(published) <= 10 * published;
        assert!(near(header_wait, 5_000) && near(data_wait, 5_600) && near(half, 12_800), "{network:?}: {outs:?}");
    }
}

#[test]
fn a_prepared_put_and_a_plain_one() {
    let one_way = async |fabric: Fabric| {
        let home = fabric.alloc_symmetric(64).await?;
        let mut took = [0; 2];
        if fabric.rank() == Rank::new(0) {
            let (to, from) = (there(&fabric, &home, 0)?, home.span::<u64>(&fabric, 16, 1)?);
            let prepared = Prepared::new(&fabric, Put { to: &to, from: from.clone(), notice: None }).await?;
            fabric.write(&from, &[fabric.now().as_picos() + 1])?;
            prepared.run().await?;
            fabric.sleep(Duration::from_micros(50)).await;
            fabric.write(&from, &[fabric.now().as_picos() + 1])?;
            fabric.put(&to, from).await?;
            fabric.sleep(Duration::from_micros(50)).await;
            return Ok(took);
        }
        let word = home.word::<u64>(&fabric, 0)?;
        let mut seen = 0;
        for took in &mut took {
            seen = fabric.wait_until(&word, Deps::One(Rank::new(0)), |it| it != seen).await?;
            *took = fabric.now().as_picos() + 1 - seen;
        }
        Ok(took)
    };
    for network in NETWORKS {
        let outs = sr8000(2).network(network).run(&one_way).unwrap().outs;
        assert_eq!(outs[1], [4_200_000, 6_800_000], "{network:?}");
    }
}

/// Rank 0 puts a long block and then a word; rank 1 counts the rounds in which it sees the word
/// first.
async fn overtaken(fabric: Fabric) -> ProgramResult<u64> {
    const WORDS: usize = 500;
    let home = fabric.alloc_symmetric(8 * WORDS + 8).await?;
    let mut torn = 0;
    let (block, flag) = (home.span::<u64>(&fabric, 8, WORDS)?, home.word::<u64>(&fabric, 0)?);
    for round in 1..=50 {
        if fabric.rank() == Rank::new(0) {
            let (there, last) = (fabric.remote_span::<u64>(at(1, home.key(), 8), WORDS)?, at(1, home.key(), 0));
            fabric.put(&there, vec![round; WORDS]).await?;
            fabric.put_word(&fabric.remote_word::<u64>(last)?, round).await?;
        } else {
            fabric.wait_until(&flag, Deps::One(Rank::new(0)), |it| it >= round).await?;
            let mut seen = vec![0; WORDS];
            fabric.read(&block, &mut seen)?;
            torn += u64::from(seen.iter().any(|&it| it < round));
        }
        fabric.sleep(Duration::from_micros(3)).await;
    }
    Ok(torn)
}

#[test]
fn puts_keep_their_order_whatever_the_jitter() {
    let torn = |platform: &Platform, network: NetworkModel| -> u64 {
        let job = |seed| {
            checks::jobs::virtual_time(platform, 2).seed(seed).jitter(Duration::from_micros(20)).network(network)
        };
        (0..10).map(|seed| job(seed).run(&overtaken).unwrap().outs[1]).sum()
    };
    for network in NETWORKS {
        assert_eq!(torn(&Platform::sr8000(), network), 0, "{network:?}");
    }
    let disordered = Platform::sr8000().with("ordered_puts", 0).unwrap();
    assert!(torn(&disordered, NetworkModel::Latency) > 0, "jitter does not show on a machine without order");
}

/// Returns the time that one barrier takes each rank, in picoseconds, if the last rank is `late`.
async fn synchronised(fabric: Fabric, late: Duration) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let mut barrier = ColourBarrier::claim(&mut world, 7).await?;
    barrier.start()?;
    barrier.wait().await?;
    let start = fabric.now();
    if fabric.rank().index() + 1 == fabric.ranks() {
        fabric.compute(late).await;
    }
    barrier.start()?;
    barrier.wait().await?;
    Ok(fabric.now().picos_since(start))
}

/// Signal (0.5 us), crossbars (1 us), polling (0.5 us).
#[test]
fn a_hardware_barrier_takes_the_same_for_any_number_of_nodes() {
    for ranks in [1, 2, 5, 8, 16, 64] {
        let run = sr8000(ranks).run(&async |fabric| synchronised(fabric, Duration::ZERO).await).unwrap();
        assert_eq!(run.outs, vec![2_000_000; ranks]);
        let late = Duration::from_micros(9);
        let run = sr8000(ranks).run(&async |fabric| synchronised(fabric, late).await).unwrap();
        assert_eq!(run.outs, vec![11_000_000; ranks]);
    }
}

fn refusal(end: Result<ColourBarrier>) -> Option<ColourError> {
    match end {
        Ok(_) => None,
        Err(FabricError::Colour(error)) => Some(*error),
        Err(error) => panic!("{error}"),
    }
}

/// The paper's 16 nodes: 2 to 8 and 16 have the barrier, 9 to 15 do not.
#[test]
fn nodes_that_fill_no_rectangle_have_no_hardware_barrier() {
    let claim = async |fabric: Fabric| Ok(refusal(ColourBarrier::claim(&mut Group::world(&fabric).await?, 0).await));
    for ranks in 2..=16 {
        let want = (9..16).contains(&ranks).then_some(ColourError::NoBox { members: ranks });
        assert_eq!(sr8000(ranks).run(&claim).unwrap().outs, vec![want; ranks]);
    }
    let shared = sr8000(4).ranks_per_node(2).run(&claim).unwrap().outs;
    assert_eq!(shared, vec![Some(ColourError::SharedNode { first: Rank::new(0), second: Rank::new(1) }); 4]);
}

/// Columns of 8 x 2 nodes at the same time, all with colour 3; the speed of each depends only on
/// its own members.
#[test]
fn barriers_of_different_nodes_may_share_a_colour() {
    let columns = async |fabric: Fabric| {
        let mut world = Group::world(&fabric).await?;
        let column = fabric.rank().number() % 8;
        let mut mine = world.split(Some(column.into()), 0).await?.ok_or("no column")?;
        let mut barrier = ColourBarrier::claim(&mut mine, 3).await?;
        let taken = refusal(ColourBarrier::claim(&mut world, 3).await);
        assert!(matches!(taken, Some(ColourError::Taken { colour: 3, .. })), "{taken:?}");
        world.barrier().await?;
        let begun = fabric.now();
        if fabric.rank().number() < 8 {
            fabric.compute(Duration::from_micros(10 * u64::from(column))).await;
        }
        barrier.start()?;
        barrier.wait().await?;
        let took = fabric.now().picos_since(begun) / 1_000_000;
        assert!(took.abs_diff(10 * u64::from(column)) < 100, "{took}");
        world.barrier().await?;
        Ok(took)
    };
    let outs = sr8000(16).run(&columns).unwrap().outs;
    assert!(outs[15] >= 70 && outs[8] < 70, "{outs:?}");
}

#[test]
fn layers_are_charged_for_each_pass_or_each_byte() {
    let charged = async |fabric: Fabric| {
        let (mut took, mut last) = (Vec::new(), fabric.now());
        for (layer, bytes) in [("copy", 1000), ("copy", 0), ("mpi", 1000), ("no such layer", 1000)] {
            fabric.charge_bytes(layer, bytes).await;
            took.push(fabric.now().picos_since(last));
            last = fabric.now();
        }
        Ok(took)
    };
    assert_eq!(sr8000(1).run(&charged).unwrap().outs[0], [132_000, 0, 13_200_000, 0]);
}
