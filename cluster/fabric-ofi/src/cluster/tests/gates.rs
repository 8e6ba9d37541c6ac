//! Gates between nodes: when setting returns, updates during the loss of a rank, and the gates of a
//! lost rank.

use super::*;
use crate::cluster::mutant::Mutant;
use fabric_offload::barrier::{GateError, GateUnit, Gates, Progress, ReduceOp, Values, Wiring};
use rdma_fabric::{Deps, Fabric};

fn sum(value: u64) -> Values {
    Values::new(ReduceOp::Sum, &[value]).unwrap()
}

/// Returns the wiring of a member that exchanges values with another.
fn exchange(mine: &Gates, theirs: &Gates) -> [Wiring; 2] {
    let ([start, relay], [their_start, their_relay]) =
        ([mine.ids()[0], mine.ids()[1]], [theirs.ids()[0], theirs.ids()[1]]);
    let start = Wiring {
        source_local: Some(relay),
        destination_local: Some(relay),
        destination_remote: Some(their_relay),
        ..Wiring::none(start)
    };
    let relay = Wiring {
        source_local: Some(start.gate),
        destination_local: Some(start.gate),
        source_remote: Some(their_start),
        ..Wiring::none(relay)
    };
    [start, relay]
}

/// Ranks 0 and 1, with gates that exchange values.
fn pair(ranks: &Ranks) -> ([Fabric; 2], [Gates; 2]) {
    let fabrics = [0, 1].map(|rank: usize| ranks.members[rank].fabric());
    let gates = fabrics.each_ref().map(|fabric| GateUnit::of(fabric).alloc(2).unwrap());
    for me in [0, 1] {
        GateUnit::of(&fabrics[me]).set(&exchange(&gates[me], &gates[1 - me])).unwrap();
    }
    (fabrics, gates)
}

/// Starts a round on both ranks, and returns its results.
fn round(fabrics: &[Fabric; 2], gates: &[Gates; 2], value: u64) -> [rdma_fabric::Result<Option<Values>>; 2] {
    for me in [0, 1] {
        GateUnit::of(&fabrics[me]).start(gates[me].start(), sum(value + me as u64)).unwrap();
    }
    [0, 1].map(|me: usize| block_on(GateUnit::of(&fabrics[me]).wait(gates[me].start(), Deps::All)))
}

/// Returns whether rank 0 has set its gates although rank 1 has not processed the updates.
fn sets_early(mutant: Option<Mutant>) -> bool {
    let ranks = Ranks::new(2);
    let (fabrics, gates) = pair(&ranks);
    assert_eq!(round(&fabrics, &gates, 3), [Ok(Some(sum(7))), Ok(Some(sum(7)))]);
    ranks.with(0, |state| state.core.mutant = mutant);
    let deaf = ranks.members[1].net.bench.lock().unwrap();
    let (fabric, wirings) = (fabrics[0].clone(), exchange(&gates[0], &gates[1]));
    let (early, sets) = done_within(SHORT, move || GateUnit::of(&fabric).set(&wirings));
    drop(deaf);
    assert!(becomes(|| sets.is_finished()));
    assert_eq!(sets.join().unwrap(), Ok(()));
    early
}

#[test]
fn setting_returns_when_the_other_node_knows() {
    assert!(!sets_early(None));
}

#[test]
fn setting_without_confirmation_is_found() {
    assert!(sets_early(Some(Mutant::SetsUnconfirmed)));
}

