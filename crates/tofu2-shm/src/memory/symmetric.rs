//! Symmetric allocation: all ranks agree on one key and one offset, in two phases.
//!
//! 1. Each rank writes into its control record of the control block the number of bytes it
//!    requests, how far
//!    its symmetric arena can grow for them, and which symmetric regions it has dropped, and
//!    arrives. When all ranks have arrived, all have the same information: regions that all have
//!    dropped are freed, and if the sizes agree, each rank derives the same offset and table entry.
//! 2. Each rank reserves and registers its part, writes the outcome, and arrives again. When all
//!    ranks have arrived, either the region is accessible everywhere, or all ranks free it.
//!
//! A locked region is allocated in the same way; its terms are compared like sizes. If references
//! to it may exist, its bytes are never shared with other regions ([`super::heap`]).
//!
//! A rank arrives at a phase only after all ranks have read the words written two phases earlier,
//! so two sides of a control record, used in turn, are enough.
//!
//! A dropped future leaves its allocation in progress: the rank's next symmetric allocation
//! completes it first, frees the rank's part, and then makes its own. Until then the rank's peers
//! wait.

mod state;

use super::{
    allocator::{Allocator, out_of_memory},
    heap::Extent,
    layout, regions,
    registration::Registration,
};
use crate::{
    endpoint::Endpoint,
    job::State,
    waiting::{WaitsFor, wait},
};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use rdma_fabric::{
    Deps, FabricError, Rank, Region, RegionKey,
    error::{Mismatch, OutOfMachineMemory},
};
use state::{AllocationState, Asked, Turn, WORDS, give_back};
use tofu2_job::available;

pub(crate) use state::Symmetric;

/// Allocates symmetric memory; a locked region if `terms` are given.
pub(crate) async fn alloc(endpoint: &Endpoint, bytes: usize, terms: Option<[u64; 3]>) -> Result<Region, FabricError> {
    let _turn = Turn::wait(endpoint).await?;
    if endpoint.allocator().symmetric.under_way.is_some() {
        // A future was dropped. Its outcome is not needed.
        if let Ok(region) = complete(endpoint).await? {
            discard(endpoint, region);
        }
    }
    propose(endpoint, Asked { bytes, terms: terms.unwrap_or_default() });
    complete(endpoint).await?
}

/// Drops a region that the program of this rank does not own.
fn discard(endpoint: &Endpoint, region: Region) {
    #[cfg(target_os = "linux")]
    if let Some(internode) = endpoint.job().internode() {
        return internode.discard(region);
    }
    let _ = endpoint;
    drop(region);
}

/// Returns the side of the control records that a phase uses.
fn side(phase: u64) -> usize {
    layout::RECORD_SIDES[(phase % 2) as usize]
}

/// Starts phase 1.
fn propose(endpoint: &Endpoint, asked: Asked) {
    let me = endpoint.me().index();
    let control = &endpoint.job().control;
    let allocator = &mut *endpoint.allocator();
    allocator.settle(endpoint.job(), endpoint.segment());
    allocator.symmetric.settle(endpoint.job());
    let promised = if asked.is_apart() {
        allocator.heap.promise_locked(asked.bytes)
    } else {
        allocator.heap.promise_symmetric(asked.bytes)
    };
    let say =
        |field, value| control.control_record(me, side(allocator.symmetric.phase + 1) + field).store(value, Relaxed);
    asked.words().into_iter().for_each(|(field, word)| say(field, word));
    let together = (asked.bytes as u64).saturating_mul(allocator.unchecked.ranks() as u64);
    let check = || available::check(together, available::memory()).err();
    allocator.symmetric.lacking = if allocator.unchecked.is_due(asked.bytes) { check() } else { None };
    // Holes may still be sufficient.
    let promised = if allocator.symmetric.lacking.is_some() { 0 } else { promised as u64 };
    say(layout::SIDE_VERDICT, if is_in_grace(allocator) { promised | layout::SIDE_RETIRED } else { promised });
    for (word, dropped) in allocator.symmetric.dropped.iter().enumerate() {
        say(layout::SIDE_DROPPED + 8 * word, *dropped);
    }
    allocator.symmetric.under_way = Some(AllocationState::Proposed { asked });
    arrive(endpoint, allocator);
}

