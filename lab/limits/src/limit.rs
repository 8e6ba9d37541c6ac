//! The limits of the machine: the shapes of the cases over bare memory.

use super::{
    bare::{Bare, Face, How},
    rendezvous::{Abandoned, spin_until, yield_until},
};
use core::{
    hint::black_box,
    sync::atomic::{
        AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// Stores to one word `n` times.
pub fn store(word: &AtomicU64, n: u64) {
    for i in 0..n {
        black_box(word).store(i, Release);
    }
}

/// Stores to each of `words` in turn, `n` times.
pub fn store_burst(words: &[AtomicU64], n: u64) {
    for i in 0..n {
        for word in black_box(words) {
            word.store(i, Release);
        }
    }
}

/// Loads one word `n` times.
pub fn load(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        black_box(word.load(Acquire));
    }
}

/// Adds to one word `n` times.
pub fn fetch_add(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        black_box(word.fetch_add(1, AcqRel));
    }
}

/// Exchanges one word that holds 0 for 0, `n` times.
pub fn compare_swap(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        let _ = black_box(word.compare_exchange(0, 0, AcqRel, Acquire));
    }
}

/// Enters and leaves as a reader of a counting lock `n` times: two additions.
pub fn count_reader(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        black_box(word.fetch_add(4, AcqRel));
        black_box(word.fetch_sub(4, AcqRel));
    }
}

/// Takes and releases an idle queue lock `n` times: `next` is this rank's node, `tail` the lock.
pub fn queue_lock(tail: &AtomicU64, next: &AtomicU64, n: u64) {
    for _ in 0..n {
        next.store(0, Relaxed);
        let before = tail.swap(1, AcqRel);
        // No other rank contends in this shape, so neither branch of a real lock is taken.
        assert!(black_box(before) == 0 && next.load(Acquire) == 0);
        assert!(tail.compare_exchange(1, 0, AcqRel, Relaxed).is_ok());
    }
}

/// Sends a flag there and back `n` times: rank 0 raises `there`, rank 1 answers on `back`. Both may
/// be one word. `turn` counts over all calls. If `PAUSE`, pauses between two polls.
pub fn flags<const PAUSE: bool>(
    me: usize,
    there: &AtomicU64,
    back: &AtomicU64,
    turn: &mut u64,
    n: u64,
    abandoned: &AtomicU64,
) -> Result<(), Abandoned> {
    for _ in 0..n {
        *turn += 2;
        if me == 0 {
            // Release: pairs with the acquire in `spin_until` on the other side; so does the other
            // store.
            there.store(*turn - 1, Release);
            spin_until::<PAUSE>(back, *turn, abandoned)?;
        } else {
            spin_until::<PAUSE>(there, *turn - 1, abandoned)?;
            back.store(*turn, Release);
        }
    }
    Ok(())
}

/// Sends `len` bytes there and back `n` times, each time by a copy of this kind into the other rank's memory and a flag as in
/// [`flags`]. `turn` counts over all calls.
pub fn messages(
    bare: &Bare,
    me: usize,
    (len, how): (usize, How),
    turn: &mut u64,
    n: u64,
    abandoned: &AtomicU64,
) -> Result<(), Abandoned> {
    let [there, back] = [0, 1].map(|rank| bare.word(super::lines::MESSAGE_FLAG + rank));
    if len == 0 {
        return flags::<false>(me, there, back, turn, n, abandoned);
    }
    for _ in 0..n {
        *turn += 2;
        if me == 1 {
            spin_until::<false>(there, *turn - 1, abandoned)?;
        }
        bare.put_window(me, 1 - me, len, how, 1);
        // Release: pairs with the acquire in `spin_until` on the other side; so does the other
        // store.
        if me == 0 {
            there.store(*turn - 1, Release);
            spin_until::<false>(back, *turn, abandoned)?;
        } else {
            back.store(*turn, Release);
        }
    }
    Ok(())
}

