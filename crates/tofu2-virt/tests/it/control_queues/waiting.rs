//! Waiting for room: in line, alongside other waits, and with waits that are abandoned.

use super::script::AT;
use crate::start::fx100;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, MrqKind, Posting, QueueError, QueueId, QueueMode, QueueSpec},
};
use rdma_fabric::{Deps, Fabric, ProgramResult};
use std::{cell::RefCell, time::Duration};

/// Ten posts wait for room in a full session queue, and one of them gives up. Credit arrives slot
/// by slot.
async fn in_line(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let region = fabric.alloc(64)?;
    let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session).depth(4))?;
    let sender = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
    queue.register_fixed(&region, 0)?;
    sender.register_fixed(&region, 0)?;
    let nop = |tag| Posting::new(Command::Nop).tcq(tag);
    for tag in 0..3 {
        queue.post(nop(tag), Deps::All).await?;
    }
    let order = RefCell::new(vec![]);
    let waiting = (3..13).map(|tag| {
        let (fabric, queue, order) = (&fabric, &queue, &order);
        async move {
            if tag == 5 {
                // This one gives up after a while.
                let until = fabric.now() + Duration::from_micros(5);
                assert!(fabric.before(until, queue.post(nop(tag), Deps::All)).await.is_none());
                return Ok(());
            }
            queue.post(nop(tag), Deps::All).await?;
            order.borrow_mut().push(tag);
            Ok::<(), rdma_fabric::FabricError>(())
        }
    });
    let credit = async {
        fabric.sleep(Duration::from_micros(3)).await;
        // No post overtakes those that wait.
        assert!(matches!(queue.try_post(nop(99)), Err(rdma_fabric::Refused::Full(()))));
        for _ in 0..13 {
            sender.post(Posting::new(Command::put(queue.id(), AT, AT, 0)).sps(1), Deps::All).await?;
            fabric.sleep(Duration::from_micros(1)).await;
        }
        Ok::<(), rdma_fabric::FabricError>(())
    };
    let (posted, credited) = rdma_fabric::join::join(rdma_fabric::join::join_all(waiting), credit).await;
    credited?;
    posted.into_iter().collect::<Result<Vec<()>, _>>()?;
    fabric.sleep(Duration::from_micros(5)).await;
    let mut tags = vec![];
    while let Some(completion) = queue.poll_tcq()? {
        tags.push(completion.tag);
    }
    assert_eq!(tags[3..], order.into_inner());
    Ok(tags)
}

#[test]
fn those_who_wait_for_room_get_it_in_line() {
    let expected: Vec<u64> = (0..13).filter(|tag| *tag != 5).collect();
    assert_eq!(fx100(1).run(&in_line).unwrap().outs, [expected]);
}

/// One notice too many: earlier ones can still be taken, then the queue has stopped, for its owner
/// and for all others.
async fn overflow(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc(64)?;
    let spec = QueueSpec { mrq_depth: 4, ..QueueSpec::new(QueueMode::Session) };
    let queue = ControlQueue::open(&fabric, spec.ahead(10).checked(false))?;
    let sender = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
    queue.register_fixed(&region, 0)?;
    sender.register_fixed(&region, 0)?;
    let to: QueueId = queue.id();
    for edata in 0..6 {
        let put = Posting::new(Command::put(to, AT, AT + 8, 8)).remote(edata).local(edata).sps(1);
        sender.post(put, Deps::All).await?;
    }
    fabric.sleep(Duration::from_micros(10)).await;
    // The put whose notice found no room had all other effects, except the advance; the next one
    // was refused.
    assert_eq!(queue.pointers().scheduled, 14);
    let mut statuses = vec![];
    while let Some(notice) = sender.poll_mrq()? {
        assert_eq!(notice.kind, MrqKind::LocalPut);
        statuses.push(notice.status);
    }
    let stopped = QueueError::Stopped(to);
    assert_eq!(statuses, [Ok(()), Ok(()), Ok(()), Ok(()), Ok(()), Err(stopped)]);
    for edata in 0..4 {
        assert_eq!(queue.next_notice(Deps::All).await?.edata, edata);
    }
    let error = queue.next_notice(Deps::All).await.unwrap_err();
    assert_eq!(error, QueueError::MrqOverflow { queue: to, depth: 4 }.into());
    assert_eq!(queue.next_completion(Deps::All).await.unwrap_err(), stopped.into());
    assert_eq!(queue.post(Command::Nop.into(), Deps::All).await.unwrap_err(), stopped.into());
    assert_eq!(queue.close()?, 0);
    Ok(())
}

#[test]
fn too_many_notices_stop_the_queue() {
    fx100(1).run(&overflow).unwrap();
}
