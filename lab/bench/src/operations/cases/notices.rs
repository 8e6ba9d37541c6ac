//! The latency from one rank's program to the other's, both running: half a round trip. Control
//! queues are compared with the plain fabric: the cost of posting, and the time of a release across
//! two ranks. The second form of each of their cases is the fabric's put with a notice, so that the
//! goals state how much more a queue may take.

use super::{Case, pair::Pair};
use crate::{
    goal::Fault,
    operations::sampling::{Takes, Took, form, repeat, run},
    outside::{bare, limit, lines},
};
use core::time::Duration;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Inline, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use rdma_fabric::{Deps, ProgramResult, Rank};
use std::time::Instant;

const NOTICE: Case =
    Case::new("notice", "put 8 B + notice, one way", Takes::Both).at_most(1.3, Fault::Protocol).operations(2);
const FLAG: Case = Case::new("flag", "put a word + wait for it, one way", Takes::Both).operations(2);

pub(super) const CASES: &[Case] = &[NOTICE, FLAG];

/// The offsets in the region of the words that are put.
const DATA_AT: u64 = 4 * bare::LINE as u64;
const FLAG_AT: u64 = 6 * bare::LINE as u64;

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    let (fabric, bare, me) = (pair.fabric, pair.sampler.bare, pair.sampler.me);
    let other = Rank::new(1 - me as u32);
    let abandoned = pair.sampler.rendezvous.abandoned();
    let (there, back) = (bare.word(lines::FLAG), bare.word(lines::FLAG + 1));
    let mut bare_turn = 0;

    let span = fabric.remote_span::<u64>(pair.region.at(other, DATA_AT), 1)?;
    let forms = vec![
        repeat!("fabric", i => {
            if me == 0 {
                fabric.put_notify(&span, [i], i).await?;
            }
            fabric.next_notice(Deps::One(other)).await?;
            if me == 1 {
                fabric.put_notify(&span, [i], i).await?;
            }
        }),
        run!("two-line flag", times => limit::flags::<false>(me, there, back, &mut bare_turn, times, abandoned)?),
    ];
    pair.measure(&NOTICE, 8, forms).await?;

    let word = fabric.remote_word::<u64>(pair.region.at(other, FLAG_AT))?;
    let own = pair.region.word::<u64>(fabric, FLAG_AT as usize)?;
    let mut turn = 0u64;
    let forms = vec![
        repeat!("fabric", _ => {
            turn += 1;
            if me == 0 {
                fabric.put_word(&word, turn).await?;
            }
            fabric.wait_until(&own, Deps::One(other), |value| value >= turn).await?;
            if me == 1 {
                fabric.put_word(&word, turn).await?;
            }
        }),
        run!("two-line flag", times => limit::flags::<false>(me, there, back, &mut bare_turn, times, abandoned)?),
    ];
    pair.measure(&FLAG, 8, forms).await
}

const POST: Case =
    Case::new("queue-post", "put 8 B + notice through a queue, the poster's part; beside the fabric's", Takes::Both)
        .at_most(1.5, Fault::Software);
const RELEASE: Case = Case::new(
    "queue-release",
    "put that releases a session queue's put, until that is seen; beside put + notice one way",
    Takes::Both,
)
.at_most(2.0, Fault::Software)
.operations(2);

pub(super) const QUEUE_CASES: &[Case] = &[POST, RELEASE];

/// Offsets in the region: the word that is put, the word that a release puts, and flags there and
/// back.
const QUEUE_DATA_AT: u64 = 500 * bare::LINE as u64;
const SEEN_AT: u64 = 502 * bare::LINE as u64;
const QUEUE_FLAG_AT: u64 = 504 * bare::LINE as u64;

const MEMORY: Stadd = Stadd::fixed(1);
/// The number of commands in a row, fewer than any ring holds.
const CHUNK: u64 = 1000;

/// Returns the queue of `rank` on an engine; the ranks may share a node.
fn name(rank: Rank, engine: u8) -> QueueId {
    QueueId::new(rank, engine, rank.number() as u8, 0)
}

