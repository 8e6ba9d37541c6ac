//! Lack of memory, and addresses that are not tables.

use super::{
    HEAP, assert_freed, begin,
    model::{Content, KINDS, Model, Table},
};
use crate::harness::everywhere;
use acp::{AcpError, GlobalAddress, Map, Multiset, Result, Set, TableRef};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};

/// A call that runs out of memory changes nothing.
#[test]
fn without_memory_nothing_changes() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let (home, full) = (Rank::new(0), Rank::new(1));
            let refused = Map::<u64, u64>::create(&acp, &[home, full], HEAP / 32, home).await;
            assert!(matches!(refused, Err(AcpError::HeapExhausted { rank, .. }) if rank == home), "{refused:?}");
            assert!(matches!(Set::<u64>::create(&acp, &[home], 0, home).await, Err(AcpError::Option(_))));
            assert!(matches!(Set::<u64>::create(&acp, &[], 1, home).await, Err(AcpError::Option(_))));
            assert!(matches!(Set::<u64>::create(&acp, &[home], usize::MAX, home).await, Err(AcpError::Option(_))));
            let nowhere = Set::<u64>::create(&acp, &[home, Rank::new(2)], 4, home).await;
            assert!(matches!(nowhere, Err(AcpError::NoSuchRank { .. })));
            assert_freed(&acp).await?;
            for kind in KINDS {
                let from = Table::create(&acp, kind, &[home], 3, home).await?;
                let to = Table::create(&acp, kind, &[full], 4, home).await?;
                let mut models = [(); 2].map(|()| Model { kind, content: Content::new() });
                for n in 0..20u8 {
                    from.insert(&[n, 1], &[n; 30]).await?;
                    models[0].insert(&[n, 1], &[n; 30]);
                    to.insert(&[n, 2], &[n; 30]).await?;
                    models[1].insert(&[n, 2], &[n; 30]);
                }
                // Room for one more element, but not for a second.
                let least = acp.malloc(70, full).await?;
                let mut taken = vec![];
                for bytes in [1 << 16, 1 << 12, 1 << 8, 16] {
                    while let Ok(block) = acp.malloc(bytes, full).await {
                        taken.push(block);
                    }
                }
                let exhausted = |done: Result<()>| {
                    assert!(matches!(done, Err(AcpError::HeapExhausted { rank, .. }) if rank == full), "{done:?}");
                };
                exhausted(to.insert(b"new", &[]).await.map(drop));
                acp.free(least).await?;
                exhausted(to.merge(&from).await);
                exhausted(to.assign(&from).await);
                exhausted(to.swap(&from).await);
                exhausted(from.swap(&to).await);
                for (table, model) in [&from, &to].into_iter().zip(&models) {
                    assert_eq!(table.content().await?, model.content, "{kind:?}");
                }
                // Elements that fit have been moved, slot by slot; nothing is lost.
                exhausted(to.append(&from).await);
                let mut all = to.content().await?;
                for (key, mut values) in from.content().await? {
                    all.entry(key).or_default().append(&mut values);
                }
                let mut both = models[1].clone();
                both.merge(&models[0]);
                assert_eq!(all, both.content);
                assert!(to.insert(b"new", &[]).await?);
                for block in taken {
                    acp.free(block).await?;
                }
                from.destroy().await?;
                to.destroy().await?;
                assert_freed(&acp).await?;
            }
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn types_and_positions_are_checked() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let me = acp.rank();
        let map = Map::<str, u64>::create(&acp, &[me], 4, me).await?;
        assert!(map.insert("one", &1).await? && map.insert("", &0).await?);
        assert_eq!((map.get("one").await?, map.get("").await?, map.get("two").await?), (Some(1), Some(0), None));
        // Changes a value in place.
        let entry = map.find("one").await?.expect("it is there");
        acp.fetch(entry.value.offset_by(5)?, Amo::Add(1u64)).await?;
        assert_eq!(map.get("one").await?, Some(1 + (1 << 40)));
        let narrow = Map::<str, u32>::from_address(&acp, map.at()).await?;
        let other = narrow.get("one").await;
        assert_eq!(other, Err(AcpError::OtherType { address: entry.position.element }));
        map.remove("one").await?;
        let gone = AcpError::NoSuchElement { address: entry.position.element };
        assert_eq!(map.after(entry.position).await, Err(gone.clone()));
        let mut nowhere = entry.position;
        nowhere.slot = 4;
        assert_eq!(map.entry(nowhere).await, Err(gone));
        let starter = acp.starter(me)?;
        let none = TableRef { address: starter, ranks: 1, slots: 1 };
        assert!(matches!(Set::<u64>::from_address(&acp, none).await, Err(AcpError::Damaged { .. })));
        // A slot whose words are not a list.
        acp.write(starter, &[starter.offset_by(64)?.to_bits()]).await?;
        acp.write(starter.offset_by(72)?, &[7u64, 7, 7]).await?;
        let damaged = Set::<u64>::from_address(&acp, none).await?;
        for _ in 0..2 {
            assert!(matches!(damaged.insert(&5).await, Err(AcpError::Damaged { .. })));
        }
        // A list that leads back to its first element.
        let element = starter.offset_by(256)?;
        acp.write(element, &[element.to_bits(), 0, 8, 77]).await?;
        acp.write(starter.offset_by(72)?, &[element.to_bits(), element.to_bits(), 1]).await?;
        assert!(damaged.contains(&77).await?);
        assert!(matches!(damaged.contains(&78).await, Err(AcpError::Damaged { .. })));
        assert_eq!(TableRef::from_words([0, 1, 1]), None);
        assert_eq!(TableRef::from_words(map.at().to_words()), Some(map.at()));
        assert_eq!(map.address(), map.at().address);
        assert_eq!(GlobalAddress::from_bits(map.at().to_words()[0]), Some(map.address()));
        acp.finalize().await?;
        Ok(())
    });
}

/// Checks at compile time that the futures are `Send`.
#[test]
fn calls_may_change_threads() {
    fn may_change_threads<F: Future + Send>(future: F) -> F {
        future
    }
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let ranks = [acp.rank()];
        let map = may_change_threads(Map::<str, u64>::create(&acp, &ranks, 4, ranks[0])).await?;
        let set = may_change_threads(Multiset::<u64>::create(&acp, &ranks, 4, ranks[0])).await?;
        assert!(may_change_threads(map.insert("one", &1)).await?);
        assert!(may_change_threads(set.insert(&1)).await?);
        assert_eq!(may_change_threads(map.get("one")).await?, Some(1));
        assert_eq!(may_change_threads(map.iter().next()).await?, Some(("one".to_owned(), 1)));
        may_change_threads(map.swap(&map)).await?;
        may_change_threads(map.append(&map)).await?;
        assert_eq!(may_change_threads(set.remove_all(&1)).await?, 1);
        may_change_threads(map.destroy()).await?;
        may_change_threads(set.destroy()).await?;
        assert_freed(&acp).await?;
        acp.finalize().await?;
        Ok(())
    });
}
