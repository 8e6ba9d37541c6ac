//! Tests the table against garbage, losses and concurrent changes.

use super::*;

fn resolve(target: &Arc<Mapping>, addr: RemoteAddr, len: usize, align: usize) -> Result<Resolved<'_>, FabricError> {
    super::resolve(target, addr, len, align, |_, _| false)
}

fn segment() -> Arc<Mapping> {
    Mapping::in_process(layout::HEAP + 4096, layout::HEAP).unwrap()
}

fn addr(region: RegionKey, offset: u64) -> RemoteAddr {
    RemoteAddr { rank: Rank::new(3), region, offset }
}

#[test]
fn keys_of_other_generations_are_refused() {
    let own = segment();
    let first = register(&own, 1500, 128, 256, RegionKind::Heap);
    assert!(resolve(&own, addr(first, 0), 256, 64).is_ok());
    assert!(deregister(&own, 1500));
    let stale = FabricError::StaleRegion { rank: Rank::new(3), region: first };
    assert_eq!(resolve(&own, addr(first, 0), 8, 8).unwrap_err(), stale);
    let second = register(&own, 1500, 0, 64, RegionKind::Heap);
    assert_eq!(second.generation, first.generation + 2);
    assert_eq!(resolve(&own, addr(first, 0), 8, 8).unwrap_err(), stale);
    for generation in [0, second.generation + 1, second.generation + 2] {
        let region = RegionKey { index: 1500, generation };
        let none = FabricError::NoSuchRegion { rank: Rank::new(3), region };
        assert_eq!(resolve(&own, addr(region, 0), 8, 8).unwrap_err(), none);
    }
    let region = RegionKey { index: layout::SLOTS as u32, generation: 1 };
    let none = FabricError::NoSuchRegion { rank: Rank::new(3), region };
    assert_eq!(resolve(&own, addr(region, 0), 8, 8).unwrap_err(), none);
}

#[test]
fn pieces_know_when_their_region_is_gone() {
    let own = segment();
    let key = register(&own, 0, 0, 64, RegionKind::Heap);
    let Resolved::Heap(piece) = resolve(&own, addr(key, 8), 8, 8).unwrap() else { panic!() };
    assert_eq!(load(&piece, 8), Some(0));
    assert_eq!(load(&piece, 4), None, "wrong length");
    assert_eq!(piece.store_silently(8, 7), Some(()));
    deregister(&own, 0);
    assert_eq!(load(&piece, 8), None);
    assert_eq!(piece.copy_in(&[0; 8]), None);
    assert!(piece.is_stale() && !piece.is_lost());
}

/// Accesses to regions of a lost rank are refused, including those it registers afterwards, and the
/// regions are not reported as deregistered.
#[test]
fn nothing_of_a_lost_rank_is_accessed() {
    let own = segment();
    let key = register(&own, 3, 0, 64, RegionKind::Heap);
    let piece = |key| match resolve(&own, addr(key, 8), 8, 8) {
        Ok(Resolved::Heap(piece)) => piece,
        other => panic!("{other:?}"),
    };
    let before = piece(key);
    let wide = own.piece(0, 16, generation_at(3), key.generation).unwrap();
    own.word(layout::LOST).store(1, SeqCst);
    condemn(&own);
    let later = piece(register(&own, 4, GRAIN, 64, RegionKind::Heap));
    for piece in [&before, &later] {
        assert_eq!(
            (load(piece, 8), piece.store_silently(8, 1), piece.modify(8, rdma_fabric::Amo::Add(1))),
            (None, None, None)
        );
        assert_eq!(piece.copy_out(&mut [0; 8]), None);
        assert!(piece.is_lost() && !piece.is_stale());
    }
    assert_eq!(wide.copy_in(&[0; 16]), None);
    assert!(is_current(&own, key) && deregister(&own, 3) && before.is_stale());
    assert_eq!(load(&before, 8), None);
    assert_eq!(next_key(&own, 3).generation, key.generation + 2);
}

