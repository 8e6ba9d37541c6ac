//! The readers-writer lock of an idle remote rank.

use super::{
    super::{
        goal::Goal,
        limit, lines,
        sampling::{Takes, Took, form},
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
    if let Some(case) = pair.wants(&SHARED) {
        let forms = vec![
            form("fabric", async |times| {
                for _ in 0..times {
                    lock.read().await?.release().await?;
                }
                Ok(Took::Wall)
            }),
            form("two lock xadd", async |times| {
                limit::count_reader(owned, times);
                Ok(Took::Wall)
            }),
        ];
        pair.sampler.measure(case, 0, forms).await?;
    }
    if let Some(case) = pair.wants(&EXCLUSIVE) {
        let forms = vec![
            form("fabric", async |times| {
                for _ in 0..times {
                    lock.write().await?.release().await?;
                }
                Ok(Took::Wall)
            }),
            form("MCS lock", async |times| {
                limit::queue_lock(tail, node, times);
                Ok(Took::Wall)
            }),
        ];
        pair.sampler.measure(case, 0, forms).await?;
    }
    Ok(())
}
