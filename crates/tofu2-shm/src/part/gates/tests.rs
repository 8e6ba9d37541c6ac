//! Gates of nodes that are parts in this process: updates are queued until the test delivers them,
//! in any order.

use super::*;
use crate::{
    gates::wirings::{one_way, wire_exchange},
    part::PartPlan,
    testing::Chance,
};
use core::time::Duration;
use fabric_offload::barrier::{GateError, GateId, GateUnit, Gates, Progress, ReduceOp, Values, Wiring};
use rdma_fabric::{Deps, Fabric};
use std::sync::{
    Arc, Mutex, OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

type Post = Vec<(Rank, Vec<u8>)>;

/// Nodes of one rank each, and the updates in flight between them.
struct Nodes {
    parts: Arc<OnceLock<Vec<Part>>>,
    post: Arc<Mutex<Post>>,
}

impl Nodes {
    fn new(ranks: usize) -> Self {
        let parts: Arc<OnceLock<Vec<Part>>> = Arc::default();
        let post = Arc::<Mutex<Post>>::default();
        let part = |rank: usize| {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            let number = u64::from(std::process::id()) << 32 | 1 << 30 | NEXT.fetch_add(1, Relaxed);
            let (me, age, segment_bytes) = (Rank::new(rank as u32), Duration::from_secs(1), 1 << 16);
            let plan = PartPlan { ranks, local: vec![me], me, segment_bytes, age, oversubscribed: true };
            let part = Part::lead(&plan, number, 5).unwrap();
            let (posts, all) = (post.clone(), parts.clone());
            let confirm = move |update: Post| {
                let all = all.get().expect("set before any gate is");
                for (to, update) in update {
                    all[rank].gate_answer(&all[to.index()].gate_set(&update));
                }
                Ok(())
            };
            part.on_gates(move |to, update| posts.lock().unwrap().push((to, update)), confirm);
            part
        };
        parts.set((0..ranks).map(part).collect()).ok().unwrap();
        Nodes { parts, post }
    }

    fn part(&self, rank: usize) -> &Part {
        &self.parts.get().unwrap()[rank]
    }

    fn fabrics(&self) -> Vec<Fabric> {
        self.parts.get().unwrap().iter().map(Part::fabric).collect()
    }

    /// Delivers the update at this position of the queue.
    fn deliver(&self, at: usize) {
        let (to, update) = self.post.lock().unwrap().remove(at);
        self.part(to.index()).gate(&update);
    }

    fn under_way(&self) -> usize {
        self.post.lock().unwrap().len()
    }

    /// Delivers all updates in order.
    fn settle(&self) {
        while self.under_way() > 0 {
            self.deliver(0);
        }
    }
}

fn sum(value: u64) -> Values {
    Values::new(ReduceOp::Sum, &[value]).unwrap()
}

fn gates_of_two(fabrics: &[Fabric], gates: usize) -> [Gates; 2] {
    [0, 1].map(|rank: usize| GateUnit::of(&fabrics[rank]).alloc(gates).unwrap())
}

#[test]
fn an_exchange_needs_the_news_of_both() {
    let nodes = Nodes::new(2);
    let fabrics = nodes.fabrics();
    let gates = gates_of_two(&fabrics, 2);
    wire_exchange(&fabrics, &gates);
    let poll = |me: usize| GateUnit::of(&fabrics[me]).poll(gates[me].start(), Deps::All).unwrap();
    for round in 0..7 {
        for me in [0, 1] {
            GateUnit::of(&fabrics[me]).start(gates[me].start(), sum(round + me as u64)).unwrap();
            assert_eq!(poll(me), Progress::NotCompleted);
        }
        nodes.settle();
        for me in [0, 1] {
            assert_eq!(poll(me), Progress::Completed(Some(sum(2 * round + 1))), "round {round}");
        }
    }
}

#[test]
fn news_come_in_any_order_and_more_than_once() {
    let mut chance = Chance::seeded();
    let nodes = Nodes::new(2);
    let fabrics = nodes.fabrics();
    let mut old = Post::new();
    let mut gates = gates_of_two(&fabrics, 2);
    for turn in 0..if cfg!(miri) { 2 } else { 60 } {
        // The gates are set again, or new gates use the records of old ones.
        if turn % 3 == 1 {
            drop(gates);
            gates = gates_of_two(&fabrics, 2);
        }
        wire_exchange(&fabrics, &gates);
        let rounds = 1 + chance.below(9) as u64;
        let (mut started, mut ended) = ([0; 2], [0; 2]);
        while ended != [rounds; 2] {
            let me = chance.below(2);
            if started[me] == ended[me] && started[me] < rounds {
                GateUnit::of(&fabrics[me]).start(gates[me].start(), sum(100 * turn + started[me])).unwrap();
                started[me] += 1;
            } else if started[me] > ended[me] {
                match GateUnit::of(&fabrics[me]).poll(gates[me].start(), Deps::All).unwrap() {
                    Progress::NotCompleted => {}
                    Progress::Completed(values) => {
                        assert_eq!(values, Some(sum(2 * (100 * turn + ended[me]))), "turn {turn}");
                        ended[me] += 1;
                    }
                }
            }
            if nodes.under_way() > 0 && chance.below(2) == 0 {
                let at = chance.below(nodes.under_way());
                old.push(nodes.post.lock().unwrap()[at].clone());
                nodes.deliver(at);
            }
            if !old.is_empty() && chance.below(4) == 0 {
                let (to, update) = chance.one(&old.iter().collect::<Vec<_>>());
                nodes.part(to.index()).gate(update);
            }
        }
        old.drain(..old.len().saturating_sub(40));
    }
}

#[test]
fn two_rounds_ahead_and_no_further() {
    let nodes = Nodes::new(2);
    let fabrics = nodes.fabrics();
    let gates = one_way(&fabrics);
    let start = |me: usize, value| GateUnit::of(&fabrics[me]).start(gates[me].start(), sum(value)).unwrap();
    let poll = |me: usize| GateUnit::of(&fabrics[me]).poll(gates[me].start(), Deps::All).unwrap();
    for value in [10, 20] {
        start(0, value);
        assert_eq!(poll(0), Progress::Completed(None));
    }
    start(0, 30);
    nodes.settle();
    assert_eq!(poll(0), Progress::NotCompleted, "a third signal has no room");
    for value in [10, 20, 30] {
        start(1, 1);
        assert_eq!(poll(1), Progress::Completed(Some(sum(value + 1))));
        if value == 10 {
            assert_eq!(poll(0), Progress::NotCompleted, "nobody has told");
            nodes.settle();
            assert_eq!(poll(0), Progress::Completed(None), "there is room now");
        }
    }
}

#[test]
fn a_freed_gate_keeps_what_it_signalled() {
    let nodes = Nodes::new(2);
    let fabrics = nodes.fabrics();
    let [mine, theirs] = one_way(&fabrics);
    let gate = mine.start();
    GateUnit::of(&fabrics[0]).start(gate, sum(7)).unwrap();
    drop(mine);
    // Two updates: the gate was fired, and freed. The second contains the complete state.
    assert_eq!(nodes.under_way(), 2);
    nodes.deliver(1);
    nodes.deliver(0);
    // Its record is not reused until it is notified that the signal was read.
    let again = || GateUnit::of(&fabrics[0]).alloc(1).unwrap().start();
    let progress = |value| {
        GateUnit::of(&fabrics[1]).start(theirs.start(), sum(value)).unwrap();
        GateUnit::of(&fabrics[1]).poll(theirs.start(), Deps::All)
    };
    assert_ne!(again().index(), gate.index());
    assert_eq!(progress(1), Ok(Progress::Completed(Some(sum(8)))));
    assert_ne!(again().index(), gate.index());
    nodes.settle();
    assert_eq!(again().index(), gate.index());
    // There is no second signal.
    assert_eq!(progress(1), Err(GateError::Freed(gate).into()));
}

#[test]
fn wrong_names_are_told() {
    let nodes = Nodes::new(2);
    let fabrics = nodes.fabrics();
    let gates = gates_of_two(&fabrics, 2);
    let ends = |to: GateId| {
        let gate = gates[0].start();
        GateUnit::of(&fabrics[0]).set(&[Wiring { destination_remote: Some(to), ..Wiring::none(gate) }]).unwrap();
        GateUnit::of(&fabrics[0]).start(gate, sum(1)).unwrap();
        GateUnit::of(&fabrics[0]).poll(gate, Deps::All)
    };
    let (gate, to) = (gates[0].start(), gates[1].ids()[1]);
    // The gate is not set, and is later connected to another gate.
    let elsewhere = Err(GateError::PointsElsewhere { gate: to, by: gate }.into());
    assert_eq!(ends(to), elsewhere);
    let own = gates[1].start();
    let back = Wiring { source_local: Some(own), destination_local: Some(own), ..Wiring::none(to) };
    let start = Wiring { source_local: Some(to), destination_local: Some(to), ..Wiring::none(own) };
    GateUnit::of(&fabrics[1]).set(&[back, start]).unwrap();
    assert_eq!(ends(to), elsewhere);
    let never = GateId::new(Rank::new(1), 3, 1);
    assert_eq!(ends(never), Err(GateError::Freed(never).into()));
    let none = GateId::new(Rank::new(1), 4000, 1);
    assert!(matches!(ends(none), Err(rdma_fabric::FabricError::Corrupt { .. })));
    let freed = GateUnit::of(&fabrics[1]).alloc(1).unwrap().start();
    assert_eq!(ends(freed), Err(GateError::Freed(freed).into()));
    // A gate that was connected to this one, and is now connected to another.
    let fabric = &fabrics[1];
    GateUnit::of(fabric).set(&[Wiring { source_remote: Some(gate), ..Wiring::none(own) }]).unwrap();
    assert_eq!(ends(own), Ok(Progress::Completed(None)));
    GateUnit::of(fabric).set(&[Wiring::none(own)]).unwrap();
    GateUnit::of(&fabrics[0]).start(gate, sum(1)).unwrap();
    let elsewhere = Err(GateError::PointsElsewhere { gate: own, by: gate }.into());
    assert_eq!(GateUnit::of(&fabrics[0]).poll(gate, Deps::All), elsewhere);
}

#[test]
fn garbage_is_no_news() {
    let nodes = Nodes::new(2);
    let fabrics = nodes.fabrics();
    let gates = gates_of_two(&fabrics, 2);
    wire_exchange(&fabrics, &gates);
    let mut chance = Chance::seeded();
    let (mut well, mut errors) = (0, 0);
    for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
        let me = chance.below(2);
        let gate = gates[me].start();
        let done = match chance.below(2) {
            0 => GateUnit::of(&fabrics[me]).start(gate, sum(1)),
            _ => GateUnit::of(&fabrics[me]).poll(gate, Deps::All).map(drop),
        };
        if done.is_ok() {
            well += 1
        } else {
            errors += 1
        }
        if nodes.under_way() > 0 {
            if chance.below(3) == 0 {
                let mut post = nodes.post.lock().unwrap();
                let at = chance.below(post[0].1.len());
                post[0].1[at] = chance.next() as u8;
            }
            nodes.deliver(0);
        }
    }
    assert!(well > 10 && errors > 10);
}
