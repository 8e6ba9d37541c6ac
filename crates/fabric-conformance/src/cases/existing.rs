//! Registering existing memory: clauses X1–X6 of the contract.

use crate::{ensure, ensure_eq};
use rdma_fabric::{
    Deps, Existing, Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, Registered, RemoteAddr, Uses,
};
use std::time::Duration;

const OWNER: Rank = Rank::new(0);

/// Returns words that encode their index and `salt`.
fn words(len: usize, salt: u64) -> Vec<u64> {
    (0..len as u64).map(|i| i << 32 | salt).collect()
}

/// Registers `memory` at the owner. Returns the registration at the owner, and its key on every
/// rank. Collective.
async fn shared(
    fabric: &Fabric,
    world: &mut Group,
    memory: Vec<u64>,
    atomics: bool,
) -> ProgramResult<(Option<Registered<u64>>, RegionKey)> {
    let mine = match fabric.rank() {
        OWNER if atomics => Some(Registered::new(fabric, memory, Uses::Atomics)?),
        OWNER => Some(fabric.register(memory)?),
        _ => None,
    };
    let key = mine.as_ref().map_or(RegionKey { index: 0, generation: 0 }, |mine| mine.key());
    Ok((mine, world.broadcast(0, key).await?))
}

fn at(region: RegionKey, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: OWNER, region, offset }
}

/// Returns whether the provider cannot register existing memory; checks that such a provider says
/// so.
pub(super) fn is_missing(fabric: &Fabric) -> ProgramResult<bool> {
    if fabric.caps().register_existing != Existing::None {
        return Ok(false);
    }
    match fabric.register(vec![1u64]).map(drop) {
        Err(refused) => ensure!(matches!(refused.error, FabricError::Unsupported { .. }), "X1: {refused:?}"),
        Ok(()) => return Err("X1: memory was registered though caps() deny it".into()),
    }
    Ok(true)
}