/// In every interleaving of a loss and a registration, the region is refused afterwards.
#[test]
fn a_region_registered_during_a_loss_is_refused() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 2_000 };
    let own = segment();
    for round in 0..ROUNDS {
        let first = round as usize % 8;
        own.word(layout::LOST).store(0, SeqCst);
        (0..layout::SLOTS).for_each(|index| _ = field(&own, index, 0).fetch_and(!CONDEMNED, SeqCst));
        let (theirs, start) = (own.clone(), std::sync::Barrier::new(2));
        let keys: Vec<_> = std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                theirs.word(layout::LOST).store(1, SeqCst);
                condemn(&theirs);
            });
            start.wait();
            (first..first + 4).map(|index| register(&own, index, 0, 64, RegionKind::Heap)).collect()
        });
        for key in keys {
            let Ok(Resolved::Heap(piece)) = resolve(&own, addr(key, 0), 8, 8) else { panic!("{key:?}") };
            assert_eq!(load(&piece, 8), None, "round {round}, {key:?}");
            deregister(&own, key.index as usize);
        }
    }
}

#[test]
fn locked_regions_are_for_who_opens_them() {
    let own = segment();
    let key = register(&own, 2, 128, 64, RegionKind::Locked);
    let locked = FabricError::Locked { rank: Rank::new(3), region: key };
    for (offset, len) in [(0, 8), (0, 1000), (3, 8), (64, 0)] {
        assert_eq!(resolve(&own, addr(key, offset), len, 8).unwrap_err(), locked, "{offset} {len}");
    }
    let opened = |offset| super::resolve(&own, addr(key, offset), 8, 8, |opened, _| opened == key);
    assert!(matches!(opened(56), Ok(Resolved::Heap(_))));
    assert!(matches!(opened(57), Err(FabricError::OutOfBounds(outside)) if outside.region_len == 64));
    deregister(&own, 2);
    assert!(matches!(opened(0), Err(FabricError::StaleRegion { .. })));
}

#[test]
fn regions_of_a_policy_are_for_who_has_its_terms() {
    let own = segment();
    let (rank, terms) = (Rank::new(3), [7, 11, 13]);
    write_terms(&own, 128, terms);
    let key = register(&own, 2, 128 + GRAIN, 64, RegionKind::Policy);
    let resolve_with = |wanted: [u64; 3], offset| {
        super::resolve(&own, addr(key, offset), 8, 8, |opened, found| opened == key && found == Some(wanted))
    };
    assert!(matches!(resolve_with(terms, 56), Ok(Resolved::Heap(_))));
    assert!(matches!(resolve_with(terms, 57), Err(FabricError::OutOfBounds(outside)) if outside.region_len == 64));
    assert_eq!(is_of_policy(&own, rank, key, terms), Ok(true));
    let locked = FabricError::Locked { rank, region: key };
    for at in 0..3 {
        let mut wrong = terms;
        wrong[at] ^= 1;
        assert_eq!(resolve_with(wrong, 0).unwrap_err(), locked);
        assert_eq!(is_of_policy(&own, rank, key, wrong), Ok(false));
    }
    // Only regions of access policies have terms, regardless of the bytes that precede them.
    for kind in [RegionKind::Heap, RegionKind::Locked, RegionKind::Staged] {
        let key = register(&own, 3, 128 + GRAIN, 64, kind);
        assert_eq!(is_of_policy(&own, rank, key, terms), Ok(false), "{kind:?}");
        deregister(&own, 3);
    }
    deregister(&own, 2);
    let stale = FabricError::StaleRegion { rank, region: key };
    assert_eq!(is_of_policy(&own, rank, key, terms), Err(stale.clone()));
    assert_eq!(resolve_with(terms, 0).unwrap_err(), stale);
}

/// Arbitrary bytes in front of a region, and arbitrary offsets in its entry.
#[test]
fn damaged_terms_open_nothing() {
    let own = segment();
    let (rank, terms) = (Rank::new(3), [7, 11, 13]);
    let end = own.heap_len();
    for offset in [0, GRAIN, end - GRAIN, end] {
        let key = register(&own, 4, offset, end.saturating_sub(offset).min(64), RegionKind::Policy);
        for bits in [0, 7, u64::MAX] {
            if offset > 0 {
                write_terms(&own, offset - GRAIN, [bits, 11, 13]);
            }
            let opens = |found: Option<[u64; 3]>| found.is_some_and(|found| found == terms);
            let opened = super::resolve(&own, addr(key, 0), 0, 1, |_, found| opens(found)).is_ok();
            assert_eq!(opened, bits == 7 && offset > 0, "{bits:#x} in front of {offset}");
            assert_eq!(is_of_policy(&own, rank, key, terms), Ok(opened));
        }
        // No access policy has these terms: a region at the very start has none.
        assert_eq!(is_of_policy(&own, rank, key, [0; 3]), Ok(offset == 0));
        deregister(&own, 4);
    }
}

