//! Random operations, compared with the containers of the standard library.

use super::{assert_whole, begin};
use crate::harness::everywhere;
use acp::{Acp, AcpError, GlobalAddress, Result, Sequence};
use core::ops::Range;
use fastrand::Rng;
use rdma_fabric::{Fabric, Pod, ProgramResult, Rank};
use std::fmt::Debug;

fn part(random: &mut Rng, len: usize) -> Range<usize> {
    let (a, b) = (random.usize(..len + 1), random.usize(..len + 1));
    a.min(b)..a.max(b)
}

/// Executes one operation of vectors and deques on both the container and the oracle.
async fn step<T, A>(
    acp: &Acp,
    random: &mut Rng,
    [one, two]: [&Sequence<T, A>; 2],
    [first, second]: [&mut Vec<T>; 2],
    value: impl Fn(usize) -> T,
) -> Result<()>
where
    T: Pod + PartialEq + Debug,
    A: acp::Arrangement,
{
    let len = first.len();
    let at = random.usize(..len + 1);
    let new: Vec<T> = (0..random.usize(..9)).map(|_| value(random.usize(..1 << 20))).collect();
    let outside = |position: usize| Err(AcpError::OutOfRange { position: position as u64, len: len as u64 });
    match random.usize(..20) {
        0 | 1 => {
            one.push_back(&value(at)).await?;
            first.push(value(at));
        }
        2 => assert_eq!(one.pop_back().await?, first.pop()),
        3 => {
            one.insert(at, &value(at)).await?;
            first.insert(at, value(at));
        }
        4 | 5 => {
            one.insert_slice(at, &new).await?;
            first.splice(at..at, new);
        }
        6 => {
            let range = part(random, len);
            one.erase(range.clone()).await?;
            first.drain(range);
        }
        7 if at < len => assert_eq!(one.remove(at).await?, first.remove(at)),
        8 => {
            // From another rank's starter memory.
            let there = acp.starter(Rank::new(random.usize(..acp.ranks()) as u32))?;
            acp.write(there, &new).await?;
            one.insert_from(at, there, new.len()).await?;
            first.splice(at..at, new);
        }
        9 => {
            let range = part(random, len);
            one.insert_range(at, one, range.clone()).await?;
            let copied = first[range].to_vec();
            first.splice(at..at, copied);
        }
        10 => {
            let range = part(random, second.len());
            one.insert_range(at, two, range.clone()).await?;
            first.splice(at..at, second[range].iter().copied());
        }
        11 if at < len => {
            // An element that only this rank uses, by address.
            let (own, element) = (one.at(at).await?, first[at]);
            one.extend_from(own, 1).await?;
            first.push(element);
        }
        12 => {
            one.assign(two).await?;
            first.clone_from(second);
        }
        13 => {
            let range = part(random, len);
            one.assign_range(one, range.clone()).await?;
            *first = first[range].to_vec();
        }
        14 => {
            one.swap(two).await?;
            core::mem::swap(first, second);
        }
        15 if at < len => {
            one.set(at, &value(at)).await?;
            first[at] = value(at);
            assert_eq!(one.get(at).await?, value(at));
        }
        16 => {
            one.extend_from_slice(&new).await?;
            first.extend(new);
        }
        17 => {
            one.reserve(len + at).await?;
            assert!(one.capacity().await? >= len + at);
        }
        18 if random.usize(..4) == 0 => {
            one.clear().await?;
            first.clear();
        }
        _ => {
            assert_eq!(one.get(len).await.map(drop), outside(len + 1));
            assert_eq!(one.insert(len + 1, &value(0)).await, outside(len + 1));
            assert_eq!(one.erase(at..len + 3).await, outside(len + 3));
            assert_eq!(one.set(len, &value(0)).await, outside(len + 1));
            #[allow(clippy::reversed_empty_ranges)]
            let reversed = one.erase(1..0).await;
            assert_eq!(reversed, outside(1));
            assert_eq!(one.remove(usize::MAX - 1).await.map(drop), outside(usize::MAX));
        }
    }
    // A sequence that grows without limit would exhaust the heap.
    if first.len() > 100 {
        one.erase(10..first.len() - 5).await?;
        first.drain(10..first.len() - 5);
    }
    assert_eq!((one.len().await?, one.is_empty().await?), (first.len(), first.is_empty()));
    assert_eq!(&one.to_vec().await?, first);
    Ok(())
}

/// Random operations of all ranks in turn on two sequences in heaps of different ranks.
async fn in_turn<T, A>(acp: &Acp, seed: u64, value: impl Fn(usize) -> T) -> Result<()>
where
    T: Pod + PartialEq + Debug,
    A: acp::Arrangement,
{
    let (me, ranks) = (acp.rank().index(), acp.ranks());
    let board = acp.starter(Rank::new(0))?.offset_by(4096)?;
    if me == 0 {
        let one = Sequence::<T, A>::create(acp, 0, Rank::new(1)).await?;
        let two = Sequence::<T, A>::create(acp, 5, Rank::new(2)).await?;
        acp.write(board, &[one.address().to_bits(), two.address().to_bits()]).await?;
    }
    acp.sync().await?;
    let mut addresses = [0u64; 2];
    acp.read(board, &mut addresses).await?;
    let [one, two] =
        addresses.map(|bits| Sequence::<T, A>::from_address(acp, GlobalAddress::from_bits(bits).expect("an address")));
    for turn in 0..6 {
        if turn % ranks == me {
            println!("seed {seed}, turn {turn}");
            let mut random = Rng::with_seed(seed << 8 | turn as u64);
            let (mut first, mut second) = (one.to_vec().await?, two.to_vec().await?);
            for _ in 0..40 {
                if random.usize(..2) == 0 {
                    step(acp, &mut random, [&one, &two], [&mut first, &mut second], &value).await?;
                } else {
                    step(acp, &mut random, [&two, &one], [&mut second, &mut first], &value).await?;
                }
            }
            assert_eq!((one.to_vec().await?, two.to_vec().await?), (first, second));
        }
        acp.sync().await?;
    }
    if me == 0 {
        one.destroy().await?;
        two.destroy().await?;
        for rank in 0..3 {
            assert_whole(acp, Rank::new(rank)).await?;
        }
    }
    acp.sync().await
}

#[test]
fn vectors_are_those_of_std() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        in_turn::<u64, acp::Linear>(&acp, 1, |n| n as u64).await?;
        in_turn::<u8, acp::Linear>(&acp, 2, |n| n as u8).await?;
        in_turn::<[u16; 3], acp::Linear>(&acp, 3, |n| [n as u16, 7, !n as u16]).await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn deques_are_those_of_std() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        in_turn::<u64, acp::Circular>(&acp, 4, |n| n as u64).await?;
        in_turn::<u8, acp::Circular>(&acp, 5, |n| n as u8).await?;
        in_turn::<[u16; 3], acp::Circular>(&acp, 6, |n| [n as u16, 7, !n as u16]).await?;
        acp.finalize().await?;
        Ok(())
    });
}