pub(super) async fn peers_reach_it(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    for len in [1, 8, 9, 1000, 40_000] {
        let (mine, key) = shared(&fabric, &mut world, words(len, 5), false).await?;
        if let Some(mine) = &mine {
            ensure!(mine.way() != Existing::None && mine.way() <= fabric.caps().register_existing, "X1: {mine:?}");
            ensure_eq!((mine.len(), mine.elements()), (8 * len, len), "X1: lengths");
        } else {
            let (whole, last) = (fabric.remote_span::<u64>(at(key, 0), len)?, at(key, 8 * len as u64 - 8));
            let got = fabric.get(&whole, vec![0; len]).await?;
            ensure!(got == words(len, 5), "X2: {len} words as they were");
            let word = fabric.remote_word::<u64>(last)?;
            ensure_eq!(fabric.get_word(&word).await?, words(len, 5)[len - 1], "X2: the last word");
            let beyond = fabric.remote_word::<u64>(at(key, 8 * len as u64)).err();
            ensure!(matches!(beyond, Some(FabricError::OutOfBounds(_))), "M4: beyond the end: {beyond:?}");
        }
        world.barrier().await?;
        if fabric.rank().index() == 1 {
            let whole = fabric.remote_span::<u64>(at(key, 0), len)?;
            fabric.put(&whole, words(len, 6)).await?;
            fabric.flush(OWNER).await?;
            // One word, from registered memory and back into it.
            let own = fabric.alloc(64)?;
            let (from, to) = (own.span::<u64>(&fabric, 0, 1)?, own.span::<u64>(&fabric, 32, 1)?);
            fabric.write(&from, &[77])?;
            fabric.put(&whole.slice(0..1)?, from).await?;
            fabric.flush(OWNER).await?;
            fabric.get(&whole.slice(0..1)?, to.clone()).await?;
            let mut seen = [0];
            fabric.read(&to, &mut seen)?;
            ensure_eq!(seen, [77], "X2: by way of registered memory");
        }
        world.barrier().await?;
        let mut want = words(len, 6);
        want[0] = 77;
        if let Some(mine) = mine {
            let mut seen = vec![0; len];
            fabric.read(&mine.all()?, &mut seen)?;
            ensure!(seen == want, "X3: the owner reads what was put");
            fabric.write(&mine.all()?.slice(0..1)?, &[78])?;
            ensure_eq!(fabric.load(&mine.word::<u64>(0)?)?, 78, "X3: the owner writes");
            want[0] = 78;
            ensure!(mine.take().await? == want, "X4: {len} words come back");
        }
        world.barrier().await?;
        let stale = Some(FabricError::StaleRegion { rank: OWNER, region: key });
        ensure_eq!(fabric.remote_word::<u64>(at(key, 0)).err(), stale, "X4: after it was taken");
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn own_registered_memory_is_source_and_sink(fabric: Fabric) -> ProgramResult<()> {
    const LEN: usize = 9_000;
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(8 * LEN).await?;
    let (mine, theirs) = (fabric.register(words(LEN, 1))?, fabric.register(words(LEN, 2))?);
    let next = Rank::new(((fabric.rank().index() + 1) % fabric.ranks()) as u32);
    let far = fabric.remote_span::<u64>(window.at(next, 0), LEN)?;
    fabric.put(&far, mine.all()?).await?;
    fabric.flush(next).await?;
    fabric.get(&far, theirs.all()?).await?;
    ensure!(theirs.take().await? == words(LEN, 1), "X2: registered memory as source and sink");
    // From another rank's registered memory into this rank's, for every way of reaching them.
    let keys = world.allgather(mine.key()).await?;
    let there = RemoteAddr { rank: next, region: keys[next.index()], offset: 0 };
    let copy = fabric.register(vec![0u64; LEN])?;
    fabric.get(&fabric.remote_span(there, LEN)?, copy.all()?).await?;
    ensure!(copy.take().await? == words(LEN, 1), "X2: from registered memory to registered memory");
    Ok(world.barrier().await?)
}

pub(super) async fn atomics_are_done_or_refused(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    for staged in [false, true] {
        let (mine, key) = shared(&fabric, &mut world, words(4, 0), staged).await?;
        let word = fabric.remote_word::<u64>(at(key, 8))?;
        let half = fabric.remote_word::<u32>(at(key, 16))?;
        let (outcome, other) = (fabric.fetch_add(&word, 3).await, fabric.fetch_or(&half, 1u32 << 31).await);
        let done = match outcome {
            Ok(_) => {
                ensure!(other.is_ok(), "X5: {other:?}");
                true
            }
            Err(error) => {
                ensure_eq!(error, FabricError::no_atomics(at(key, 8)), "X5: an atomic");
                false
            }
        };
        let crosses = !staged && fabric.caps().register_existing == Existing::CrossCopy;
        ensure_eq!(done, !crosses, "X5: atomics, asked for: {staged}");
        let all = world.allgather(done as u64).await?;
        ensure!(all.iter().all(|one| *one == all[0]), "X5: the same for all ranks: {all:?}");
        if let Some(mine) = mine {
            let sum = mine.take().await?[1];
            ensure_eq!(sum, (1 << 32) + if done { 3 * fabric.ranks() as u64 } else { 0 }, "O6: additions");
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn puts_and_notices_wake_the_owner(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    for atomics in [false, true] {
        let (mine, key) = shared(&fabric, &mut world, vec![0u64; 300], atomics).await?;
        let peer = Rank::new(1);
        if let Some(mine) = mine {
            let word = mine.word::<u64>(8)?;
            fabric.wait_until(&word, Deps::One(peer), |value| value == 7).await?;
            let last = mine.word::<u64>(8 * 299)?;
            fabric.wait_until(&last, Deps::One(peer), |value| value == 8).await?;
            let notice = fabric.next_notice(Deps::One(peer)).await?;
            ensure_eq!((notice.data, notice.region, notice.end), (9, key, 16), "X2: a notice");
            ensure_eq!(mine.take().await?[..2], [3, 7], "N2: the notice's bytes");
        } else if fabric.rank() == peer {
            // Long enough for the owner to park.
            fabric.sleep(Duration::from_millis(5)).await;
            fabric.put_word(&fabric.remote_word::<u64>(at(key, 8))?, 7).await?;
            fabric.sleep(Duration::from_millis(5)).await;
            fabric.put(&fabric.remote_span::<u64>(at(key, 16), 298)?, vec![8u64; 298]).await?;
            fabric.flush(OWNER).await?;
            fabric.put_notify(&fabric.remote_span::<u64>(at(key, 0), 2)?, [3u64, 7], 9).await?;
            fabric.flush(OWNER).await?;
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn taking_waits_for_who_is_inside(fabric: Fabric) -> ProgramResult<()> {
    const LEN: usize = 20_000;
    let mut world = Group::world(&fabric).await?;
    for round in 0..6u32 {
        let (mine, key) = shared(&fabric, &mut world, vec![0u64; LEN], round % 2 == 1).await?;
        let stale = FabricError::StaleRegion { rank: OWNER, region: key };
        let mut taken = None;
        let mut last = 0u64;
        if let Some(mine) = mine {
            fabric.sleep(Duration::from_micros(300 * u64::from(round))).await;
            let memory = mine.take().await?;
            // Writes from here on are too late.
            taken = Some((memory.clone(), memory));
        } else {
            let outcome = loop {
                let outcome = match fabric.remote_span::<u64>(at(key, 0), LEN) {
                    Err(error) => Err(error),
                    Ok(whole) if fabric.rank().index() == 1 => match fabric.put(&whole, vec![last + 1; LEN]).await {
                        Ok(_) => fabric.flush(OWNER).await,
                        Err(error) => Err(error),
                    },
                    Ok(whole) => fabric.get(&whole, vec![0; LEN]).await.map(drop),
                };
                match outcome {
                    Ok(()) => last += 1,
                    Err(error) => break error,
                }
            };
            ensure_eq!(outcome, stale, "X4: an operation after the end");
        }
        let counts = world.allgather(last).await?;
        if let Some((taken, later)) = taken {
            ensure!(taken == later, "X4: written after it was taken");
            let wrong = taken.iter().position(|word| *word != counts[1]);
            ensure_eq!(wrong, None, "X4: {} puts were done, and word 0 is {}", counts[1], taken[0]);
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn dropping_deregisters(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    for round in 0..40usize {
        let (mine, key) = shared(&fabric, &mut world, words(2_000, 1), round % 2 == 1).await?;
        if mine.is_none() && round % 4 < 2 {
            let whole = fabric.remote_span::<u64>(at(key, 0), 2_000);
            if let Ok(whole) = whole
                && let Ok(got) = fabric.get(&whole, vec![0; 2_000]).await
            {
                ensure!(got == words(2_000, 1), "X6: a get while the region is dropped");
            }
        }
        if round % 4 >= 2 {
            world.barrier().await?;
        }
        drop(mine);
        world.barrier().await?;
        let stale = Some(FabricError::StaleRegion { rank: OWNER, region: key });
        ensure_eq!(fabric.remote_span::<u64>(at(key, 0), 9).err(), stale, "X6: after the drop");
        world.barrier().await?;
    }
    // An empty vector can also be registered.
    let nothing = fabric.register(Vec::<u64>::new())?;
    ensure!(nothing.is_empty(), "X1: no bytes");
    ensure_eq!(nothing.take().await?, Vec::<u64>::new(), "X4: no bytes");
    let odd = fabric.register(vec![3u8; 13])?;
    ensure_eq!(odd.take().await?, [3; 13], "X4: bytes");
    Ok(world.barrier().await?)
}
