//! Values that safe code forges, or uses where they do not belong: each is refused, or has the same
//! effect as the same call with a genuine value.

use crate::fx100;
use rdma_fabric::{
    AccessPolicy, Amo, Blocks, Deps, Fabric, FabricError, Group, LockedMemory, OwnedMemory, ProgramResult, Rank,
    Region, RegionKey, Result, Time,
    control_queue::{QueueMode, QueueSpec},
    forward,
    provider::{Ended, JobFacts, KeepAlive, Place, Posted, Provider, Sink, Source, Token, WaitFor, WaitState},
};
use std::{
    num::NonZeroU64,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

const BYTES: usize = 256;

/// A layer that passes everything on.
#[derive(Debug)]
struct Through {
    below: Fabric,
}

impl Provider for Through {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, read, write, wake, put, get, copy, atomic, nop);
    forward!(poll, test, forget, try_notice, poll_wait, end_wait, now, detach, optional);
}

fn foreign<T>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(FabricError::Unsupported { feature }) if feature.to_string().contains("another provider"))
}

fn refused(posted: Posted) -> bool {
    match posted {
        Posted::Failed(error) => foreign::<()>(Err(error)),
        _ => false,
    }
}

/// Checks that every operation refuses `alien`, whose length is [`BYTES`], on either side.
fn is_refused(fabric: &Fabric, alien: &Place, own: &Place) {
    let (provider, mut bytes) = (fabric.provider(), [1; BYTES]);
    let word = alien.part(0, 8).unwrap();
    assert!(refused(provider.put(alien, Source::Bytes(&bytes), None)), "put");
    assert!(refused(provider.put(alien, Source::Bytes(&bytes), Some(1))), "put with notice");
    assert!(refused(provider.put(own, Source::Place(alien), None)), "put from");
    assert!(refused(provider.put(&word.clone().hidden(), Source::Bytes(&bytes[..8]), Some(1))), "short put");
    assert!(refused(provider.get(alien, Sink::Bytes(&mut bytes))), "get");
    assert!(refused(provider.get(own, Sink::Place(alien))), "get into");
    assert!(refused(provider.atomic(&word, Amo::Add(1))), "atomic");
    assert!(foreign(provider.read(alien, &mut bytes, false)), "read");
    assert!(foreign(provider.write(alien, &bytes, true)), "write");
    if fabric.caps().third_party_copy {
        assert!(refused(provider.copy(own, alien)) && refused(provider.copy(alien, own)), "copy");
    }
    if let Some(multicast) = provider.multicast() {
        let puts = multicast.multicast(std::slice::from_ref(alien), Source::Bytes(&bytes));
        assert!(refused(puts), "multicast");
    }
    if let Some(puts) = provider.block_puts() {
        let blocks = Blocks { count: 2, stride: 128 };
        assert!(refused(puts.put_blocks(own, alien, 128, blocks)), "blocks from");
        assert!(refused(puts.put_blocks(alien, own, 128, blocks)), "blocks to");
    }
    let (mut wait_state, mut cx) = (WaitState::default(), Context::from_waker(Waker::noop()));
    let wait_for = || WaitFor::Word(&word, Deps::All);
    let ended =
        (0..100).map(|_| provider.poll_wait(&mut wait_state, wait_for(), &mut cx)).find_map(|polled| match polled {
            Poll::Ready(Err(error)) => Some(error),
            _ => None,
        });
    assert!(foreign::<()>(Err(ended.expect("a wait for another job's word"))), "wait");
    provider.end_wait(&mut wait_state, wait_for(), Ended::GivenUp);
}

/// Checks places whose parts do not match, in all ways that safe code can assemble them.
async fn assembles(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(BYTES).await?;
    let span = region.span::<u8>(&fabric, 0, BYTES)?;
    let own = span.place();
    for at in [own.addr(), region.at(fabric.rank(), u64::MAX - 7), region.at(Rank::new(u32::MAX), 0)] {
        is_refused(&fabric, &Place::remote(at, BYTES, KeepAlive::new(())), own);
        is_refused(&fabric, &Place::remote(at, BYTES, KeepAlive::new(own.clone())).hidden(), own);
    }
    for len in [0, 1, 8, BYTES - 1, BYTES + 1, 1 << 20] {
        let (provider, mut bytes) = (fabric.provider(), vec![0; len]);
        assert!(provider.read(own, &mut bytes, false).is_err() && provider.write(own, &bytes, true).is_err(), "{len}");
        assert!(matches!(provider.put(own, Source::Bytes(&bytes), None), Posted::Failed(_)), "put of {len} bytes");
        assert!(matches!(provider.get(own, Sink::Bytes(&mut bytes)), Posted::Failed(_)), "get of {len} bytes");
    }
    // A narrowed or hidden place stays inside, and an atomic needs a word.
    assert!(own.part(BYTES - 7, 8).is_none() && own.part(usize::MAX, 2).is_none());
    for (offset, len) in [(1, 8), (2, 4), (0, 3), (4, 8), (8, 16), (0, 0)] {
        let part = own.part(offset, len).unwrap().hidden();
        let posted = fabric.provider().atomic(&part, Amo::Add(1));
        assert!(matches!(posted, Posted::Failed(_)), "{offset} {len}: {posted:?}");
    }
    Ok(())
}