/// Only an aligned word of 8 bytes is accessed as one, regardless of the table's contents.
#[test]
fn what_is_no_word_is_not_accessed_as_one() {
    let own = segment();
    let key = register(&own, 3, 0, 64, RegionKind::Heap);
    let piece = |offset, len| own.piece(offset, len, generation_at(3), key.generation).unwrap();
    assert_eq!(load(&piece(8, 8), 8), Some(0));
    assert_eq!(load(&piece(8, 16).part(8, 8).unwrap(), 8), Some(0));
    for piece in [piece(4, 8), piece(8, 16), piece(8, 4), piece(8, 8).part(0, 4).unwrap()] {
        for bits in [key.generation.into(), 0, u64::MAX, u64::MAX - 1] {
            field(&own, 3, 0).store(bits, Relaxed);
            assert_eq!((load(&piece, 8), piece.store_silently(8, 1)), (None, None), "{piece:?} {bits:#x}");
        }
        field(&own, 3, 0).store(key.generation.into(), Relaxed);
    }
}

/// A concurrent resolve returns the region consistently or an error: offset and length belong to
/// one registration.
#[test]
fn a_region_is_resolved_whole_while_it_changes() {
    const ROUNDS: u32 = if cfg!(miri) { 30 } else { 20_000 };
    let own = Mapping::in_process(layout::HEAP + 64 * GRAIN, layout::HEAP).unwrap();
    // Registration number i starts at grain i % 32 and is one more grain long.
    let at = |round: u32| (round as usize % 32 * GRAIN, (round as usize % 32 + 1) * GRAIN);
    std::thread::scope(|scope| {
        let theirs = own.clone();
        scope.spawn(move || {
            for round in 0..ROUNDS {
                let key = register(&theirs, 7, at(round).0, at(round).1, RegionKind::Heap);
                assert_eq!(key.generation, 2 * round + 1);
                deregister(&theirs, 7);
            }
        });
        let mut seen = 0;
        loop {
            let now = field(&own, 7, 0).load(Relaxed);
            if now == 2 * u64::from(ROUNDS) {
                break;
            }
            let key = RegionKey { index: 7, generation: now as u32 | 1 };
            if let Ok((offset, len, _)) = entry(&own, Rank::new(3), key) {
                assert_eq!((offset, len), at(key.generation / 2));
                seen += 1;
            }
        }
        println!("{seen} seen");
    });
}

#[test]
fn garbage_in_a_table_is_an_error() {
    let own = segment();
    for (offset, len) in [(0, 4097), (4096, 64), (u64::MAX, 64), (64, u64::MAX), (8, 8), (u64::MAX - 63, 64)] {
        let key = register(&own, 9, 0, 0, RegionKind::Heap);
        field(&own, 9, 1).store(offset, Relaxed);
        field(&own, 9, 2).store(len, Relaxed);
        field(&own, 9, 3).store(offset % 2, Relaxed);
        let corrupt = FabricError::Corrupt { rank: Rank::new(3), what: &"an entry of the region table" };
        assert_eq!(resolve(&own, addr(key, 0), 0, 1).unwrap_err(), corrupt, "{offset} {len}");
    }
}

#[test]
fn bounds_and_alignment_are_checked() {
    let own = segment();
    let key = register(&own, 5, GRAIN, 100, RegionKind::Heap);
    for (offset, len) in [(0, 101), (100, 1), (u64::MAX, 1), (1, usize::MAX)] {
        assert!(matches!(
            resolve(&own, addr(key, offset), len, 1),
            Err(FabricError::OutOfBounds(outside)) if outside.region_len == 100
        ));
    }
    assert_eq!(resolve(&own, addr(key, 4), 8, 8).err(), Some(FabricError::misaligned(addr(key, 4), 8)));
    assert!(resolve(&own, addr(key, 100), 0, 1).is_ok());
}

/// Returns the word's bits, if it may be accessed.
fn load<M: Clone + core::ops::Deref<Target = Mapping>>(piece: &Piece<M>, width: usize) -> Option<u64> {
    piece.modify(width, rdma_fabric::Amo::Or(0))
}
