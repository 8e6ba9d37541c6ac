//! Ranks whose memory is elsewhere, and their waits for anything that happens.

use crate::start::fx100;
use rdma_fabric::{
    Fabric, ProgramResult, Rank,
    control_queue::{Command, Posting, Queue, QueueId, QueueMode, QueueSpec, Stadd, Width},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tofu2_virt::program::{ProgramMemory, ProgramRank};

/// Bytes that the simulator reaches through [`ProgramMemory`] only.
#[derive(Clone, Debug)]
struct Bytes(Arc<Mutex<Vec<u8>>>);

impl Bytes {
    fn new(bytes: &[u8]) -> Self {
        Bytes(Arc::new(Mutex::new(bytes.to_vec())))
    }

    fn get(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ProgramMemory for Bytes {
    fn read(&self, at: u64, into: &mut [u8]) {
        into.copy_from_slice(&self.get()[at as usize..][..into.len()]);
    }
    fn write(&self, at: u64, from: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[at as usize..][..from.len()].copy_from_slice(from);
    }
}

const CONTEXT: u8 = 5;

fn queue_of(rank: u32) -> QueueId {
    QueueId::new(Rank::new(rank), 0, 3, CONTEXT)
}

fn open(rank: &ProgramRank) -> rdma_fabric::Result<Box<dyn Queue>> {
    let spec = QueueSpec { number: Some(3), ..QueueSpec::new(QueueMode::Normal).on(0) };
    assert!(rank.open(spec, Some(99)).is_err());
    let queue = rank.open(spec, Some(CONTEXT))?;
    assert!(rank.open(spec, Some(CONTEXT)).is_err(), "it is in use");
    Ok(queue)
}

/// A put and an atomic reach memory of another rank's program at the time at which they arrive, which
/// wakes that rank.
async fn put_and_count(fabric: Fabric) -> ProgramResult<Vec<u8>> {
    let rank = ProgramRank::of(&fabric).ok_or("a simulated rank")?;
    let me = fabric.rank().number();
    let bytes = Bytes::new(&[me as u8 + 1; 24]);
    let (queue, region) = (open(&rank)?, rank.register(Box::new(bytes.clone()), 24)?);
    assert_eq!((queue.id(), queue.register(&region, Some(7))?), (queue_of(me), Stadd::fixed(7)));
    if me == 1 {
        let begun = fabric.now();
        rank.news(Some(begun + Duration::from_nanos(10))).await;
        assert_eq!(fabric.now(), begun + Duration::from_nanos(10), "nothing has arrived");
        rank.news(None).await;
        let waited = (fabric.now() - begun).as_nanos();
        assert!((700..800).contains(&waited) && bytes.get()[..8] == [1; 8], "{waited} ns: {:?}", bytes.get());
        rank.news(None).await;
        return Ok(bytes.get());
    }
    let at = Stadd::fixed(7);
    assert!(queue.try_post(&[Posting::new(Command::put(queue_of(1), at, at, 8))]).1.is_ok());
    let add = Command::Atomic { to: queue_of(1), at: at + 8, width: Width::Four, amo: rdma_fabric::Amo::Add(1) };
    assert!(queue.try_post(&[Posting::new(add).local(0)]).1.is_ok());
    rank.news(None).await;
    let notice = queue.poll_mrq()?.ok_or("news without a notice")?;
    assert_eq!(notice.value, 0x0202_0202);
    Ok(bytes.get())
}

#[test]
fn the_network_reaches_memory_of_programs() {
    let run = fx100(2).run(&put_and_count).unwrap();
    let mut target = [2; 24];
    target[..8].fill(1);
    target[8] = 3;
    assert_eq!(run.outs, [vec![1; 24], target.to_vec()]);
}
