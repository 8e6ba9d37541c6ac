//! The readers-writer lock of an idle remote rank.

use super::{
    super::{
        goal::Goal,
        limit, lines,
        sampling::{Takes, repeat, run},
    },
    Case,
    pair::{PEER, Pair},
};
use rdma_fabric::{Fabric, ProgramResult};
use rma_lock::RpLock;

const SHARED: Case =
    Case::new("lock-shared", "shared lock + unlock, remote and idle", Takes::Origin).goal(Goal::Ns(8.0));
const EXCLUSIVE: Case =
    Case::new("lock-exclusive", "exclusive lock + unlock, remote and idle", Takes::Origin).goal(Goal::Ns(14.0));

pub(super) const CASES: &[Case] = &[SHARED, EXCLUSIVE];

pub(super) async fn measure<F: Fabric>(pair: &mut Pair<'_, F>) -> ProgramResult<()> {
    if CASES.iter().all(|case| pair.wants(case).is_none()) {
        return Ok(());
    }
    let bare = pair.sampler.bare;
    let lock = RpLock::symmetric(pair.fabric, PEER).await?;
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
    pair.measure(&EXCLUSIVE, 0, forms).await
}