#[test]
fn a_place_that_safe_code_assembles_is_refused() {
    checks::jobs::threads(2).run(&assembles).unwrap();
    fx100(2).run(&assembles).unwrap();
}

/// Leaves a place of this job, or tries the one that another job has left.
async fn exchange(fabric: Fabric, left: Arc<Mutex<Vec<Place>>>, leaves: bool) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(BYTES).await?;
    let own = region.span::<u8>(&fabric, 0, BYTES)?.place().clone();
    let existing = fabric.register(vec![0u8; BYTES])?;
    if leaves {
        left.lock().unwrap().extend([own, existing.all()?.place().clone()]);
    } else {
        let places = left.lock().unwrap().clone();
        places.iter().for_each(|alien| is_refused(&fabric, alien, &own));
    }
    Ok(())
}

#[test]
fn a_place_of_another_job_is_refused() {
    let left = Arc::new(Mutex::new(Vec::new()));
    let job = |leaves| {
        let left = left.clone();
        async move |fabric: Fabric| exchange(fabric, left.clone(), leaves).await
    };
    checks::jobs::threads(2).run(&job(true)).unwrap();
    fx100(2).run(&job(true)).unwrap();
    assert_eq!(left.lock().unwrap().len(), 8);
    checks::jobs::threads(2).run(&job(false)).unwrap();
    fx100(2).run(&job(false)).unwrap();
}

/// Tokens, slots and lengths at which arithmetic could fail.
const NUMBERS: [u64; 14] = [
    1,
    2,
    3,
    100,
    1 << 32,
    (1 << 32) | 1,
    u32::MAX as u64,
    u32::MAX as u64 - 1,
    1 << 62,
    (1 << 62) | 7,
    (2 << 62) | 9,
    (3 << 62) | 9,
    u64::MAX - 1,
    u64::MAX,
];

async fn forges_tokens(fabric: Fabric) -> ProgramResult<()> {
    let (provider, mut cx) = (fabric.provider(), Context::from_waker(Waker::noop()));
    let region = fabric.alloc_symmetric(BYTES).await?;
    let next = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
    for number in NUMBERS.into_iter().filter_map(NonZeroU64::new) {
        let mut bytes = [0; 3];
        for into in [Sink::none(), Sink::Bytes(&mut bytes)] {
            let _ = provider.poll(&mut Token(number), into, &mut cx);
        }
        let _ = provider.test(&Token(number));
        provider.forget(Token(number));
        provider.forget(Token(number));
    }
    // A token that was abandoned, or that was polled until it completed, no longer refers to an
    // operation.
    let there = region.word_of::<u64>(&fabric, next, 0)?;
    if let Posted::Pending(token) = provider.atomic(there.place(), Amo::Add(1)) {
        provider.forget(token);
        fabric.sleep(Duration::from_micros(50)).await;
        assert!(!matches!(provider.poll(&mut { token }, Sink::none(), &mut cx), Poll::Ready(Ok(_))));
        provider.forget(token);
    }
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    assert!(fabric.get_word(&there).await? >= 1, "given up, and done all the same");
    Ok(world.barrier().await?)
}

#[test]
fn a_forged_token_names_nothing() {
    checks::jobs::threads(2).run(&forges_tokens).unwrap();
    fx100(2).run(&forges_tokens).unwrap();
}

async fn forges_slots(fabric: Fabric) -> ProgramResult<()> {
    let (provider, mut cx) = (fabric.provider(), Context::from_waker(Waker::noop()));
    let region = fabric.alloc_symmetric(BYTES).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    for (first, second) in NUMBERS.into_iter().flat_map(|a| NUMBERS.map(|b| (a, b))) {
        for fourth in [0, u64::MAX] {
            let goals = [
                WaitFor::Word(word.place(), Deps::All),
                WaitFor::Notice(Deps::All),
                WaitFor::Room(Some(fabric.rank())),
                WaitFor::Room(Some(Rank::new(u32::MAX))),
                WaitFor::Room(None),
                WaitFor::Flush(None),
                WaitFor::Flush(Some(fabric.rank())),
                WaitFor::Until(Time::ZERO),
                WaitFor::Until(Time::MAX),
            ];
            for wait_for in goals {
                let mut wait_state = WaitState([first, second, second, fourth]);
                let _ = provider.poll_wait(&mut wait_state, wait_for, &mut cx);
                provider.end_wait(&mut wait_state, wait_for, Ended::GivenUp);
                assert!(wait_state.is_empty());
                // Ended without a poll, and twice.
                let mut wait_state = WaitState([first, second, first, fourth]);
                provider.end_wait(&mut wait_state, wait_for, Ended::Reached);
                provider.end_wait(&mut wait_state, wait_for, Ended::GivenUp);
            }
        }
    }
    Ok(Group::world(&fabric).await?.barrier().await?)
}

