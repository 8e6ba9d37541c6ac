//! Protected memory: sentences K1–K6.

use super::fixture::has_queues;
use crate::{ensure, ensure_eq};
use fabric_offload::{
    ControlQueue,
    control_queue::{QueueMode, QueueSpec},
};
use rdma_fabric::{
    AccessPolicy, Deps, Fabric, FabricError, Group, LockedMemory, ProgramResult, Rank, RegionKey, RemoteAddr,
};
use rma_lock::Locked;

const NAME: [u64; 2] = [7, 8];

/// Returns a handle for protected memory, or `None` if the provider has no such memory, after
/// checking that it reports this.
fn protected(fabric: &Fabric, name: [u64; 2]) -> ProgramResult<Option<Fabric>> {
    if fabric.caps().locked_memory != LockedMemory::None {
        return Ok(Some(fabric.protected(AccessPolicy::copies(name))?));
    }
    let refusal = fabric.protected(AccessPolicy::copies(name)).err();
    ensure!(matches!(refusal, Some(FabricError::Unsupported { .. })), "K1: there is none: {refusal:?}");
    Ok(None)
}

fn next(fabric: &Fabric) -> Rank {
    Rank::new(((fabric.rank().index() + 1) % fabric.ranks()) as u32)
}

pub(super) async fn protected_memory_is_memory(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let Some(protected) = protected(&fabric, NAME)? else { return Ok(world.barrier().await?) };
    ensure_eq!((protected.rank(), protected.ranks()), (fabric.rank(), fabric.ranks()), "K1: another rank's handle");
    let region = protected.alloc_symmetric(1000).await?;
    ensure_eq!(region.len(), 1000, "K1: its length");
    let clone = protected.clone();
    let (me, next) = (fabric.rank(), next(&fabric));
    let mut seen = [1u64; 125];
    protected.read(&region.span(&protected, 0, 125)?, &mut seen)?;
    ensure_eq!(seen, [0; 125], "K1: zeroed");
    world.barrier().await?;
    // By puts, atomics and gets, long and short; by waits, loads and stores.
    let there = clone.remote_span::<u64>(region.at(next, 0), 100)?;
    clone.put(&there, vec![u64::from(me.number()) + 5; 100]).await?;
    clone.flush(next).await?;
    let count = protected.remote_word::<u64>(region.at(next, 800))?;
    ensure_eq!(protected.fetch_add(&count, 3).await?, 0, "K1: an atomic");
    let mine = region.word::<u64>(&protected, 800)?;
    protected.wait_until(&mine, Deps::All, |count| count == 3).await?;
    protected.store(&mine, 4)?;
    ensure_eq!(protected.load(&mine)?, 4, "K1: own words");
    let got = protected.get(&there.slice(99..100)?, [0]).await?;
    ensure_eq!(got, [u64::from(me.number()) + 5], "K1: a short get");
    world.barrier().await?;
    // The ordinary handle and the protected one belong to the same rank.
    let open = fabric.alloc(8)?;
    let word = protected.local_word::<u64>(RemoteAddr { rank: me, region: open.key(), offset: 0 })?;
    protected.store(&word, 9)?;
    ensure_eq!(fabric.load(&open.word::<u64>(&fabric, 0)?)?, 9, "K1: other memory by the same handle");
    ensure!(protected.register(vec![1u64]).is_err(), "K1: memory that exists has a key");
    Ok(world.barrier().await?)
}

/// Checks that every kind of access to `addr` is refused as locked.
fn refused(fabric: &Fabric, addr: RemoteAddr) -> ProgramResult<()> {
    let locked = Some(FabricError::Locked { rank: addr.rank, region: addr.region });
    ensure_eq!(fabric.remote_word::<u64>(addr).err(), locked, "K2: a word");
    ensure_eq!(fabric.remote_word::<u32>(addr).err(), locked, "K2: a short word");
    ensure_eq!(fabric.remote_span::<u8>(addr, 8).err(), locked, "K2: a span");
    ensure_eq!(fabric.remote_span::<u8>(addr, 0).err(), locked, "K2: an empty span");
    ensure_eq!(fabric.remote_span::<u64>(addr, 1 << 40).err(), locked, "K2: a span too long");
    if addr.rank == fabric.rank() {
        ensure_eq!(fabric.local_word::<u64>(addr).err(), locked, "K2: an own word");
        ensure_eq!(fabric.local_span::<u64>(addr, 1).err(), locked, "K2: an own span");
    }
    Ok(())
}

