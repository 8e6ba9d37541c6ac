//! The engine without control queues: PRDMA as its paper has it, step by step by the CPU.
//!
//! ```text
//! receiver's start : R1  put k to the sender's word             READY(k)
//! sender           : S1  its word is k   S2  put the data   S3  put k to the receiver's word, after the data    END(k)
//! receiver's wait  : R2  its word is k
//! ```
//! S1 is looked at in start, test and wait, for all edges in turn, so that one late neighbour keeps no other. A boolean instead of k would let a
//! sender that is slow to look take the READY of iteration k for that of k + 1.
//!
//! # Source
//! Y. Ishikawa et al., Revisiting persistent communication in MPI (EuroMPI 2012); M. Hatanaka et al. (EuroMPI 2013).

use super::{Engine, Progress};
use crate::{
    PrdmaError, Result,
    buffer::{Memory, Width},
    init::{Agreed, Channel, Name, Outgoing, Wires},
};
use bytemuck::{Pod, Zeroable};
use core::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    Deps, Fabric, LocalSpan, LocalWord, OpHandle, PutOptions, PutOrder, Rank, Refused, Region, RegionAccess, RegionKey,
    RemoteAddr, RemoteSpan, RemoteWord, join, op::Put,
};

/// What a member says of a channel to who puts into its memory by itself.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Desk {
    pub(crate) name: Name,
    /// The region of the words.
    pub(super) words: u64,
    /// Offset of the word for the neighbour's READY.
    pub(super) ready: u64,
    /// Offset of the word for the neighbour's END.
    pub(super) end: u64,
    /// The region that data is received in.
    pub(super) data: u64,
}

impl Desk {
    pub(crate) fn of<F: Fabric>(channel: &Channel, wires: &Wires<F>) -> Self {
        Desk {
            name: Name::of(channel),
            words: wires.words.region().key().to_bits(),
            ready: wires.ready_word(channel),
            end: wires.end_word(channel),
            data: wires.receiving(channel).map_or(0, |memory| memory.region().key().to_bits()),
        }
    }
}

/// Iterations run by calls of this member.
pub(crate) struct CpuEngine<F: Fabric> {
    fabric: F,
    outs: Vec<Out<F>>,
    ins: Vec<In<F>>,
    /// Whether the provider finishes operations while they are posted.
    immediate: bool,
    /// Neighbours.
    ranks: Box<[Rank]>,
}

/// An edge that is sent along.
struct Out<F: Fabric> {
    to: Rank,
    /// Here the receiver says READY.
    ready: LocalWord<F, u64>,
    blocks: Blocks<F>,
    /// There goes END: one word.
    end: RemoteSpan<F, u64>,
    end_word: RemoteWord<F, u64>,
    /// The last iteration whose data was sent.
    sent: u64,
}

/// An edge that is received along.
struct In<F: Fabric> {
    /// There goes READY: one word.
    ready: RemoteSpan<F, u64>,
    /// Here the sender says END.
    end: LocalWord<F, u64>,
}

type Spans<F, W> = Vec<Span<F, W>>;

/// From where to where.
pub(crate) struct Span<F: Fabric, W: Pod> {
    from: LocalSpan<F, W>,
    /// The same for puts that give it back at once: to count one more owner for each would wait for the stores before.
    lent: Option<LocalSpan<F, W>>,
    to: RemoteSpan<F, W>,
}

/// From where to where, in cells of one width.
pub(crate) enum Blocks<F: Fabric> {
    One(Spans<F, u8>),
    Two(Spans<F, u16>),
    Four(Spans<F, u32>),
    Eight(Spans<F, u64>),
}

