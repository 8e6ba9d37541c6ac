//! Long messages, compared with copies over bare memory and with puts.

use super::{Case, bandwidth::rewritten_by_put, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Named, Takes, Took, form},
    outside::{
        bare::{Buffer, How},
        lines,
        rendezvous::until,
    },
};
use core::{
    cell::{Cell, RefCell},
    hint::black_box,
    sync::atomic::Ordering::{Acquire, Release},
};
use fmpl::{Communicator, Fmpl};
use rdma_fabric::ProgramResult;

const LONG: Case = Case::new("fmpl-long", "send + posted recv, answered by an empty message", Takes::Both)
    .at_most(1.3, Fault::Software);
const REWRITTEN: Case = Case::new("fmpl-rewritten", "rewrite a buffer, send; the receiver copies all out", Takes::Both)
    .at_most(1.1, Fault::Software);

pub(super) const CASES: &[Case] = &[LONG, REWRITTEN];

const SIZES: [usize; 2] = [64 << 10, 16 << 20];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if !CASES.iter().any(|case| pair.is_planned(case)) {
        return Ok(());
    }
    let fmpl = Fmpl::init(pair.fabric).await?;
    for (index, bytes) in SIZES.into_iter().enumerate() {
        long(pair, fmpl.world(), index, bytes).await?;
        rewritten(pair, fmpl.world(), index, bytes).await?;
    }
    Ok(fmpl.finalize().await?)
}

async fn long(pair: &mut Pair<'_>, world: &Communicator, index: usize, bytes: usize) -> ProgramResult<()> {
    if !pair.is_planned(&LONG) {
        return Ok(());
    }
    let (bare, me, abandoned) = (pair.sampler.bare, pair.sampler.me, pair.sampler.rendezvous.abandoned());
    let (there, back) = (bare.word(lines::LONG_FLAG), bare.word(lines::LONG_FLAG + 1));
    let (mut source, target) = (Buffer::new(bytes / 8), world.buffer::<u64>(bytes / 8)?);
    let none = target.slice(0..0)?;
    source.words().fill(1);
    world.fabric().write(&target, source.words())?;
    let sent = source.words().to_vec();
    let into = if me == 0 { &none } else { &*target };
    let mut next = Some(world.irecv(into, 1 - me, index).await?);
    let message = form("fmpl", async |times| {
        for _ in 0..times {
            let receiving = next.take().ok_or("a receive failed")?;
            if me == 0 {
                world.send(&sent, 1, index).await?;
                receiving.wait().await?;
                next = Some(world.irecv(into, 1, index).await?);
            } else {
                receiving.wait().await?;
                next = Some(world.irecv(into, 0, index).await?);
                world.send(&[0u64; 0], 0, index).await?;
            }
        }
        Ok(Took::Wall)
    });
    // Acquire: pairs with the release of the size before.
    let (own, turns) = (&RefCell::new(source), &Cell::new(back.load(Acquire)));
    let copied = |how: How| -> Named<'_> {
        form(how.name(), async move |times| {
            for _ in 0..times {
                turns.set(turns.get() + 2);
                let turn = turns.get();
                if me == 0 {
                    bare.put_from(1, own.borrow_mut().words(), how, 1);
                    there.store(turn - 1, Release);
                    until(back, turn, abandoned)?;
                } else {
                    until(there, turn - 1, abandoned)?;
                    back.store(black_box(turn), Release);
                }
            }
            Ok(Took::Wall)
        })
    };
    pair.measure(&LONG, bytes, vec![message, copied(How::Memcpy), copied(How::Movsb)]).await
}

/// As `put-rewritten`, but by messages.
async fn rewritten(pair: &mut Pair<'_>, world: &Communicator, index: usize, bytes: usize) -> ProgramResult<()> {
    if !pair.is_planned(&REWRITTEN) {
        return Ok(());
    }
    let (fabric, me) = (pair.fabric, pair.sampler.me);
    let (mut own, target) = (vec![1u64; bytes / 8], world.buffer::<u64>(bytes / 8)?);
    let none = target.slice(0..0)?;
    let (index, into) = (SIZES.len() + index, if me == 0 { &none } else { &*target });
    let mut next = Some(world.irecv(into, 1 - me, index).await?);
    let mut turn = 0;
    let message = form("fmpl", async |times| {
        for _ in 0..times {
            turn += 1;
            let receiving = next.take().ok_or("a receive failed")?;
            if me == 0 {
                own.fill(turn);
                world.send(&own, 1, index).await?;
                receiving.wait().await?;
                next = Some(world.irecv(into, 1, index).await?);
            } else {
                receiving.wait().await?;
                fabric.read(into, &mut own)?;
                black_box(&own);
                next = Some(world.irecv(into, 0, index).await?);
                world.send(&[0u64; 0], 0, index).await?;
            }
        }
        Ok(Took::Wall)
    });
    let put = rewritten_by_put(pair, bytes, "put-rewritten").await?;
    pair.measure(&REWRITTEN, bytes, vec![message, put]).await
}
