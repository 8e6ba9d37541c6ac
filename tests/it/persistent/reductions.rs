//! Allreduces: the same bits at all members, no matter which of them is late.

use super::{
    exchange::place,
    losses::{Moment, announce_ready, ends, others_ready},
    pace::is_late,
};
use fabric_conformance::{Loss, ensure, ensure_eq};
use onesided::{
    Group, Pod, ProgramResult, Rank, bytemuck,
    prdma::{Buffer, Collectives, Form, Options, PrdmaError, Request},
};
use rdma_fabric::Fabric;

const FORMS: [Form; 3] = [Form::Fast, Form::Mrc, Form::Cpu];

/// An allreduce of `len` elements, its data and its expected result.
struct Allreduce<T: Pod> {
    request: Request,
    send: Buffer<T>,
    receive: Buffer<T>,
    len: usize,
    me: usize,
    members: usize,
    value: fn(usize, u64, usize) -> T,
    combine: fn(T, T) -> T,
}

impl<T: Pod + PartialEq + std::fmt::Debug> Allreduce<T> {
    async fn new(
        all: &mut Collectives,
        form: Form,
        len: usize,
        value: fn(usize, u64, usize) -> T,
        combine: fn(T, T) -> T,
    ) -> ProgramResult<Self> {
        let allreduce = Allreduce::with(all, &Options::form(form), len, value, combine).await?;
        ensure_eq!(allreduce.request.form(), form, "of {} members", all.group().len());
        Ok(allreduce)
    }

    async fn with(
        all: &mut Collectives,
        options: &Options,
        len: usize,
        value: fn(usize, u64, usize) -> T,
        combine: fn(T, T) -> T,
    ) -> ProgramResult<Self> {
        let fabric = all.group().fabric().clone();
        let (send, receive) = (Buffer::new(&fabric, len + 1)?, Buffer::new(&fabric, len + 1)?);
        let request = all.allreduce_init(&send, &receive, len, combine, options).await?;
        Ok(Allreduce { request, send, receive, len, me: all.group().me(), members: all.group().len(), value, combine })
    }

    async fn start(&mut self) -> Result<(), PrdmaError> {
        let k = self.request.iterations() + 1;
        self.send.write(0, &(0..self.len).map(|at| (self.value)(self.me, k, at)).collect::<Vec<T>>())?;
        self.request.start().await
    }

    async fn wait(&mut self) -> ProgramResult<()> {
        self.request.wait().await?;
        let k = self.request.iterations();
        let fold = |at| {
            let blocks = (1..self.members).map(|member| (self.value)(member, k, at));
            blocks.fold((self.value)(0, k, at), self.combine)
        };
        let (got, wanted) = (self.receive.to_vec()?, (0..self.len).map(fold).collect::<Vec<T>>());
        let bits = |elements: &[T]| bytemuck::cast_slice::<T, u8>(elements).to_vec();
        ensure!(bits(&got[..self.len]) == bits(&wanted), "{}, iteration {k}: {got:?}", self.request.form());
        ensure!(bits(&got[self.len..]).iter().all(|byte| *byte == 0), "beyond the result: {got:?}");
        Ok(())
    }
}

/// Combines two elements. Does not commute: folding in a different order gives a different result.
fn chained(a: f64, b: f64) -> f64 {
    a * 0.7 + b
}

fn float(member: usize, k: u64, at: usize) -> f64 {
    (member * 1000 + at) as f64 / (k + 3) as f64
}

fn byte(member: usize, k: u64, at: usize) -> u8 {
    (member * 31 + at * 7) as u8 ^ k as u8
}

/// A member is late at start, and at wait, and by more than an iteration: the others are in the
/// next iteration before it has folded this one.
async fn paced<T: Pod + PartialEq + std::fmt::Debug>(
    fabric: &Fabric,
    allreduce: &mut Allreduce<T>,
) -> ProgramResult<()> {
    let (me, members) = (allreduce.me, allreduce.members);
    for k in 0..8 {
        is_late(fabric, k, true, (me, k) == (members / 2, 3)).await;
        allreduce.start().await?;
        is_late(fabric, k, false, (me, k) == (members / 2, 6)).await;
        allreduce.wait().await?;
    }
    Ok(())
}

