//! Tests gates of endpoints owned by one thread: starting never blocks, so whole rounds can be
//! executed step by step.

use super::{
    JobUnits,
    record::{At, Field, Units as _, pack},
    wirings::{one_way, wire_exchange},
};
use crate::{
    job::{Job, State},
    memory::layout,
    testing::{self, Chance},
};
use core::sync::atomic::Ordering::Relaxed;
use fabric_offload::barrier::{GateError, GateId, GateUnit, Gates, Progress, ReduceOp, Values, Wiring};
use rdma_fabric::{Deps, Fabric, FabricError, Rank};
use std::sync::Arc;

fn job(ranks: u32) -> (Arc<Job>, Vec<Fabric>) {
    let job = testing::job(ranks, 1 << 16);
    let fabrics = (0..ranks).map(|rank| testing::fabric(&job, rank)).collect();
    (job, fabrics)
}

/// Connects two members that exchange, and returns the gates of each.
fn exchange(endpoints: &[Fabric]) -> [Gates; 2] {
    let gates = [0, 1].map(|rank: usize| GateUnit::of(&endpoints[rank]).alloc(2).unwrap());
    wire_exchange(endpoints, &gates);
    gates
}

fn sum(value: u64) -> Values {
    Values::new(ReduceOp::Sum, &[value]).unwrap()
}

#[test]
fn an_exchange() {
    let (_job, endpoints) = job(2);
    let gates = exchange(&endpoints);
    let poll = |me: usize| GateUnit::of(&endpoints[me]).poll(gates[me].start(), Deps::All);
    for round in 0..7 {
        let first = round % 2;
        GateUnit::of(&endpoints[first]).start(gates[first].start(), sum(round as u64)).unwrap();
        assert_eq!(poll(first), Ok(Progress::NotCompleted));
        assert_eq!(poll(1 - first), Err(GateError::Idle(gates[1 - first].start()).into()));
        GateUnit::of(&endpoints[1 - first]).start(gates[1 - first].start(), sum(5)).unwrap();
        for me in [0, 1] {
            assert_eq!(poll(me), Ok(Progress::Completed(Some(sum(5 + round as u64)))));
        }
    }
}

#[test]
fn two_rounds_ahead_and_no_further() {
    let (_job, endpoints) = job(2);
    let gates = one_way(&endpoints);
    let start = |me: usize, value| GateUnit::of(&endpoints[me]).start(gates[me].start(), sum(value)).unwrap();
    let poll = |me: usize| GateUnit::of(&endpoints[me]).poll(gates[me].start(), Deps::All).unwrap();
    for value in [10, 20] {
        start(0, value);
        assert_eq!(poll(0), Progress::Completed(None));
    }
    start(0, 30);
    assert_eq!(poll(0), Progress::NotCompleted, "a third signal has no room");
    for value in [10, 20, 30] {
        start(1, 1);
        assert_eq!(poll(1), Progress::Completed(Some(sum(value + 1))));
        if value == 10 {
            assert_eq!(poll(0), Progress::Completed(None), "there is room now");
        }
    }
}

#[test]
fn a_freed_gate_keeps_what_it_signalled() {
    let (_job, endpoints) = job(2);
    let [mine, theirs] = one_way(&endpoints);
    let gate = mine.start();
    GateUnit::of(&endpoints[0]).start(gate, sum(7)).unwrap();
    drop(mine);
    assert_eq!(GateUnit::of(&endpoints[0]).start(gate, sum(7)), Err(GateError::Freed(gate).into()));
    // Its record is not reused before the signal has been read.
    let other = GateUnit::of(&endpoints[0]).alloc(1).unwrap();
    assert_ne!(other.start().index(), gate.index());
    let progress = |value| {
        GateUnit::of(&endpoints[1]).start(theirs.start(), sum(value)).unwrap();
        GateUnit::of(&endpoints[1]).poll(theirs.start(), Deps::All)
    };
    assert_eq!(progress(1), Ok(Progress::Completed(Some(sum(8)))));
    let again = GateUnit::of(&endpoints[0]).alloc(1).unwrap();
    assert_eq!((again.start().index(), again.start().generation()), (gate.index(), gate.generation() + 2));
    // There is no second signal.
    assert_eq!(progress(1), Err(GateError::Freed(gate).into()));
}

#[test]
fn a_gate_claimed_by_the_dead_is_a_loss() {
    let (job, endpoints) = job(3);
    let gates = exchange(&endpoints);
    let units = JobUnits(&job);
    let relay = At::outputs(&units, gates[0].ids()[1]).unwrap();
    units.word(relay, Field::State).store(pack(0, 3), Relaxed);
    for me in [0, 1] {
        GateUnit::of(&endpoints[me]).start(gates[me].start(), sum(1)).unwrap();
    }
    assert_eq!(GateUnit::of(&endpoints[1]).poll(gates[1].start(), Deps::All), Ok(Progress::Completed(Some(sum(2)))));
    assert_eq!(GateUnit::of(&endpoints[0]).poll(gates[0].start(), Deps::All), Ok(Progress::NotCompleted));
    job.publish(Rank::new(2), State::Lost);
    let lost = FabricError::PeerLost { rank: Rank::new(2) };
    assert_eq!(GateUnit::of(&endpoints[0]).poll(gates[0].start(), Deps::All), Err(lost.clone()));
    assert_eq!(GateUnit::of(&endpoints[0]).poll(gates[0].start(), Deps::All), Err(lost), "for good");
}

