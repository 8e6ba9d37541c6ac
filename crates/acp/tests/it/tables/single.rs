//! Calls of one rank at a time, compared with a model.

use super::{
    assert_freed, begin,
    model::{Content, KINDS, Model, Table},
};
use crate::harness::everywhere;
use acp::{Acp, Map, Result, TableRef};
use fastrand::Rng;
use rdma_fabric::{Fabric, ProgramResult, Rank};

fn ranks(numbers: &[u32]) -> Vec<Rank> {
    numbers.iter().copied().map(Rank::new).collect()
}

/// Short keys, and some that differ only at their end, which is read later.
fn bytes(random: &mut Rng, most: usize) -> Vec<u8> {
    match random.usize(..most) {
        short @ 0..4 => (0..short).map(|_| random.usize(..3) as u8).collect(),
        long => [vec![1; 30 + long / 20], vec![random.usize(..3) as u8]].concat(),
    }
}

/// Returns the elements at all positions, one after the other.
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

async fn random_step(acp: &Acp, random: &mut Rng, tables: &[Table; 3], models: &mut [Model; 3]) -> Result<()> {
    let most = if random.usize(..4) == 0 { 90 } else { 4 };
    let (key, value) = (bytes(random, most), bytes(random, most));
    let at = random.usize(..3);
    // Sometimes the same table.
    let other = random.usize(..3);
    let table = &tables[at];
    match random.usize(..40) {
        0..20 => assert_eq!(table.insert(&key, &value).await?, models[at].insert(&key, &value)),
        20..26 => assert_eq!(table.remove(&key).await?, models[at].remove(&key)),
        26..28 => {
            let removed = models[at].content.remove(&key).map_or(0, |values| values.len() as u64);
            assert_eq!(table.remove_all(&key).await?, removed);
        }
        28..34 => {
            let values = models[at].content.get(&key).cloned().unwrap_or_default();
            assert_eq!(table.values(&key).await?, values);
            let mut cut = vec![0xee; random.usize(..most + 3)];
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
            if at != other {
                models[at].merge(&from);
                models[other].content.clear();
            }
        }
        38 => {
            table.swap(&tables[other]).await?;
            let mine = models[at].content.clone();
            models[at].content = models[other].content.clone();
            models[other].content = mine;
        }
        _ => check(acp, table, &models[at]).await?,
    }
    Ok(())
}

/// Random calls on three tables, two of them of the same shape; at the end nothing is allocated.
#[test]
fn tables_do_what_maps_do() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        for (seed, kind) in (0u64..).zip(KINDS) {
            if acp.rank().index() == seed as usize % 3 {
                println!("seed {seed}, {kind:?}");
                let mut random = Rng::with_seed(seed);
                let tables = [
                    Table::create(&acp, kind, &ranks(&[2, 0]), 5, Rank::new(1)).await?,
                    Table::create(&acp, kind, &ranks(&[2, 0]), 5, Rank::new(2)).await?,
                    Table::create(&acp, kind, &ranks(&[0, 1, 1]), 2, Rank::new(0)).await?,
                ];
                let mut models = [(); 3].map(|()| Model { kind, content: Content::new() });
                for _ in 0..250 {
                    random_step(&acp, &mut random, &tables, &mut models).await?;
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

/// The local forms of calls, made by all ranks, together have the effect of the global forms.
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
            let key: u32 = acp.load(entry.key).await?;
            assert_eq!(at[0].place_of(&key.to_ne_bytes()), (entry.position.rank, entry.position.slot));
            entries += 1;
            next = a.after_local(entry.position).await?;
            if next.is_none() {
                assert_eq!(a.after(entry.position).await?, a.first_after_local().await?);
            }
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
