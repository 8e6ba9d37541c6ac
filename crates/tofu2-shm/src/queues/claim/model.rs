//! Model of the claim under loom: every interleaving, within a bound on preemptions, of ranks that
//! advance, post and execute; and mutants that each break one rule.

mod queue;

use super::*;
use crate::testing;
use loom::thread;
use queue::{Mutant, Queue};
use std::sync::{
    Arc as Shared,
    atomic::{AtomicBool, Ordering::SeqCst},
};

fn explore(test: impl Fn() + Sync + Send + 'static) -> usize {
    testing::explore(3, 10_000, test)
}

/// Two arrivals each release a command.
fn two_arrivals(mutant: Mutant) -> usize {
    explore(move || {
        let queue = Queue::new(mutant);
        queue.words().start(2);
        let theirs = queue.clone();
        let other = thread::spawn(move || theirs.arrive(1, mutant));
        queue.arrive(0, mutant);
        other.join().unwrap();
        assert_eq!(queue.log(), [(0, 7), (1, 7)], "a release was lost, done twice, or came before its data");
    })
}

#[test]
fn no_release_is_lost_and_none_is_done_twice() {
    assert!(two_arrivals(Mutant::None) >= 100);
}

#[test]
#[should_panic]
fn only_one_may_execute() {
    two_arrivals(Mutant::NoClaim);
}

/// A rank that is already executing may see the offset move before the arrival reaches the claim.
fn one_arrives_while_another_executes(mutant: Mutant) -> usize {
    explore(move || {
        let queue = Queue::new(mutant);
        queue.words().start(1);
        let theirs = queue.clone();
        let other = thread::spawn(move || theirs.arrive(1, mutant));
        queue.turn(0, |_| false, 8);
        other.join().unwrap();
        assert_eq!(queue.log(), [(0, 7)], "a release was lost, or came before its data");
    })
}

#[test]
fn an_arrival_beside_an_executor_is_seen_whole() {
    assert!(one_arrives_while_another_executes(Mutant::None) >= 5);
}

/// A post and an arrival at the same time: one of the two executes the command. `post` returns
/// whether the poster takes a turn.
fn a_posting_meets_an_arrival(mutant: Mutant, post: impl Fn(&Queue) -> bool + Send + Sync + 'static) -> usize {
    explore(move || {
        let queue = Queue::new(mutant);
        let theirs = queue.clone();
        let arrival = thread::spawn(move || theirs.advance(1));
        // The descriptor.
        queue.data[0].store(9, Relaxed);
        if post(&queue) {
            assert_ne!(queue.turn(0, |_| false, 8), TurnEnd::More);
        }
        arrival.join().unwrap();
        assert_eq!(queue.log(), [(0, 9)], "a release was lost");
    })
}

/// Takes a turn if there is credit.
fn looking(queue: &Queue) -> bool {
    queue.words().start(1);
    queue.words().is_due()
}

/// Takes a turn in any case; with the mutant, only if there is credit.
fn in_any_case(mutant: Mutant) -> impl Fn(&Queue) -> bool {
    move |queue| {
        queue.words().hand_over(1);
        mutant != Mutant::NoPosterBarrier || queue.words().is_due()
    }
}

#[test]
fn a_posting_and_an_arrival_do_not_miss_each_other() {
    assert!(a_posting_meets_an_arrival(Mutant::None, looking) >= 10);
}

#[test]
fn a_turn_in_any_case_is_as_good_as_a_barrier() {
    assert!(a_posting_meets_an_arrival(Mutant::None, in_any_case(Mutant::None)) >= 10);
}

/// An arrival while the owner waits.
fn an_arrival_meets_the_waiting_owner(mutant: Mutant) -> usize {
    explore(move || {
        let queue = Queue::new(mutant);
        queue.words().start(1);
        let theirs = queue.clone();
        let arrival = thread::spawn(move || theirs.arrive(1, mutant));
        queue.attend();
        arrival.join().unwrap();
        assert_eq!(queue.log(), [(0, 7)], "a release was lost, or came before its data");
    })
}

#[test]
fn an_arrival_and_the_waiting_owner_do_not_miss_each_other() {
    assert!(an_arrival_meets_the_waiting_owner(Mutant::None) >= 5);
}