/// Drives the allocation in progress to completion. The outer result is about the job, the inner
/// one about the allocation.
async fn complete(endpoint: &Endpoint) -> Result<Result<Region, FabricError>, FabricError> {
    loop {
        settle(endpoint).await?;
        all_arrived(endpoint).await?;
        let allocator = &mut *endpoint.allocator();
        match allocator.symmetric.under_way.take() {
            Some(AllocationState::Proposed { asked }) => {
                if let Err(error) = place(endpoint, allocator, asked) {
                    return Ok(Err(error));
                }
            }
            // `settle` has made another proposal.
            Some(settling @ AllocationState::Settling { .. }) => allocator.symmetric.under_way = Some(settling),
            Some(AllocationState::Placed { asked, extent, key, failure }) => {
                return Ok(conclude(endpoint, allocator, asked, (extent, key), failure)
                    .map(|()| Registration::symmetric(endpoint.clone(), asked.bytes, key)));
            }
            None => return Ok(Err(FabricError::Corrupt { rank: endpoint.me(), what: &"a symmetric allocation" })),
        }
    }
}

/// Returns whether some memory that the rank gave up is still in its grace period.
fn is_in_grace(allocator: &Allocator) -> bool {
    allocator.symmetric.retired.until().is_some() || allocator.grace_end().is_some()
}

/// Proposes again after the freed regions' grace period, if all ranks do so.
async fn settle(endpoint: &Endpoint) -> Result<(), FabricError> {
    let asked = match endpoint.allocator().symmetric.under_way {
        Some(AllocationState::Settling { asked }) => asked,
        _ => return Ok(()),
    };
    wait::until_ready(endpoint, WaitsFor::Itself, || Ok(!is_in_grace(&endpoint.allocator()))).await?;
    propose(endpoint, asked);
    Ok(())
}

