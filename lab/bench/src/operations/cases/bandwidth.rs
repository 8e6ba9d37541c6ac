//! Long transfers: one-way (the target sleeps) and both ways at the same time, from registered
//! memory and from buffers; the data is either left untouched between repetitions, or rewritten by
//! the origin and read by the target.

use super::{
    Case,
    pair::{OWN_AT, PEER, Pair, TARGET_AT},
};
use crate::{
    goal::Fault,
    operations::sampling::{Named, Takes, Took, form},
    outside::{
        bare::{Buffer, How, LINE},
        lines,
        rendezvous::until,
    },
};
use core::{
    cell::Cell,
    hint::black_box,
    sync::atomic::Ordering::{Acquire, Release},
};
use rdma_fabric::{Deps, ProgramResult, Rank};
use std::rc::Rc;

/// The ratio of a goal.
const MOST: f64 = 1.0 / 0.95;

const fn case(name: &'static str, what: &'static str, takes: Takes) -> Case {
    Case::new(name, what, takes).at_most(MOST, Fault::Software)
}

/// Each case, whether it puts or gets, and whether its own memory is registered.
const TRANSFERS: &[(Case, bool, bool)] = &[
    (case("put-registered", "put registered memory, one way", Takes::Origin), true, true),
    (case("put-buffer", "put a buffer, one way", Takes::Origin), true, false),
    (case("get-registered", "get into registered memory, one way", Takes::Origin), false, true),
    (case("get-buffer", "get into a buffer, one way", Takes::Origin), false, false),
    (case("put-registered-both", "put registered memory, both at once", Takes::Both), true, true),
    (case("put-buffer-both", "put a buffer, both at once", Takes::Both), true, false),
    (case("get-registered-both", "get into registered memory, both at once", Takes::Both), false, true),
    (case("get-buffer-both", "get into a buffer, both at once", Takes::Both), false, false),
];
const REWRITTEN: Case =
    Case::new("put-rewritten", "rewrite a buffer, put + notice, target copies all out, answers", Takes::Both);

/// The cases, in the order of the table.
pub(super) const CASES: &[Case] = &[
    TRANSFERS[0].0,
    TRANSFERS[1].0,
    TRANSFERS[2].0,
    TRANSFERS[3].0,
    TRANSFERS[4].0,
    TRANSFERS[5].0,
    TRANSFERS[6].0,
    TRANSFERS[7].0,
    REWRITTEN,
];

/// Bytes of the transfers; the last is the largest.
pub(super) const SIZES: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// The sizes of a quick run.
pub(super) const QUICK_SIZES: [usize; 2] = [64 << 10, 256 << 10];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    for bytes in pair.sizes() {
        for (case, puts, registered) in TRANSFERS {
            transfer(pair, case, *puts, *registered, bytes).await?;
        }
        rewritten(pair, bytes).await?;
    }
    Ok(())
}

