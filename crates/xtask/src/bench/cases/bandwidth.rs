//! Long transfers: one way (the target sleeps) and both ways at once, from registered memory and from buffers; untouched
//! between repetitions, and, as a second mode, rewritten by the origin and read by the target.

use super::{
    super::{
        bare::{How, LINE},
        lines,
        meeting::until,
        sampling::{Named, Takes, Took, form},
    },
    Case,
    pair::{OWN_AT, PEER, Pair, TARGET_AT},
};
use crate::bench::bare::Buffer;
use crate::bench::rows::Goal;
use core::{
    cell::{Cell, RefCell},
    hint::black_box,
    sync::atomic::Ordering::{Acquire, Release},
};
use rdma_fabric::{Deps, ProgramResult, Rank};

const GOAL: Goal = Goal::Ratio(1.0 / 0.95);

const fn case(name: &'static str, what: &'static str, takes: Takes) -> Case {
    Case::new(name, what, takes).goal(GOAL)
}

const PUT_REGISTERED: Case = case("put-registered", "put registered memory, one way", Takes::Origin);
const PUT_BUFFER: Case = case("put-buffer", "put a buffer, one way", Takes::Origin);
const GET_REGISTERED: Case = case("get-registered", "get into registered memory, one way", Takes::Origin);
const GET_BUFFER: Case = case("get-buffer", "get into a buffer, one way", Takes::Origin);
const PUT_REGISTERED_BOTH: Case = case("put-registered-both", "put registered memory, both at once", Takes::Both);
const PUT_BUFFER_BOTH: Case = case("put-buffer-both", "put a buffer, both at once", Takes::Both);
const GET_REGISTERED_BOTH: Case = case("get-registered-both", "get into registered memory, both at once", Takes::Both);
const GET_BUFFER_BOTH: Case = case("get-buffer-both", "get into a buffer, both at once", Takes::Both);
const REWRITTEN: Case =
    Case::new("put-rewritten", "rewrite a buffer, put + notice, target copies all out, answers", Takes::Both);

pub(super) const CASES: &[Case] = &[
    PUT_REGISTERED,
    PUT_BUFFER,
    GET_REGISTERED,
    GET_BUFFER,
    PUT_REGISTERED_BOTH,
    PUT_BUFFER_BOTH,
    GET_REGISTERED_BOTH,
    GET_BUFFER_BOTH,
    REWRITTEN,
];

/// Bytes of the transfers; the last is the largest.
pub(super) const SIZES: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// Those of a quick run.
pub(super) const QUICK_SIZES: [usize; 2] = [64 << 10, 256 << 10];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    for bytes in pair.sizes() {
        for (case, registered) in [(&PUT_REGISTERED, true), (&PUT_BUFFER, false)] {
            put(pair, case, registered, bytes).await?;
        }
        for (case, registered) in [(&GET_REGISTERED, true), (&GET_BUFFER, false)] {
            get(pair, case, registered, bytes).await?;
        }
        for (case, registered) in [(&PUT_REGISTERED_BOTH, true), (&PUT_BUFFER_BOTH, false)] {
            put(pair, case, registered, bytes).await?;
        }
        for (case, registered) in [(&GET_REGISTERED_BOTH, true), (&GET_BUFFER_BOTH, false)] {
            get(pair, case, registered, bytes).await?;
        }
        rewritten(pair, bytes).await?;
    }
    Ok(())
}

