//! Collectives of messages, compared with flags and copies over bare memory.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Takes, Took, form, repeat, run},
    outside::{bare::How, limit, lines, rendezvous::until},
};
use core::{cell::Cell, hint::black_box, sync::atomic::Ordering::Release};
use fmpl::{Fmpl, Op};
use rdma_fabric::ProgramResult;

const BARRIER: Case =
    Case::new("fmpl-barrier", "barrier of 2; beside a flag there and back", Takes::Both).at_most(1.3, Fault::Software);
const BROADCAST: Case = Case::new("fmpl-broadcast", "broadcast of 8 KiB to a member that is ready", Takes::Both)
    .at_most(1.5, Fault::Software);
const REDUCE: Case = Case::new("fmpl-reduce", "sum of two members' 8 KiB of `f64` at one of them", Takes::Both)
    .at_most(1.5, Fault::Software);

pub(super) const CASES: &[Case] = &[BARRIER, BROADCAST, REDUCE];

/// Bytes of a broadcast and of a reduction.
const BYTES: usize = 8 << 10;
const ELEMENTS: usize = BYTES / size_of::<f64>();

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if !CASES.iter().any(|case| pair.is_planned(case)) {
        return Ok(());
    }
    let (bare, me, abandoned) = (pair.sampler.bare, pair.sampler.me, pair.sampler.rendezvous.abandoned());
    let fmpl = Fmpl::init(pair.fabric).await?;
    let world = fmpl.world();
    let (there, back) = (bare.word(lines::COLLECTIVE), bare.word(lines::COLLECTIVE + 1));
    let mut turn = 0;
    let forms = vec![
        repeat!("fmpl", _ => world.barrier().await?),
        run!("flag", times => limit::flags::<false>(me, there, back, &mut turn, times, abandoned)?),
    ];
    pair.measure(&BARRIER, 0, forms).await?;

    let span = world.buffer::<f64>(ELEMENTS)?;
    world.fabric().write(&span, &[1.0; ELEMENTS])?;
    let (turns, mine) = (Cell::new(turn), vec![1f64.to_bits(); ELEMENTS]);
    let next = || {
        turns.set(turns.get() + 2);
        turns.get()
    };
    let (next, mine) = (&next, &mine);
    let forms = vec![
        repeat!("fmpl", _ => world.broadcast(&span, 0).await?),
        form("bare pointers", async move |times| {
            for _ in 0..times {
                let turn = next();
                if me == 0 {
                    until(back, turn, abandoned)?;
                    bare.put_from(1, mine, How::Memcpy, 1);
                    there.store(black_box(turn), Release);
                } else {
                    back.store(turn, Release);
                    until(there, turn, abandoned)?;
                }
            }
            Ok(Took::Wall)
        }),
    ];
    pair.measure(&BROADCAST, BYTES, forms).await?;

    let forms = vec![
        repeat!("fmpl", _ => world.reduce(&span, Op::Sum, 0).await?),
        form("bare pointers", async move |times| {
            let (mut theirs, mut sum) = (vec![0u64; ELEMENTS], vec![1.0; ELEMENTS]);
            for _ in 0..times {
                let turn = next();
                if me == 0 {
                    there.store(turn, Release);
                    until(back, turn, abandoned)?;
                    bare.read_target(0, &mut theirs, How::Memcpy);
                    sum.iter_mut().zip(&theirs).for_each(|(sum, theirs)| *sum += f64::from_bits(*theirs));
                    black_box(&sum);
                } else {
                    until(there, turn, abandoned)?;
                    bare.put_from(0, mine, How::Memcpy, 1);
                    back.store(turn, Release);
                }
            }
            Ok(Took::Wall)
        }),
    ];
    pair.measure(&REDUCE, BYTES, forms).await?;
    Ok(fmpl.finalize().await?)
}
