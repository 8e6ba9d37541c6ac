//! Network interfaces that acknowledge operations before their effects are visible: small programs
//! whose possible outcomes are all known.

use super::{
    coherence,
    litmus::two_puts,
    outcomes::{A, B, C, expect, explorer, words},
};
use explore::{Explorer, Probe, Unread};
use rdma_fabric::{Deps, Fabric, ProgramResult};

/// Creates an explorer whose provider waits for a read behind each atomic.
fn read(ranks: usize) -> Explorer<'static> {
    explorer(ranks).acknowledged()
}

/// Creates an explorer of the mutant that does not.
fn unread(ranks: usize) -> Explorer<'static> {
    read(ranks).without_read(Unread::Atomics)
}

/// The access to a word of B after A has completed an atomic that adds 1 to it, and has said so.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Load,
    Store,
    Get,
    Put,
    Add,
}

/// A adds 1 to a word of B, flushes or not, and puts a flag at B; B then accesses the word. Returns
/// 10 plus the word's value: the one found, or the one left at the end by a store or put of 20.
async fn told(fabric: Fabric, flush: bool, then: Then) -> ProgramResult<u64> {
    let region = words(&fabric).await?;
    let (word, flag) = (region.at(B, 0), region.at(B, 8));
    let there = fabric.remote_word::<u64>(word)?;
    if fabric.rank() == A {
        fabric.fetch_add(&there, 1).await?;
        if flush {
            fabric.flush(B).await?;
        }
        fabric.put_word(&fabric.remote_word(flag)?, 1u64).await?;
        return Ok(0);
    }
    let own = region.word::<u64>(&fabric, 0)?;
    fabric.wait_until(&region.word(&fabric, 8)?, Deps::All, |flag: u64| flag == 1).await?;
    match then {
        Then::Load => return Ok(10 + fabric.load(&own)?),
        Then::Get => return Ok(10 + fabric.get_word(&there).await?),
        Then::Add => return Ok(10 + fabric.fetch_add(&there, 0).await?),
        Then::Store => fabric.store(&own, 20)?,
        Then::Put => {
            fabric.put_word(&there, 20).await?;
            fabric.flush(B).await?;
        }
    }
    // B's own atomic on the word before, so its flush ends when the word is written.
    fabric.fetch_add(&there, 0).await?;
    fabric.flush(B).await?;
    Ok(10 + fabric.load(&own)?)
}

#[test]
fn a_complete_atomic_is_visible_behind_a_read() {
    for (then, early) in [(Then::Load, &[10, 11][..]), (Then::Get, &[10, 11]), (Then::Add, &[11])] {
        expect(unread(2), early, move |fabric| told(fabric, false, then));
        expect(unread(2).unreduced(), early, move |fabric| told(fabric, false, then));
        expect(unread(2), &[11], move |fabric| told(fabric, true, then));
        expect(read(2), &[11], move |fabric| told(fabric, false, then));
    }
}

#[test]
fn what_is_written_before_the_atomics_word_is_lost() {
    for then in [Then::Store, Then::Put] {
        expect(unread(2), &[11, 30], move |fabric| told(fabric, false, then));
        expect(unread(2).unreduced(), &[11, 30], move |fabric| told(fabric, false, then));
        expect(unread(2), &[30], move |fabric| told(fabric, true, then));
        expect(read(2), &[30], move |fabric| told(fabric, false, then));
    }
}

#[test]
fn atomics_that_are_coherent_are_visible_when_complete() {
    let coherent = coherence::explorer(2, true).acknowledged().without_read(Unread::Atomics);
    expect(coherent, &[11], |fabric| told(fabric, false, Then::Load));
}

#[test]
fn a_poster_finds_its_own_atomic() {
    expect(unread(2), &[11], |fabric| async move {
        let region = words(&fabric).await?;
        let there = fabric.remote_word::<u64>(region.at(B, 0))?;
        if fabric.rank() == B {
            // Makes the word one that is written later.
            fabric.load(&region.word::<u64>(&fabric, 0)?)?;
            return Ok(0);
        }
        fabric.fetch_add(&there, 1).await?;
        Ok(10 + fabric.get_word(&there).await?)
    });
}

/// A comparison of B's that fails finds A's value. Without a read behind it, B may pass it on before
/// C's CPU can see it, against O15.
#[test]
fn a_value_that_a_comparison_has_found_is_visible_behind_a_read() {
    let program = |fabric: Fabric| async move {
        let region = words(&fabric).await?;
        let word = fabric.remote_word::<u64>(region.at(C, 0))?;
        match fabric.rank() {
            A => drop(fabric.fetch_add(&word, 1).await?),
            B => {
                let seen = fabric.compare_swap(&word, 9, 9).await?;
                fabric.put_word(&fabric.remote_word(region.at(C, 8))?, 1 + seen).await?;
            }
            _ => {
                let passed = fabric.load::<u64>(&region.word(&fabric, 8)?)?;
                let seen = fabric.load::<u64>(&region.word(&fabric, 0)?)?;
                Probe::of(&fabric).set(1, 10 * passed + seen);
                return Ok(100 + 10 * passed + seen);
            }
        }
        Ok(0)
    };
    expect(explorer(3), &[100, 101, 110, 111, 121], program);
    expect(read(3), &[100, 101, 110, 111, 121], program);
    for without in [Unread::Atomics, Unread::FailedComparisons] {
        expect(read(3).without_read(without), &[100, 101, 110, 111, 120, 121], program);
    }
}

#[test]
fn a_flush_without_its_read_orders_nothing() {
    expect(read(2), &[10, 11, 13], |fabric| two_puts(fabric, true));
    expect(read(2).without_read(Unread::Flushes), &[10, 11, 12, 13], |fabric| two_puts(fabric, true));
}

/// A finding over such interfaces has a line for the write, and its schedule brings the run back.
#[test]
fn a_finding_replays() {
    let program = |fabric: Fabric| async move {
        let found = told(fabric, false, Then::Load).await?;
        assert_ne!(found, 10, "the word is older than the flag");
        Ok(())
    };
    let report = unread(2).run(program);
    let found = report.expect_violation();
    assert!(found.what.contains("older than the flag"), "{found}");
    let again = unread(2).replay(&found.schedule, program);
    assert_eq!((again.what.as_ref(), &again.timeline), (Some(&found.what), &found.timeline));
}

#[test]
fn random_runs_find_it_too() {
    let sample = unread(2).sample(1, 2_000, |fabric| async move {
        let found = told(fabric, false, Then::Get).await?;
        assert_ne!(found, 10, "the word is older than the flag");
        Ok(())
    });
    assert!(sample.failure.is_some_and(|failure| failure.what.contains("older than the flag")));
}
