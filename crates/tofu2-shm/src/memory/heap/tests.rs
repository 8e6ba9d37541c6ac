//! Checks the arenas against a map of grains, and the invariants between promises and allocations.

use super::*;
use proptest::prelude::*;

/// Kinds of extents: local and symmetric ones, which share bytes with each other, and those that
/// share bytes only with their own kind: locked ones, and those of two access policies.
const KINDS: usize = 5;
const LOCAL: usize = 0;
const SYMMETRIC: usize = 1;
const LOCKED: usize = 2;
const POLICIES: [(usize, [u64; 3]); 2] = [(3, [7, 1, 2]), (4, [7, 1, 3])];
/// Functions that free an extent of each kind.
const GIVE_BACK: [fn(&mut Heap, Extent); KINDS] = [
    Heap::give_back_local,
    Heap::give_back_symmetric,
    Heap::give_back_locked,
    |heap, extent| heap.give_back_policy(extent, POLICIES[0].1),
    |heap, extent| heap.give_back_policy(extent, POLICIES[1].1),
];

/// Returns the group of kinds that share bytes with this one.
fn sharers(kind: usize) -> usize {
    kind.max(SYMMETRIC)
}

/// The next step of a test, with an extent of the given kind.
#[derive(Clone, Debug)]
enum Step {
    Take(usize, usize),
    GiveBack(usize, prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let most = |kind| if kind >= LOCKED { 300 } else { 700usize };
    prop_oneof![
        (0..KINDS).prop_flat_map(move |kind| (0..most(kind)).prop_map(move |bytes| Step::Take(kind, bytes))),
        (0..KINDS, any::<prop::sample::Index>()).prop_map(|(kind, index)| Step::GiveBack(kind, index)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

    /// Compares with a map of each grain's owner and of the grains that were ever used.
    #[test]
    fn extents_are_disjoint_and_freed_bytes_come_back(steps in prop::collection::vec(step(), 1..if cfg!(miri) { 30 } else { 120 })) {
        const GRAINS: usize = 64;
        let mut heap = Heap::new(GRAINS * GRAIN);
        let (mut owner, mut used) = ([false; GRAINS], [false; GRAINS]);
        // The kind, among those that share bytes, that has owned each grain.
        let mut had = [None; GRAINS];
        let mut taken = [(); KINDS].map(|()| Vec::<Extent>::new());
        for step in steps {
            let (kind, extent) = match step {
                Step::Take(LOCAL, bytes) => (LOCAL, heap.take_local(bytes)),
                Step::Take(SYMMETRIC, bytes) => {
                    let limit = heap.promise_symmetric(bytes);
                    (SYMMETRIC, heap.take_symmetric(bytes, limit))
                }
                Step::Take(LOCKED, bytes) => {
                    let limit = heap.promise_locked(bytes);
                    (LOCKED, heap.take_locked(bytes, limit))
                }
                Step::Take(policy, bytes) => {
                    let (kind, terms) = POLICIES[policy - LOCKED - 1];
                    (kind, heap.take_for_policy(bytes, terms))
                }
                Step::GiveBack(kind, index) => {
                    if !taken[kind].is_empty() {
                        let extent = taken[kind].swap_remove(index.index(taken[kind].len()));
                        owner[extent.offset / GRAIN..][..extent.len / GRAIN].fill(false);
                        GIVE_BACK[kind](&mut heap, extent);
                    }
                    continue;
                }
            };
            let Ok(extent) = extent else { continue };
            prop_assert!(extent.offset % GRAIN == 0 && extent.len % GRAIN == 0 && extent.len > 0);
            let grains = extent.offset / GRAIN..(extent.offset + extent.len) / GRAIN;
            prop_assert!(!owner[grains.clone()].contains(&true), "{extent:?} overlaps");
            let fresh = extent.fresh_start / GRAIN..extent.fresh_end / GRAIN;
            prop_assert!(grains.start <= fresh.start && fresh.start <= fresh.end && fresh.end <= grains.end);
            prop_assert!(!used[fresh].contains(&true), "{extent:?} is said to be fresh");
            owner[grains.clone()].fill(true);
            used[grains.clone()].fill(true);
            let foreign = had[grains.clone()].iter().flatten().any(|had| *had != sharers(kind));
            prop_assert!(!foreign, "{extent:?} was of another kind than {kind}: {had:?}");
            had[grains].fill(Some(sharers(kind)));
            taken[kind].push(extent);
        }
        for kind in [LOCAL, SYMMETRIC] {
            core::mem::take(&mut taken[kind]).into_iter().for_each(|extent| GIVE_BACK[kind](&mut heap, extent));
        }
        if had.iter().flatten().all(|had| *had == SYMMETRIC) {
            prop_assert_eq!(heap.take_local(GRAINS * GRAIN).map(|extent| extent.offset), Ok(0));
        }
    }
}

#[test]
fn a_promise_holds_against_local_extents() {
    let mut heap = Heap::new(4 * GRAIN);
    assert_eq!(heap.promise_symmetric(2 * GRAIN), 2 * GRAIN);
    assert_eq!(heap.take_local(2 * GRAIN).map(|extent| extent.offset), Ok(2 * GRAIN));
    assert_eq!(heap.take_local(1), Err(0));
    assert_eq!(heap.take_symmetric(2 * GRAIN, 2 * GRAIN).map(|extent| extent.offset), Ok(0));
    assert_eq!(heap.promise_symmetric(1), 2 * GRAIN, "there is no more");
    assert_eq!(heap.take_symmetric(1, usize::MAX), Err(0));
}

#[test]
fn what_is_freed_between_promise_and_taking_is_room() {
    let mut heap = Heap::new(4 * GRAIN);
    let limit = heap.promise_symmetric(3 * GRAIN);
    let first = heap.take_symmetric(3 * GRAIN, limit).unwrap();
    let limit = heap.promise_symmetric(2 * GRAIN);
    heap.give_back_symmetric(first);
    assert_eq!(heap.take_symmetric(2 * GRAIN, limit).map(|extent| extent.offset), Ok(0));
}

#[test]
fn locked_extents_are_fresh_or_were_locked() {
    let mut heap = Heap::new(8 * GRAIN);
    let open = heap.promise_symmetric(2 * GRAIN);
    let open = heap.take_symmetric(2 * GRAIN, open).unwrap();
    heap.give_back_symmetric(open);
    let local = heap.take_local(GRAIN).unwrap();
    heap.give_back_local(local);
    let take = |heap: &mut Heap, grains| {
        let limit = heap.promise_locked(grains * GRAIN);
        heap.take_locked(grains * GRAIN, limit)
    };
    let first = take(&mut heap, 2).unwrap();
    assert_eq!((first.offset, first.used_before()), (2 * GRAIN, [(2 * GRAIN, 0), (4 * GRAIN, 0)]));
    heap.give_back_locked(first);
    // The hole below is for other regions; bytes that were locked are not.
    assert_eq!(heap.promise_symmetric(2 * GRAIN), 6 * GRAIN);
    assert_eq!(heap.take_symmetric(2 * GRAIN, 6 * GRAIN).map(|extent| extent.offset), Ok(0));
    assert_eq!(take(&mut heap, 1).map(|extent| extent.offset), Ok(2 * GRAIN));
    assert_eq!(take(&mut heap, 4), Err(3 * GRAIN), "one grain was local");
    assert_eq!(take(&mut heap, 3).map(|extent| extent.offset), Ok(4 * GRAIN));
}

#[test]
fn extents_of_a_policy_are_fresh_or_were_of_it() {
    let mut heap = Heap::new(8 * GRAIN);
    let [(_, one), (_, other)] = POLICIES;
    let local = heap.take_local(2 * GRAIN).unwrap();
    heap.give_back_local(local);
    let first = heap.take_for_policy(2 * GRAIN, one).unwrap();
    assert_eq!((first.offset, first.used_before()), (4 * GRAIN, [(4 * GRAIN, 0), (6 * GRAIN, 0)]));
    heap.give_back_policy(first, one);
    assert_eq!(heap.take_for_policy(GRAIN, other).map(|extent| extent.offset), Ok(3 * GRAIN));
    assert_eq!(heap.take_for_policy(4 * GRAIN, other), Err(3 * GRAIN), "two grains are of the other access policy");
    assert_eq!(heap.take_for_policy(4 * GRAIN, one), Err(3 * GRAIN));
    let again = heap.take_for_policy(2 * GRAIN, one).unwrap();
    assert_eq!((again.offset, again.used_before()[1]), (4 * GRAIN, (4 * GRAIN, 2 * GRAIN)), "to be cleared");
    assert_eq!(heap.take_local(2 * GRAIN).map(|extent| extent.offset), Ok(6 * GRAIN), "the hole is for others");
    // Symmetric extents that are promised come first.
    assert_eq!(heap.promise_symmetric(2 * GRAIN), 2 * GRAIN);
    assert_eq!(heap.take_for_policy(2 * GRAIN, one), Err(GRAIN));
    assert_eq!(heap.take_symmetric(2 * GRAIN, 2 * GRAIN).map(|extent| extent.offset), Ok(0));
}

#[test]
fn sizes_that_overflow_are_refused() {
    let mut heap = Heap::new(GRAIN);
    assert_eq!(heap.take_local(usize::MAX), Err(GRAIN));
    assert_eq!(heap.take_for_policy(usize::MAX, POLICIES[0].1), Err(GRAIN));
    assert_eq!(heap.promise_symmetric(usize::MAX - GRAIN), 0);
}
