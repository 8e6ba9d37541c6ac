//! The machine alone: nothing of the fabric in it.

use super::{
    super::{
        limit::{self, How},
        lines,
        meeting::until,
        sampling::{Takes, Took, form, run},
    },
    Case,
    buffer::Buffer,
    pair::Pair,
};
use core::{
    cell::Cell,
    hint::black_box,
    sync::atomic::Ordering::{Acquire, Release},
};
use rdma_fabric::{Fabric, ProgramResult};

const FLAG: Case = Case::new("machine-flag", "raw flag one way, a line each way", Takes::Both).operations(2);
const PAUSING: Case =
    Case::new("machine-flag-pausing", "the same, with a pause between two looks", Takes::Both).operations(2);
const ONE_LINE: Case = Case::new("machine-flag-one-line", "raw flag one way, one line", Takes::Both).operations(2);
const DIRTY_LOAD: Case = Case::new("machine-load-dirty", "load a word last written by the peer", Takes::Both)
    .operations(lines::DIRTY_WORDS as u64);
const IN_PLACE: Case =
    Case::new("machine-rewritten", "rewrite, memcpy + flag, target reads in place, answers", Takes::Both);

pub(super) const CASES: &[Case] = &[FLAG, PAUSING, ONE_LINE, DIRTY_LOAD, IN_PLACE];

pub(super) async fn measure<F: Fabric>(pair: &mut Pair<'_, F>) -> ProgramResult<()> {
    let (bare, me) = (pair.sampler.bare, pair.sampler.me);
    let abandoned = pair.sampler.meeting.abandoned();
    let (there, back) = (bare.word(lines::MACHINE_FLAG), bare.word(lines::MACHINE_FLAG + 1));
    let one = bare.word(lines::ONE_LINE_FLAG);
    let (mut turn, mut turn_of_one) = (0, 0);
    let forms = vec![run!("bare", times => limit::flags::<false>(me, there, back, &mut turn, times, abandoned)?)];
    pair.measure(&FLAG, 8, forms).await?;
    let forms = vec![run!("bare", times => limit::flags::<true>(me, there, back, &mut turn, times, abandoned)?)];
    pair.measure(&PAUSING, 8, forms).await?;
    let forms = vec![run!("bare", times => limit::flags::<false>(me, one, one, &mut turn_of_one, times, abandoned)?)];
    pair.measure(&ONE_LINE, 8, forms).await?;
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
