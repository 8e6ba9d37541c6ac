//! The hashtable alone, without a workload.

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use repro::workloads::hashtable::{Cells, Hashtable, TableError, VolumeSize};
use rma_lock::locks::{BackOffLock, RpLock};
use std::collections::BTreeMap;
use tofu2_sim::virt::Platform;

/// All ranks insert keys that collide in few buckets, twice; then all ranks look all of them up.
async fn crowded(fabric: Fabric, volumes: usize) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let size = VolumeSize { buckets: 3, heap: 100 };
    let table = Hashtable::<RpLock>::symmetric(&mut world, volumes, size, ()).await?;
    let (me, ranks) = (u64::from(fabric.rank().number()), fabric.ranks() as u64);
    for round in 0..2 {
        for n in 0..8 {
            let before = table.insert(me * 8 + n, round * 100 + n).await?;
            assert_eq!(before, (round == 1).then_some(n));
        }
    }
    world.barrier().await?;
    for key in 0..ranks * 8 {
        assert_eq!(table.get(key).await?, Some(100 + key % 8));
    }
    assert_eq!(table.get(ranks * 8).await?, None);
    let count = table.count().await?;
    world.barrier().await?;
    Ok(count)
}

#[test]
fn all_keys_are_found_wherever_they_are() {
    for volumes in [0, 1, 3, 5, 8] {
        let run = checks::jobs::virtual_time(&Platform::fx100(), 5)
            .run(&async |fabric| crowded(fabric, volumes).await)
            .expect("it runs");
        assert_eq!(run.outs, [40; 5], "{volumes} volumes");
    }
}

/// One rank performs the operations of a map.
async fn alone(fabric: Fabric, heap: u32) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let size = VolumeSize { buckets: 4, heap };
    let table = Hashtable::<BackOffLock>::symmetric(&mut world, 1, size, Default::default()).await?;
    let mut model = BTreeMap::new();
    for n in 0..200u64 {
        let key = n * n % 37;
        match table.insert(key, n).await {
            Ok(before) => assert_eq!(before, model.insert(key, n)),
            Err(error) => {
                assert_eq!(error, TableError::Full { home: Rank::new(0), heap });
                assert!(!model.contains_key(&key) && model.len() > heap as usize);
            }
        }
    }
    for key in 0..40 {
        assert_eq!(table.get(key).await?, model.get(&key).copied());
    }
    assert_eq!(table.count().await?, model.len() as u64);
    Ok(())
}

#[test]
fn a_table_is_a_map_until_it_is_full() {
    for heap in [0, 5, 100] {
        checks::jobs::virtual_time(&Platform::fx100(), 1)
            .run(&async |fabric| alone(fabric, heap).await)
            .expect("it is");
    }
}

/// Fills a volume, overwrites a word of it with `garbage`, and looks up and inserts.
async fn over_garbage(fabric: &Fabric, word: u64, garbage: u64) -> ProgramResult<Vec<TableError>> {
    let mut world = Group::world(fabric).await?;
    let size = VolumeSize { buckets: 1, heap: 3 };
    let cells = Cells::collective(&mut world, fabric.rank(), size).await?;
    cells.insert(1, 1).await?;
    cells.insert(2, 2).await?;
    let place = fabric.remote_word::<u64>(cells.address(word * 8))?;
    fabric.put_word(&place, garbage).await?;
    let looked = [cells.get(3).await.err(), cells.insert(3, 3).await.err()];
    Ok(looked.into_iter().flatten().collect())
}

async fn garbled(fabric: Fabric, word: u64, garbage: u64) -> ProgramResult<Vec<TableError>> {
    over_garbage(&fabric, word, garbage).await
}

#[test]
fn garbage_in_a_volume_is_an_error() {
    // The heap's count; the first cell's use and next; the heap cell's next, which then forms a
    // ring.
    for (word, garbage, errors) in [(0, 77, 1), (8, 9, 2), (11, 99, 2), (15, 1, 2)] {
        let run = checks::jobs::virtual_time(&Platform::fx100(), 1)
            .run(&async |fabric| garbled(fabric, word, garbage).await)
            .expect("no panic");
        let found = &run.outs[0];
        assert_eq!(found.len(), errors, "word {word}: {found:?}");
        assert!(found.iter().all(|error| matches!(error, TableError::Corrupt { .. })), "word {word}: {found:?}");
    }
}