async fn put(pair: &mut Pair<'_>, case: &Case, registered: bool, bytes: usize) -> ProgramResult<()> {
    let Some(case) = pair.wants(case) else { return Ok(()) };
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let other = 1 - me;
    let to = fabric.remote_span::<u64>(pair.region.at(Rank::new(other as u32), TARGET_AT as u64), bytes / 8)?;
    let from = pair.region.span::<u64>(fabric, OWN_AT, bytes / 8)?;
    let buffer = RefCell::new(if registered { Vec::new() } else { vec![1u64; bytes / 8] });
    let mut forms = Vec::new();
    if registered {
        forms.push(form("fabric", async |times| {
            let mut from = from.clone();
            for _ in 0..times {
                from = fabric.put(&to, from).await?;
            }
            Ok(Took::Wall)
        }));
    } else {
        forms.push(form("fabric", async |times| {
            let mut from = buffer.take();
            for _ in 0..times {
                from = fabric.put(&to, from).await?;
            }
            buffer.replace(from);
            Ok(Took::Wall)
        }));
    }
    for how in How::ALL {
        let mut buffer = Buffer::new(if registered { 0 } else { bytes / 8 });
        forms.push(form(how.name(), async move |times| {
            if registered {
                bare.put_window(me, other, bytes, how, times);
            } else {
                bare.put_from(other, buffer.words(), how, times);
            }
            Ok(Took::Wall)
        }));
    }
    pair.sampler.measure(case, bytes, forms).await
}

async fn get(pair: &mut Pair<'_>, case: &Case, registered: bool, bytes: usize) -> ProgramResult<()> {
    let Some(case) = pair.wants(case) else { return Ok(()) };
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let other = 1 - me;
    let from = fabric.remote_span::<u64>(pair.region.at(Rank::new(other as u32), TARGET_AT as u64), bytes / 8)?;
    let into = pair.region.span::<u64>(fabric, OWN_AT, bytes / 8)?;
    let buffer = RefCell::new(if registered { Vec::new() } else { vec![1u64; bytes / 8] });
    let mut forms = Vec::new();
    if registered {
        forms.push(form("fabric", async |times| {
            let mut into = into.clone();
            for _ in 0..times {
                into = fabric.get(&from, into).await?;
            }
            Ok(Took::Wall)
        }));
    } else {
        forms.push(form("fabric", async |times| {
            let mut into = buffer.take();
            for _ in 0..times {
                into = fabric.get(&from, into).await?;
            }
            buffer.replace(into);
            Ok(Took::Wall)
        }));
    }
    for how in How::ALL {
        let mut buffer = Buffer::new(if registered { 0 } else { bytes / 8 });
        forms.push(form(how.name(), async move |times| {
            if registered {
                bare.get_window(me, other, bytes, how, times);
            } else {
                bare.get_into(other, buffer.words(), how, times);
            }
            Ok(Took::Wall)
        }));
    }
    pair.sampler.measure(case, bytes, forms).await
}

/// A rank's buffer changes, goes over, is read, and the reader says so.
async fn rewritten(pair: &mut Pair<'_>, bytes: usize) -> ProgramResult<()> {
    const ACK_AT: usize = 8 * LINE;
    let Some(case) = pair.wants(&REWRITTEN) else { return Ok(()) };
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let words = bytes / 8;
    let to = fabric.remote_span::<u64>(pair.region.at(PEER, TARGET_AT as u64), words)?;
    let here = pair.region.span::<u64>(fabric, TARGET_AT, words)?;
    let ack = fabric.remote_word::<u64>(pair.region.at(Rank::new(0), ACK_AT as u64))?;
    let acked = pair.region.word::<u64>(fabric, ACK_AT)?;
    let buffer = RefCell::new(vec![1u64; words]);
    let (abandoned, other) = (pair.sampler.meeting.abandoned(), Rank::new(1 - me as u32));
    // The answers of earlier sizes stand in the word.
    let mut turn = if me == 0 { fabric.load(&acked)? } else { fabric.get_word(&ack).await? };
    let (there, back) = (bare.word(lines::ALTERNATE[1]), bare.word(lines::ALTERNATE[1] + 1));
    let bare_turn = Cell::new(back.load(Acquire));
    let mut forms: Vec<Named<'_>> = vec![form("fabric", async |times| {
        let mut own = buffer.take();
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
        buffer.replace(own);
        Ok(Took::Wall)
    })];
    let bare_turn = &bare_turn;
    for how in How::ALL {
        let mut buffer = Buffer::new(words);
        forms.push(form(how.name(), async move |times| {
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
        }));
    }
    pair.sampler.measure(case, bytes, forms).await
}
