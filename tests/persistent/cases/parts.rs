//! The last member of an exchange by partitions is lost.

use super::losses::{HANG, Moment, farewell, is_gone, left_alone, shape};
use crate::{
    exchange::{all, place},
    shapes::Shape,
    suite::{
        provider::Loss,
        verdict::{ensure, ensure_eq},
    },
};
use onesided::{
    FullFabric, ProgramResult, Rank,
    prdma::{Buffer, Form, Layout, Neighbourhood, Options, Partitioned, PrdmaError},
};
use std::time::Duration;

const PARTITIONS: usize = 2;
/// Elements of a block.
const BLOCK: usize = 4;

/// A request and its buffers.
struct Parts<F: FullFabric> {
    send: Buffer<F, u64>,
    receive: Buffer<F, u64>,
    request: Partitioned<F>,
    slots: (usize, usize),
}

impl<F: FullFabric> Parts<F> {
    /// Collective.
    async fn new(hood: &mut Neighbourhood<F>, shape: &Shape, form: Form) -> ProgramResult<Self> {
        let (fabric, slots) = (hood.group().fabric().clone(), shape.slots(hood.group().me()));
        let (send, receive) = (Buffer::new(&fabric, slots.1 * BLOCK)?, Buffer::new(&fabric, slots.0 * BLOCK)?);
        let blocks = |slots| (0..slots).map(|slot| Layout::contiguous::<u64>(slot * BLOCK, BLOCK)).collect();
        let (sends, receives): (Result<Vec<_>, _>, Result<Vec<_>, _>) = (blocks(slots.1), blocks(slots.0));
        let (sends, receives, options) = (sends?, receives?, Options::form(form));
        let request = hood.partitioned_init(&send, &sends, &receive, &receives, PARTITIONS, &options).await?;
        Ok(Parts { send, receive, request, slots })
    }

    /// Mark so many partitions of each block.
    async fn mark(&mut self, many: usize) -> Result<(), PrdmaError> {
        for slot in 0..self.slots.1 {
            for partition in 0..many {
                self.request.ready(slot, partition).await?;
            }
        }
        Ok(())
    }

    /// From start to end. `k` is sent by all.
    async fn step(&mut self, k: u64) -> Result<(), PrdmaError> {
        self.send.write(0, &vec![k; self.slots.1 * BLOCK])?;
        self.request.start().await?;
        self.mark(PARTITIONS).await?;
        self.request.wait().await?;
        let got = self.receive.to_vec()?;
        assert!(got.iter().all(|got| *got == k), "{got:?} in {k}");
        Ok(())
    }

    /// Start, mark all, and ask for the last partition from slot 0 until it has come.
    async fn asks(&mut self, fabric: &F, k: u64) -> Result<(), PrdmaError> {
        self.send.write(0, &vec![k; self.slots.1 * BLOCK])?;
        self.request.start().await?;
        self.mark(PARTITIONS).await?;
        while !self.request.arrived(0, PARTITIONS - 1).await? {
            fabric.sleep(Duration::from_micros(1)).await;
        }
        Ok(())
    }

    async fn steps(&mut self, from: u64, many: u64) -> Result<(), PrdmaError> {
        for k in from..from + many {
            self.step(k).await?;
        }
        Ok(())
    }
}

/// `PeerLost` in bounded time at its neighbours, from whichever call; all others go on. `asks`: they do not wait, but ask for what will never come.
pub(super) async fn lost<F: FullFabric>(
    fabric: &F,
    form: Form,
    moment: Moment,
    loss: Loss,
    asks: bool,
) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let last = Rank::new(members as u32 - 1);
    let mut hood = all(fabric, &shape()).await?;
    let mut parts = Parts::new(&mut hood, &shape(), form).await?;
    let survivors = hood.group_mut().split((me != last.index()).then_some(0), me as u64).await?;
    let ready = fabric.alloc_symmetric(8).await?;
    parts.steps(1, 3).await?;
    let Some(mut survivors) = survivors else {
        left_alone(fabric, &ready, members as u64 - 1).await?;
        if let Moment::Started = moment {
            // Half of it comes.
            parts.request.start().await?;
            parts.mark(PARTITIONS / 2).await?;
        }
        return loss.happen();
    };
    farewell(fabric, &ready, last, moment).await?;
    if me < 2 {
        let until = fabric.now() + HANG;
        let step = match asks {
            true => fabric.before(until, parts.asks(fabric, 4)).await,
            false => fabric.before(until, parts.step(4)).await,
        };
        let ended = step.ok_or_else(|| format!("{form}, {moment:?}: member {me} hangs"))?;
        let Err(error) = ended else {
            return Err(format!("{form}, {moment:?}: an iteration that member {last} did not end has ended").into());
        };
        ensure!(is_gone(&error, last, loss != Loss::Kill), "{form}, {moment:?}: {error:?}");
        let request = &mut parts.request;
        let broken = Err(PrdmaError::Broken(Box::new(error)));
        ensure_eq!(request.start().await, broken.clone(), "{form}, {moment:?}: start, once broken");
        ensure_eq!(request.ready(0, 0).await, broken.clone(), "{form}, {moment:?}: ready, once broken");
        ensure_eq!(request.arrived(0, 0).await.map(drop), broken.clone(), "{form}, {moment:?}: arrived, once broken");
        ensure_eq!(request.test().await.map(drop), broken.clone(), "{form}, {moment:?}: test, once broken");
        ensure_eq!(request.wait().await, broken, "{form}, {moment:?}: wait, once broken");
    } else {
        parts.steps(4, 20).await?;
    }
    Ok(survivors.barrier().await?)
}
