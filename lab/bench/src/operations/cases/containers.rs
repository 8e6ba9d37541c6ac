//! Containers in global memory, used by several ranks at a time.
//!
//! Each rank inserts different keys; a figure is the time from the first to the last insert,
//! divided by the number of inserts of all ranks together. Between two samples the table is
//! emptied.

use super::{
    Case,
    crowd::{Crowd, measured},
};
use crate::{
    goal::Goal,
    operations::{
        bare_table::BareTable,
        ranks::JobPlan,
        sampling::{Measured, Sample, Takes},
    },
};
use acp::{Acp, Map, Options, TableRef};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use std::time::Instant;

/// The number of ranks of the job.
pub(in super::super) const RANKS: usize = 4;

const INSERT: Case =
    Case::new("acp-map-insert", "4 ranks, insert of a new key into a map (keys and values of 8 B)", Takes::Both)
        .goal(Goal::Ratio(2.0));

pub(super) const CASES: &[Case] = &[INSERT];

/// The number of keys of each rank, and of slots at each rank.
const KEYS: u64 = 1 << 15;
/// Twice the room for the slots and elements of a rank.
const HEAP_BYTES: usize = 8 << 20;

/// Measures all cases of containers; rank 0 has the results.
pub(super) async fn measure(job: &mut Crowd<'_>, fabric: &Fabric, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    if !plan.wants(&INSERT) {
        return Ok(Vec::new());
    }
    let acp = Acp::init_with(fabric, Options::default().heap_bytes(HEAP_BYTES)).await?;
    let map = open(&acp).await?;
    let table = BareTable::new(job.bare, job.me, map.at());
    job.announce(&INSERT);
    let (mut over_fabric, mut by_pointers) = (Vec::new(), Vec::new());
    // The first iteration accesses pages that no rank has touched.
    for sample in 0..if plan.quick { 3 } else { 16 } {
        let fabric = job.fill(async |key| Ok(map.insert(&key, &key).await?)).await?;
        assert_eq!(map.len().await? as u64, RANKS as u64 * KEYS);
        job.assemble()?;
        map.clear_local().await?;
        let pointers = job.fill(async |key| Ok(table.insert(key, key))).await?;
        assert_eq!(table.len(), RANKS as u64 * KEYS);
        job.assemble()?;
        table.clear(job.me);
        if sample > 0 {
            over_fabric.push(fabric);
            by_pointers.push(pointers);
        }
    }
    acp.finalize().await?;
    let done = measured(&INSERT, 8, vec![("acp", over_fabric), ("bare pointers", by_pointers)]);
    Ok(if job.me == 0 { vec![done] } else { vec![] })
}

/// Opens a map over all ranks, which rank 0 creates.
async fn open(acp: &Acp) -> ProgramResult<Map<u64, u64>> {
    let first = Rank::new(0);
    let words = acp.starter(first)?;
    if acp.rank() == first {
        let ranks: Vec<Rank> = (0..RANKS as u32).map(Rank::new).collect();
        let map = Map::<u64, u64>::create(acp, &ranks, KEYS as usize, first).await?;
        acp.write(words, &map.at().to_words()).await?;
    }
    acp.sync().await?;
    let mut at = [0; 3];
    acp.read(words, &mut at).await?;
    Ok(Map::from_address(acp, TableRef::from_words(at).ok_or("no map")?).await?)
}

impl Crowd<'_> {
    /// Takes a sample in which each rank inserts its keys.
    async fn fill(&mut self, mut insert: impl AsyncFnMut(u64) -> ProgramResult<bool>) -> ProgramResult<Sample> {
        let ping_pong = self.ping_pong()?;
        let begun = Instant::now();
        self.assemble()?;
        for key in 0..KEYS {
            assert!(insert(key * self.ranks as u64 + self.me as u64).await?, "each key is new");
        }
        self.assemble()?;
        let ns = begun.elapsed().as_nanos() as f64 / (KEYS * self.ranks as u64) as f64;
        Ok(Sample { ns, ping_pong, clean: false })
    }
}