/// A rank posts a second command, and tries to take a turn, while another executes the first.
fn a_posting_meets_an_executor(mutant: Mutant) -> usize {
    explore(move || {
        let queue = Queue::new(mutant);
        queue.words().start(1);
        let theirs = queue.clone();
        let arrival = thread::spawn(move || {
            theirs.words().advance(2);
            assert_ne!(theirs.turn(1, |_| false, 8), TurnEnd::More);
        });
        queue.data[1].store(9, Relaxed);
        queue.words().hand_over(2);
        assert_ne!(queue.turn(0, |_| false, 8), TurnEnd::More);
        arrival.join().unwrap();
        assert_eq!(queue.log(), [(0, 0), (1, 9)], "a release was lost");
    })
}

#[test]
fn a_posting_and_an_executor_do_not_miss_each_other() {
    assert!(a_posting_meets_an_executor(Mutant::None) >= 10);
}

/// A bounded turn either reports that there is more or leaves nothing.
#[test]
fn a_bounded_turn_loses_nothing() {
    let executions = explore(|| {
        let queue = Queue::new(Mutant::None);
        queue.words().start(2);
        let theirs = queue.clone();
        let other = thread::spawn(move || {
            theirs.words().advance(1);
            theirs.turn(1, |_| false, 1) == TurnEnd::More
        });
        queue.words().advance(1);
        let mut more = queue.turn(0, |_| false, 1) == TurnEnd::More;
        more |= other.join().unwrap();
        if more {
            queue.turn(0, |_| false, 8);
        }
        assert_eq!(queue.log().len(), 2);
    });
    assert!(executions >= 100);
}

/// Rank 1 dies while it executes; an arrival or the owner continues.
#[test]
fn the_claim_of_the_dead_is_taken_over_once() {
    let executions = explore(|| {
        let queue = Queue::new(Mutant::None);
        queue.words().start(2);
        queue.words().advance(1);
        let ended = Shared::new(AtomicBool::new(false));
        let theirs = queue.clone();
        // Takes the claim and dies.
        let dying = thread::spawn(move || theirs.words().take(1, |_| false));
        let theirs = queue.clone();
        let arrival = thread::spawn(move || {
            theirs.words().advance(1);
            theirs.turn(2, |_| false, 8);
        });
        let died = dying.join().unwrap();
        // The join orders everything before it, as reaping a process does.
        ended.store(true, SeqCst);
        queue.turn(0, |rank| rank == 1 && ended.load(SeqCst), 8);
        arrival.join().unwrap();
        let _ = died;
        queue.turn(0, |rank| rank == 1 && ended.load(SeqCst), 8);
        assert_eq!(queue.log().len(), 2);
        assert_eq!(queue.words().read(), 2);
    });
    assert!(executions >= 100);
}

testing::found! {
    the_executor_must_look_again: "a release was lost", two_arrivals(Mutant::NoSecondLook);
    advances_must_be_counted: "a release was lost", two_arrivals(Mutant::Boolean);
    // The claim's exchanges also release, so only a rank that is executing at the moment can miss
    // the data.
    an_advance_must_release: "came before its data", one_arrives_while_another_executes(Mutant::RelaxedAdvance);
    the_data_must_come_before_the_advance: "came before its data", two_arrivals(Mutant::AdvanceFirst);
    the_poster_needs_its_barrier: "a release was lost", a_posting_meets_an_arrival(Mutant::NoPosterBarrier, looking);
    without_a_barrier_a_turn_must_be_taken: "a release was lost",
        a_posting_meets_an_arrival(Mutant::NoPosterBarrier, in_any_case(Mutant::NoPosterBarrier));
    a_release_needs_its_barrier: "a release was lost", an_arrival_meets_the_waiting_owner(Mutant::NoReleaseBarrier);
    a_waiting_owner_must_look_again: "a release was lost", an_arrival_meets_the_waiting_owner(Mutant::NoSecondLook);
    a_claim_taken_must_be_a_barrier: "a release was lost",
        a_posting_meets_an_executor(Mutant::NoTakeBarrier);
    nor_may_that_turn_leave_without_a_second_look: "a release was lost",
        a_posting_meets_an_arrival(Mutant::NoSecondLook, in_any_case(Mutant::NoSecondLook));
}