impl<F: Fabric> CpuEngine<F> {
    /// The engine, once the neighbours' desks are known: `theirs` by channel.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub(crate) fn new(
        fabric: &F,
        channels: &[Channel],
        agreed: &[Agreed],
        wires: &Wires<F>,
        theirs: &[Desk],
    ) -> Result<Self> {
        let (mut outs, mut ins) = (Vec::new(), Vec::new());
        for ((channel, agreed), desk) in channels.iter().zip(agreed).zip(theirs) {
            let there =
                |region: u64, offset| RemoteAddr { rank: channel.rank, region: RegionKey::from_bits(region), offset };
            let words = wires.words.region();
            if agreed.inn.is_some() {
                ins.push(In {
                    ready: fabric.remote_span(there(desk.words, desk.ready), 1)?,
                    end: words.word(fabric, wires.end_word(channel) as usize)?,
                });
            }
            if let Some(out) = &agreed.out {
                let from = wires.sending(channel).unwrap_or(&wires.words);
                outs.push(Out {
                    to: channel.rank,
                    ready: words.word(fabric, wires.ready_word(channel) as usize)?,
                    blocks: Blocks::new(fabric, out, from, there(desk.data, 0))?,
                    end: fabric.remote_span(there(desk.words, desk.end), 1)?,
                    end_word: fabric.remote_word(there(desk.words, desk.end))?,
                    sent: 0,
                });
            }
        }
        let ranks = channels.iter().map(|channel| channel.rank).collect();
        let immediate = fabric.try_nop().is_ok_and(|mut nop| nop.test());
        Ok(CpuEngine { fabric: fabric.clone(), immediate, outs, ins, ranks })
    }

    /// R1 for edges from `first` on, as far as there is room; the first one that is left.
    fn say_ready(&self, first: usize, iteration: u64) -> Result<usize> {
        for (at, inn) in self.ins.iter().enumerate().skip(first) {
            // The word is the operation's own: nobody needs to know when it has left.
            match self.fabric.try_post(Put { to: &inn.ready, from: [iteration], options: PutOptions::default() }) {
                Ok(_) => {}
                Err(Refused::Full(_)) => return Ok(at),
                Err(Refused::Failed(error, _)) => return Err(error.into()),
            }
        }
        Ok(self.ins.len())
    }

    /// Send along every edge whose receiver is ready and which takes no waiting.
    fn send_ready(&mut self, iteration: u64) -> Result<Sent> {
        let mut sent = Sent::All;
        for out in self.outs.iter_mut().filter(|out| out.sent < iteration) {
            if self.fabric.load(&out.ready)? < iteration {
                sent = sent.min(Sent::Late);
            } else if !(self.immediate && out.send_now(&self.fabric, iteration)?) {
                sent = Sent::Slow;
            }
        }
        Ok(sent)
    }

    /// Send along every edge whose receiver is ready, those that take waiting together; whether all are sent.
    async fn send(&mut self, iteration: u64) -> Result<bool> {
        loop {
            match self.send_ready(iteration)? {
                Sent::All => return Ok(true),
                Sent::Late => return Ok(false),
                Sent::Slow => {}
            }
            let mut ready = Vec::new();
            for out in self.outs.iter_mut().filter(|out| out.sent < iteration) {
                if self.fabric.load(&out.ready)? >= iteration {
                    ready.push(out.send(&self.fabric, iteration));
                }
            }
            for sent in join::join_all(ready).await {
                sent?;
            }
        }
    }
}

/// How far sending is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sent {
    /// Along some edges it takes waiting.
    Slow,
    /// Not along edges whose receivers are not ready.
    Late,
    /// Along all edges.
    All,
}

impl<F: Fabric> Out<F> {
    /// S2 and S3 where that is [immediate](CpuEngine::immediate). `false` if there is no room: nothing counts as sent then.
    fn send_now(&mut self, fabric: &F, iteration: u64) -> Result<bool> {
        if !self.blocks.put_now(fabric)? || !flush_now(fabric, self.to)? {
            return Ok(false);
        }
        match fabric.try_post(Put { to: &self.end, from: [iteration], options: PutOptions::default() }) {
            Ok(_) => {
                self.sent = iteration;
                Ok(true)
            }
            Err(Refused::Full(_)) => Ok(false),
            Err(Refused::Failed(error, _)) => Err(error.into()),
        }
    }

    /// S2 and S3.
    async fn send(&mut self, fabric: &F, iteration: u64) -> Result<()> {
        self.blocks.put(fabric).await?;
        tell_behind(fabric, self.to, &self.end_word, iteration).await?;
        self.sent = iteration;
        Ok(())
    }
}

impl<F: Fabric> Blocks<F> {
    pub(crate) fn new(fabric: &F, out: &Outgoing, from: &Memory<F>, at: RemoteAddr) -> Result<Self> {
        Ok(match out.width {
            Width::One => Blocks::One(spans(fabric, out, from, at)?),
            Width::Two => Blocks::Two(spans(fabric, out, from, at)?),
            Width::Four => Blocks::Four(spans(fabric, out, from, at)?),
            Width::Eight => Blocks::Eight(spans(fabric, out, from, at)?),
        })
    }

    /// Put all of them; `false` if some are not complete yet or were not posted. To put them again does no harm: the receiver is ready.
    fn put_now(&mut self, fabric: &F) -> Result<bool> {
        match self {
            Blocks::One(spans) => put_now(fabric, spans),
            Blocks::Two(spans) => put_now(fabric, spans),
            Blocks::Four(spans) => put_now(fabric, spans),
            Blocks::Eight(spans) => put_now(fabric, spans),
        }
    }

    /// S2: all of them leave, and the source is reusable.
    pub(crate) async fn put(&self, fabric: &F) -> Result<()> {
        match self {
            Blocks::One(spans) => put(fabric, spans).await,
            Blocks::Two(spans) => put(fabric, spans).await,
            Blocks::Four(spans) => put(fabric, spans).await,
            Blocks::Eight(spans) => put(fabric, spans).await,
        }
    }
}

