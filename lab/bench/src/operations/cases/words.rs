//! Operations on a word of a rank that sleeps outside the fabric, on lines that the origin owns;
//! and on words that the target wrote last.

use super::{
    Case,
    pair::{ME, PEER, Pair},
};
use crate::{
    goal::Fault,
    operations::sampling::{Takes, Took, form, repeat, run},
    outside::{bare, limit, lines, rendezvous::until},
};
use core::{
    cell::Cell,
    hint::black_box,
    sync::atomic::Ordering::{AcqRel, Release},
    time::Duration,
};
use rdma_fabric::{Deps, Fabric, ProgramResult, op};
use std::time::Instant;
use tofu2_sim::shm::block_on;

const PUT: Case = Case::new("put", "put 8 B", Takes::Origin);
const PUT_WORD: Case = Case::new("put-word", "put a word", Takes::Origin);
const GET: Case = Case::new("get", "get 8 B", Takes::Origin);
const GET_WORD: Case = Case::new("get-word", "get a word", Takes::Origin);
const FETCH_ADD: Case =
    Case::new("fetch-add", "fetch-add on an owned line", Takes::Origin).at_most(1.2, Fault::Software);
const COMPARE_SWAP: Case =
    Case::new("compare-swap", "compare-and-swap on an owned line", Takes::Origin).at_most(1.2, Fault::Software);
const BURST: Case = Case::new("puts-then-flush", "64 puts of 8 B, then flush, per put", Takes::Origin)
    .operations(bare::BURST_WORDS as u64);
const DIRTY: Case = Case::new("fetch-add-dirty", "fetch-add on a word last written by the peer", Takes::Both)
    .at_most(1.15, Fault::Software)
    .operations(lines::DIRTY_WORDS as u64);
const ASYNC: Case =
    Case::new("put-async", "put 8 B, async form beside the blocking one", Takes::Origin).at_most(1.15, Fault::Software);
const BLOCK_ON: Case = Case::new("put-block-on", "put 8 B, a block_on for each", Takes::Origin);
const PARKED: Case = Case::new("put-parked", "put 8 B while the target is parked in the fabric", Takes::Both);
const RESOLVE: Case = Case::new("resolve", "resolve a remote word", Takes::Origin);

pub(super) const CASES: &[Case] =
    &[PUT, PUT_WORD, GET, GET_WORD, FETCH_ADD, COMPARE_SWAP, BURST, DIRTY, ASYNC, BLOCK_ON, PARKED, RESOLVE];

/// Bytes between words that different ranks write.
const APART: u64 = bare::LINE as u64;
/// The time that rank 0 waits for rank 1 to park.
const PARKING: Duration = Duration::from_millis(2);

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    let fabric = pair.fabric;
    let addr = pair.region.at(PEER, 0);
    let word = fabric.remote_word::<u64>(addr)?;
    let span = fabric.remote_span::<u64>(addr, 1)?;
    let zero = fabric.remote_word::<u64>(pair.region.at(PEER, APART))?;
    let bare = pair.sampler.bare;
    let (owned, own_zero) = (bare.word(lines::OWNED), bare.word(lines::ZERO));

    let forms =
        vec![repeat!("fabric", i => fabric.put(&span, [i]).await?), run!("store", times => limit::store(owned, times))];
    pair.measure(&PUT, 8, forms).await?;

    let forms = vec![
        repeat!("fabric", i => fabric.put_word(&word, i).await?),
        run!("store", times => limit::store(owned, times)),
    ];
    pair.measure(&PUT_WORD, 8, forms).await?;

    let forms = vec![
        repeat!("fabric", _ => black_box(fabric.get(&span, [0u64]).await?)),
        run!("load", times => limit::load(owned, times)),
    ];
    pair.measure(&GET, 8, forms).await?;

    let forms = vec![
        repeat!("fabric", _ => black_box(fabric.get_word(&word).await?)),
        run!("load", times => limit::load(owned, times)),
    ];
    pair.measure(&GET_WORD, 8, forms).await?;

    let forms = vec![
        repeat!("fabric", _ => black_box(fabric.fetch_add(&word, 1).await?)),
        run!("lock xadd", times => limit::fetch_add(owned, times)),
    ];
    pair.measure(&FETCH_ADD, 8, forms).await?;

    let forms = vec![
        repeat!("fabric", _ => black_box(fabric.compare_swap(&zero, 0, 0).await?)),
        run!("lock cmpxchg", times => limit::compare_swap(own_zero, times)),
    ];
    pair.measure(&COMPARE_SWAP, 8, forms).await?;

    let burst_at = |i: usize| pair.region.at(PEER, BURST_AT + 8 * i as u64);
    let spans: Vec<_> =
        (0..bare::BURST_WORDS).map(|i| fabric.remote_span::<u64>(burst_at(i), 1)).collect::<Result<_, _>>()?;
    let stores = bare.burst(lines::BURST);
    let forms = vec![
        repeat!("fabric", i => {
            for span in &spans {
                fabric.put(span, [i]).await?;
            }
            fabric.flush(PEER).await?;
        }),
        run!("64 stores", times => limit::store_burst(stores, times)),
    ];
    pair.measure(&BURST, 8, forms).await?;

    let forms = vec![
        repeat!("async", i => fabric.put(&span, [i]).await?),
        run!("try_post + wait", times => blocking(fabric, &span, times)?),
    ];
    pair.measure(&ASYNC, 8, forms).await?;

    let forms = vec![
        repeat!("fabric", i => block_on(fabric.put(&span, [i]))?),
        run!("try_post + wait", times => blocking(fabric, &span, times)?),
    ];
    pair.measure(&BLOCK_ON, 8, forms).await?;

    let forms = vec![repeat!("fabric", _ => black_box(fabric.remote_word::<u64>(black_box(addr))?))];
    pair.measure(&RESOLVE, 8, forms).await?;

    dirty(pair).await?;
    parked(pair).await
}