/// Ends phase 1 and starts phase 2. Errors are the same on all ranks.
fn place(endpoint: &Endpoint, allocator: &mut Allocator, asked: Asked) -> Result<(), FabricError> {
    let Asked { bytes, .. } = asked;
    let (me, job, segment) = (endpoint.me(), endpoint.job(), endpoint.segment());
    let phase = allocator.symmetric.phase;
    let control_record = |rank: usize, field| job.control.control_record(rank, side(phase) + field).load(Relaxed);
    let ranks = 0..job.plan.ranks;
    for word in 0..WORDS {
        let at = layout::SIDE_DROPPED + 8 * word;
        // Starts from this rank's own record of dropped regions, because peers can also write its
        // control record.
        let freed = ranks.clone().fold(allocator.symmetric.dropped[word], |all, rank| all & control_record(rank, at));
        for index in (0..64).filter(|bit| freed >> bit & 1 == 1).map(|bit| word * 64 + bit) {
            if let Some((extent, is_apart)) = allocator.symmetric.live.remove(&index) {
                give_back(allocator, extent, is_apart);
            }
        }
        allocator.symmetric.dropped[word] &= !freed;
    }
    let verdicts = || ranks.clone().map(|rank| control_record(rank, layout::SIDE_VERDICT));
    let limit = verdicts().map(|verdict| verdict & !layout::SIDE_RETIRED).min().unwrap_or(0);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let differs = |rank| asked.words().into_iter().find(move |&(field, word)| control_record(rank, field) != word);
    let other = ranks.clone().find_map(|rank| differs(rank).map(|differs| (rank, differs)));
    if let Some((other, (field, word))) = other {
        allocator.heap.break_promise();
        return Err(Mismatch {
            collective: if field == layout::SIDE_BYTES { "alloc_symmetric" } else { "alloc_symmetric, locked," },
            rank: me,
            argument: word,
            other: Rank::new(other as u32),
            other_argument: control_record(other, field),
        }
        .into());
    }
    // Memory that some rank has dropped may soon be free. All ranks read the same control records,
    // so they reach the same decision.
    let more_later = verdicts().any(|verdict| verdict & layout::SIDE_RETIRED != 0);
    let heap = &mut allocator.heap;
    let taken = if asked.is_apart() { heap.take_locked(bytes, limit) } else { heap.take_symmetric(bytes, limit) };
    let refusal = |available| match &allocator.symmetric.lacking {
        None => out_of_memory(segment, me, bytes, available),
        Some(left) => {
            let (ranks, limit) = (allocator.unchecked.ranks(), left.limit.clone());
            FabricError::from(OutOfMachineMemory { rank: me, requested: bytes, ranks, available: left.amount, limit })
        }
    };
    let taken = taken.map_err(refusal).and_then(|extent| match allocator.symmetric.free_slot() {
        Some(index) => Ok((extent, index)),
        None => {
            give_back(allocator, extent, asked.is_apart());
            Err(FabricError::TooManyRegions { rank: me, limit: regions::SYMMETRIC.len() })
        }
    });
    let (extent, index) = match taken {
        Ok(taken) => taken,
        Err(_) if more_later => {
            allocator.symmetric.under_way = Some(AllocationState::Settling { asked });
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    allocator.symmetric.live.insert(index, (extent, asked.is_apart()));
    let failure = allocator.prepare(segment, me, bytes, extent).err();
    job.control
        .control_record(me.index(), side(phase + 1) + layout::SIDE_VERDICT)
        .store(failure.is_none().into(), Relaxed);
    // Bytes without reserved pages must not be accessible.
    let reachable = if failure.is_none() { bytes } else { 0 };
    let kind = if asked.is_locked() { regions::RegionKind::Locked } else { regions::RegionKind::Heap };
    let key = regions::register(segment, index, extent.offset, reachable, kind);
    allocator.symmetric.under_way = Some(AllocationState::Placed { asked, extent, key, failure });
    arrive(endpoint, allocator);
    Ok(())
}

/// Ends phase 2. The allocation fails everywhere if it failed anywhere.
fn conclude(
    endpoint: &Endpoint,
    allocator: &mut Allocator,
    asked: Asked,
    (extent, key): (Extent, RegionKey),
    failure: Option<FabricError>,
) -> Result<(), FabricError> {
    let (job, segment) = (endpoint.job(), endpoint.segment());
    let verdict = side(allocator.symmetric.phase) + layout::SIDE_VERDICT;
    let failed = (0..job.plan.ranks).find(|&rank| job.control.control_record(rank, verdict).load(Relaxed) != 1);
    let Some(failed) = failed else { return Ok(()) };
    let index = key.index as usize;
    allocator.symmetric.live.remove(&index);
    if !regions::deregister(segment, index) {
        allocator.symmetric.worn_out.push(index);
    }
    give_back(allocator, extent, asked.is_apart());
    Err(failure.unwrap_or_else(|| out_of_memory(segment, Rank::new(failed as u32), asked.bytes, 0)))
}

/// Publishes that this rank's control record is ready for the next phase.
fn arrive(endpoint: &Endpoint, allocator: &mut Allocator) {
    let job = endpoint.job();
    allocator.symmetric.phase += 1;
    // Release: pairs with the acquire in `all_arrived`.
    job.control.control_record(endpoint.me().index(), layout::RECORD_PHASE).store(allocator.symmetric.phase, Release);
    let arrivals = job.control.word(layout::ARRIVALS).fetch_add(1, AcqRel).wrapping_add(1);
    // Not decided by this rank's phase: a peer may see the control record above and arrive at the
    // next phase before this rank counts.
    if arrivals.is_multiple_of(job.plan.ranks as u64) {
        job.wake_all();
    }
    #[cfg(target_os = "linux")]
    if let Some(internode) = job.internode() {
        internode.send_control_record(endpoint, allocator.symmetric.phase);
        job.wake_all();
    }
}

/// Waits until every rank has arrived at this rank's phase.
///
/// # Errors
/// [`FabricError::PeerLost`], [`FabricError::Aborted`]; [`FabricError::PeersLeft`] as soon as one
/// rank has left without arriving.
async fn all_arrived(endpoint: &Endpoint) -> Result<(), FabricError> {
    let control = &endpoint.job().control;
    let phase = endpoint.allocator().symmetric.phase;
    // Acquire: pairs with the release in `arrive`.
    let arrived = move |rank| control.control_record(rank, layout::RECORD_PHASE).load(Acquire) >= phase;
    let mut next = 0;
    let look = move || {
        while next < endpoint.job().plan.ranks {
            if !arrived(next) {
                if control.state(next) != State::Left || arrived(next) {
                    return Ok(None);
                }
                // A rank that has aborted the job may have left it afterwards.
                control.can_continue()?;
                return Err(FabricError::PeersLeft);
            }
            next += 1;
        }
        Ok(Some(()))
    };
    wait::until_found(endpoint, Deps::All, WaitsFor::Allocation, look).await
}
