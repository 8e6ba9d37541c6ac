//! Messages by matching areas, compared with flags, slots and copies over bare memory.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Named, Takes, Took, form, repeat, run},
    outside::{
        bare::Bare,
        limit, lines,
        rendezvous::{Abandoned, spin_until},
    },
};
use core::{
    sync::atomic::{
        AtomicU64,
        Ordering::{Release, SeqCst},
        fence,
    },
    time::Duration,
};
use fmpl::{Communicator, Fmpl, Options, Receiving};
use rdma_fabric::{LocalSpan, ProgramResult};
use std::time::Instant;

const ONE_WAY: Case =
    Case::new("fmpl-8", "send + recv of 8 B, one way", Takes::Both).at_most(1.5, Fault::Software).operations(2);
const POSTED: Case = Case::new("fmpl-posted", "the same, its receive posted before", Takes::Both)
    .at_most(1.25, Fault::Protocol)
    .operations(2);
const BEHIND: Case = Case::new("fmpl-behind", "the same, behind 600 receives; beside none", Takes::Both)
    .at_most(1.1, Fault::Software)
    .operations(2);
const OUTSTANDING: Case =
    Case::new("fmpl-64", "8 B, 64 outstanding, per message", Takes::Both).at_most(1.5, Fault::Protocol).operations(64);
const POSTING: Case =
    Case::new("fmpl-post", "post one of 64 receives of 8 B", Takes::Both).at_most(1.5, Fault::Software).operations(64);

pub(super) const CASES: &[Case] = &[ONE_WAY, POSTED, BEHIND, OUTSTANDING, POSTING];

/// The number of receives to which no message is sent.
const MANY: usize = 600;
const SLOTS: usize = 64;

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if !CASES.iter().any(|case| pair.is_planned(case)) {
        return Ok(());
    }
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let few = Fmpl::init_with(fabric, Options::default().indices(SLOTS + 4)).await?;
    let abandoned = pair.sampler.rendezvous.abandoned();
    let (there, back) = (bare.word(lines::MESSAGE_FLAG), bare.word(lines::MESSAGE_FLAG + 1));
    let mut turn = 0;

    let world = few.world();
    let buffer = world.buffer::<u64>(SLOTS)?;
    let word = buffer.slice(0..1)?;
    let forms = vec![
        repeat!("fmpl", i => {
            if me == 0 {
                world.send(&[i], 1, 0).await?;
                world.recv(&word, 1, 0).await?;
            } else {
                world.recv(&word, 0, 0).await?;
                world.send(&[i], 0, 0).await?;
            }
        }),
        run!("two-line flag", times => limit::flags::<false>(me, there, back, &mut turn, times, abandoned)?),
    ];
    pair.measure(&ONE_WAY, 8, forms).await?;

    let forms = vec![
        posted(world, &word, SLOTS + 2, "fmpl").await?,
        run!("two-line flag", times => limit::flags::<false>(me, there, back, &mut turn, times, abandoned)?),
    ];
    pair.measure(&POSTED, 8, forms).await?;

    if pair.is_planned(&BEHIND) {
        behind(pair, world, &word).await?;
    }
    outstanding(pair, world, &buffer).await?;
    posting(pair, world, &buffer).await?;
    Ok(few.finalize().await?)
}

async fn behind(pair: &mut Pair<'_>, world: &Communicator, word: &LocalSpan<u64>) -> ProgramResult<()> {
    let many = Fmpl::init_with(pair.fabric, Options::default().indices(MANY + 1)).await?;
    let (crowd, other) = (many.world(), 1 - pair.sampler.me);
    let others = crowd.buffer::<u64>(MANY)?;
    let mut waiting = Vec::with_capacity(MANY);
    for index in 0..MANY {
        waiting.push(crowd.irecv(&others.slice(index..index + 1)?, other, index).await?);
    }
    let forms =
        vec![posted(crowd, word, MANY, "fmpl").await?, posted(world, word, SLOTS + 3, "none outstanding").await?];
    pair.measure(&BEHIND, 8, forms).await?;
    drop(waiting);
    Ok(many.finalize().await?)
}

/// Sends there and back; each receive is posted before its message is sent.
async fn posted<'a>(
    world: &'a Communicator,
    word: &'a LocalSpan<u64>,
    index: usize,
    name: &'static str,
) -> ProgramResult<Named<'a>> {
    let (me, other) = (world.me(), 1 - world.me());
    let mut next = Some(world.irecv(word, other, index).await?);
    Ok(form(name, async move |times| {
        for i in 0..times {
            let receiving = next.take().ok_or("a receive failed")?;
            if me == 0 {
                world.send(&[i], other, index).await?;
            }
            receiving.wait().await?;
            next = Some(world.irecv(word, other, index).await?);
            if me == 1 {
                world.send(&[i], other, index).await?;
            }
        }
        Ok(Took::Wall)
    }))
}

