//! The fingerprint of a state.
//!
//! Two states count as one if they differ only in parts on which no later step of a rank depends:
//! * *Names of equal ranks.* Ranks with the same role (and, if readers pass through a level, on the
//!   same node) run the same steps. A permutation of them, applied to their memories, to the words
//!   that they own and to the names in all words, maps runs to runs and preserves each property.
//! * *Numbers of turns.* Turns of a node are counted modulo 16; they are only incremented and
//!   compared. Adding the same number to all occurrences of one node's turn is therefore also a
//!   renaming. The fingerprint counts them from the turn in the node's wake word.
//! * *Old links.* The next word of a node in no queue is cleared before the node is used, no matter
//!   what link it holds; its owner, and any other rank that may access it, only distinguishes the
//!   mark that a successor is about to link itself, *inside*, and 0.
//!
//! The least hash over all permutations represents all of them. Ranks are first sorted by
//! everything that contains no names, so usually only one permutation remains. Hashes are 128-bit
//! XXH3: if they behave as random, n states collide with a probability of about n² / 2^129 for each
//! permutation that is compared, or 10^-19 for 10^9 states with 12 permutations.

use crate::{
    model::{Model, Role},
    state::{MOST_RANKS, Rank, Slot, State},
    walk::NAMES,
    words::{INSIDE, Id, PASSED, WRITES, turn_of},
};
use xxhash_rust::xxh3::xxh3_128;

/// Represents an old link.
const OLD: u64 = 1 << 40;
const WORDS: usize = 9;
const PER_RANK: usize = 10 + NAMES;
const LENGTH: usize = WORDS + PER_RANK * MOST_RANKS;
const HIGH: u32 = 32;
const LOW: u64 = 0xffff_ffff;

/// Returns the equivalence class of each rank: ranks of the same class may be permuted.
pub(crate) fn classes(model: &Model) -> [u8; MOST_RANKS] {
    let mut classes = [0; MOST_RANKS];
    for (me, class) in classes.iter_mut().enumerate().take(model.ranks()) {
        let by_node = if model.second_is_levels(me) { model.nodes[me] } else { 0 };
        *class = u8::from(model.roles[me] == Role::Write) << 1 | by_node;
    }
    classes
}

/// The position assigned to each rank, and the turns from which the turns of its nodes are counted.
struct Names<'a> {
    model: &'a Model,
    position: [u8; MOST_RANKS],
    base: [[u8; 2]; MOST_RANKS],
}

impl Names<'_> {
    /// Renames a word that may refer to a node of the lock or of a level.
    #[inline]
    fn node(&self, bits: u64, of_level: bool) -> u64 {
        if bits == 0 || bits == PASSED || bits == INSIDE {
            return bits;
        }
        let flag = bits & WRITES;
        let Some(id) = Id::of(bits & !WRITES, self.model.ranks()) else { return bits };
        let cell = if of_level { 1 } else { id.slot() };
        let turn = id.turn().wrapping_sub(self.base[id.rank()][cell as usize]);
        Id::new(self.position[id.rank()] as usize, id.slot(), turn).bits() | flag
    }

    /// Renames a word with a node in its high half.
    #[inline]
    fn count(&self, bits: u64) -> u64 {
        self.node(bits >> HIGH, false) << HIGH | bits & LOW
    }
}

/// Returns everything about a rank except names.
fn nameless(rank: &Rank) -> u64 {
    let bit = |flag: bool, at: u32| u64::from(flag) << at;
    let slots = rank.slots[0] as u64 | (rank.slots[1] as u64) << 2;
    let turns = |cell: usize| u64::from(rank.turns[cell].wrapping_sub(turn_of(rank.cells[cell].wake)) & 15);
    let waits = rank.cells[0].wake & 3 | (rank.cells[1].wake & 3) << 2;
    rank.pc.number()
        | (rank.goal as u64) << 9
        | u64::from(rank.cell) << 13
        | u64::from(rank.rounds) << 14
        | slots << 16
        | turns(0) << 20
        | turns(1) << 24
        | waits << 28
        | bit(rank.woken, 32)
        | bit(rank.late, 33)
        | bit(rank.link != 0, 34)
        | bit(rank.other != 0, 35)
        | bit(rank.head_put != 0, 36)
        | u64::from(rank.data_put) << 37
}

