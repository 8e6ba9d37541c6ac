//! Model of the protocol under loom, like [`super::model`], between two nodes. A thread that
//! executes a gate sends the updates to the other node, and itself processes them there as that
//! node's receiver.

use super::{
    fire, outcome,
    own::OwnGates,
    record::{At, Field, Units, records, unpack},
    remote::GateUpdate,
    wirings::exchange,
};
use crate::{memory::word::Word, testing};
use core::sync::atomic::Ordering;
use loom::{
    sync::{
        Mutex,
        atomic::{AtomicU64, fence},
    },
    thread,
};
use rdma_fabric::{
    Rank,
    barrier::{GateId, ReduceOp, Values},
};
use std::sync::Arc;

/// A mutant.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mutant {
    None,
    /// The receiver of an update does not check the gate that it concerns.
    NotLookedAt,
    /// A gate is only reported to the other node if its owner executed it.
    OwnersTell,
    /// An update contains the packet of the last round only if the round's number is odd.
    PacketLeftOut,
    /// A mirror's state does not release its packets.
    RelaxedMirror,
}

/// A word, and whether it is the state of a mirror that a mutant makes relaxed.
struct Cell(AtomicU64, bool);

impl Word for Cell {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, if self.1 { Ordering::Relaxed } else { order });
    }
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64> {
        self.0.compare_exchange(current, new, success, failure).map(drop)
    }
}

/// The records of one rank, and its mirrors.
struct Records {
    words: Vec<([Cell; 8], [[Cell; 3]; 2])>,
    own: Mutex<OwnGates>,
}

/// Two ranks on different nodes, each with a start/end gate (records 0 and 2) and a relay gate (1).
struct Both {
    ranks: [Records; 2],
    mutant: Mutant,
}

/// The view of a thread that works on a rank's node.
struct Node<'a> {
    both: &'a Both,
    here: Rank,
    /// The rank of the thread.
    by: Rank,
}

impl Both {
    fn new(mutant: Mutant) -> Self {
        let record = |number: usize| {
            let relaxed = |field| mutant == Mutant::RelaxedMirror && number >= 3 && field == Field::State as usize;
            let words = core::array::from_fn(|field| Cell(AtomicU64::new(0), relaxed(field)));
            (words, core::array::from_fn(|_| core::array::from_fn(|_| Cell(AtomicU64::new(0), false))))
        };
        let rank = |_| Records { words: (0..9).map(record).collect(), own: Mutex::new(OwnGates::default()) };
        Both { ranks: [0, 1].map(rank), mutant }
    }

    /// Processes an update about a gate that has fired, on the node of its target.
    fn apply(&self, by: Rank, update: &GateUpdate) {
        let node = Node { both: self, here: update.to.rank(), by };
        let own = &self.ranks[node.here.index()].own;
        let changed = own.lock().unwrap().apply(&node, node.here, update, false);
        if self.mutant != Mutant::NotLookedAt {
            fire::run(&node, node.here, changed.into_iter().collect());
        }
    }
}

impl Units for Node<'_> {
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
        assert_eq!(at.rank(), self.here, "memory of another node");
        &self.both.ranks[at.rank().index()].words[at.node()].0[field as usize]
    }
    fn packet(&self, at: At, slot: usize, index: usize) -> &Cell {
        assert_eq!(at.rank(), self.here, "memory of another node");
        &self.both.ranks[at.rank().index()].words[at.node()].1[slot][index]
    }
    fn fence(&self, order: Ordering) {
        fence(order);
    }
    fn ended(&self, _: At) {}
    fn has_remote(&self) -> bool {
        true
    }
    fn is_remote(&self, rank: Rank) -> bool {
        rank != self.here
    }
    fn send(&self, mut update: GateUpdate) {
        match self.both.mutant {
            Mutant::OwnersTell if self.by != self.here => return,
            Mutant::PacketLeftOut if update.fired.is_multiple_of(2) => update.packets[0].clear(),
            _ => {}
        }
        self.both.apply(self.by, &update);
    }
}

/// Allocates and connects a member's gates as in recursive doubling of two members.
fn member(both: &Both, me: Rank) -> GateId {
    let node = Node { both, here: me, by: me };
    let mut own = both.ranks[me.index()].own.lock().unwrap();
    let ids = own.take(&node, me, 1, |_| false).unwrap();
    let theirs = |index| GateId::new(Rank::new(1 - me.number()), index, 1);
    let wires = exchange([ids[0], ids[1]], [theirs(0), theirs(1)]);
    let told = own.set(&node, me, &wires).unwrap();
    drop(own);
    assert_eq!((told.len(), records(&node)), (2, 3));
    for update in told {
        let there = Node { both, here: update.to.rank(), by: me };
        let mut theirs = both.ranks[there.here.index()].own.lock().unwrap();
        theirs.apply(&there, there.here, &update, false);
        let answer = theirs.answer(&there, there.here, &update).unwrap();
        drop(theirs);
        both.ranks[me.index()].own.lock().unwrap().apply(&node, me, &answer, true);
    }
    ids[0]
}

/// Runs `rounds` rounds of a member.
fn rounds(both: &Both, me: Rank, gate: GateId, rounds: u64) {
    let node = Node { both, here: me, by: me };
    let own = &both.ranks[me.index()].own;
    for round in 1..=rounds {
        let value = |rank: u64| 10 * round + rank;
        let values = Values::new(ReduceOp::Sum, &[value(me.number().into())]).unwrap();
        let at = own.lock().unwrap().start(&node, me, gate, &values).unwrap();
        fire::run(&node, me, vec![at]);
        let end = At::end_of(&node, at);
        let outcome = loop {
            match outcome::outcome(&node, end, round) {
                Some(outcome) => break outcome,
                None => thread::yield_now(),
            }
        };
        own.lock().unwrap().completed(gate);
        let sum = Values::new(ReduceOp::Sum, &[value(0) + value(1)]).unwrap();
        assert_eq!(outcome, Ok(Some(sum)), "round {round}");
        assert_eq!(unpack(node.word(end, Field::State).load(Ordering::Relaxed)).0, round);
    }
}

fn explore(mutant: Mutant, number: u64, preemptions: usize) -> usize {
    println!("{mutant:?}, {number} rounds, {preemptions} preemptions");
    testing::explore(preemptions, 10_000, move || {
        let both = Arc::new(Both::new(mutant));
        let gates = [0, 1].map(|rank| member(&both, Rank::new(rank)));
        let theirs = both.clone();
        let peer = thread::spawn(move || rounds(&theirs, Rank::new(1), gates[1], number));
        rounds(&both, Rank::new(0), gates[0], number);
        peer.join().unwrap();
    })
}

#[test]
fn two_nodes_meet() {
    assert!(explore(Mutant::None, 1, 2) > 100);
}

#[test]
fn two_nodes_meet_again() {
    assert!(explore(Mutant::None, 3, 1) > 100);
}

testing::found! {
    news_that_nobody_looks_at_are_found: "maximum number of branches", explore(Mutant::NotLookedAt, 1, 1);
    news_that_only_owners_tell_are_found: "maximum number of branches", explore(Mutant::OwnersTell, 3, 1);
    a_packet_that_is_left_out_is_found: "round 2", explore(Mutant::PacketLeftOut, 3, 1);
    a_relaxed_mirror_is_found: "round 1", explore(Mutant::RelaxedMirror, 1, 3);
}
