//! Facts about a machine, as programs observe them: its control queues, its engines and links, its
//! atomics.

use super::{RankFuture, Together};
use fabric_offload::ControlQueue;
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, ProgramResult, Rank, RemoteWord,
    control_queue::{Command, Posting, QueueError, QueueId, QueueMode, QueueSpec, Stadd},
    op::Atomic,
};
use std::{collections::BTreeSet, time::Duration};

/// The control queues that a rank could open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Their number.
    pub queues: usize,
    /// The number of engines that they belong to.
    pub engines: usize,
}

/// Every rank opens queues in session mode, in turn with the other ranks of its node, until the
/// node has none left.
pub fn queues(fabric: Fabric) -> RankFuture<Queues> {
    Box::pin(async move {
        let mut open = Vec::new();
        loop {
            match ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session).depth(16)) {
                Ok(queue) => open.push(queue),
                Err(FabricError::Queue(error)) if matches!(*error, QueueError::NoneFree(_)) => break,
                Err(error) => return Err(error.into()),
            }
            fabric.sleep(Duration::from_micros(1)).await;
        }
        // No rank closes its queues while another one may still open some.
        fabric.sleep(Duration::from_millis(1)).await;
        let engines: BTreeSet<u8> = open.iter().map(|queue| queue.id().engine()).collect();
        Ok(Queues { queues: open.len(), engines: engines.len() })
    })
}

/// Transfers in both directions between rank 0 and other ranks, all at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfers {
    /// The partner of each of rank 0's queues, which are on its engines in turn.
    pub partners: Vec<u32>,
    /// Bytes in each direction between a queue and its partner.
    pub bytes: usize,
    /// The number of engines.
    pub engines: u8,
}

/// The memory of each rank on all of its queues.
const AT: Stadd = Stadd::fixed(0);

/// Runs the transfers. A rank's result is the time from the common beginning until all its data
/// have arrived, in picoseconds.
///
/// # Panics
/// If there are no engines.
pub fn transfers(fabric: Fabric, what: Transfers, together: Together) -> RankFuture<u64> {
    Box::pin(async move {
        let Transfers { partners, bytes, engines } = what;
        let me = fabric.rank();
        let region = fabric.alloc_symmetric(2 * bytes).await?;
        let place = |number: usize| (number as u8 % engines, number as u8 / engines);
        let id = |rank: Rank, number: usize| {
            let (engine, queue) = place(number);
            QueueId::new(rank, engine, queue, 0)
        };
        // Both ends of a pair use the same engine and number.
        let mut pairs = Vec::new();
        for (number, &partner) in partners.iter().enumerate() {
            let other = match me.number() {
                0 => Rank::new(partner),
                number if number == partner => Rank::new(0),
                _ => continue,
            };
            let (engine, queue) = place(number);
            let spec = QueueSpec { number: Some(queue), ..QueueSpec::new(QueueMode::Exclusive).on(engine) };
            let queue = ControlQueue::open(&fabric, spec)?;
            queue.register_fixed(&region, 0)?;
            pairs.push((queue, id(other, number)));
        }
        let inside = together.enter(&fabric).await?;
        let begun = fabric.now();
        for (queue, to) in &pairs {
            let put = Command::put(*to, AT, AT + bytes as u64, bytes as u32);
            queue.post(Posting::new(put).remote(0), Deps::All).await?;
        }
        for (queue, _) in &pairs {
            queue.next_notice(Deps::All).await?.status?;
        }
        let took = fabric.now().picos_since(begun);
        inside.stay().await?;
        Ok(if pairs.is_empty() { 0 } else { took })
    })
}

/// The number of adds of each rank.
const ADDS: u64 = 200;

/// Performs each atomic operation of Tofu2 on a word of rank 0, then adds to another word from all
/// ranks: from rank 0 by its CPU, from the others through their engines. Returns whether each
/// operation had its effect and no add was lost.
pub fn atomics(fabric: Fabric, together: Together) -> RankFuture<bool> {
    Box::pin(async move {
        let (home, me) = (Rank::new(0), fabric.rank());
        let region = fabric.alloc_symmetric(16).await?;
        let word = |offset| fabric.remote_word::<u64>(region.at(home, offset));
        let (kinds, sum) = (word(0)?, word(8)?);
        let inside = together.enter(&fabric).await?;
        let mut right = true;
        if me.number() == 1 {
            for (amo, before, after) in kinds_in_turn() {
                let found = fabric.post(Atomic { word: &kinds, amo }).await?.await?;
                let left = read(&fabric, &kinds).await?;
                right &= (found, left) == (before, after);
            }
        }
        let by_cpu = if me == home { Some(fabric.local_word::<u64>(region.at(home, 8))?) } else { None };
        for _ in 0..ADDS {
            if let Some(own) = &by_cpu {
                // In virtual time no event comes between the two.
                fabric.store(own, fabric.load(own)? + 1)?;
                fabric.compute(Duration::from_nanos(300)).await;
            } else {
                fabric.post(Atomic { word: &sum, amo: Amo::Add(1) }).await?.await?;
            }
        }
        // Long after the last add of the slowest rank.
        fabric.sleep(Duration::from_millis(100)).await;
        right &= read(&fabric, &sum).await? == ADDS * fabric.ranks() as u64;
        inside.stay().await?;
        Ok(right)
    })
}

/// Returns the operations with the word's value before and after each.
fn kinds_in_turn() -> [(Amo<u64>, u64, u64); 5] {
    [
        (Amo::CompareSwap { expected: 0, new: 0b0110 }, 0, 0b0110),
        (Amo::Swap(0b0101), 0b0110, 0b0101),
        (Amo::Add(3), 0b0101, 0b1000),
        (Amo::Or(0b0011), 0b1000, 0b1011),
        (Amo::And(0b0110), 0b1011, 0b0010),
    ]
}

async fn read(fabric: &Fabric, word: &RemoteWord<u64>) -> ProgramResult<u64> {
    Ok(fabric.post(Atomic { word, amo: Amo::Add(0) }).await?.await?)
}