#[test]
fn a_relay_between_freed_gates_comes_to_rest() {
    let (_job, endpoints) = job(3);
    let gates = [0, 1, 2].map(|rank: usize| GateUnit::of(&endpoints[rank]).alloc(2).unwrap());
    let id = |rank: usize, slot: usize| gates[rank].ids()[slot];
    // Rank 0 starts, rank 1 relays, rank 2 receives.
    GateUnit::of(&endpoints[0])
        .set(&[Wiring { destination_remote: Some(id(1, 1)), ..Wiring::none(id(0, 0)) }])
        .unwrap();
    let pass = Wiring { source_remote: Some(id(0, 0)), destination_remote: Some(id(2, 0)), ..Wiring::none(id(1, 1)) };
    GateUnit::of(&endpoints[1]).set(&[pass]).unwrap();
    GateUnit::of(&endpoints[2]).set(&[Wiring { source_remote: Some(id(1, 1)), ..Wiring::none(id(2, 0)) }]).unwrap();
    GateUnit::of(&endpoints[0]).start(id(0, 0), sum(4)).unwrap();
    GateUnit::of(&endpoints[2]).start(id(2, 0), sum(0)).unwrap();
    assert_eq!(GateUnit::of(&endpoints[2]).poll(id(2, 0), Deps::All), Ok(Progress::Completed(Some(sum(4)))));
    assert_eq!(GateUnit::of(&endpoints[0]).poll(id(0, 0), Deps::All), Ok(Progress::Completed(None)));
    // A freed gate receives nothing and starts no round by itself.
    GateUnit::of(&endpoints[2]).free(&[id(2, 0)]);
    for _ in 0..3 {
        GateUnit::of(&endpoints[0]).start(id(0, 0), sum(4)).unwrap();
        assert_eq!(GateUnit::of(&endpoints[0]).poll(id(0, 0), Deps::All), Ok(Progress::Completed(None)));
    }
    GateUnit::of(&endpoints[0]).free(&[id(0, 0)]);
    GateUnit::of(&endpoints[1]).free(&[id(1, 0), id(1, 1)]);
}

#[test]
fn garbage_in_records_gives_errors() {
    let steps = if cfg!(miri) { 300 } else { 60_000 };
    let mut chance = Chance::seeded();
    let mut next = move || chance.next() >> 8;
    let (mut well, mut errors) = (0, 0);
    let (mut of, mut endpoints) = job(2);
    let mut gates = exchange(&endpoints);
    for step in 0..steps {
        if step % 500 == 0 {
            drop(gates);
            (of, endpoints) = job(2);
            gates = exchange(&endpoints);
        }
        if next() % 4 == 0 {
            let segment = of.segment(Rank::new((next() % 2) as u32)).unwrap();
            let record =
                [0, 1, layout::START_GATES, layout::GATES, next() as usize % layout::GATES][next() as usize % 5];
            let word = [next() as usize % 8, next() as usize % (layout::GATE_RECORD / 8)][next() as usize % 2];
            let word = segment.word(layout::GATE_RECORDS + record * layout::GATE_RECORD + 8 * word);
            let old = word.load(Relaxed);
            let names = GateId::new(Rank::new((next() % 3) as u32), (next() % 70) as u32, 1).to_bits();
            let values = [
                0,
                u64::MAX,
                old ^ 1 << (next() % 64),
                old.wrapping_add(1),
                names,
                (next() << 8) | (next() % 256),
                pack(next() % 4, 0),
                0x0303_0802,
            ];
            word.store(values[next() as usize % values.len()], Relaxed);
        }
        let me = next() as usize % 2;
        let gate = gates[me].start();
        let ended = match next() % 8 {
            0..4 => GateUnit::of(&endpoints[me])
                .start(gate, if next() % 2 == 0 { sum(1) } else { Values::new(ReduceOp::BfpSum, &[0.5; 3]).unwrap() }),
            4..7 => GateUnit::of(&endpoints[me]).poll(gate, Deps::All).map(drop),
            _ => GateUnit::of(&endpoints[me]).alloc(3).map(drop),
        };
        match ended {
            Ok(()) => well += 1,
            Err(_) => errors += 1,
        }
    }
    println!("{well} operations ended well, {errors} with an error");
    assert!(well > steps / 100 && errors > steps / 100);
}