/// The offsets in the region of the burst's words, and of the words that the target writes.
const BURST_AT: u64 = 16 * APART;
const DIRTY_AT: u64 = 32 * APART;

/// Runs the blocking form of the put `times` times.
fn blocking(fabric: &Fabric, span: &rdma_fabric::RemoteSpan<u64>, times: u64) -> ProgramResult<()> {
    for i in 0..times {
        let put = op::Put { to: span, from: [i], notice: None };
        match fabric.try_post(put) {
            Ok(handle) => black_box(handle.wait()?),
            Err(rdma_fabric::Refused::Failed(error, _)) => return Err(error.into()),
            Err(rdma_fabric::Refused::Full(_)) => return Err("a put was refused for want of room".into()),
        };
    }
    Ok(())
}

/// Measures additions to words that rank 1 wrote last: rank 1 writes all words and raises a flag;
/// rank 0 adds to each, in an order that depends on the values it reads.
async fn dirty(pair: &mut Pair<'_>) -> ProgramResult<()> {
    const WORDS: usize = lines::DIRTY_WORDS;
    // Successive words are not neighbours, so that no prefetcher can predict the next one.
    const STEP: usize = 29;
    let Some(case) = pair.wants(&DIRTY) else { return Ok(()) };
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let offset = |i: usize| DIRTY_AT + APART * i as u64;
    let remote: Vec<_> =
        (0..WORDS).map(|i| fabric.remote_word::<u64>(pair.region.at(PEER, offset(i)))).collect::<Result<_, _>>()?;
    let local: Vec<_> =
        (0..WORDS).map(|i| pair.region.word::<u64>(fabric, offset(i) as usize)).collect::<Result<_, _>>()?;
    let (written, added) = (bare.word(lines::ALTERNATE[0]), bare.word(lines::ALTERNATE[0] + 1));
    let abandoned = pair.sampler.rendezvous.abandoned();
    // Counted over both forms, so shared by them.
    let turn = &Cell::new(0u64);
    // Rank 1 clears all words; then rank 0 adds to them, one after another, and reports the time
    // taken.
    macro_rules! dirty {
        ($name:literal, $i:ident => $clear:expr, $add:expr) => {
            form($name, async |times| {
                let mut took = Duration::ZERO;
                for _ in 0..times {
                    turn.set(turn.get() + 1);
                    if me == 1 {
                        for $i in 0..WORDS {
                            $clear;
                        }
                        written.store(turn.get(), Release);
                        until(added, turn.get(), abandoned)?;
                    } else {
                        until(written, turn.get(), abandoned)?;
                        let (begun, mut $i) = (Instant::now(), 0);
                        for _ in 0..WORDS {
                            $i = ($i + STEP + $add as usize) % WORDS;
                        }
                        black_box($i);
                        took += begun.elapsed();
                        added.store(turn.get(), Release);
                    }
                }
                Ok(Took::Part(took))
            })
        };
    }
    let forms = vec![
        dirty!("fabric", i => fabric.store(&local[i], 0)?, fabric.fetch_add(&remote[i], 1).await?),
        dirty!("lock xadd", i => bare.word(lines::DIRTY + i).store(0, Release), bare.word(lines::DIRTY + i).fetch_add(1, AcqRel)),
    ];
    pair.sampler.measure(case, 8, forms).await
}

/// Measures puts while rank 1 waits in the fabric for a word other than the one that rank 0 writes.
async fn parked(pair: &mut Pair<'_>) -> ProgramResult<()> {
    let Some(case) = pair.wants(&PARKED) else { return Ok(()) };
    let (fabric, me) = (pair.fabric, pair.sampler.me);
    let span = fabric.remote_span::<u64>(pair.region.at(PEER, 0), 1)?;
    let release = fabric.remote_word::<u64>(pair.region.at(PEER, 2 * APART))?;
    let own = pair.region.word::<u64>(fabric, 2 * APART as usize)?;
    let mut turn = 0;
    let forms = vec![form("fabric", async |times| {
        turn += 1;
        if me == 1 {
            fabric.wait_until(&own, Deps::One(ME), |value| value >= turn).await?;
            return Ok(Took::Part(Duration::ZERO));
        }
        std::thread::sleep(PARKING);
        let begun = Instant::now();
        for i in 0..times {
            fabric.put(&span, [i]).await?;
        }
        let took = begun.elapsed();
        fabric.put_word(&release, turn).await?;
        Ok(Took::Part(took))
    })];
    pair.sampler.measure(case, 8, forms).await
}
