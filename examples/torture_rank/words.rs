//! Rounds directly on the fabric: words, bytes, notices, atomics.

use crate::{Play, Rounds};
use onesided::{Deps, Fabric, Group, ProgramResult, Rank};

const BYTES: usize = 20_000;

/// Each rank adds to a word of every other rank, puts bytes to its right neighbour, and waits for
/// the notice from its left one.
pub(super) async fn words(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let mut world = Group::world(fabric).await?;
    let memory = fabric.alloc_symmetric(8 + BYTES.next_multiple_of(8)).await?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    let (left, right) = (Rank::new((me + ranks - 1) % ranks), Rank::new((me + 1) % ranks));
    let counters =
        (0..ranks).map(|rank| memory.word_of::<u64>(fabric, Rank::new(rank), 0)).collect::<Result<Vec<_>, _>>()?;
    let to = fabric.remote_span::<u8>(memory.at(right, 8), BYTES)?;
    let (from, mut bytes) = (memory.span::<u8>(fabric, 8, BYTES)?, vec![0; BYTES]);
    world.barrier().await?;
    let mut rounds = Rounds::begin(play, me)?;
    loop {
        let stamp = |rank: Rank| (rank.number() as u8).wrapping_add(rounds.made as u8);
        for counter in &counters {
            fabric.fetch_add(counter, 1).await?;
        }
        bytes.fill(stamp(fabric.rank()));
        bytes = fabric.put_notify(&to, bytes, rounds.made & 0xff).await?;
        let notice = fabric.next_notice(Deps::One(left)).await?;
        if notice.data != rounds.made & 0xff {
            return Err(format!("notice {} instead of {}", notice.data, rounds.made & 0xff).into());
        }
        fabric.read(&from, &mut bytes)?;
        if bytes.iter().any(|byte| *byte != stamp(left)) {
            return Err(format!("the bytes of {left} in round {} are wrong", rounds.made).into());
        }
        if rounds.are_over(&mut world).await? {
            break;
        }
    }
    let count = fabric.get_word(&counters[me as usize]).await?;
    if count < rounds.made * u64::from(ranks) {
        return Err(format!("{count} additions in {} rounds of {ranks} ranks", rounds.made).into());
    }
    world.barrier().await?;
    Ok(rounds.made)
}
