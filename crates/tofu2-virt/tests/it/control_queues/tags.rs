//! Steering tags under traffic, and the machine option of one address space per rank.

use super::script::AT;
use crate::start::{NETWORKS, fx100, opened};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueError, QueueId, QueueMode, QueueSpec, Stadd, Width},
};
use rdma_fabric::{Amo, Deps, Fabric, ProgramResult, Rank};
use std::time::Duration;
use tofu2_virt::Platform;

const LEN: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Gone {
    Tag,
    Region,
    Queue,
}

/// Rank 0 sends puts, gets and atomics all the time. In the meantime, rank 1 removes its tag,
/// region or queue.
async fn under_traffic(fabric: Fabric, gone: Gone) -> ProgramResult<[usize; 2]> {
    const ROUNDS: u32 = 200;
    let me = fabric.rank().number();
    let own = fabric.alloc(LEN)?;
    let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal).on(0))?;
    queue.register_fixed(&own, 0)?;
    fabric.sleep(Duration::from_micros(1)).await;
    let to = QueueId::new(Rank::new(1), 0, 0, 0);
    if me == 1 {
        fabric.sleep(Duration::from_micros(150)).await;
        let word = own.word::<u64>(&fabric, 0)?;
        match gone {
            Gone::Tag => {
                queue.deregister(AT)?;
                let now = fabric.load(&word)?;
                assert!(now > 0, "puts have arrived before");
                fabric.sleep(Duration::from_millis(1)).await;
                assert_eq!(fabric.load(&word)?, now, "nothing lands afterwards");
                return Ok([0; 2]);
            }
            Gone::Region => drop(own),
            Gone::Queue => drop(queue),
        }
        fabric.sleep(Duration::from_millis(1)).await;
        return Ok([0; 2]);
    }
    let mut statuses = vec![];
    for round in 1..=ROUNDS {
        let command = match round % 4 {
            0 => Command::get(to, AT, AT + 8, 4000),
            1 => Command::Atomic { to, at: AT + 16, width: Width::Eight, amo: Amo::Add(1) },
            2 => Command::put(to, AT, AT + 4096, 4000),
            _ => Command::PutInline { to, bytes: Inline::word(round.into()), at: AT },
        };
        queue.post(Posting::new(command).local(round as u8), Deps::All).await?;
        while let Some(notice) = queue.poll_mrq()? {
            statuses.push(notice.status);
        }
        fabric.sleep(Duration::from_micros(1)).await;
    }
    while statuses.len() < ROUNDS as usize {
        statuses.push(queue.next_notice(Deps::Ranks(&[])).await?.status);
    }
    let failed = statuses.iter().filter(|status| status.is_err()).count();
    for status in statuses.into_iter().filter_map(Result::err) {
        match (gone, status) {
            (Gone::Tag, QueueError::NoSuchTag { queue, .. }) | (Gone::Region, QueueError::Stale { queue, .. }) => {
                assert_eq!(queue, to)
            }
            (Gone::Queue, QueueError::NotOpen(queue)) => assert_eq!(queue, to),
            (_, status) => panic!("{gone:?}: {status}"),
        }
    }
    Ok([ROUNDS as usize - failed, failed])
}

#[test]
fn what_arrives_after_deregistration_fails_with_a_status() {
    for network in NETWORKS {
        for gone in [Gone::Tag, Gone::Region, Gone::Queue] {
            for jitter in [0, 2] {
                let job = fx100(2).network(network).jitter(Duration::from_micros(jitter)).seed(jitter);
                let [good, failed] = job.run(&async |fabric| under_traffic(fabric, gone).await).unwrap().outs[0];
                assert!(good > 50 && failed > 10, "{gone:?} over {network:?}: {good} and {failed}");
            }
        }
    }
}

/// A get whose destination is deregistered while the answer is in flight.
async fn late_answer(fabric: Fabric) -> ProgramResult<()> {
    let (_own, queue) = opened(&fabric, 64, QueueSpec::new(QueueMode::Normal).on(0)).await?;
    fabric.sleep(Duration::from_micros(1)).await;
    if fabric.rank().number() == 0 {
        let to = QueueId::new(Rank::new(1), 0, 0, 0);
        queue.post(Posting::new(Command::get(to, AT, AT, 64)).local(3), Deps::All).await?;
        fabric.sleep(Duration::from_nanos(800)).await;
        queue.deregister(AT)?;
        let notice = queue.next_notice(Deps::All).await?;
        assert_eq!(notice.status, Err(QueueError::NoSuchTag { queue: queue.id(), stadd: AT }));
    }
    fabric.sleep(Duration::from_micros(10)).await;
    Ok(())
}

#[test]
fn an_answer_to_deregistered_memory_fails() {
    fx100(2).run(&late_answer).unwrap();
}

/// Uses an address from one queue on another queue of the same rank.
async fn on_another_queue(fabric: Fabric) -> ProgramResult<Result<(), QueueError>> {
    let own = fabric.alloc(64)?;
    let (first, second) = (
        ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?,
        ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Exclusive))?,
    );
    let auto = first.register(&own)?;
    let put = Command::put(second.id(), auto, auto + 8, 8);
    second.post(Posting::new(put).tcq(1), Deps::All).await?;
    let status = second.next_completion(Deps::Ranks(&[])).await?.status;
    let shared = ControlQueue::limits(&fabric).shared_address_space;
    assert_eq!(second.register_fixed(&own, 3).is_ok() && first.register_fixed(&own, 3).is_ok(), !shared);
    // The address space lasts as long as any of its queues.
    drop(first);
    let again = Posting::new(Command::put(second.id(), auto, auto + 16, 8)).tcq(2);
    second.post(again, Deps::All).await?;
    assert_eq!(second.next_completion(Deps::Ranks(&[])).await?.status.is_ok(), shared);
    Ok(status)
}

#[test]
fn queues_share_their_address_space_only_where_the_machine_does() {
    let status = |shared| {
        let platform = Platform::fx100().with("shared_tags", shared).unwrap();
        checks::jobs::virtual_time(&platform, 1).run(&on_another_queue).unwrap().outs[0]
    };
    assert!(matches!(status(0), Err(QueueError::NoSuchTag { .. })));
    assert_eq!(status(1), Ok(()));
}

async fn many_tags(fabric: Fabric) -> ProgramResult<()> {
    let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
    let regions = (0..5).map(|_| fabric.alloc(8)).collect::<Result<Vec<_>, _>>()?;
    let tags = regions[..4].iter().map(|region| queue.register(region)).collect::<Result<Vec<Stadd>, _>>()?;
    let error = queue.register(&regions[4]).unwrap_err();
    assert_eq!(error, QueueError::TooManyTags { queue: queue.id(), limit: 4 }.into());
    queue.deregister(tags[2])?;
    assert_eq!(queue.register(&regions[4])?, tags[2]);
    assert_eq!(queue.register(&regions[1])?, tags[1]);
    assert_eq!(regions[0].len(), 8);
    Ok(())
}

#[test]
fn tags_run_out() {
    let platform = Platform::fx100().with("automatic_tags", 4).unwrap();
    checks::jobs::virtual_time(&platform, 1).run(&many_tags).unwrap();
}