pub(super) async fn locked_regions_are_shut(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let Some(handle) = protected(&fabric, NAME)? else { return Ok(world.barrier().await?) };
    let region = handle.alloc_symmetric(64).await?;
    world.barrier().await?;
    // A second handle with the same access policy is nevertheless a different handle.
    let other = fabric.protected(AccessPolicy::copies(NAME))?;
    for rank in 0..fabric.ranks() as u32 {
        let at = RemoteAddr { rank: Rank::new(rank), region: region.key(), offset: 8 };
        refused(&fabric, at)?;
        refused(&other, at)?;
        handle.remote_word::<u64>(at)?;
    }
    // Guessing a key grants no access, and all bytes are unchanged.
    let key = region.key();
    let near = (key.index.saturating_sub(3)..=key.index.saturating_add(3))
        .flat_map(|index| (0..key.generation.saturating_add(4)).map(move |generation| RegionKey { index, generation }));
    for guess in near.filter(|guess| guess.index == key.index) {
        let word = fabric.remote_word::<u64>(RemoteAddr { rank: fabric.rank(), region: guess, offset: 0 });
        ensure!(word.is_err(), "K2: the key {guess:?} opened {key:?}");
    }
    if has_queues(&fabric)? {
        let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
        let locked = Some(FabricError::Locked { rank: fabric.rank(), region: key });
        ensure_eq!(queue.register(&region).err(), locked, "K2: a steering tag");
        ensure_eq!(queue.register_fixed(&region, 3).err(), locked, "K2: a fixed tag");
    }
    let there = handle.remote_span::<u64>(region.at(next(&fabric), 0), 8)?;
    ensure_eq!(handle.get(&there, [1; 8]).await?, [0; 8], "K2: what guesses left");
    let not_mapped = FabricError::NotMapped { rank: fabric.rank(), region: key };
    ensure_eq!(region.mapped(&handle, fabric.rank()).err(), Some(not_mapped.clone()), "K4: without references");
    ensure_eq!(region.mapped(&fabric, fabric.rank()).err(), Some(not_mapped), "K4: by another handle");
    world.barrier().await?;
    drop(region);
    let gone = handle.remote_word::<u64>(RemoteAddr { rank: fabric.rank(), region: key, offset: 0 }).err();
    let stale = FabricError::StaleRegion { rank: fabric.rank(), region: key };
    ensure_eq!(gone, Some(stale), "K2: after it was dropped");
    Ok(world.barrier().await?)
}

pub(super) async fn protected_local_memory_is_for_equal_policies(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let Some(handle) = protected(&fabric, NAME)? else { return Ok(world.barrier().await?) };
    let maps = fabric.caps().locked_memory == LockedMemory::Mapped;
    let region = match handle.alloc(1000) {
        Err(FabricError::Unsupported { .. }) if !maps => return Ok(world.barrier().await?),
        allocated => allocated?,
    };
    let (me, next) = (fabric.rank(), next(&fabric));
    let keys = world.allgather(region.key().to_bits()).await?;
    let at = |rank: Rank, offset| {
        let region = RegionKey::from_bits(keys[rank.index()]);
        RemoteAddr { rank, region, offset }
    };
    let equal = fabric.protected(AccessPolicy::copies(NAME))?;
    let other = fabric.protected(AccessPolicy::copies([NAME[0], 9]))?;
    // An equal access policy opens it, on every rank; nothing else does.
    let there = equal.remote_span::<u64>(at(next, 0), 125)?;
    ensure_eq!(equal.get(&there, vec![1; 125]).await?, [0; 125], "K6: zeroed");
    world.barrier().await?;
    equal.put(&there, vec![u64::from(me.number()) + 5; 125]).await?;
    equal.flush(next).await?;
    for rank in (0..fabric.ranks() as u32).map(Rank::new) {
        refused(&fabric, at(rank, 8))?;
        refused(&other, at(rank, 8))?;
        let region = at(rank, 0).region;
        let holds = [&equal, &other, &fabric].map(|handle| handle.holds(rank, region));
        ensure_eq!(holds[1..], [Ok(false), Ok(false)], "K6: held by another access policy");
        ensure!(holds[0].is_ok() && (!maps || holds[0] == Ok(true)), "K6: held by an equal access policy: {holds:?}");
    }
    world.barrier().await?;
    let before = (me.index() + fabric.ranks() - 1) % fabric.ranks();
    let mut seen = [0u64; 125];
    handle.read(&region.span(&equal, 0, 125)?, &mut seen)?;
    ensure_eq!(seen, [before as u64 + 5; 125], "K6: what was put");
    let open = fabric.alloc(8)?;
    ensure_eq!(equal.holds(me, open.key()), Ok(false), "K6: memory with a key");
    if has_queues(&fabric)? {
        let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
        let locked = Some(FabricError::Locked { rank: me, region: region.key() });
        ensure_eq!(queue.register(&region).err(), locked, "K6: a steering tag");
    }
    let not_mapped = Some(FabricError::NotMapped { rank: me, region: region.key() });
    ensure_eq!(region.mapped(&equal, me).err(), not_mapped, "K4: without references");
    world.barrier().await?;
    // A dropped region is unusable, whether or not its memory may be reused.
    let key = region.key();
    if me.index().is_multiple_of(2) {
        drop(region)
    } else {
        region.abandon(&handle)
    }
    let stale = FabricError::StaleRegion { rank: me, region: key };
    ensure_eq!(equal.remote_word::<u64>(at(me, 0)).err(), Some(stale.clone()), "K6: after it was dropped");
    // A layer in between does not know which regions are held.
    let held = equal.holds(me, key);
    ensure!(held == Err(stale) || !maps && held == Ok(false), "K6: held no more: {held:?}");
    for _ in 0..3 {
        let again = handle.alloc(1000)?;
        let span = again.span::<u64>(&handle, 0, 125)?;
        handle.read(&span, &mut seen)?;
        ensure_eq!(seen, [0; 125], "K6: zeroed again");
        handle.write(&span, &[7; 125])?;
    }
    Ok(world.barrier().await?)
}

