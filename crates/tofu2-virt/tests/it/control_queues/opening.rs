//! The control queues of a node, and their assignment to ranks.

use crate::start::fx100;
use fabric_offload::{
    ControlQueue,
    control_queue::{QueueError, QueueMode, QueueSpec},
};
use rdma_fabric::{Fabric, FabricError, ProgramResult};
use std::time::Duration;
use tofu2_virt::Platform;

/// Opens queues until there are none left, one rank after another. Returns the ids as (engine,
/// number, context), and the last error.
async fn open_all(fabric: Fabric, spec: QueueSpec) -> ProgramResult<(Vec<(u8, u8, u8)>, FabricError)> {
    fabric.sleep(Duration::from_micros(fabric.rank().number().into())).await;
    let mut queues = vec![];
    let error = loop {
        match ControlQueue::open(&fabric, spec) {
            Ok(queue) => queues.push(queue),
            Err(error) => break error,
        }
    };
    if spec.engine.is_none() {
        assert_eq!(ControlQueue::limits(&fabric).free, 0);
    }
    fabric.sleep(Duration::from_millis(1)).await;
    Ok((queues.iter().map(|q| (q.id().engine(), q.id().number(), q.id().context())).collect(), error))
}

fn none_free(limit: u32) -> FabricError {
    FabricError::from(QueueError::NoneFree(limit))
}

#[test]
fn a_node_of_tofu2_has_48_queues_for_all_its_ranks() {
    for mode in [QueueMode::Session, QueueMode::Exclusive] {
        let run = fx100(4).ranks_per_node(2).run(&async |fabric| open_all(fabric, QueueSpec::new(mode)).await).unwrap();
        let first = &run.outs[0];
        assert_eq!((first.0.len(), &first.1), (48, &none_free(48)));
        // A queue goes to the engine with the fewest open queues, so they are taken in turn.
        assert_eq!(first.0[..6], [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (0, 1, 0), (1, 1, 0)]);
        assert_eq!((run.outs[1].0.len(), &run.outs[1].1), (0, &none_free(48)), "the same node's");
        assert_eq!(run.outs[2].0.len(), 48, "another node's");
    }
}

#[test]
fn normal_queues_of_a_rank_share_their_queue() {
    let spec = QueueSpec::new(QueueMode::Normal).on(2);
    let run = fx100(2).ranks_per_node(2).run(&async |fabric| open_all(fabric, spec).await).unwrap();
    assert_eq!((run.outs[0].0.len(), &run.outs[0].1), (12 * 8, &none_free(12)));
    assert_eq!(
        run.outs[0].0[..9].iter().map(|id| (id.1, id.2)).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (0, 7), (1, 0)]
    );
    assert_eq!(run.outs[1].0.len(), 0);
}

#[test]
fn tofud_has_other_limits() {
    let platform = Platform::tofud();
    let opened = |spec| {
        let run = checks::jobs::virtual_time(&platform, 1).run(&async |fabric| open_all(fabric, spec).await).unwrap();
        (run.outs[0].0.len(), run.outs[0].1.clone())
    };
    assert_eq!(opened(QueueSpec::new(QueueMode::Session).on(0)), (3, none_free(11)));
    assert_eq!(opened(QueueSpec::new(QueueMode::Exclusive).on(5)), (7, none_free(11)));
    assert_eq!(opened(QueueSpec::new(QueueMode::Normal).on(5)), (88, none_free(11)));
}

async fn misuse(fabric: Fabric) -> ProgramResult<()> {
    let session = QueueSpec::new(QueueMode::Session);
    let error = |spec| ControlQueue::open(&fabric, spec).err().map(|error| error.to_string()).unwrap_or_default();
    let first = ControlQueue::open(&fabric, QueueSpec { number: Some(4), ..session.on(1) })?;
    assert_eq!(error(first.spec()), "CQ 1.4 of rank 0 is in use; close it or open another");
    let normal = QueueSpec { number: Some(4), ..QueueSpec::new(QueueMode::Normal).on(1) };
    assert_eq!(error(normal), "CQ 1.4 of rank 0 is in use; close it or open another");
    assert_eq!(
        error(QueueSpec { number: Some(4), ..session }),
        "a CQ number without an engine is 4, the limit of CQ 0.4 of rank 0 is 0"
    );
    assert_eq!(error(session.on(4)), "the number of the engine is 4, the limit of CQ 4.0 of rank 0 is 3");
    assert_eq!(
        error(QueueSpec { number: Some(12), ..session.on(0) }),
        "the number of the CQ is 12, the limit of CQ 0.12 of rank 0 is 11"
    );
    assert_eq!(
        error(session.depth(16).ahead(16)),
        "the initial session offset is 16, the limit of CQ 0.0 of rank 0 is 15"
    );
    assert!(error(session.depth(1 << 17)).ends_with("the limit of CQ 0.0 of rank 0 is 65536"));
    // Closed queues become available again, with the same ids.
    let id = first.id();
    drop(first);
    assert_eq!(ControlQueue::open(&fabric, normal)?.id(), id);
    // Contexts may be closed in any order.
    let shared = QueueSpec::new(QueueMode::Normal).on(3);
    let mut queues = (0..4).map(|_| ControlQueue::open(&fabric, shared)).collect::<Result<Vec<_>, _>>()?;
    let gone = queues.remove(1).id();
    assert_eq!(ControlQueue::open(&fabric, shared)?.id(), gone);
    drop(queues.remove(2));
    assert_eq!(ControlQueue::limits(&fabric).free, 47);
    drop(queues);
    assert_eq!(ControlQueue::limits(&fabric).free, 48);
    Ok(())
}

#[test]
fn misuse_is_told_and_closed_queues_come_back() {
    fx100(1).run(&misuse).unwrap();
}

#[test]
fn tofu1_has_no_session_mode() {
    let spec = QueueSpec::new(QueueMode::Session);
    let run = checks::jobs::virtual_time(&Platform::fx10(), 1)
        .run(&async |fabric| open_all(fabric, spec.on(0)).await)
        .unwrap();
    assert_eq!(run.outs[0].1, FabricError::Unsupported { feature: &"session mode on this machine" });
}

async fn open_some(fabric: Fabric, queues: usize) -> ProgramResult<()> {
    let queues = (0..queues)
        .map(|_| ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session)))
        .collect::<Result<Vec<_>, _>>()?;
    fabric.sleep(Duration::from_micros(1)).await;
    drop(queues);
    Ok(())
}

/// Depth is a limit: an open queue costs its state, and its node a table.
#[test]
fn an_open_queue_costs_less_than_half_a_kibibyte() {
    let bytes = |queues| {
        let job = fx100(1000).run(&async |fabric| open_some(fabric, queues).await).unwrap();
        job.stats.bytes_per_rank
    };
    let [none, one, many] = [0, 1, 33].map(bytes);
    println!("{none} bytes per rank without queues, {one} with one, {many} with 33");
    assert!(many - one <= 32 * 512, "{}", (many - one) / 32);
    assert!(one - none <= 512 + 48 * 16 + 256, "{}", one - none);
}
