//! The readers-writer lock of an idle remote rank, and locks that both ranks acquire at the same
//! time.

use super::{
    Case,
    pair::{PEER, Pair},
};
use crate::{
    goal::Fault,
    operations::sampling::{Takes, repeat, run},
    outside::{bare, futex::FutexQueue, limit, lines},
};
use rdma_fabric::{Group, ProgramResult, Rank};
use rma_lock::{
    Access, AccessLock, Guard, Lock, RmaLock, RwLock,
    locks::{Aggregated, FairLock, PackedLock, PerRankLock, RecoverableLock, RpLock, WritersFirstLock},
};

const SHARED: Case = Case::new("lock-shared", "`RwLock`: shared lock + unlock, remote and idle", Takes::Origin)
    .at_most(1.3, Fault::Protocol);
const EXCLUSIVE: Case =
    Case::new("lock-exclusive", "`RwLock`: exclusive lock + unlock, remote and idle", Takes::Origin)
        .at_most(2.0, Fault::Protocol);

const RP: Case = Case::new("lock-rp", "exclusive lock + unlock of the lock as printed, remote and idle", Takes::Origin);

const PACKED: Case =
    Case::new("lock-packed", "exclusive lock + unlock of the packed lock, remote and idle", Takes::Origin)
        .at_most(2.0, Fault::Protocol);
const PUT: Case = Case::new("lock-put", "`RwLock`: exclusive lock, put of 8 B, unlock, remote and idle", Takes::Origin)
    .at_most(2.0, Fault::Protocol);
const NODE: Case = Case::new("lock-node", "lock_all + unlock_all of a node's second reader", Takes::Origin)
    .at_most(2.0, Fault::Protocol);

pub(super) const CASES: &[Case] = &[SHARED, EXCLUSIVE, RP, PACKED, PUT, NODE];

/// The offset at which 8 bytes are put.
const PUT_AT: u64 = 8 * bare::LINE as u64;

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if CASES.iter().all(|case| pair.wants(case).is_none()) {
        return Ok(());
    }
    let bare = pair.sampler.bare;
    let lock = RwLock::symmetric(pair.fabric, PEER).await?;
    let (owned, tail, node) = (bare.word(lines::OWNED), bare.word(lines::QUEUE), bare.word(lines::ZERO));

    let forms = vec![
        repeat!("fabric", _ => lock.read().await?.release().await?),
        run!("two lock xadd", times => limit::count_reader(owned, times)),
    ];
    pair.measure(&SHARED, 0, forms).await?;

    let forms = vec![
        repeat!("fabric", _ => lock.write().await?.release().await?),
        run!("MCS lock", times => limit::queue_lock(tail, node, times)),
    ];
    pair.measure(&EXCLUSIVE, 0, forms).await?;

    let printed = RpLock::symmetric(pair.fabric, PEER).await?;
    let forms = vec![
        repeat!("fabric", _ => printed.write().await?.release().await?),
        run!("MCS lock", times => limit::queue_lock(tail, node, times)),
    ];
    pair.measure(&RP, 0, forms).await?;

    let packed = PackedLock::symmetric(pair.fabric, PEER).await?;
    let forms = vec![
        repeat!("fabric", _ => packed.write().await?.release().await?),
        run!("MCS lock", times => limit::queue_lock(tail, node, times)),
    ];
    pair.measure(&PACKED, 0, forms).await?;

    let (fabric, word) = (pair.fabric, pair.fabric.remote_word::<u64>(pair.region.at(PEER, PUT_AT))?);
    let forms = vec![
        repeat!("fabric", i => {
            let guard = lock.write().await?;
            fabric.put_word(&word, i).await?;
            guard.release().await?
        }),
        run!("MCS lock", times => limit::queue_lock(tail, node, times)),
    ];
    pair.measure(&PUT, 8, forms).await?;

    // The other rank of the node stays inside, so that this one only touches the node's count.
    let lock = Aggregated::<RpLock>::symmetric(pair.fabric, PEER).await?;
    let stays = if pair.sampler.me == 1 { Some(lock.read().await?) } else { None };
    let forms = vec![
        repeat!("fabric", _ => lock.read().await?.release().await?),
        run!("two lock xadd", times => limit::count_reader(owned, times)),
    ];
    pair.measure(&NODE, 0, forms).await?;
    if let Some(guard) = stays {
        guard.release().await?;
    }
    // The lock's words stay until both ranks are out.
    Ok(Group::world(pair.fabric).await?.barrier().await?)
}