pub(super) async fn policies_must_agree(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let last = fabric.rank().index() + 1 == fabric.ranks();
    let Some(right) = protected(&fabric, NAME)? else { return Ok(world.barrier().await?) };
    let wrong = fabric.protected(AccessPolicy::copies([NAME[0], 9]))?;
    let outcome = if last { wrong.alloc_symmetric(64).await } else { right.alloc_symmetric(64).await };
    told(world.allgather(u64::from(is_mismatch(outcome))).await?)?;
    let outcome = if last { fabric.alloc_symmetric(64).await } else { right.alloc_symmetric(64).await };
    told(world.allgather(u64::from(is_mismatch(outcome))).await?)?;
    // The ranks' handles have made different numbers of allocations.
    let first = fabric.protected(AccessPolicy::copies(NAME))?;
    let outcome = if last { first.alloc_symmetric(64).await } else { right.alloc_symmetric(64).await };
    told(world.allgather(u64::from(is_mismatch(outcome))).await?)?;
    // Now they agree.
    let agreed = fabric.protected(AccessPolicy::copies(NAME))?;
    let region = agreed.alloc_symmetric(64).await?;
    world.barrier().await?;
    agreed.put_word(&agreed.remote_word(region.at(next(&fabric), 0))?, 1u64).await?;
    Ok(world.barrier().await?)
}

fn is_mismatch<T>(outcome: rdma_fabric::Result<T>) -> bool {
    matches!(outcome, Err(FabricError::Mismatch(_)))
}

/// Checks that at least one rank received a mismatch error.
fn told(mismatches: Vec<u64>) -> ProgramResult<()> {
    ensure!(mismatches.contains(&1), "K3: ranks that mean different things share memory");
    Ok(())
}

pub(super) async fn references_lead_to_the_same_bytes(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let all = 0..fabric.ranks() as u32;
    let memory = fabric.caps().locked_memory;
    if memory == LockedMemory::None {
        return Ok(world.barrier().await?);
    }
    let locked = Locked::<u64>::symmetric(&fabric, Rank::new(0), 40).await?;
    ensure_eq!(locked.maps(), memory == LockedMemory::Mapped, "K4: what caps() say");
    for round in 0..20u64 {
        let mut guard = locked.write().await?;
        for rank in all.clone().map(Rank::new) {
            if locked.maps() && round % 2 == 0 {
                guard.part_mut(rank)?.iter_mut().for_each(|element| *element += 1);
            } else {
                let copy = guard.get(rank, 0..40).await?;
                guard.put(rank, 0, copy.iter().map(|element| element + 1).collect::<Vec<_>>()).await?;
            }
        }
        guard.release().await?;
        let guard = locked.read().await?;
        let first = guard.get(Rank::new(0), 0..1).await?[0];
        for rank in all.clone().map(Rank::new) {
            ensure_eq!(guard.get(rank, 0..40).await?, vec![first; 40], "K4: what the others left");
            ensure!(!locked.maps() || guard.part(rank)? == [first; 40], "K4: by reference");
        }
        guard.release().await?;
    }
    world.barrier().await?;
    let guard = locked.read().await?;
    ensure_eq!(guard.get(Rank::new(0), 39..40).await?, [20 * fabric.ranks() as u64], "K4: nothing is lost");
    guard.release().await?;
    Ok(world.barrier().await?)
}
