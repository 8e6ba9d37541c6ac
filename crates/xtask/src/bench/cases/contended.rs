//! Locks that both ranks want at once.

use super::{
    super::{
        goal::Goal,
        limit::{self, FutexQueue},
        lines,
        sampling::{Takes, repeat, run},
    },
    Case,
    pair::{PEER, Pair},
};
use rdma_fabric::{ProgramResult, Rank};
use rma_lock::{
    Access, AccessLock, Guard, Lock,
    locks::{PackedLock, PerRankLock, RpLock},
};

const EXCLUSIVE: Case = Case::new("lock-both-exclusive", "both ranks exclusive, a lock + unlock of each", Takes::Both)
    .goal(Goal::Ratio(1.3));
const SHARED: Case =
    Case::new("lock-both-shared", "both ranks shared, a lock + unlock of each", Takes::Both).goal(Goal::Ns(30.0));
const RANKS: Case = Case::new("lock-per-rank", "both ranks exclusive, each to the other's memory", Takes::Both);

pub(super) const CASES: &[Case] = &[EXCLUSIVE, SHARED, RANKS];

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if CASES.iter().all(|case| pair.wants(case).is_none()) {
        return Ok(());
    }
    let (bare, me, fabric) = (pair.sampler.bare, pair.sampler.me, pair.fabric);
    let packed = PackedLock::symmetric(fabric, PEER).await?;
    let queue = FutexQueue::spinning(bare, me);
    let forms = vec![
        repeat!("fabric", _ => packed.write().await?.release().await?),
        repeat!("MCS lock", _ => {
            queue.lock();
            queue.unlock();
        }),
    ];
    pair.measure(&EXCLUSIVE, 0, forms).await?;

    let flat = RpLock::symmetric(fabric, PEER).await?;
    let word = bare.word(lines::OWNED);
    let forms = vec![
        repeat!("fabric", _ => flat.read().await?.release().await?),
        run!("two lock xadd", times => limit::count_reader(word, times)),
    ];
    pair.measure(&SHARED, 0, forms).await?;

    let ranks = PerRankLock::<PackedLock>::symmetric(fabric, PEER).await?;
    let access = Access::Exclusive(Rank::new(1 - me as u32));
    let forms = vec![
        repeat!("fabric", _ => ranks.lock(access).await?.release().await?),
        repeat!("one lock for all", _ => packed.write().await?.release().await?),
    ];
    pair.measure(&RANKS, 0, forms).await
}