/// Passes `memory` to `transfer` and takes it back, repeatedly.
fn moving<'a, M: 'a>(mut memory: Option<M>, mut transfer: impl AsyncFnMut(M) -> ProgramResult<M> + 'a) -> Named<'a> {
    form("fabric", async move |times| {
        for _ in 0..times {
            let own = memory.take().ok_or("the memory was lost in a transfer that failed")?;
            memory = Some(transfer(own).await?);
        }
        Ok(Took::Wall)
    })
}

/// Measures puts (or gets) of registered memory, or of a buffer.
async fn transfer(pair: &mut Pair<'_>, case: &Case, puts: bool, registered: bool, bytes: usize) -> ProgramResult<()> {
    let Some(case) = pair.wants(case) else { return Ok(()) };
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let (other, words) = (1 - me, bytes / 8);
    let there = &fabric.remote_span::<u64>(pair.region.at(Rank::new(other as u32), TARGET_AT as u64), words)?;
    let here = pair.region.span::<u64>(fabric, OWN_AT, words)?;
    let buffer = vec![1u64; if registered { 0 } else { words }];
    let mut forms = vec![match (puts, registered) {
        (true, true) => moving(Some(here), async |own| Ok(fabric.put(there, own).await?)),
        (true, false) => moving(Some(buffer), async |own| Ok(fabric.put(there, own).await?)),
        (false, true) => moving(Some(here), async |own| Ok(fabric.get(there, own).await?)),
        (false, false) => moving(Some(buffer), async |own| Ok(fabric.get(there, own).await?)),
    }];
    for how in How::ALL {
        let mut buffer = Buffer::new(if registered { 0 } else { words });
        forms.push(form(how.name(), async move |times| {
            match (puts, registered) {
                (true, true) => bare.put_window(me, other, bytes, how, times),
                (true, false) => bare.put_from(other, buffer.words(), how, times),
                (false, true) => bare.get_window(me, other, bytes, how, times),
                (false, false) => bare.get_into(other, buffer.words(), how, times),
            }
            Ok(Took::Wall)
        }));
    }
    pair.sampler.measure(case, bytes, forms).await
}

/// Measures a buffer that is rewritten, put and read, until the reader's answer.
async fn rewritten(pair: &mut Pair<'_>, bytes: usize) -> ProgramResult<()> {
    let Some(case) = pair.wants(&REWRITTEN) else { return Ok(()) };
    let mut forms = vec![rewritten_by_put(pair, bytes, "fabric").await?];
    forms.extend(rewritten_by_copy(pair, bytes));
    pair.sampler.measure(case, bytes, forms).await
}

/// Rewrites a buffer, puts it with a notice, and reads it.
pub(super) async fn rewritten_by_put<'a>(
    pair: &Pair<'a>,
    bytes: usize,
    name: &'static str,
) -> ProgramResult<Named<'a>> {
    const ACK_AT: usize = 8 * LINE;
    let (fabric, me, words) = (pair.fabric, pair.sampler.me, bytes / 8);
    let to = fabric.remote_span::<u64>(pair.region.at(PEER, TARGET_AT as u64), words)?;
    let here = pair.region.span::<u64>(fabric, TARGET_AT, words)?;
    let ack = fabric.remote_word::<u64>(pair.region.at(Rank::new(0), ACK_AT as u64))?;
    let acked = pair.region.word::<u64>(fabric, ACK_AT)?;
    let (mut buffer, other) = (vec![1u64; words], Rank::new(1 - me as u32));
    // The word holds the answers of earlier sizes.
    let mut turn = if me == 0 { fabric.load(&acked)? } else { fabric.get_word(&ack).await? };
    Ok(form(name, async move |times| {
        let mut own = core::mem::take(&mut buffer);
        for _ in 0..times {
            turn += 1;
            if me == 0 {
                own.fill(turn);
                own = fabric.put_notify(&to, own, turn).await?;
                fabric.wait_until(&acked, Deps::One(other), |value| value >= turn).await?;
            } else {
                fabric.next_notice(Deps::One(other)).await?;
                fabric.read(&here, &mut own)?;
                black_box(&own);
                fabric.put_word(&ack, turn).await?;
            }
        }
        buffer = own;
        Ok(Took::Wall)
    }))
}

/// Rewrites a buffer, copies it, raises a flag, and reads it.
fn rewritten_by_copy<'a>(pair: &Pair<'a>, bytes: usize) -> impl Iterator<Item = Named<'a>> {
    let (bare, me, abandoned) = (pair.sampler.bare, pair.sampler.me, pair.sampler.rendezvous.abandoned());
    let (there, back) = (bare.word(lines::ALTERNATE[1]), bare.word(lines::ALTERNATE[1] + 1));
    let bare_turn = Rc::new(Cell::new(back.load(Acquire)));
    How::ALL.into_iter().map(move |how| {
        let (mut buffer, bare_turn) = (Buffer::new(bytes / 8), bare_turn.clone());
        form(how.name(), async move |times| {
            let own = buffer.words();
            for _ in 0..times {
                let turn = bare_turn.get() + 1;
                bare_turn.set(turn);
                if me == 0 {
                    own.fill(turn);
                    bare.put_from(1, own, how, 1);
                    there.store(turn, Release);
                    until(back, turn, abandoned)?;
                } else {
                    until(there, turn, abandoned)?;
                    bare.read_target(me, own, how);
                    black_box(&own);
                    back.store(turn, Release);
                }
            }
            Ok(Took::Wall)
        })
    })
}
