//! The ends of waits for queues when nothing more can arrive.

use super::script::AT;
use crate::start::{NETWORKS, fx100, opened};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueError, QueueId, QueueMode, QueueSpec, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, FabricError, ProgramResult, Rank};
use std::time::Duration;
use tofu2_virt::JobError;

#[derive(Clone, Copy, Debug)]
enum Wait {
    Room,
    Completion,
    Notice,
}

const NOP: Posting = Posting::new(Command::Nop);

/// All ranks wait for each other, on queues that no rank will ever advance.
async fn all_wait(fabric: Fabric, wait: Wait, again: bool) -> ProgramResult<FabricError> {
    let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session).depth(4))?;
    for _ in 0..3 {
        queue.post(NOP.tcq(0), Deps::All).await?;
    }
    loop {
        let error = match wait {
            Wait::Room => queue.post(NOP, Deps::All).await.unwrap_err(),
            Wait::Completion => queue.next_completion(Deps::All).await.unwrap_err(),
            Wait::Notice => queue.next_notice(Deps::All).await.unwrap_err(),
        };
        if !again {
            assert_eq!(queue.close()?, 3);
            return Ok(error);
        }
    }
}

#[test]
fn a_deadlock_names_how_many_wait_and_ranks_go_on() {
    for wait in [Wait::Room, Wait::Completion, Wait::Notice] {
        let run = fx100(3).run(&async |fabric| all_wait(fabric, wait, false).await).unwrap();
        assert_eq!(run.outs, vec![FabricError::Deadlock { waiting: 3 }; 3], "{wait:?}");
        // Ranks that never stop trying end with the job's own deadlock.
        let error = fx100(3).run(&async |fabric| all_wait(fabric, wait, true).await).unwrap_err();
        assert!(matches!(error, JobError::Deadlock { waiting: 3, .. }), "{error}");
    }
}

/// The others leave or fail, which ends rank 0's wait on its queue.
async fn left_alone(fabric: Fabric, wait: Wait, fail: bool) -> ProgramResult<Option<FabricError>> {
    if fabric.rank().number() > 0 {
        fabric.sleep(Duration::from_micros(3)).await;
        if fail {
            return Err("as told".into());
        }
        return Ok(None);
    }
    let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session).depth(2))?;
    queue.post(NOP.tcq(0), Deps::All).await?;
    let one = Deps::One(Rank::new(1));
    let error = match wait {
        Wait::Room => queue.post(NOP, one).await.unwrap_err(),
        Wait::Completion => queue.next_completion(one).await.unwrap_err(),
        Wait::Notice => queue.next_notice(one).await.unwrap_err(),
    };
    assert_eq!(fabric.now().as_picos(), 3_000_000);
    let expected = if fail { FabricError::PeerLost { rank: Rank::new(1) } } else { FabricError::PeersLeft };
    assert_eq!(error, expected);
    Ok(Some(error))
}

#[test]
fn waits_end_when_those_they_depend_on_do() {
    for wait in [Wait::Room, Wait::Completion, Wait::Notice] {
        let run = fx100(2).run(&async |fabric| left_alone(fabric, wait, false).await).unwrap();
        assert_eq!(run.outs[0], Some(FabricError::PeersLeft), "{wait:?}");
        let error = fx100(2).run(&async |fabric| left_alone(fabric, wait, true).await).unwrap_err();
        assert_eq!(error.to_string(), "rank 1 failed: as told", "{wait:?}");
    }
}

/// Sends commands to ranks that are lost, have left or do not exist, and checks the returned
/// statuses.
async fn to_nobody(fabric: Fabric) -> ProgramResult<()> {
    let (_own, queue) = opened(&fabric, 64, QueueSpec::new(QueueMode::Normal).on(0)).await?;
    match fabric.rank().number() {
        1 => return Err("as told".into()),
        2 => return Ok(()),
        _ => {}
    }
    fabric.sleep(Duration::from_micros(1)).await;
    let to = |rank| QueueId::new(Rank::new(rank), 0, 0, 0);
    for rank in [1, 2, 77] {
        let to = to(rank);
        let expected = if rank == 1 { QueueError::PeerLost(to) } else { QueueError::NotOpen(to) };
        let commands = [
            Command::PutInline { to, bytes: Inline::word(1), at: AT },
            Command::get(to, AT, AT, 64),
            Command::Atomic { to, at: AT, width: Width::Four, amo: Amo::Or(1) },
        ];
        for command in commands {
            queue.post(Posting::new(command).local(0), Deps::Ranks(&[])).await?;
            assert_eq!(queue.next_notice(Deps::Ranks(&[])).await?.status, Err(expected));
            // No notice was requested, so the error is reported once.
            queue.post(command.into(), Deps::Ranks(&[])).await?;
            let error = queue.next_notice(Deps::Ranks(&[])).await.unwrap_err();
            assert_eq!(error, expected.into());
            assert_eq!(queue.poll_mrq()?, None);
        }
    }
    // Engines, numbers and contexts that no node has.
    for to in [
        QueueId::new(Rank::new(0), 15, 0, 0),
        QueueId::new(Rank::new(0), 0, 255, 0),
        QueueId::new(Rank::new(0), 0, 0, 15),
    ] {
        queue.post(Posting::new(Command::put(to, AT, AT, 8)).local(0), Deps::Ranks(&[])).await?;
        assert_eq!(queue.next_notice(Deps::Ranks(&[])).await?.status, Err(QueueError::NotOpen(to)));
    }
    Ok(())
}

#[test]
fn commands_to_nobody_come_back_with_a_status() {
    for network in NETWORKS {
        let error = fx100(3).network(network).run(&to_nobody).unwrap_err();
        assert_eq!(error.to_string(), "rank 1 failed: as told");
    }
}

/// A leaked queue is closed when its rank ends; commands that it has sent still arrive.
async fn leaves_early(fabric: Fabric) -> ProgramResult<u64> {
    let (_own, queue) = opened(&fabric, 64, QueueSpec::new(QueueMode::Normal).on(0)).await?;
    if fabric.rank().number() == 1 {
        let to = QueueId::new(Rank::new(0), 0, 0, 0);
        queue
            .post(Posting::new(Command::PutInline { to, bytes: Inline::word(8), at: AT }).remote(1), Deps::All)
            .await?;
        std::mem::forget(queue);
        // Long enough for the engine to take the command, too short for its arrival.
        fabric.compute(Duration::from_nanos(200)).await;
        return Ok(0);
    }
    let notice = queue.next_notice(Deps::One(Rank::new(1))).await?;
    assert_eq!(notice.status, Ok(()));
    let late = queue.next_notice(Deps::One(Rank::new(1))).await.unwrap_err();
    assert_eq!(late, FabricError::PeersLeft);
    Ok(fabric.now().as_picos())
}

#[test]
fn what_a_finished_rank_has_sent_arrives() {
    assert_eq!(fx100(2).run(&leaves_early).unwrap().outs[0], 710_000);
}
