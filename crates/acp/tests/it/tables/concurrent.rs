//! All ranks use one table at the same time.

use super::{assert_freed, begin};
use crate::harness::everywhere;
use acp::{Acp, Map, Multimap, Multiset, Result, Set, TableRef};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};
use std::collections::{BTreeMap, BTreeSet};

/// Rank 0 makes a table; all ranks receive its location.
pub(super) async fn shared(acp: &Acp, made: impl AsyncFnOnce(&[Rank]) -> Result<TableRef>) -> Result<TableRef> {
    let words = acp.starter(Rank::new(0))?;
    if acp.rank().number() == 0 {
        let ranks: Vec<Rank> = (0..acp.ranks() as u32).map(Rank::new).collect();
        acp.write(words, &made(&ranks).await?.to_words()).await?;
    }
    acp.sync().await?;
    let mut read = [0u64; 3];
    acp.read(words, &mut read).await?;
    acp.sync().await?;
    Ok(TableRef::from_words(read).expect("a table"))
}

/// All ranks insert the same keys, and each rank some different keys; then they remove them.
#[test]
fn every_key_has_one_first_and_one_last() {
    const KEYS: u64 = 25;
    let outs = everywhere(4, &async |fabric: Fabric| -> ProgramResult<bool> {
        let acp = begin(&fabric).await?;
        let (me, home) = (u64::from(acp.rank().number()), Rank::new(0));
        let at = shared(&acp, async |ranks| Ok(Map::<u64, u64>::create(&acp, ranks, 4, home).await?.at())).await?;
        let map = Map::<u64, u64>::from_address(&acp, at).await?;
        let at = shared(&acp, async |ranks| Ok(Multiset::<u64>::create(&acp, ranks, 4, home).await?.at())).await?;
        let multiset = Multiset::<u64>::from_address(&acp, at).await?;
        let at = shared(&acp, async |ranks| Ok(Multimap::<u64, u64>::create(&acp, ranks, 4, home).await?.at())).await?;
        let multimap = Multimap::<u64, u64>::from_address(&acp, at).await?;
        // The sum over all ranks.
        let sum = async |mine: u64| -> Result<u64> {
            acp.fetch(acp.starter(home)?.offset_by(64)?, Amo::Add(mine)).await?;
            acp.sync().await?;
            let sum = acp.load::<u64>(acp.starter(home)?.offset_by(64)?).await?;
            acp.sync().await?;
            acp.store(acp.starter(home)?.offset_by(64)?, 0u64).await?;
            acp.sync().await?;
            Ok(sum)
        };
        let mut won = 0;
        for n in 0..KEYS {
            // Each rank starts at a different key.
            let key = (n + me * KEYS / 4) % KEYS;
            won += u64::from(map.insert(&key, &me).await?);
            assert!(map.insert(&(1000 * (me + 1) + key), &me).await?);
            multiset.insert(&key).await?;
            multimap.insert(&key, &me).await?;
            multimap.insert(&key, &(me + 10)).await?;
        }
        assert_eq!(sum(won).await?, KEYS);
        assert_eq!(map.len().await?, KEYS as usize * 5);
        let all: BTreeMap<u64, u64> = map.iter().collect().await?;
        let mine = all.iter().filter(|(_, rank)| **rank == me).count() as u64;
        assert_eq!(mine, won + KEYS);
        assert_eq!(all.len() as u64, KEYS * 5);
        let counts: BTreeMap<u64, u64> = multiset.iter().collect().await?;
        assert_eq!(counts, (0..KEYS).map(|key| (key, 4)).collect());
        for key in 0..KEYS {
            let mut values = multimap.get_all(&key).await?;
            // The values of one rank are in its order.
            let place = |value| values.iter().position(|other| *other == value);
            assert!(place(me) < place(me + 10));
            values.sort_unstable();
            assert_eq!(values, [0, 1, 2, 3, 10, 11, 12, 13]);
        }
        acp.sync().await?;
        let (mut removed, mut counted, mut valued) = (0, 0, 0);
        for n in 0..KEYS {
            let key = (n + me * KEYS / 4) % KEYS;
            removed += u64::from(map.remove(&key).await?.is_some());
            assert_eq!(map.remove(&(1000 * (me + 1) + key)).await?, Some(me));
            counted += u64::from(multiset.remove(&key).await?);
            valued += u64::from(multimap.remove(&key).await?.is_some());
            valued += if me == 0 { multimap.remove_all(&key).await? as u64 } else { 0 };
        }
        assert_eq!((sum(removed).await?, sum(counted).await?), (KEYS, KEYS * 4));
        let left = if me == 0 { multimap.len().await? as u64 } else { 0 };
        assert_eq!(sum(valued + left).await?, KEYS * 8);
        assert!(map.is_empty().await? && multiset.is_empty().await?);
        acp.sync().await?;
        if me == 1 {
            map.destroy().await?;
            multiset.destroy().await?;
            multimap.destroy().await?;
            assert_freed(&acp).await?;
        }
        acp.finalize().await?;
        Ok(true)
    });
    assert_eq!(outs, [true; 4]);
}