/// Flush a target; `false` if that takes waiting.
fn flush_now<F: Fabric>(fabric: &F, target: Rank) -> Result<bool> {
    match pin!(fabric.flush(target)).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(flushed) => Ok(flushed.map(|()| true)?),
        Poll::Pending => Ok(false),
    }
}

fn put_now<F: Fabric, W: Pod>(fabric: &F, spans: &mut Spans<F, W>) -> Result<bool> {
    for span in spans {
        let from = span.lent.take().unwrap_or_else(|| span.from.clone());
        match fabric.try_post(Put { to: &span.to, from, options: PutOptions::default() }) {
            Ok(mut handle) => {
                if !handle.test() {
                    return Ok(false);
                }
                span.lent = Some(handle.wait()?);
            }
            Err(Refused::Full(put)) => {
                span.lent = Some(put.from);
                return Ok(false);
            }
            Err(Refused::Failed(error, _)) => return Err(error.into()),
        }
    }
    Ok(true)
}

/// Write `value` to a word of `to`, to be seen after what was put there before.
pub(crate) async fn tell_behind<F: Fabric>(fabric: &F, to: Rank, word: &RemoteWord<F, u64>, value: u64) -> Result<()> {
    if fabric.caps().put_order >= PutOrder::SameTarget {
        // On this path a later atomic is seen after the data.
        fabric.swap(word, value).await?;
    } else {
        fabric.flush(to).await?;
        fabric.put_word(word, value).await?;
    }
    Ok(())
}

async fn put<F: Fabric, W: Pod>(fabric: &F, spans: &Spans<F, W>) -> Result<()> {
    if let [span] = &spans[..] {
        fabric.put(&span.to, span.from.clone()).await?;
        return Ok(());
    }
    let puts = join::join_all(spans.iter().map(|span| fabric.put(&span.to, span.from.clone()))).await;
    puts.into_iter().try_for_each(|put| put.map(drop).map_err(PrdmaError::from))
}

fn spans<F: Fabric, W: Pod>(fabric: &F, out: &Outgoing, from: &Memory<F>, at: RemoteAddr) -> Result<Spans<F, W>> {
    let mut spans = Vec::new();
    for piece in out.pieces.iter().filter(|piece| piece.len > 0) {
        for block in 0..u64::from(piece.count) {
            let skip = block * piece.stride;
            let cells = piece.len as usize / size_of::<W>();
            let here = from.region().span::<W>(fabric, (piece.from + skip) as usize, cells)?;
            let there = RemoteAddr { offset: at.offset + piece.at + skip, ..at };
            spans.push(Span { from: here, lent: None, to: fabric.remote_span::<W>(there, cells)? });
        }
    }
    Ok(spans)
}

impl<F: Fabric> Engine for CpuEngine<F> {
    async fn start(&mut self, iteration: u64) -> Result<()> {
        let mut said = self.say_ready(0, iteration)?;
        while said < self.ins.len() {
            self.fabric.put(&self.ins[said].ready, [iteration]).await?;
            said = self.say_ready(said + 1, iteration)?;
        }
        self.send(iteration).await.map(drop)
    }

    async fn wait(&mut self, iteration: u64) -> Result<()> {
        while !self.send(iteration).await? {
            // Whichever receiver is ready first, and nobody else, is waited for.
            let late: Vec<_> = self.outs.iter().filter(|out| out.sent < iteration).map(|out| &out.ready).collect();
            any(&self.fabric, &late, Deps::Ranks(&self.ranks), iteration).await?;
        }
        for inn in &self.ins {
            if self.fabric.load(&inn.end)? < iteration {
                self.fabric.wait_until(&inn.end, Deps::Ranks(&self.ranks), |end| end >= iteration).await?;
            }
        }
        Ok(())
    }

    async fn test(&mut self, iteration: u64) -> Result<Progress> {
        if !self.send(iteration).await? {
            return Ok(Progress::Pending);
        }
        for inn in &self.ins {
            if self.fabric.load(&inn.end)? < iteration {
                return Ok(Progress::Pending);
            }
        }
        Ok(Progress::Done)
    }
}

/// Wait until one of the words has come to `iteration`.
pub(super) async fn any<F: Fabric>(
    fabric: &F,
    words: &[&LocalWord<F, u64>],
    deps: Deps<'_>,
    iteration: u64,
) -> Result<()> {
    let one = |word| fabric.wait_until(word, deps, |value: u64| value >= iteration);
    if let [word] = words {
        one(word).await?;
        return Ok(());
    }
    join::race_all(words.iter().map(|word| one(word))).await?;
    Ok(())
}