const BOTH_EXCLUSIVE: Case =
    Case::new("lock-both-exclusive", "`RwLock`: both ranks exclusive, a lock + unlock of each", Takes::Both)
        .at_most(1.5, Fault::Protocol);
const BOTH_PACKED: Case =
    Case::new("lock-both-packed", "packed lock: both ranks exclusive, in order of arrival", Takes::Both)
        .at_most(1.5, Fault::Protocol);
const BOTH_RP: Case = Case::new("lock-both-rp", "the lock as printed: both ranks exclusive", Takes::Both);
const BOTH_WRITERS_FIRST: Case =
    Case::new("lock-both-writers-first", "writers-first lock: both ranks exclusive", Takes::Both);
const BOTH_FAIR: Case = Case::new("lock-both-fair", "fair lock: both ranks exclusive", Takes::Both);
const BOTH_RECOVERABLE: Case =
    Case::new("lock-both-recoverable", "recoverable lock: both ranks exclusive", Takes::Both);
const BOTH_SHARED: Case =
    Case::new("lock-both-shared", "`RwLock`: both ranks shared, a lock + unlock of each", Takes::Both)
        .at_most(1.2, Fault::Protocol);
const BOTH_RANKS: Case = Case::new("lock-per-rank", "both ranks exclusive, each to the other's memory", Takes::Both);

pub(super) const BOTH_CASES: &[Case] =
    &[BOTH_EXCLUSIVE, BOTH_PACKED, BOTH_RP, BOTH_WRITERS_FIRST, BOTH_FAIR, BOTH_RECOVERABLE, BOTH_SHARED, BOTH_RANKS];

pub(super) async fn measure_both(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if BOTH_CASES.iter().all(|case| pair.wants(case).is_none()) {
        return Ok(());
    }
    both_exclusive::<RwLock>(pair, &BOTH_EXCLUSIVE).await?;
    both_exclusive::<PackedLock>(pair, &BOTH_PACKED).await?;
    both_exclusive::<RpLock>(pair, &BOTH_RP).await?;
    both_exclusive::<WritersFirstLock>(pair, &BOTH_WRITERS_FIRST).await?;
    both_exclusive::<FairLock>(pair, &BOTH_FAIR).await?;
    both_exclusive::<RecoverableLock>(pair, &BOTH_RECOVERABLE).await?;

    let (bare, me, fabric) = (pair.sampler.bare, pair.sampler.me, pair.fabric);
    let lock = RwLock::symmetric(fabric, PEER).await?;
    let word = bare.word(lines::OWNED);
    let forms = vec![
        repeat!("fabric", _ => lock.read().await?.release().await?),
        run!("two lock xadd", times => limit::count_reader(word, times)),
    ];
    pair.measure(&BOTH_SHARED, 0, forms).await?;

    let packed = PackedLock::symmetric(fabric, PEER).await?;
    let ranks = PerRankLock::<PackedLock>::symmetric(fabric, PEER).await?;
    let access = Access::Exclusive(Rank::new(1 - me as u32));
    let forms = vec![
        repeat!("fabric", _ => ranks.lock(access).await?.release().await?),
        repeat!("one lock for all", _ => packed.write().await?.release().await?),
    ];
    pair.measure(&BOTH_RANKS, 0, forms).await?;
    // The locks' words stay until both ranks have resolved them, even if nothing is measured.
    Ok(Group::world(fabric).await?.barrier().await?)
}

/// Measures two writers of a lock.
async fn both_exclusive<L: RmaLock>(pair: &mut Pair<'_>, case: &Case) -> ProgramResult<()> {
    let (bare, me, fabric) = (pair.sampler.bare, pair.sampler.me, pair.fabric);
    if !pair.is_planned(case) {
        return Ok(());
    }
    let lock = L::symmetric(fabric, PEER).await?;
    let queue = FutexQueue::spinning(bare, me);
    let forms = vec![
        repeat!("fabric", _ => lock.write().await?.release().await?),
        repeat!("MCS lock", _ => {
            queue.lock();
            queue.unlock();
        }),
    ];
    pair.measure(case, 0, forms).await?;
    Ok(Group::world(fabric).await?.barrier().await?)
}