/// Two ranks insert, remove, move and exchange elements; the others iterate.
#[test]
fn iterators_see_what_stays_once() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let (me, home) = (acp.rank().number(), Rank::new(0));
        let at = shared(&acp, async |ranks| {
            let set = Set::<u32>::create(&acp, ranks, 3, home).await?;
            for key in 0..20 {
                set.insert(&key).await?;
            }
            Ok(set.at())
        });
        let set = Set::<u32>::from_address(&acp, at.await?).await?;
        if me < 2 {
            let other = Set::<u32>::create(&acp, &[acp.rank()], 2, acp.rank()).await?;
            for round in 0..12 {
                let keys = 1000 * (me + 1) + 10 * round..1000 * (me + 1) + 10 * round + 10;
                for key in keys.clone() {
                    let inserted = if key % 2 == 0 { other.insert(&key).await? } else { set.insert(&key).await? };
                    assert!(inserted);
                }
                set.append(&other).await?;
                assert!(other.is_empty().await?);
                for key in keys {
                    assert!(set.remove(&key).await?, "{key}");
                }
            }
            other.destroy().await?;
        } else {
            for _ in 0..12 {
                let seen: Vec<u32> = set.iter().collect().await?;
                let mut stayed: Vec<u32> = seen.iter().copied().filter(|key| *key < 20).collect();
                stayed.sort_unstable();
                assert_eq!(stayed, (0..20).collect::<Vec<_>>());
                assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "{seen:?}");
            }
        }
        acp.sync().await?;
        assert_eq!(set.len().await?, 20);
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// All ranks exchange and move between two tables at the same time: no deadlock, and nothing is lost.
#[test]
fn tables_exchanged_by_all_lose_nothing() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let (me, home) = (acp.rank().number(), Rank::new(0));
        let mut tables = vec![];
        for slots in [3, 3, 2] {
            let at =
                shared(&acp, async |ranks| Ok(Multiset::<u32>::create(&acp, ranks, slots, home).await?.at())).await?;
            tables.push(Multiset::<u32>::from_address(&acp, at).await?);
        }
        for key in 0..15 {
            tables[me as usize].insert(&key).await?;
        }
        // In opposite directions.
        for _ in 0..8 {
            let [a, b] = [me as usize % 2, (me as usize + 1) % 2].map(|n| &tables[n]);
            a.swap(b).await?;
        }
        for round in 0..4 {
            let [a, b] = [round + me, round + 2 * me + 1].map(|n| &tables[n as usize % 3]);
            a.swap(b).await?;
            b.append(a).await?;
        }
        acp.sync().await?;
        let mut counts = BTreeMap::<u32, u64>::new();
        for table in &tables {
            for (key, count) in table.iter().collect::<Vec<_>>().await? {
                *counts.entry(key).or_default() += count;
            }
        }
        assert_eq!(counts, (0..15).map(|key| (key, 3)).collect());
        acp.sync().await?;
        if me == 2 {
            for table in tables {
                table.destroy().await?;
            }
            assert_freed(&acp).await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

const TEXT: &str = "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of \
    foolishness, it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the \
    season of Darkness, it was the spring of hope, it was the winter of despair, we had everything before us, we had \
    nothing before us, we were all going direct to Heaven, we were all going direct the other way";

/// Each rank counts its part of the words.
#[test]
fn words_are_counted() {
    let outs = everywhere(3, &async |fabric: Fabric| -> ProgramResult<Vec<(String, u64)>> {
        let acp = begin(&fabric).await?;
        let me = acp.rank().index();
        let at = shared(&acp, async |ranks| Ok(Multiset::<str>::create(&acp, ranks, 16, ranks[2]).await?.at())).await?;
        let words = Multiset::<str>::from_address(&acp, at).await?;
        let at = shared(&acp, async |ranks| Ok(Map::<str, u64>::create(&acp, ranks, 16, ranks[1]).await?.at())).await?;
        let totals = Map::<str, u64>::from_address(&acp, at).await?;
        let split = TEXT.split_whitespace().map(|word| word.trim_matches(',').to_lowercase());
        for word in split.enumerate().filter(|(n, _)| n % 3 == me).map(|(_, word)| word) {
            words.insert(&word).await?;
            totals.insert(&word, &0).await?;
            // By an atomic on the value, if that is aligned.
            let entry = totals.find(&word).await?.expect("inserted");
            if entry.value.offset() % 8 == 0 {
                acp.fetch(entry.value, Amo::Add(1u64)).await?;
            }
        }
        acp.sync().await?;
        let counted: BTreeMap<String, u64> = words.iter().collect().await?;
        for (word, count) in &counted {
            let total = totals.get(word).await?.expect("inserted");
            assert_eq!(total, if word.len() == 8 { *count } else { 0 }, "{word}");
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(counted.into_iter().collect())
    });
    let mut expected = BTreeMap::<String, u64>::new();
    for word in TEXT.split_whitespace() {
        *expected.entry(word.trim_matches(',').to_lowercase()).or_default() += 1;
    }
    assert_eq!(expected["was"], 10);
    assert_eq!(outs, vec![expected.into_iter().collect::<Vec<_>>(); 3]);
}
