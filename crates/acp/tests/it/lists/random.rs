//! Random calls, against vectors.

use super::{assert_freed, begin};
use crate::harness::everywhere;
use acp::{AcpError, List, ListPosition, Result};
use fastrand::Rng;
use rdma_fabric::{Fabric, ProgramResult, Rank};

/// A list and its expected content.
struct Pair {
    list: List<[u8]>,
    model: Vec<Vec<u8>>,
}

impl Pair {
    /// Checks the content forwards, backwards, and by position.
    async fn check(&self) -> Result<()> {
        let Pair { list, model } = self;
        let seen: Vec<Vec<u8>> = list.iter().await?.collect().await?;
        assert_eq!(seen, *model);
        assert_eq!((list.len().await?, list.is_empty().await?), (model.len(), model.is_empty()));
        assert_eq!((list.front().await?.as_ref(), list.back().await?.as_ref()), (model.first(), model.last()));
        let mut position = list.end();
        for value in model.iter().rev() {
            position = list.previous(position).await?;
            assert_eq!(list.get(position).await?, *value);
        }
        assert_eq!(position, list.begin().await?);
        assert!(matches!(list.previous(position).await, Err(AcpError::NoSuchElement { .. })));
        assert_eq!(list.distance(position, list.end()).await?, model.len());
        Ok(())
    }

    async fn at(&self, index: usize) -> Result<ListPosition> {
        self.list.advance(self.list.begin().await?, index as i64).await
    }

    /// Returns two inrandoms in ascending order, and their positions.
    async fn range(&self, random: &mut Rng) -> Result<(core::ops::Range<usize>, ListPosition, ListPosition)> {
        let (one, other) = (random.usize(..self.model.len() + 1), random.usize(..self.model.len() + 1));
        let range = one.min(other)..one.max(other);
        Ok((range.clone(), self.at(range.start).await?, self.at(range.end).await?))
    }
}

fn value(random: &mut Rng) -> Vec<u8> {
    let length = if random.usize(..5) == 0 { random.usize(..120) } else { random.usize(..3) };
    (0..length).map(|_| random.usize(..3) as u8).collect()
}