/// Returns the fingerprint of `s`. `classes` are [those](classes) of `model`.
pub(crate) fn fingerprint(model: &Model, classes: &[u8; MOST_RANKS], s: &State) -> u128 {
    let ranks = model.ranks();
    let mut keys = [(0u8, 0u64, 0u8); MOST_RANKS];
    let mut names = Names { model, position: [0; MOST_RANKS], base: [[0; 2]; MOST_RANKS] };
    for me in 0..ranks {
        let rank = &s.ranks[me];
        keys[me] = (classes[me], nameless(rank), me as u8);
        names.base[me] = [turn_of(rank.cells[0].wake), turn_of(rank.cells[1].wake)];
    }
    keys[..ranks].sort_unstable();
    let mut least = u128::MAX;
    permuted(&mut keys, 0, ranks, &mut |keys| {
        for (position, (_, _, me)) in keys.iter().enumerate().take(ranks) {
            names.position[*me as usize] = position as u8;
        }
        least = least.min(hash(&names, keys, s));
    });
    least
}

/// Calls `then` with every order of `keys[from..ranks]` that exchanges only equal ones.
fn permuted(
    keys: &mut [(u8, u64, u8); MOST_RANKS],
    from: usize,
    ranks: usize,
    then: &mut impl FnMut(&[(u8, u64, u8); MOST_RANKS]),
) {
    if from == ranks {
        return then(keys);
    }
    let (class, nameless, _) = keys[from];
    let mut other = from;
    while other < ranks && (keys[other].0, keys[other].1) == (class, nameless) {
        keys.swap(from, other);
        permuted(keys, from + 1, ranks, then);
        keys.swap(from, other);
        other += 1;
    }
}

fn hash(names: &Names<'_>, keys: &[(u8, u64, u8); MOST_RANKS], s: &State) -> u128 {
    let ranks = names.model.ranks();
    let mut all = [0u64; LENGTH];
    all[0] = names.count(s.home[0]);
    for (into, word) in all[1..4].iter_mut().zip(&s.home[1..]) {
        *into = names.node(*word, false);
    }
    for node in 0..2 {
        all[4 + 2 * node] = s.level[node][0];
        all[5 + 2 * node] = names.node(s.level[node][1], true);
    }
    all[8] = u64::from(s.data) | u64::from(s.writes) << 8;
    for (position, (_, nameless, me)) in keys.iter().enumerate().take(ranks) {
        let me = *me as usize;
        let rank = &s.ranks[me];
        let levels = names.model.second_is_levels(me);
        let next = |cell: usize| {
            let next = names.node(rank.cells[cell].next, levels && cell == 1);
            let old = rank.slots[cell] == Slot::Dirty && next != 0 && next != PASSED && next != INSIDE;
            if old { OLD } else { next }
        };
        // While a rank is at its level, its stored link refers to a node of the level.
        let of_level = levels && rank.cell == 1;
        let at = WORDS + PER_RANK * position;
        all[at] = *nameless;
        all[at + 1] = next(0);
        all[at + 2] = next(1);
        all[at + 3] = names.node(rank.link, of_level);
        all[at + 4] = names.node(rank.other, of_level);
        let (walk, nodes, word) = rank.walk.parts();
        all[at + 5] = walk;
        all[at + 6] = names.count(word);
        all[at + 7] = names.node(rank.head_put, false);
        all[at + 8] = names.count(rank.word);
        all[at + 9] = names.count(rank.left);
        for (into, node) in all[at + 10..].iter_mut().zip(nodes) {
            *into = names.node(node, false);
        }
    }
    let used = &all[..WORDS + PER_RANK * ranks];
    let mut bytes = [[0u8; 8]; LENGTH];
    for (into, word) in bytes.iter_mut().zip(used) {
        *into = word.to_le_bytes();
    }
    xxh3_128(bytes[..used.len()].as_flattened())
}