/// Exchanges with the other rank `n` times, as both neighbours of a ring of two: two blocks of
/// `len` bytes each way. A rank reports that it is ready, copies its blocks when the other one is
/// ready, reports that, and waits for the other's blocks. `turn` counts over all calls.
pub fn exchange(
    bare: &Bare,
    me: usize,
    len: usize,
    turn: &mut u64,
    n: u64,
    abandoned: &AtomicU64,
) -> Result<(), Abandoned> {
    let other = 1 - me;
    let words = |rank: usize| {
        let [ready, end] = super::lines::EXCHANGE;
        (bare.word(ready + rank), bare.word(end + rank))
    };
    let ((ready, end), (their_ready, their_end)) = (words(me), words(other));
    for _ in 0..n {
        *turn += 1;
        // Release: pairs with the acquire in `spin_until` on the other side; so does the other
        // store.
        their_ready.store(*turn, Release);
        spin_until::<false>(ready, *turn, abandoned)?;
        if len > 0 {
            bare.put_window(me, other, 2 * len, How::Memcpy, 1);
        }
        their_end.store(*turn, Release);
        spin_until::<false>(end, *turn, abandoned)?;
    }
    Ok(())
}

/// The parameters of a bare update of a border.
#[derive(Clone, Copy, Debug)]
pub struct Border<'a> {
    /// Faces that go from one rank's field to another's: to the peer, or to the rank itself; from
    /// this offset to that.
    pub faces: &'a [(bool, usize, usize, Face)],
    /// Whether the sent data is rewritten before the exchange, and the received data read after it.
    pub rewritten: bool,
}

/// Updates the border of the rank's own field `n` times, by direct copies between flags as in
/// [`exchange`]. `turn` counts over all calls.
pub fn border(
    bare: &Bare,
    me: usize,
    border: Border<'_>,
    turn: &mut u64,
    n: u64,
    abandoned: &AtomicU64,
) -> Result<(), Abandoned> {
    let other = 1 - me;
    let words = |rank: usize| {
        let [ready, end] = super::lines::FIELD;
        (bare.word(ready + rank), bare.word(end + rank))
    };
    let ((ready, end), (their_ready, their_end)) = (words(me), words(other));
    for _ in 0..n {
        *turn += 1;
        if border.rewritten {
            for (_, from, _, face) in border.faces {
                bare.fill_face(me, *from, *face, *turn as u8);
            }
        }
        // Release: pairs with the acquire in `spin_until` on the other side; so does the other
        // store.
        their_ready.store(*turn, Release);
        spin_until::<false>(ready, *turn, abandoned)?;
        for (to_peer, from, to, face) in border.faces {
            bare.copy_face((if *to_peer { other } else { me }, *to), (me, *from), *face);
        }
        their_end.store(*turn, Release);
        spin_until::<false>(end, *turn, abandoned)?;
        if border.rewritten {
            let sums = border.faces.iter().map(|(_, _, to, face)| bare.sum_face(me, *to, *face));
            black_box(sums.fold(0, u64::wrapping_add));
        }
    }
    Ok(())
}

/// Updates the border of the rank's own field `n` times, as one of 2 × 2 ranks that yield while
/// they wait: two faces go to the neighbour in one dimension, then two to the neighbour in the
/// other. `turn` counts over all calls.
pub fn border_of_four(
    bare: &Bare,
    me: usize,
    faces: &[(usize, usize, Face); 4],
    turn: &mut u64,
    n: u64,
    abandoned: &AtomicU64,
) -> Result<(), Abandoned> {
    let [ready, end] = super::lines::FOUR_FIELDS;
    let word = |first: usize, rank: usize, dim: usize| bare.word(first + 2 * rank + dim);
    let neighbours = [me ^ 1, me ^ 2];
    for _ in 0..n {
        *turn += 1;
        for (dim, &neighbour) in neighbours.iter().enumerate() {
            // Release: pairs with the acquire in `yield_until` at the neighbour; so does the other
            // store.
            word(ready, neighbour, dim).store(*turn, Release);
        }
        for (dim, (&neighbour, faces)) in neighbours.iter().zip(faces.chunks(2)).enumerate() {
            yield_until(word(ready, me, dim), *turn, abandoned)?;
            for (from, to, face) in faces {
                bare.copy_face((neighbour, *to), (me, *from), *face);
            }
            word(end, neighbour, dim).store(*turn, Release);
        }
        for dim in 0..neighbours.len() {
            yield_until(word(end, me, dim), *turn, abandoned)?;
        }
    }
    Ok(())
}