pub(super) async fn measure_queues(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if QUEUE_CASES.iter().all(|case| pair.wants(case).is_none()) {
        return Ok(());
    }
    let (fabric, me) = (pair.fabric, pair.sampler.me);
    let (rank, other) = (Rank::new(me as u32), Rank::new(1 - me as u32));
    let open = |mode, engine| {
        let number = Some(name(rank, engine).number());
        ControlQueue::open(fabric, QueueSpec { number, ..QueueSpec::new(mode).on(engine).checked(false) })
    };
    let (queue, session) = (open(QueueMode::Normal, 0)?, open(QueueMode::Session, 1)?);
    queue.register_fixed(&pair.region, 1)?;
    session.register_fixed(&pair.region, 1)?;

    let span = fabric.remote_span::<u64>(pair.region.at(other, QUEUE_DATA_AT), 1)?;
    let flag = fabric.remote_word::<u64>(pair.region.at(other, QUEUE_FLAG_AT))?;
    let own_flag = pair.region.word::<u64>(fabric, QUEUE_FLAG_AT as usize)?;
    let turn = core::cell::Cell::new(0u64);
    // The other rank waits until `first` has reached this point.
    let meet = async |first: usize| -> ProgramResult<()> {
        turn.set(turn.get() + 1);
        if me == first {
            fabric.put_word(&flag, turn.get()).await?;
        } else {
            fabric.wait_until(&own_flag, Deps::One(other), |seen| seen >= turn.get()).await?;
        }
        Ok(())
    };
    let put = |to, at, value| Command::PutInline { to, bytes: Inline::word(value), at: MEMORY + at };

    // Rank 0 posts a chunk, which is timed; rank 1 takes all its notices.
    macro_rules! posting {
        ($name:literal, $value:ident => $post:expr, $take:expr) => {
            form($name, async |times| {
                let mut took = Duration::ZERO;
                for chunk in chunks(times) {
                    if me == 0 {
                        let begun = Instant::now();
                        for $value in 0..chunk {
                            $post;
                        }
                        took += begun.elapsed();
                    }
                    meet(0).await?;
                    if me == 1 {
                        for _ in 0..chunk {
                            $take;
                        }
                    }
                    meet(1).await?;
                }
                Ok(Took::Part(took))
            })
        };
    }
    let forms = vec![
        posting!("queue", value => {
            let posting = Posting::new(put(name(other, 0), QUEUE_DATA_AT, value)).remote(value as u8);
            queue.try_post(posting).map_err(|_| "the queue refuses")?;
        }, queue.next_notice(Deps::One(other)).await?),
        posting!("put_notify", value => fabric.put_notify(&span, [value], value).await?, fabric.next_notice(Deps::One(other)).await?),
    ];
    pair.measure(&POST, 8, forms).await?;

    let seen_word = pair.region.word::<u64>(fabric, SEEN_AT as usize)?;
    let mut released = 0;
    let forms = vec![
        form("queue", async |times| {
            let mut took = Duration::ZERO;
            // Two per repetition, because the other form works in both directions.
            for chunk in chunks(2 * times) {
                if me == 1 {
                    for value in 1..=chunk {
                        let posting = put(name(other, 1), SEEN_AT, released + value).into();
                        session.try_post(posting).map_err(|_| "the session queue refuses")?;
                    }
                }
                meet(1).await?;
                if me == 0 {
                    let begun = Instant::now();
                    for value in 1..=chunk {
                        let posting = Posting::new(put(name(other, 1), QUEUE_DATA_AT, value)).sps(1);
                        queue.try_post(posting).map_err(|_| "the queue refuses")?;
                        let wanted = released + value;
                        fabric.wait_until(&seen_word, Deps::One(other), |seen| seen >= wanted).await?;
                    }
                    took += begun.elapsed();
                }
                meet(0).await?;
                released += chunk;
            }
            Ok(Took::Part(took))
        }),
        repeat!("put_notify, one way", value => {
            if me == 0 {
                fabric.put_notify(&span, [value], value).await?;
            }
            fabric.next_notice(Deps::One(other)).await?;
            if me == 1 {
                fabric.put_notify(&span, [value], value).await?;
            }
        }),
    ];
    pair.measure(&RELEASE, 8, forms).await
}

/// Returns `times` in pieces of at most [`CHUNK`].
fn chunks(times: u64) -> impl Iterator<Item = u64> {
    (0..times.div_ceil(CHUNK)).map(move |number| (times - number * CHUNK).min(CHUNK))
}