/// Reduces blocks of a word, of many words, and of bytes that do not fill a word.
pub(super) async fn allreduces(fabric: &Fabric) -> ProgramResult<()> {
    let mut all = Collectives::new(Group::world(fabric).await?).await?;
    for form in FORMS {
        for len in [1, 40] {
            paced(fabric, &mut Allreduce::new(&mut all, form, len, float, chained).await?).await?;
            all.group_mut().barrier().await?;
        }
        paced(fabric, &mut Allreduce::new(&mut all, form, 3, byte, u8::wrapping_add).await?).await?;
        all.group_mut().barrier().await?;
    }
    Ok(())
}

/// The budget of one member, and the queues left on its node, determine the form for all.
pub(super) async fn scarce(fabric: &Fabric) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let mut all = Collectives::new(Group::world(fabric).await?).await?;
    let steps = members.next_power_of_two().trailing_zeros();
    for budget in 0..5 {
        let options = Options { budget: if me == 1 { budget } else { 9 }, ..Options::default() };
        let mut allreduce = Allreduce::with(&mut all, &options, 4, float, chained).await?;
        let wanted = match budget {
            0 => Form::Cpu,
            _ if budget >= steps.max(2) => Form::Fast,
            _ => Form::Mrc,
        };
        ensure_eq!(allreduce.request.form(), wanted, "member 1 spends {budget}");
        paced(fabric, &mut allreduce).await?;
        all.group_mut().barrier().await?;
    }
    let mut allreduces = Vec::new();
    let mut form = 0;
    while form < 2 {
        let allreduce = Allreduce::with(&mut all, &Options::default(), 4, float, chained).await?;
        let next =
            FORMS.iter().position(|form| *form == allreduce.request.form()).ok_or("a form of allreduces")? as u64;
        let (most, least) = (all.group_mut().greatest(next).await?, !all.group_mut().greatest(!next).await?);
        ensure_eq!((most, least), (next, next), "the same form everywhere");
        ensure!(next >= form, "{next} after {form}: queues come from nowhere");
        form = next;
        allreduces.push(allreduce);
    }
    ensure!(allreduces[0].request.form() == Form::Fast, "there are queues at first");
    for _ in 0..3 {
        for allreduce in &mut allreduces {
            allreduce.start().await?;
        }
        for allreduce in allreduces.iter_mut().rev() {
            allreduce.wait().await?;
        }
    }
    Ok(all.group_mut().barrier().await?)
}

/// Loses the last member. All others receive `PeerLost` in bounded time, and continue among
/// themselves.
pub(super) async fn lost(fabric: &Fabric, form: Form, moment: Moment, loss: Loss) -> ProgramResult<()> {
    let (me, members) = place(fabric);
    let last = Rank::new(members as u32 - 1);
    let mut all = Collectives::new(Group::world(fabric).await?).await?;
    let mut allreduce = Allreduce::new(&mut all, form, 4, float, chained).await?;
    let survivors = all.group_mut().split((me != last.index()).then_some(0), me as u64).await?;
    let ready = fabric.alloc_symmetric(8).await?;
    for _ in 0..3 {
        allreduce.start().await?;
        allreduce.wait().await?;
    }
    let Some(survivors) = survivors else {
        others_ready(fabric, &ready, members as u64 - 1).await?;
        if let Moment::Started = moment {
            allreduce.start().await?;
        }
        return loss.happen();
    };
    announce_ready(fabric, &ready, last, moment).await?;
    let what = format!("allreduce, {form}, {moment:?}");
    let early = !matches!(moment, Moment::Known) && loss != Loss::Kill;
    let error = ends(fabric, last, (1, early), &what, async || {
        allreduce.start().await?;
        allreduce.wait().await
    });
    let broken = PrdmaError::Broken(Box::new(error.await?));
    ensure_eq!(allreduce.request.wait().await, Err(broken), "{what}: once broken");
    let mut all = Collectives::new(survivors).await?;
    let mut allreduce = Allreduce::new(&mut all, form, 4, float, chained).await?;
    for _ in 0..5 {
        allreduce.start().await?;
        allreduce.wait().await?;
    }
    Ok(all.group_mut().barrier().await?)
}
