//! Ranks of the same and of different nodes change the same words, while puts write the bytes
//! around them.

use crate::{
    by_nic, network,
    thread_job::{Network, ThreadJob},
};
use rdma_fabric::{AtomicWord, Fabric, Group, Program, ProgramResult, Rank, RemoteWord};

const RANKS: usize = 4;
/// Numbers of bytes before and after the words; the latter is not a multiple of the word size.
const FRONT: usize = 64;
const BEHIND: usize = 61;
/// Offsets of the words: two for `fetch_add`, two for compare-and-swap.
const ADDED: usize = FRONT;
const ADDED_SHORT: usize = FRONT + 8;
const SWAPPED_SHORT: usize = FRONT + 12;
const SWAPPED: usize = FRONT + 16;
const AFTER: usize = FRONT + 24;
const LEN: usize = 256;

struct Torture {
    rounds: u32,
}

impl Program for Torture {
    type Out = ();

    async fn run(&self, fabric: Fabric) -> ProgramResult<()> {
        let me = fabric.rank();
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(LEN).await?;
        for round in 0..self.rounds {
            for step in 0..RANKS {
                // In half of the rounds, all words are at one rank.
                let turn = if round % 2 == 0 { me.index() } else { 0 };
                let rank = Rank::new(((step + turn) % RANKS) as u32);
                let at = |offset: usize| region.at(rank, offset as u64);
                let front = fabric.remote_span::<u8>(at(0), FRONT)?;
                let behind = fabric.remote_span::<u8>(at(AFTER), BEHIND)?;
                let mark = 1 + me.number() as u8;
                // In flight while the words are changed.
                let puts = [
                    fabric.try_put(&front, vec![mark; FRONT], None),
                    fabric.try_put(&behind, vec![mark; BEHIND], None),
                ];
                fabric.fetch_add(&fabric.remote_word::<u64>(at(ADDED))?, 1).await?;
                swap(&fabric, &fabric.remote_word::<u64>(at(SWAPPED))?).await?;
                fabric.fetch_add(&fabric.remote_word::<u32>(at(ADDED_SHORT))?, 1).await?;
                swap(&fabric, &fabric.remote_word::<u32>(at(SWAPPED_SHORT))?).await?;
                for put in puts.into_iter().flatten() {
                    put.await?;
                }
            }
        }
        fabric.flush_all().await?;
        world.barrier().await?;
        let mut seen = vec![0; LEN];
        fabric.read(&region.span::<u8>(&fabric, 0, LEN)?, &mut seen)?;
        let long = |at: usize| u64::from_ne_bytes(seen[at..at + 8].try_into().unwrap());
        let short = |at: usize| u32::from_ne_bytes(seen[at..at + 4].try_into().unwrap());
        let sum = RANKS as u32 * self.rounds;
        assert_eq!((long(ADDED), long(SWAPPED)), (sum.into(), sum.into()), "at {me}");
        assert_eq!((short(ADDED_SHORT), short(SWAPPED_SHORT)), (sum, sum), "at {me}");
        let marked = |bytes: &[u8]| bytes.iter().all(|byte| (1..=RANKS as u8).contains(byte));
        assert!(marked(&seen[..FRONT]) && marked(&seen[AFTER..AFTER + BEHIND]), "{seen:?}");
        assert!(seen[AFTER + BEHIND..].iter().all(|byte| *byte == 0), "{seen:?}");
        Ok(world.barrier().await?)
    }
}

/// Adds 1 to a word by compare-and-swap.
async fn swap<W: AtomicWord + From<u8> + core::ops::Add<Output = W>>(
    fabric: &Fabric,
    word: &RemoteWord<W>,
) -> ProgramResult<()> {
    let mut expected = fabric.get_word(word).await?;
    loop {
        let found = fabric.compare_swap(word, expected, expected + W::from(1)).await?;
        if found == expected {
            return Ok(());
        }
        expected = found;
    }
}

fn torture(rounds: u32, per_node: usize) {
    torture_over(&network(per_node), rounds, per_node);
}

fn torture_over(network: &Network, rounds: u32, per_node: usize) {
    ThreadJob::run(network, RANKS, per_node, &Torture { rounds }, "torture").unwrap();
}

#[test]
fn words_are_exact_between_puts_and_ranks_near_and_far() {
    torture(40, 2);
}

#[test]
fn words_are_exact_between_puts_and_ranks_that_are_all_far() {
    torture(25, 1);
}

/// The ranks that change a word include its owner.
#[test]
fn words_are_exact_by_the_networks_atomics() {
    torture_over(&by_nic(), 25, 1);
}

#[test]
fn words_are_exact_where_the_provider_chooses_keys() {
    torture_over(&Network { provider_keys: true, ..network(2) }, 10, 2);
    torture_over(&Network { provider_keys: true, ..by_nic() }, 10, 1);
}

#[test]
#[ignore = "some minutes"]
fn words_are_exact_for_long() {
    // Several short jobs, so that each stays within the hang guard.
    for _ in 0..5 {
        torture(150, 2);
        torture(100, 1);
    }
}
