//! The last member of an exchange by partitions is lost.

use super::{
    exchange::{all, place},
    losses::{HANG, Moment, announce_ready, is_gone, known, others_ready, shape},
    shapes::Shape,
};
use fabric_conformance::{Loss, ensure, ensure_eq};
use onesided::{
    Deps, ProgramResult, Rank,
    prdma::{Buffer, Form, Layout, Neighbourhood, Options, Partitioned, PrdmaError},
};
use rdma_fabric::Fabric;
use std::time::Duration;

const PARTITIONS: usize = 2;
/// The number of elements in a block.
const BLOCK: usize = 4;

/// The calls of a member in an iteration, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Start,
    /// Marks all partitions.
    Ready,
    /// Polls until the last partition from slot 0 has arrived.
    Arrived,
    Wait,
}

/// A request and its buffers.
struct PartitionedExchange {
    send: Buffer<u64>,
    receive: Buffer<u64>,
    request: Partitioned,
    slots: (usize, usize),
}

impl PartitionedExchange {
    /// Creates the request and its buffers. Collective.
    async fn new(hood: &mut Neighbourhood, shape: &Shape, form: Form) -> ProgramResult<Self> {
        let (fabric, slots) = (hood.group().fabric().clone(), shape.slots(hood.group().me()));
        let (send, receive) = (Buffer::new(&fabric, slots.1 * BLOCK)?, Buffer::new(&fabric, slots.0 * BLOCK)?);
        let blocks = |slots| (0..slots).map(|slot| Layout::contiguous::<u64>(slot * BLOCK, BLOCK)).collect();
        let (sends, receives): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (blocks(slots.1), blocks(slots.0));
        let (sends, receives, options) = (sends?, receives?, Options::form(form));
        let request = hood.partitioned_init(&send, &sends, &receive, &receives, PARTITIONS, &options).await?;
        Ok(PartitionedExchange { send, receive, request, slots })
    }

    /// Marks the first `many` partitions of each block.
    async fn mark(&mut self, many: usize) -> Result<(), PrdmaError> {
        for slot in 0..self.slots.1 {
            for partition in 0..many {
                self.request.ready(slot, partition).await?;
            }
        }
        Ok(())
    }

    /// Makes one call of iteration `k`, in which all members send `k`.
    async fn call(&mut self, fabric: &Fabric, call: Call, k: u64) -> Result<(), PrdmaError> {
        match call {
            Call::Start => {
                self.send.write(0, &vec![k; self.slots.1 * BLOCK])?;
                self.request.start().await
            }
            Call::Ready => self.mark(PARTITIONS).await,
            Call::Arrived => {
                while !self.request.arrived(0, PARTITIONS - 1).await? {
                    fabric.sleep(Duration::from_micros(1)).await;
                }
                Ok(())
            }
            Call::Wait => {
                self.request.wait().await?;
                let got = self.receive.to_vec()?;
                assert!(got.iter().all(|got| *got == k), "{got:?} in {k}");
                Ok(())
            }
        }
    }

    async fn calls(&mut self, fabric: &Fabric, calls: &[Call], k: u64) -> Result<(), PrdmaError> {
        for call in calls {
            self.call(fabric, *call, k).await?;
        }
        Ok(())
    }

    async fn steps(&mut self, fabric: &Fabric, from: u64, many: u64) -> Result<(), PrdmaError> {
        for k in from..from + many {
            self.calls(fabric, &[Call::Start, Call::Ready, Call::Wait], k).await?;
        }
        Ok(())
    }
}

/// Loses the last member. Its neighbours receive `PeerLost` in bounded time from one of their calls
/// in an iteration, up to `last_call`. All others continue. If `knows` names a call, the loss is
/// known before that call; the error is then the loss, regardless of other errors of this call and
/// later ones.
pub(super) async fn lost(
    fabric: &Fabric,
    form: Form,
    last_call: Call,
    knows: Option<Call>,
    moment: Moment,
    loss: Loss,
) -> ProgramResult<()> {
    let calls = &[Call::Start, Call::Ready, last_call];
    let what = format!("{form}, {moment:?}, {calls:?} with {knows:?} known");
    let (me, members) = place(fabric);
    let last = Rank::new(members as u32 - 1);
    let mut hood = all(fabric, &shape()).await?;
    let mut parts = PartitionedExchange::new(&mut hood, &shape(), form).await?;
    let survivors = hood.group_mut().split((me != last.index()).then_some(0), me as u64).await?;
    // The number of members that are ready so far; at a neighbour of the last member, whether the
    // last member has completed its actions before its loss.
    let ready = fabric.alloc_symmetric(8).await?;
    let begins = knows.is_some() || matches!(moment, Moment::Dropped);
    let come = async |who: Rank| fabric.fetch_add(&fabric.remote_word::<u64>(ready.at(who, 0))?, 1).await;
    parts.steps(fabric, 1, 3).await?;
    let Some(mut survivors) = survivors else {
        others_ready(fabric, &ready, members as u64 - 1).await?;
        if let Moment::Started = moment {
            // Half of the data arrives.
            parts.request.start().await?;
            parts.mark(PARTITIONS / 2).await?;
        }
        if let Moment::Dropped = moment {
            drop(parts);
        }
        if begins {
            for neighbour in [0, 1].map(Rank::new) {
                come(neighbour).await?;
            }
        }
        if knows.is_some() {
            let there = |all| all == members as u64 + 1;
            fabric.wait_until(&ready.word::<u64>(fabric, 0)?, Deps::All, there).await?;
        }
        return loss.happen();
    };
    announce_ready(fabric, &ready, last, if knows.is_some() { Moment::Waited } else { moment }).await?;
    if me >= 2 {
        parts.steps(fabric, 4, 20).await?;
        return Ok(survivors.barrier().await?);
    }
    if begins {
        fabric.wait_until(&ready.word::<u64>(fabric, 0)?, Deps::All, |begun| begun == 1).await?;
    }
    let before = knows.and_then(|knows| calls.iter().position(|call| *call == knows)).unwrap_or(0);
    let (unaware, aware) = calls.split_at(before);
    let mut ended = parts.calls(fabric, unaware, 4).await;
    let mut early = ended.is_err() || knows.is_none() && !matches!(moment, Moment::Known);
    early &= loss != Loss::Kill || matches!(moment, Moment::Dropped);
    if knows.is_some() {
        come(last).await?;
        known(fabric, last).await?;
    }
    if ended.is_ok() {
        let rest = fabric.before(fabric.now() + HANG, parts.calls(fabric, aware, 4)).await;
        ended = rest.ok_or_else(|| format!("{what}: member {me} hangs"))?;
    }
    let Err(error) = ended else {
        return Err(format!("{what}: an iteration that member {last} did not end has ended").into());
    };
    ensure!(is_gone(&error, last, early), "{what}: {error:?}");
    let request = &mut parts.request;
    let broken = Err(PrdmaError::Broken(Box::new(error)));
    ensure_eq!(request.start().await, broken.clone(), "{what}: start, once broken");
    ensure_eq!(request.ready(0, 0).await, broken.clone(), "{what}: ready, once broken");
    ensure_eq!(request.arrived(0, 0).await.map(drop), broken.clone(), "{what}: arrived, once broken");
    ensure_eq!(request.test().await.map(drop), broken.clone(), "{what}: test, once broken");
    ensure_eq!(request.wait().await, broken, "{what}: wait, once broken");
    Ok(survivors.barrier().await?)
}
