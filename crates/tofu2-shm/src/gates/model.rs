//! Model of the protocol under loom: two members that exchange through one relay gate each, in
//! every interleaving within a bound on preemptions, and mutants that it must detect.

use super::{
    fire, outcome,
    own::OwnGates,
    record::{At, Field, Half, Units, pack, unpack},
    remote::GateUpdate,
    wirings::exchange,
};
use crate::{memory::word::Word, testing};
use core::sync::atomic::Ordering;
use loom::{
    sync::atomic::{AtomicU64, fence},
    thread,
};
use rdma_fabric::{
    Rank,
    barrier::{GateId, ReduceOp, RoundFault, Values},
};
use std::sync::{
    Arc,
    atomic::{AtomicU64 as Plain, Ordering::SeqCst},
};

/// A mutant of the protocol.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mutant {
    None,
    /// Relay gates do not wait for their remote source.
    OneInput,
    /// States keep one bit of the round.
    RoundBit,
    /// A gate that fired has no barrier between publishing and checking its neighbours.
    NoFence,
    /// Publishing does not release.
    RelaxedPublish,
    /// A mismatch is dropped.
    DroppedMismatch,
}

struct Cell {
    word: AtomicU64,
    mutant: Mutant,
    /// Whether this is a state word, rather than a packet's word or another field.
    state: bool,
}

impl Cell {
    fn new(mutant: Mutant, state: bool) -> Self {
        Cell { word: AtomicU64::new(0), mutant, state }
    }

    fn kept(&self, value: u64) -> u64 {
        let (fired, claimant) = unpack(value);
        match self.mutant {
            Mutant::RoundBit if self.state => pack(fired % 2, claimant),
            // The head of a packet with a mismatch.
            Mutant::DroppedMismatch if value == 0x0103 => 0x0101,
            _ => value,
        }
    }
}

impl Word for Cell {
    fn load(&self, order: Ordering) -> u64 {
        self.word.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        let relaxed = self.state && self.mutant == Mutant::RelaxedPublish;
        self.word.store(self.kept(value), if relaxed { Ordering::Relaxed } else { order });
    }
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64> {
        self.word.compare_exchange(current, self.kept(new), success, failure).map(drop)
    }
}

/// Two ranks, each with a start/end gate (records 0 and 2) and a relay gate (1).
struct Tiny {
    fields: Vec<[Cell; 8]>,
    packets: Vec<[[Cell; 3]; 2]>,
    null: Cell,
    mutant: Mutant,
}

impl Tiny {
    fn new(mutant: Mutant) -> Self {
        let null = Cell::new(Mutant::None, false);
        null.word.store(u64::MAX, Ordering::Relaxed);
        let fields = |_| [0, 1, 2, 3, 4, 5, 6, 7].map(|field| Cell::new(mutant, field == Field::State as usize));
        let packet = || [0, 1, 2].map(|_| Cell::new(mutant, false));
        let (fields, packets) = ((0..6).map(fields).collect(), (0..6).map(|_| [packet(), packet()]).collect());
        Tiny { fields, packets, null, mutant }
    }

    fn number(at: At) -> usize {
        at.rank().index() * 3 + at.node()
    }
}

impl Units for Tiny {
    type Word = Cell;
    fn ranks(&self) -> usize {
        2
    }
    fn starts(&self) -> usize {
        1
    }
    fn gates(&self) -> usize {
        2
    }
    fn word(&self, at: At, field: Field) -> &Cell {
        let deaf = self.mutant == Mutant::OneInput && at.half(self) == Half::Relay;
        if deaf && field == Field::SourceRemote { &self.null } else { &self.fields[Tiny::number(at)][field as usize] }
    }
    fn packet(&self, at: At, slot: usize, index: usize) -> &Cell {
        &self.packets[Tiny::number(at)][slot][index]
    }
    fn fence(&self, order: Ordering) {
        if self.mutant != Mutant::NoFence || order != Ordering::SeqCst {
            fence(order);
        }
    }
    fn ended(&self, _: At) {}
    fn has_remote(&self) -> bool {
        false
    }
    fn is_remote(&self, _: Rank) -> bool {
        false
    }
    fn send(&self, _: GateUpdate) {}
}

/// Allocates and connects a member's gates as in recursive doubling of two members.
fn member(units: &Tiny, me: Rank) -> (OwnGates, GateId) {
    let mut own = OwnGates::default();
    let ids = own.take(units, me, 1, |_| false).unwrap();
    let theirs = |index| GateId::new(Rank::new(1 - me.number()), index, 1);
    let wires = exchange([ids[0], ids[1]], [theirs(0), theirs(1)]);
    own.set(units, me, &wires).unwrap();
    (own, ids[0])
}

/// Runs `rounds` rounds of a member. `come` counts the rounds that each member has started.
fn rounds(units: &Tiny, me: Rank, (mut own, gate): (OwnGates, GateId), rounds: u64, come: &[Plain; 2], differ: bool) {
    for round in 1..=rounds {
        come[me.index()].store(round, SeqCst);
        let odd = differ && me.index() == 1;
        let values = if odd { Values::new::<u64>(ReduceOp::Sum, &[]).unwrap() } else { Values::BARRIER };
        let at = own.start(units, me, gate, &values).unwrap();
        fire::run(units, me, vec![at]);
        let end = At::end_of(units, at);
        let outcome = loop {
            match outcome::outcome(units, end, round) {
                Some(outcome) => break outcome,
                None => thread::yield_now(),
            }
        };
        own.completed(gate);
        assert!(come[1 - me.index()].load(SeqCst) >= round, "one input was enough in round {round}");
        if differ {
            assert!(matches!(outcome, Err(RoundFault::Mismatch(_))), "a mismatch was dropped: {outcome:?}");
        } else {
            assert_eq!(outcome, Ok(Some(Values::BARRIER)), "round {round}");
        }
    }
}

fn explore(mutant: Mutant, number: u64, preemptions: usize, differ: bool) -> usize {
    println!("{mutant:?}, {number} rounds, {preemptions} preemptions");
    testing::explore(preemptions, 10_000, move || {
        let units = Arc::new(Tiny::new(mutant));
        let come = Arc::new([Plain::new(0), Plain::new(0)]);
        let members = [0, 1].map(|rank| member(&units, Rank::new(rank)));
        let [first, second] = members;
        let (theirs, other) = (units.clone(), come.clone());
        let peer = thread::spawn(move || rounds(&theirs, Rank::new(1), second, number, &other, differ));
        rounds(&units, Rank::new(0), first, number, &come, differ);
        peer.join().unwrap();
    })
}

#[test]
fn two_members_meet() {
    assert!(explore(Mutant::None, 1, 2, false) > 100);
}

#[test]
fn two_members_meet_again() {
    assert!(explore(Mutant::None, 3, 1, false) > 100);
}

#[test]
fn two_members_differ() {
    assert!(explore(Mutant::None, 2, 1, true) > 100);
}

testing::found! {
    a_gate_that_fires_on_one_input_is_found: "one input was enough", explore(Mutant::OneInput, 1, 1, false);
    a_round_bit_is_found: "maximum number of branches", explore(Mutant::RoundBit, 3, 1, false);
    a_missing_barrier_is_found: "maximum number of branches", explore(Mutant::NoFence, 1, 2, false);
    a_relaxed_publication_is_found: "round 1", explore(Mutant::RelaxedPublish, 1, 2, false);
    a_dropped_mismatch_is_found: "a mismatch was dropped", explore(Mutant::DroppedMismatch, 1, 1, true);
}
