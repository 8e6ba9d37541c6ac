//! The order in which transfers become visible, and the atomicity of words.

use super::world_and_region;
use crate::{ensure, ensure_eq};
use rdma_fabric::{Deps, Fabric, Group, ProgramResult, PutOrder, Rank};

pub(super) async fn flushed_puts_precede_the_flag(fabric: Fabric) -> ProgramResult<()> {
    const WORDS: usize = 40;
    let mut world = Group::world(&fabric).await?;
    let data = fabric.alloc_symmetric(8 * WORDS).await?;
    let flags = fabric.alloc_symmetric(8).await?;
    // Rank 0 writes to rank 1 and notifies rank 2, which reads from rank 1: no path is shared.
    let (keeper, reader) = (Rank::new(1), Rank::new(2));
    let far = fabric.remote_span::<u64>(data.at(keeper, 0), WORDS)?;
    for round in 1..=20u64 {
        match fabric.rank().index() {
            0 => {
                for i in 0..WORDS {
                    fabric.put(&far.slice(i..i + 1)?, [round]).await?;
                }
                fabric.flush(keeper).await?;
                fabric.put_word(&fabric.remote_word(flags.at(reader, 0))?, round).await?;
            }
            2 => {
                let flag = flags.word::<u64>(&fabric, 0)?;
                fabric.wait_until(&flag, Deps::One(Rank::new(0)), |flag| flag == round).await?;
                let seen = fabric.get(&far, [0u64; WORDS]).await?;
                ensure!(seen == [round; WORDS], "O5, O8: round {round} reads {seen:?}");
            }
            _ => {}
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn ordered_puts_precede_atomics(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 16).await?;
    let order = fabric.caps().put_order;
    let (data, same, other) = (region.at(Rank::new(1), 0), region.at(Rank::new(1), 8), region.at(Rank::new(2), 8));
    for round in 1..=50u64 {
        if fabric.rank() == Rank::new(0) {
            fabric.put_word(&fabric.remote_word(data)?, round).await?;
            if order == PutOrder::None {
                fabric.flush_all().await?;
            }
            fabric.swap(&fabric.remote_word(same)?, round).await?;
            if order < PutOrder::AllTargets {
                fabric.flush_all().await?;
            }
            fabric.swap(&fabric.remote_word(other)?, round).await?;
        } else if fabric.rank().index() <= 2 {
            let flag = region.word::<u64>(&fabric, 8)?;
            fabric.wait_until(&flag, Deps::One(Rank::new(0)), |flag| flag == round).await?;
            let seen = fabric.get_word(&fabric.remote_word::<u64>(data)?).await?;
            ensure_eq!(seen, round, "O7 with {order:?}: behind the flag at {}", fabric.rank());
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn words_are_never_torn(fabric: Fabric) -> ProgramResult<()> {
    const LAST: u64 = 0xdead_beef_dead_beef;
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    if fabric.rank() == Rank::new(0) {
        let word = fabric.remote_word::<u64>(region.at(Rank::new(1), 0))?;
        for i in 0..500u64 {
            let half = i % 251 + 1;
            fabric.put_word(&word, half << 32 | half).await?;
        }
        fabric.flush_all().await?;
        fabric.put_word(&word, LAST).await?;
    } else if fabric.rank() == Rank::new(1) {
        let mut torn = None;
        let word = region.word::<u64>(&fabric, 0)?;
        let look = |value: u64| {
            if value >> 32 != value & 0xffff_ffff {
                torn = Some(value);
            }
            value == LAST || torn.is_some()
        };
        fabric.wait_until(&word, Deps::All, look).await?;
        ensure_eq!(torn, None, "M9: a word seen half-written");
    }
    Ok(world.barrier().await?)
}

pub(super) async fn readers_agree_which_write_was_first(fabric: Fabric) -> ProgramResult<()> {
    const LOOKS: usize = 200;
    let mut world = Group::world(&fabric).await?;
    let (words, looks) = (fabric.alloc_symmetric(8).await?, fabric.alloc_symmetric(16 * LOOKS).await?);
    // Ranks 0 and 1 write each other's word; ranks 2 and 3 read both, in opposite orders.
    let [x, y] = [0, 1].map(|rank| words.at(Rank::new(rank), 0));
    let (x, y) = (fabric.remote_word::<u64>(x)?, fabric.remote_word::<u64>(y)?);
    let (me, judge) = (fabric.rank().index(), Rank::new(2));
    let mut seen = vec![0u64; 2 * LOOKS];
    world.barrier().await?;
    if me < 2 {
        let word = if me == 0 { &y } else { &x };
        for round in 1..=LOOKS as u64 {
            fabric.put_word(word, round).await?;
            fabric.flush(word.rank()).await?;
        }
    } else if me < 4 {
        let (one, other) = if me == 2 { (&x, &y) } else { (&y, &x) };
        for pair in seen.chunks_exact_mut(2) {
            pair[0] = fabric.get_word(one).await?;
            pair[1] = fabric.get_word(other).await?;
        }
    }
    if me == 3 {
        fabric.put(&fabric.remote_span::<u64>(looks.at(judge, 0), 2 * LOOKS)?, seen.clone()).await?;
        fabric.flush(judge).await?;
    }
    world.barrier().await?;
    if fabric.rank() == judge {
        let mut theirs = vec![0u64; 2 * LOOKS];
        fabric.read(&looks.span(&fabric, 0, 2 * LOOKS)?, &mut theirs)?;
        for mine in seen.chunks_exact(2) {
            // A contradiction: each reader read its first word, and then a value of its second word
            // older than the one that the other reader had already seen.
            let other = theirs.chunks_exact(2).find(|other| other[0] > mine[1] && other[1] < mine[0]);
            ensure_eq!(other, None, "O15: x, then y, were {mine:?} here; there y, then x");
        }
    }
    Ok(world.barrier().await?)
}
