//! Containers in global memory, used by several ranks at a time.
//!
//! Each rank inserts different keys, then looks up those that another rank has inserted; a figure is
//! the time from the first to the last call, divided by the number of calls of all ranks together.
//! Between two samples the table is emptied.

use super::{
    Case,
    crowd::{Crowd, measured},
};
use crate::{
    goal::Fault,
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
        .at_most(2.0, Fault::Software);

const GET: Case = Case::new("acp-map-get", "4 ranks, value of a key of a map (keys and values of 8 B)", Takes::Both)
    .at_most(1.5, Fault::Software);

pub(super) const CASES: &[Case] = &[INSERT, GET];

/// The number of keys of each rank, and of slots at each rank.
const KEYS: u64 = 1 << 15;
/// Twice the room for the slots and elements of a rank.
const HEAP_BYTES: usize = 8 << 20;

/// Measures all cases of containers; rank 0 has the results.
pub(super) async fn measure(job: &mut Crowd<'_>, fabric: &Fabric, plan: &JobPlan) -> ProgramResult<Vec<Measured>> {
    if !CASES.iter().any(|case| plan.wants(case)) {
        return Ok(Vec::new());
    }
    let acp = Acp::init_with(fabric, Options::default().heap_bytes(HEAP_BYTES)).await?;
    let map = open(&acp).await?;
    let table = BareTable::new(job.bare, job.me, map.at());
    job.announce(&INSERT);
    // Of inserts, then of lookups.
    let (mut over_fabric, mut by_pointers) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    // The first iteration accesses pages that no rank has touched.
    for sample in 0..if plan.quick { 3 } else { 16 } {
        let fabric = [
            job.each(0, async |key| Ok(map.insert(&key, &key).await?.then_some(key))).await?,
            job.each(1, async |key| Ok(map.get(&key).await?)).await?,
        ];
        assert_eq!(map.len().await? as u64, RANKS as u64 * KEYS);
        job.assemble()?;
        map.clear_local().await?;
        let pointers = [
            job.each(0, async |key| Ok(table.insert(key, key).then_some(key))).await?,
            job.each(1, async |key| Ok(table.lookup(key))).await?,
        ];
        assert_eq!(table.len(), RANKS as u64 * KEYS);
        job.assemble()?;
        table.clear(job.me);
        if sample > 0 {
            over_fabric.iter_mut().zip(fabric).for_each(|(all, sample)| all.push(sample));
            by_pointers.iter_mut().zip(pointers).for_each(|(all, sample)| all.push(sample));
        }
    }
    acp.finalize().await?;
    let forms = over_fabric.into_iter().zip(by_pointers);
    let of_case = |(case, (fabric, pointers)): (&Case, _)| {
        plan.wants(case).then(|| measured(case, 8, vec![("acp", fabric), ("bare pointers", pointers)]))
    };
    let done = CASES.iter().zip(forms).filter_map(of_case).collect();
    Ok(if job.me == 0 { done } else { vec![] })
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
    /// Takes a sample in which each rank calls `call` for the keys of the rank that many further. It returns the
    /// key, or the value, which is the same: the next key is computed from it, so that a lookup begins after the
    /// one before is complete.
    async fn each(
        &mut self,
        further: usize,
        mut call: impl AsyncFnMut(u64) -> ProgramResult<Option<u64>>,
    ) -> ProgramResult<Sample> {
        let of = (self.me + further) % self.ranks;
        let ping_pong = self.ping_pong()?;
        let begun = Instant::now();
        self.assemble()?;
        let mut key = of as u64;
        for _ in 0..KEYS {
            let value = call(key).await?.ok_or_else(|| format!("key {key} of rank {of}"))?;
            key = value + self.ranks as u64;
        }
        self.assemble()?;
        let ns = begun.elapsed().as_nanos() as f64 / (KEYS * self.ranks as u64) as f64;
        Ok(Sample { ns, ping_pong, clean: false })
    }
}
