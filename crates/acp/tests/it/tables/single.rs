//! One rank at a time, against a model.

use super::{
    HEAP, assert_freed, begin,
    model::{Content, KINDS, Model, Table},
};
use crate::{bed::everywhere, heap::Dice};
use acp::{Acp, AcpError, GlobalAddress, Map, Result, Set, TableRef};
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};

fn ranks(numbers: &[u32]) -> Vec<Rank> {
    numbers.iter().copied().map(Rank::new).collect()
}

fn bytes(dice: &mut Dice, most: usize) -> Vec<u8> {
    let length = dice.below(most);
    (0..length).map(|_| dice.below(3) as u8).collect()
}

/// What the positions lead to, one after the other.
async fn by_positions(acp: &Acp, table: &Table) -> Result<Content> {
    let (mut content, mut next) = (Content::new(), table.first().await?);
    while let Some(entry) = next {
        assert_eq!(table.entry(entry.position).await?, entry);
        let (mut key, mut value) = (vec![0u8; entry.key_bytes], vec![0u8; entry.value_bytes]);
        acp.read(entry.key, &mut key).await?;
        acp.read(entry.value, &mut value).await?;
        content.entry(key).or_default().extend(vec![value; entry.count as usize]);
        next = table.after(entry.position).await?;
    }
    Ok(content)
}

async fn check(acp: &Acp, table: &Table, model: &Model) -> Result<()> {
    assert_eq!(table.content().await?, model.content);
    assert_eq!(by_positions(acp, table).await?, model.content);
    assert_eq!(table.len().await?, model.len());
    assert_eq!(table.is_empty().await?, model.content.is_empty());
    Ok(())
}

async fn random_step(acp: &Acp, dice: &mut Dice, tables: &[Table; 3], models: &mut [Model; 3]) -> Result<()> {
    // Long ones are compared and read in pieces.
    let most = if dice.below(4) == 0 { 90 } else { 5 };
    let (key, value) = (bytes(dice, most), bytes(dice, most));
    let at = dice.below(3);
    let other = (at + 1 + dice.below(2)) % 3;
    let table = &tables[at];
    match dice.below(40) {
        0..20 => assert_eq!(table.insert(&key, &value).await?, models[at].insert(&key, &value)),
        20..26 => assert_eq!(table.remove(&key).await?, models[at].remove(&key)),
        26..28 => {
            let removed = models[at].content.remove(&key).map_or(0, |values| values.len() as u64);
            assert_eq!(table.remove_all(&key).await?, removed);
        }
        28..34 => {
            let values = models[at].content.get(&key).cloned().unwrap_or_default();
            assert_eq!(table.values(&key).await?, values);
            let mut cut = vec![0xee; dice.below(most + 3)];
            assert_eq!(table.retrieve(&key, &mut cut).await?, values.first().map(Vec::len));
            let copied = values.first().map_or(0, |value| value.len().min(cut.len()));
            assert!(copied == 0 || cut[..copied] == values[0][..copied]);
            assert!(cut[copied..].iter().all(|byte| *byte == 0xee));
            assert_eq!(table.find(&key).await?.is_some(), !values.is_empty());
        }
        34 => {
            table.clear().await?;
            models[at].content.clear();
        }
        35 => {
            table.merge(&tables[other]).await?;
            let from = models[other].clone();
            models[at].merge(&from);
        }
        36 => {
            table.assign(&tables[other]).await?;
            models[at].content = models[other].content.clone();
        }
        37 => {
            table.append(&tables[other]).await?;
            let from = models[other].clone();
            models[at].merge(&from);
            models[other].content.clear();
        }
        38 => {
            table.swap(&tables[other]).await?;
            let mine = models[at].content.clone();
            models[at].content = core::mem::replace(&mut models[other].content, mine);
        }
        _ => check(acp, table, &models[at]).await?,
    }
    Ok(())
}