/// Rank 0 sends to as many receives as are posted; each is posted again as soon as it completes.
async fn outstanding(pair: &mut Pair<'_>, world: &Communicator, buffer: &LocalSpan<u64>) -> ProgramResult<()> {
    if !pair.is_planned(&OUTSTANDING) {
        return Ok(());
    }
    let (bare, me, abandoned) = (pair.sampler.bare, pair.sampler.me, pair.sampler.rendezvous.abandoned());
    let mut posted: Vec<Option<Receiving<'_>>> = Vec::new();
    if me == 1 {
        for index in 0..SLOTS {
            posted.push(Some(world.irecv(&buffer.slice(index..index + 1)?, 0, index).await?));
        }
    }
    let spans = (0..SLOTS).map(|index| buffer.slice(index..index + 1)).collect::<Result<Vec<_>, _>>()?;
    let mut turn = 0;
    let forms = vec![
        form("fmpl", async move |times| {
            for i in 0..times {
                for index in 0..SLOTS {
                    if me == 0 {
                        world.send(&[i], 1, index).await?;
                    } else {
                        posted[index].take().ok_or("a receive failed")?.wait().await?;
                        posted[index] = Some(world.irecv(&spans[index], 0, index).await?);
                    }
                }
            }
            Ok(Took::Wall)
        }),
        run!("bare slots", times => slots(bare, me, &mut turn, times, abandoned)?),
    ];
    pair.measure(&OUTSTANDING, 8, forms).await
}

/// Fills 64 slots of rank 1, each when it is free, and empties them; each slot, and each word that
/// marks it as free, has its own cache line.
fn slots(bare: &Bare, me: usize, turn: &mut u64, times: u64, abandoned: &AtomicU64) -> Result<(), Abandoned> {
    let [filled, free] = lines::MESSAGES;
    for _ in 0..times {
        for slot in 0..SLOTS {
            let (filled, free) = (bare.word(filled + slot), bare.word(free + slot));
            if me == 0 {
                spin_until::<false>(free, *turn, abandoned)?;
                // Release: pairs with the acquire in `spin_until` on the other side; so does the
                // other store.
                filled.store(*turn + 1, Release);
            } else {
                spin_until::<false>(filled, *turn + 1, abandoned)?;
                free.store(*turn + 1, Release);
            }
        }
        *turn += 1;
    }
    Ok(())
}

/// Rank 0 posts a number of receives, to which messages are then sent; only the posting is timed, until the last header
/// has left the CPU.
async fn posting(pair: &mut Pair<'_>, world: &Communicator, buffer: &LocalSpan<u64>) -> ProgramResult<()> {
    if !pair.is_planned(&POSTING) {
        return Ok(());
    }
    let (bare, me, abandoned) = (pair.sampler.bare, pair.sampler.me, pair.sampler.rendezvous.abandoned());
    let spans = (0..SLOTS).map(|index| buffer.slice(index..index + 1)).collect::<Result<Vec<_>, _>>()?;
    let start = buffer.slice(0..0)?;
    let mut posted: Vec<Receiving<'_>> = Vec::with_capacity(SLOTS);
    let mut turn = 0;
    let forms = vec![
        form("fmpl", async move |times| {
            let mut took = Duration::ZERO;
            for i in 0..times {
                if me == 1 {
                    world.recv(&start, 0, SLOTS).await?;
                    for index in 0..SLOTS {
                        world.send(&[i], 0, index).await?;
                    }
                    continue;
                }
                let begun = Instant::now();
                for (index, span) in spans.iter().enumerate() {
                    posted.push(world.irecv(span, 1, index).await?);
                }
                fence(SeqCst);
                took += begun.elapsed();
                world.send(&[0u64; 0], 1, SLOTS).await?;
                for receiving in posted.drain(..) {
                    receiving.wait().await?;
                }
            }
            Ok(Took::Part(took))
        }),
        form("bare headers", async move |times| {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                turn += 1;
                took += headers(bare, me, turn, abandoned)?;
            }
            Ok(Took::Part(took))
        }),
    ];
    pair.measure(&POSTING, 8, forms).await
}

/// Stores 64 headers into lines that the other rank wrote last; returns the time taken.
fn headers(bare: &Bare, me: usize, turn: u64, abandoned: &AtomicU64) -> Result<Duration, Abandoned> {
    let ([lines, _], [there, back]) = (lines::MESSAGES, lines::POSTED.map(|line| bare.word(line)));
    // Release: both pair with the acquires in `spin_until`.
    if me == 1 {
        spin_until::<false>(there, turn, abandoned)?;
        (0..SLOTS).for_each(|slot| bare.word(lines + slot).store(turn, Release));
        back.store(turn, Release);
        return Ok(Duration::ZERO);
    }
    let begun = Instant::now();
    for slot in 0..SLOTS {
        let four = bare.burst(lines + slot / 4 * 4);
        four[slot % 4 * 16..][..4].iter().for_each(|word| word.store(turn, Release));
    }
    fence(SeqCst);
    let took = begun.elapsed();
    there.store(turn, Release);
    spin_until::<false>(back, turn, abandoned)?;
    Ok(took)
}