#[test]
fn rounds_go_on_while_a_rank_is_lost() {
    let ranks = Ranks::new(3);
    let (fabrics, gates) = pair(&ranks);
    let here = [Deps::One(Rank::new(0)), Deps::One(Rank::new(1))];
    assert_eq!(round(&fabrics, &gates, 3), [Ok(Some(sum(7))), Ok(Some(sum(7)))]);
    let lost = [Rank::new(2)];
    for rank in [0, 1] {
        ranks.members[rank].drain(1, &lost);
        GateUnit::of(&fabrics[rank]).start(gates[rank].start(), sum(5)).unwrap();
    }
    assert!(becomes(|| [0, 1].iter().all(|&rank: &usize| ranks.told[rank].all() == [1])));
    thread::sleep(SHORT);
    let poll = |me: usize| GateUnit::of(&fabrics[me]).poll(gates[me].start(), here[1 - me]);
    assert_eq!([poll(0), poll(1)], [Ok(Progress::NotCompleted), Ok(Progress::NotCompleted)], "nothing new begins");
    let contact = |rank: usize| (rank < 2).then(|| ranks.members[rank].reopen().unwrap());
    let contacts = [0, 1, 2].map(contact);
    ranks.members[..2].iter().for_each(|member| member.connect(&contacts).unwrap());
    ranks.members[..2].iter().for_each(|member| member.resume(&lost));
    for me in [0, 1] {
        let ended = block_on(GateUnit::of(&fabrics[me]).wait(gates[me].start(), here[1 - me]));
        assert_eq!(ended, Ok(Some(sum(10))), "at rank {me}");
    }
    ranks.members[..2].iter().for_each(|member| assert!(member.quiesce(LONG)));
}

#[test]
fn gates_of_the_lost_are_told_as_a_loss_and_keep_nobody() {
    let ranks = Ranks::new(2);
    let (fabrics, mut gates) = pair(&ranks);
    GateUnit::of(&fabrics[0]).start(gates[0].start(), sum(1)).unwrap();
    let peer = Rank::new(1);
    let lost = Err(FabricError::PeerLost { rank: peer });
    ranks.members[0].drain(1, &[peer]);
    ranks.members[0].reopen().unwrap();
    ranks.members[0].resume(&[peer]);
    assert_eq!(block_on(GateUnit::of(&fabrics[0]).wait(gates[0].start(), Deps::All)), lost);
    // Setting, freeing and allocating do not wait for the lost rank.
    gates[0] = GateUnit::of(&fabrics[0]).alloc(2).unwrap();
    assert_eq!(GateUnit::of(&fabrics[0]).set(&exchange(&gates[0], &gates[1])), Ok(()));
    GateUnit::of(&fabrics[0]).start(gates[0].start(), sum(1)).unwrap();
    assert_eq!(block_on(GateUnit::of(&fabrics[0]).wait(gates[0].start(), Deps::All)), lost);
    ranks.kill(1);
}

#[test]
fn a_freed_gate_is_told() {
    let ranks = Ranks::new(2);
    let (fabrics, [mine, theirs]) = pair(&ranks);
    let freed = theirs.ids()[0];
    GateUnit::of(&fabrics[0]).start(mine.start(), sum(1)).unwrap();
    drop(theirs);
    let ended = block_on(GateUnit::of(&fabrics[0]).wait(mine.start(), Deps::All));
    assert!(
        matches!(&ended, Err(FabricError::Gate(error)) if matches!(**error, GateError::Freed(gate) if gate.rank() == freed.rank())),
        "{ended:?}"
    );
}

#[test]
fn garbage_has_no_effect() {
    let ranks = Ranks::new(2);
    let (fabrics, gates) = pair(&ranks);
    for bytes in [vec![], vec![1; 7], vec![0xff; 200], vec![0; 72]] {
        ranks.members[0].net.send_gate_update(Rank::new(1), bytes);
    }
    assert_eq!(round(&fabrics, &gates, 3), [Ok(Some(sum(7))), Ok(Some(sum(7)))]);
    assert!(ranks.members[0].quiesce(LONG), "it is answered like other news");
}

#[test]
fn a_rank_whose_endpoint_has_failed_does_not_wait_for_ever() {
    let ranks = Ranks::new(2);
    let (fabrics, [mine, _theirs]) = pair(&ranks);
    let (fabric, gate) = (fabrics[0].clone(), mine.start());
    GateUnit::of(&fabric).start(gate, sum(1)).unwrap();
    let (early, waits) = done_within(SHORT, move || block_on(GateUnit::of(&fabric).wait(gate, Deps::All)));
    assert!(!early, "the other has not come");
    ranks.with(0, |state| state.core.give_up(&network_error()));
    assert!(becomes(|| waits.is_finished()));
    assert!(matches!(waits.join().unwrap(), Err(FabricError::System { .. })));
    assert!(matches!(GateUnit::of(&fabrics[0]).poll(gate, Deps::All), Err(FabricError::System { .. })));
}
