//! The machine alone, without the fabric.

use super::{Case, pair::Pair};
use crate::{
    operations::sampling::{Takes, Took, form, run},
    outside::{
        bare::{BURST_WORDS, Bare, Buffer, How},
        limit, lines,
        rendezvous::{Abandoned, spin_until, until},
    },
};
use core::{
    cell::Cell,
    hint::black_box,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};
use rdma_fabric::ProgramResult;

const FLAG: Case = Case::new("machine-flag", "raw flag one way, a line each way", Takes::Both).operations(2);
const PAUSING: Case =
    Case::new("machine-flag-pausing", "the same, with a pause between two looks", Takes::Both).operations(2);
const ONE_LINE: Case = Case::new("machine-flag-one-line", "raw flag one way, one line", Takes::Both).operations(2);
const SLOT: Case =
    Case::new("machine-slot", "claim by compare-and-swap, fill a slot of 32 B, one way", Takes::Both).operations(2);
const DIRTY_LOAD: Case = Case::new("machine-load-dirty", "load a word last written by the peer", Takes::Both)
    .operations(lines::DIRTY_WORDS as u64);
const IN_PLACE: Case =
    Case::new("machine-rewritten", "rewrite, memcpy + flag, target reads in place, answers", Takes::Both);

pub(super) const CASES: &[Case] = &[FLAG, PAUSING, ONE_LINE, SLOT, DIRTY_LOAD, IN_PLACE];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    let (bare, me) = (pair.sampler.bare, pair.sampler.me);
    let abandoned = pair.sampler.rendezvous.abandoned();
    let (there, back) = (bare.word(lines::MACHINE_FLAG), bare.word(lines::MACHINE_FLAG + 1));
    let one = bare.word(lines::ONE_LINE_FLAG);
    let (mut turn, mut turn_of_one) = (0, 0);
    let forms = vec![run!("bare", times => limit::flags::<false>(me, there, back, &mut turn, times, abandoned)?)];
    pair.measure(&FLAG, 8, forms).await?;
    let forms = vec![run!("bare", times => limit::flags::<true>(me, there, back, &mut turn, times, abandoned)?)];
    pair.measure(&PAUSING, 8, forms).await?;
    let forms = vec![run!("bare", times => limit::flags::<false>(me, one, one, &mut turn_of_one, times, abandoned)?)];
    pair.measure(&ONE_LINE, 8, forms).await?;
    if let Some(case) = pair.wants(&SLOT) {
        let mut turn = 0;
        let (mine, theirs) = (Slots::new(bare, me), Slots::new(bare, 1 - me));
        let forms = vec![form("bare", async |times| {
            for _ in 0..times {
                if me == 0 {
                    theirs.send(turn);
                }
                mine.take(turn, abandoned)?;
                if me == 1 {
                    theirs.send(turn);
                }
                turn += 1;
            }
            Ok(Took::Wall)
        })];
        pair.sampler.measure(case, 8, forms).await?;
    }
    let (there, back) = (bare.word(lines::ALTERNATE[2]), bare.word(lines::ALTERNATE[2] + 1));
    let turn = Cell::new(0u64);
    let next = || {
        turn.set(turn.get() + 1);
        turn.get()
    };
    let forms = vec![form("bare", async |times| {
        let mut took = core::time::Duration::ZERO;
        for _ in 0..times {
            let turn = next();
            if me == 1 {
                for i in 0..lines::DIRTY_WORDS {
                    bare.word(lines::DIRTY + i).store(0, Release);
                }
                there.store(turn, Release);
                until(back, turn, abandoned)?;
            } else {
                until(there, turn, abandoned)?;
                let begun = std::time::Instant::now();
                let mut i = 0;
                for _ in 0..lines::DIRTY_WORDS {
                    i = (i + 29 + bare.word(lines::DIRTY + i).load(Acquire) as usize) % lines::DIRTY_WORDS;
                }
                black_box(i);
                took += begun.elapsed();
                back.store(turn, Release);
            }
        }
        Ok(Took::Part(took))
    })];
    pair.measure(&DIRTY_LOAD, 8, forms).await?;
    if let Some(case) = pair.wants(&IN_PLACE) {
        for bytes in pair.sizes() {
            let mut buffer = Buffer::new(bytes / 8);
            let forms = vec![form("bare", async |times| {
                let own = buffer.words();
                for _ in 0..times {
                    let turn = next();
                    if me == 0 {
                        own.fill(turn);
                        bare.put_from(1, own, How::Memcpy, 1);
                        there.store(turn, Release);
                        until(back, turn, abandoned)?;
                    } else {
                        until(there, turn, abandoned)?;
                        black_box(bare.sum_target(me, bytes / 8, How::Memcpy));
                        back.store(turn, Release);
                    }
                }
                Ok(Took::Wall)
            })];
            pair.sampler.measure(case, bytes, forms).await?;
        }
    }
    Ok(())
}

/// The minimum work of a ring of notices with several producers: it takes a position by
/// compare-and-swap, then fills a slot whose first word marks the rest as valid.
struct Slots<'a> {
    tail: &'a AtomicU64,
    words: &'a [AtomicU64; BURST_WORDS],
}

impl<'a> Slots<'a> {
    fn new(bare: &'a Bare, rank: usize) -> Self {
        Slots { tail: bare.word(lines::SLOT_TAIL + rank), words: bare.burst(lines::SLOTS[rank]) }
    }

    fn slot(&self, position: u64) -> &'a [AtomicU64] {
        let first = position as usize % (BURST_WORDS / 4) * 4;
        &self.words[first..first + 4]
    }

    fn send(&self, turn: u64) {
        let tail = self.tail.load(Acquire);
        // There is no other producer, so this succeeds.
        let claimed = self.tail.compare_exchange(tail, tail + 1, AcqRel, Acquire);
        let slot = self.slot(turn);
        slot[1..].iter().for_each(|word| word.store(black_box(turn), Relaxed));
        slot[0].store(turn + u64::from(claimed.is_ok()), Release);
    }

    fn take(&self, turn: u64, abandoned: &AtomicU64) -> Result<(), Abandoned> {
        let slot = self.slot(turn);
        spin_until::<false>(&slot[0], turn + 1, abandoned)?;
        slot[1..].iter().for_each(|word| _ = black_box(word.load(Relaxed)));
        Ok(())
    }
}