/// Random calls on three tables, two of them of one shape, which leave nothing allocated.
#[test]
fn tables_do_what_maps_do() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        for (seed, kind) in (0u64..).zip(KINDS) {
            if acp.rank().index() == seed as usize % 3 {
                println!("seed {seed}, {kind:?}");
                let mut dice = Dice(seed);
                let tables = [
                    Table::create(&acp, kind, &ranks(&[2, 0]), 5, Rank::new(1)).await?,
                    Table::create(&acp, kind, &ranks(&[2, 0]), 5, Rank::new(2)).await?,
                    Table::create(&acp, kind, &ranks(&[0, 1, 1]), 2, Rank::new(0)).await?,
                ];
                let mut models = [(); 3].map(|()| Model { kind, content: Content::new() });
                for _ in 0..250 {
                    random_step(&acp, &mut dice, &tables, &mut models).await?;
                }
                for (table, model) in tables.iter().zip(&models) {
                    check(&acp, table, model).await?;
                }
                for table in tables {
                    table.destroy().await?;
                }
                assert_freed(&acp).await?;
            }
            acp.sync().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// The local forms, called by all ranks, together do what the others do.
#[test]
fn local_forms_add_up() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let starter = acp.starter(Rank::new(0))?;
        if acp.rank().number() == 0 {
            for n in 0..2 {
                let map = Map::<u32, u64>::create(&acp, &ranks(&[0, 1, 2]), 7, Rank::new(n)).await?;
                for key in 100 * n..100 * n + 150 {
                    map.insert(&key, &u64::from(n)).await?;
                }
                acp.write(starter.offset_by(24 * u64::from(n))?, &map.at().to_words()).await?;
            }
        }
        acp.sync().await?;
        let mut words = [[0u64; 3]; 2];
        acp.read(starter, &mut words).await?;
        let at = words.map(|words| TableRef::from_words(words).expect("a table"));
        let (a, b) =
            (Map::<u32, u64>::from_address(&acp, at[0]).await?, Map::<u32, u64>::from_address(&acp, at[1]).await?);
        let sum = async |map: &Map<u32, u64>, value: usize| -> Result<()> {
            acp.store(acp.starter(acp.rank())?.offset_by(64)?, value as u64).await?;
            acp.sync().await?;
            let mut sum = 0;
            for rank in 0..3 {
                sum += acp.load::<u64>(acp.starter(Rank::new(rank))?.offset_by(64)?).await?;
            }
            assert_eq!(sum, map.len().await? as u64);
            acp.sync().await
        };
        let seen: Vec<(u32, u64)> = a.iter_local().collect().await?;
        assert_eq!(seen.len(), a.len_local().await?);
        let (mut entries, mut next) = (0, a.first_local().await?);
        while let Some(entry) = next {
            assert_eq!(entry.key.rank(), acp.rank());
            entries += 1;
            next = a.after_local(entry.position).await?;
        }
        assert_eq!(entries, seen.len());
        sum(&a, entries).await?;
        b.merge_local(&a).await?;
        acp.sync().await?;
        assert_eq!((b.len().await?, b.get(&120).await?, b.get(&99).await?), (250, Some(1), Some(0)));
        acp.sync().await?;
        a.assign_local(&b).await?;
        acp.sync().await?;
        assert_eq!((a.len().await?, a.get(&120).await?), (250, Some(1)));
        acp.sync().await?;
        b.clear_local().await?;
        assert!(b.is_empty_local().await?);
        acp.sync().await?;
        b.append_local(&a).await?;
        acp.sync().await?;
        assert_eq!((a.len().await?, b.len().await?), (0, 250));
        sum(&b, b.len_local().await?).await?;
        if acp.rank().number() == 2 {
            a.destroy().await?;
            b.destroy().await?;
            assert_freed(&acp).await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// Where memory runs out, a call changes nothing.
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
                // Room for one more element, and no second one.
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
                // What fits has been moved, slot by slot; nothing is lost.
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
        // A value is changed where it is.
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
        // A slot whose words are no list.
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