async fn random_step(random: &mut Rng, pairs: &mut [Pair; 2]) -> Result<()> {
    let which = random.usize(..2);
    let rank = Rank::new(random.usize(..2) as u32);
    let new = value(random);
    let (left, right) = pairs.split_at_mut(1);
    let (one, other) = if which == 0 { (&mut left[0], &mut right[0]) } else { (&mut right[0], &mut left[0]) };
    let at = random.usize(..one.model.len() + 1);
    match random.usize(..32) {
        0..4 => {
            let placed = one.list.insert(one.at(at).await?, &new, rank).await?;
            assert_eq!(one.list.get(placed).await?, new);
            let (address, bytes) = one.list.element(placed).await?;
            assert_eq!((address.rank(), bytes), (rank, new.len() as u64));
            one.model.insert(at, new);
        }
        4..8 => {
            one.list.push_back(&new, rank).await?;
            one.model.push(new);
        }
        8..10 => {
            one.list.push_front(&new, rank).await?;
            one.model.insert(0, new);
        }
        10 => assert_eq!(one.list.pop_back().await?, one.model.pop()),
        11 => {
            let first = (!one.model.is_empty()).then(|| one.model.remove(0));
            assert_eq!(one.list.pop_front().await?, first);
        }
        12..14 if at < one.model.len() => {
            let next = one.list.erase(one.at(at).await?).await?;
            one.model.remove(at);
            assert_eq!(next, one.at(at).await?);
        }
        14 => {
            let (range, start, end) = one.range(random).await?;
            assert_eq!(one.list.distance(start, end).await?, range.len());
            assert_eq!(one.list.erase_range(start, end).await?, end);
            one.model.drain(range);
        }
        15..17 => {
            let (range, start, end) = other.range(random).await?;
            let values = other.model[range.start..range.end.min(range.start + 4)].to_vec();
            let end = if values.len() == range.len() { end } else { other.list.advance(start, 4).await? };
            let first = one.list.insert_range(one.at(at).await?, &other.list, start, end).await?;
            one.model.splice(at..at, values);
            assert_eq!(first, one.at(at).await?);
        }
        17 => {
            let (range, start, end) = one.range(random).await?;
            one.list.insert_range(one.at(at).await?, &one.list, start, end).await?;
            let values = one.model[range].to_vec();
            one.model.splice(at..at, values);
        }
        18..20 => {
            let (range, start, end) = other.range(random).await?;
            one.list.splice_range(one.at(at).await?, &other.list, start, end).await?;
            let values: Vec<_> = other.model.drain(range).collect();
            one.model.splice(at..at, values);
        }
        20..22 => {
            let (range, start, end) = one.range(random).await?;
            one.list.splice_range(one.at(at).await?, &one.list, start, end).await?;
            if !range.contains(&at) {
                let values: Vec<_> = one.model.drain(range.clone()).collect();
                let at = if at >= range.end { at - range.len() } else { at };
                one.model.splice(at..at, values);
            }
        }
        22 if !other.model.is_empty() => {
            let from = random.usize(..other.model.len());
            let moved = other.at(from).await?;
            one.list.splice(one.at(at).await?, &other.list, moved).await?;
            one.model.insert(at, other.model.remove(from));
            assert_eq!(one.at(at).await?.element, moved.element);
        }
        23 => {
            one.list.assign(&other.list).await?;
            one.model = other.model.clone();
        }
        24 => {
            let (range, start, end) = one.range(random).await?;
            one.list.assign_range(&one.list, start, end).await?;
            one.model = one.model[range].to_vec();
        }
        25 => {
            let first = one.list.begin().await?;
            let kept = one.model.first().cloned();
            one.list.sort().await?;
            one.model.sort();
            if let Some(kept) = kept {
                assert_eq!(one.list.get(first).await?, kept);
            }
        }
        26 => {
            // Stable: equal lengths stay in order.
            one.list.sort_by(|left, right| right.len().cmp(&left.len())).await?;
            one.model.sort_by_key(|value| core::cmp::Reverse(value.len()));
        }
        27 => {
            for pair in [&mut *one, &mut *other] {
                pair.list.sort().await?;
                pair.model.sort();
            }
            one.list.merge(&other.list).await?;
            one.model.append(&mut other.model);
            one.model.sort();
        }
        28 => {
            one.list.reverse().await?;
            one.model.reverse();
        }
        29 => {
            let before = one.model.len();
            one.model.dedup();
            assert_eq!(one.list.dedup().await?, before - one.model.len());
            let before = one.model.len();
            one.model.retain(|value| *value != new);
            assert_eq!(one.list.remove(&new).await?, before - one.model.len());
        }
        30 => {
            one.list.swap(&other.list).await?;
            core::mem::swap(&mut one.model, &mut other.model);
        }
        _ => {
            if one.model.len() > 25 {
                one.list.clear().await?;
                one.model.clear();
            }
        }
    }
    one.check().await?;
    other.check().await
}

#[test]
fn lists_do_what_vectors_do() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        for seed in 0..4 {
            println!("seed {seed}");
            if acp.rank().number() == seed as u32 % 2 {
                let mut random = Rng::with_seed(seed);
                let mut pairs = vec![];
                for rank in 0..2 {
                    pairs.push(Pair { list: List::create(&acp, Rank::new(rank)).await?, model: vec![] });
                }
                let mut pairs: [Pair; 2] = pairs.try_into().unwrap_or_else(|_| unreachable!("two"));
                for _ in 0..150 {
                    random_step(&mut random, &mut pairs).await?;
                }
                for pair in pairs {
                    pair.list.destroy().await?;
                }
                assert_freed(&acp).await?;
            }
            acp.sync().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}
