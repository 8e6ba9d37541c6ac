//! The memory accesses that a random run reports.

use explore::{Access, Explorer};
use rdma_fabric::{Amo, Deps, Fabric, ProgramResult, Rank};

/// Rank 0 puts, flushes, and adds to a word that rank 1 waits for. Rank 1 loads the word that was
/// put and stores another value.
async fn publish(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(16).await?;
    let [record, flag] = [0, 8].map(|offset| region.at(Rank::new(1), offset));
    if fabric.rank() == Rank::new(0) {
        fabric.put_word(&fabric.remote_word(record)?, 42u64).await?;
        fabric.flush(Rank::new(1)).await?;
        fabric.fetch_add(&fabric.remote_word(flag)?, 1u64).await?;
    } else {
        fabric.wait_until(&fabric.local_word(flag)?, Deps::All, |flag: u64| flag == 1).await?;
        let record = fabric.local_word::<u64>(record)?;
        assert_eq!(fabric.load(&record)?, 42);
        fabric.store(&record, 43)?;
        fabric.get_word(&record.as_remote()).await?;
    }
    Ok(())
}

#[test]
fn accesses_come_in_the_order_in_which_they_happen() {
    for seed in 0..50 {
        let (effects, wrong) = Explorer::new(2).leave_together().effects(seed, publish);
        assert_eq!(wrong, None);
        let told = effects.iter().map(|e| (e.by.number(), e.at.rank.number(), e.at.offset, e.access, e.bits));
        // The number of checks by a waiter before the word has changed depends on the run.
        let told: Vec<_> = told.filter(|told| (told.3, told.4) != (Access::Watch, 0)).collect();
        let wanted = [
            (0, 1, 0, Access::Put, 42),
            (0, 1, 8, Access::Atomic(Amo::Add(1)), 0),
            (1, 1, 8, Access::Watch, 1),
            (1, 1, 0, Access::Load, 42),
            (1, 1, 0, Access::Store, 43),
            (1, 1, 0, Access::Get, 43),
        ];
        assert_eq!(told, wanted, "seed {seed}");
    }
}

/// The effects of a run that fails are reported up to that point.
#[test]
fn what_goes_wrong_comes_last() {
    let (effects, wrong) = Explorer::new(1).effects(1, |fabric: Fabric| async move {
        let region = fabric.alloc_symmetric(8).await?;
        let word = region.at(Rank::new(0), 0);
        let before = fabric.fetch_add(&fabric.remote_word::<u64>(word)?, 1).await?;
        assert_eq!(before, 1, "it was not");
        Ok(())
    });
    assert_eq!(effects.len(), 1);
    assert!(wrong.is_some_and(|wrong| wrong.contains("it was not")));
}