#[test]
fn a_forged_slot_is_no_wait() {
    checks::jobs::threads(2).run(&forges_slots).unwrap();
    fx100(2).run(&forges_slots).unwrap();
}

/// Checks that a handle like another rank's, or like one with other facts, is not trusted.
async fn likens(fabric: Fabric) -> ProgramResult<()> {
    let (me, others) = (fabric.rank(), fabric.ranks() as u32);
    let protected = fabric.provider().protected().unwrap();
    let layer = || Through { below: fabric.clone() };
    let other = Fabric::new(Rank::new((me.number() + 1) % others), fabric.facts().clone(), layer());
    let opened = protected.open(&other, AccessPolicy::copies([7, 8]));
    assert!(matches!(&opened, Err(FabricError::Unsupported { .. })), "{opened:?}");
    let fewer = JobFacts { ranks: 1, nodes: fabric.facts().nodes.clone(), caps: fabric.caps() };
    let liar = Fabric::new(me, Arc::new(fewer), layer());
    let opened = protected.open(&liar, AccessPolicy::copies([7, 8]))?;
    assert!(opened.caps().locked_memory <= LockedMemory::Copies, "references beside facts that are made up");
    // Not even through that handle, whose provider is the rank's own.
    let again = opened.provider().protected().unwrap().open(&opened, AccessPolicy::copies([7, 8]))?;
    assert!(again.caps().locked_memory <= LockedMemory::Copies, "references after two steps");
    let genuine = protected.open(&fabric, AccessPolicy::copies([7, 8]))?;
    assert_eq!((genuine.rank(), genuine.caps().locked_memory), (me, fabric.caps().locked_memory));
    let told = Arc::new(Mutex::new(None));
    let (tells, done) = (told.clone(), Arc::new(fabric.alloc(8)?));
    let shared = done.clone();
    let task = move |helper: Fabric| async move {
        *tells.lock().unwrap() = Some((helper.rank(), helper.ranks(), helper.caps().locked_memory));
        helper.store(&shared.word::<u64>(&helper, 0)?, 1)?;
        Ok(())
    };
    fabric.provider().helper(&liar, "liar", Box::new(move |helper| Box::pin(task(helper))))?;
    fabric.wait_until(&done.word::<u64>(&fabric, 0)?, Deps::One(me), |done| done == 1).await?;
    let (rank, ranks, locked) = told.lock().unwrap().unwrap();
    assert!(rank == me && (ranks == others as usize || locked <= LockedMemory::Copies), "{ranks} ranks, {locked:?}");
    Ok(())
}

#[test]
fn references_rest_on_genuine_ranks_and_facts() {
    checks::jobs::threads(2).run(&likens).unwrap();
    fx100(2).run(&likens).unwrap();
}

/// Checks that a region that a program makes, with a key that exists, opens nothing.
async fn makes_regions(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(BYTES).await?;
    let protected = fabric.protected(AccessPolicy::copies([1, 1]))?;
    let locked = protected.alloc_symmetric(BYTES).await?;
    for key in [region.key(), locked.key(), RegionKey::from_bits(u64::MAX)] {
        let forged = || Region::new(key, usize::MAX, None, ());
        assert!(matches!(OwnedMemory::take(forged(), &fabric).await, Err(FabricError::Unsupported { .. })));
        assert!(matches!(forged().mapped(&fabric, fabric.rank()), Err(FabricError::NotMapped { .. })));
        assert!(matches!(forged().mapped(&protected, fabric.rank()), Err(FabricError::NotMapped { .. })));
        forged().abandon(&fabric);
        drop(forged());
        if let Some(queues) = fabric.provider().queues() {
            let queue = queues.open(QueueSpec::new(QueueMode::Normal))?;
            let named = queue.register(&forged(), None);
            assert!(named.is_err(), "{key:?}: {named:?}");
        }
    }
    let locked = fabric.remote_word::<u64>(locked.at(fabric.rank(), 0)).err();
    assert!(matches!(locked, Some(FabricError::Locked { .. })), "{locked:?}");
    let word = region.word_of::<u64>(&fabric, fabric.rank(), 0)?;
    assert_eq!(fabric.atomic(&word, Amo::Add(1)).await?, 0, "still registered");
    Ok(Group::world(&fabric).await?.barrier().await?)
}

#[test]
fn a_forged_region_opens_nothing() {
    checks::jobs::threads(2).run(&makes_regions).unwrap();
    fx100(2).run(&makes_regions).unwrap();
}
