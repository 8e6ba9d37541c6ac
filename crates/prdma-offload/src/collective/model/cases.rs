//! The plans that are tested: correct ones and mutants.
//!
//! Small collectives are tried in all orders, exhaustively within the members and iterations of
//! each case. Those of five members, the fewest that have SELFs, and more start their slots as soon
//! as they may ([`Model::prompt`](crate::session_model::Model::prompt)): the data that leave an
//! allreduce are checked at that moment, and no area is written to before it is free, so leaving
//! later is equivalent to arriving later. Collectives of up to 20 members are tried in random
//! orders, which are reproducible by their seeds.

use super::{
    super::{
        making::Operation,
        plan::{Plan, Put, Queue},
        tree::{Load, Shape, Tree},
    },
    World, allreduce, plans,
};
use crate::{
    Form,
    session_model::{Violation, explore, walk},
};
use core::ops::Range;

fn world(operation: Operation, members: usize, form: Form, iterations: u8) -> World {
    let plans = plans(operation, form, members).expect("there is such a form");
    World { prompt: members > 4, ..World::new(operation, plans, iterations) }
}

fn reduction(members: usize, iterations: u8) -> World {
    world(allreduce(members, 0, 1), members, Form::Fast, iterations)
}

fn check(what: &str, world: &World) {
    let (members, k) = (world.plans.len(), world.iterations);
    let states = explore(world).unwrap_or_else(|wrong| panic!("{what} of {members}: {wrong:?}"));
    println!("{what} of {members}, {k} iterations: {states} states");
}

fn check_allreduce(members: usize, iterations: u8) {
    check("allreduce, fast", &reduction(members, iterations));
    check("allreduce, mrc", &world(allreduce(members, 0, 1), members, Form::Mrc, iterations));
}

#[test]
fn no_order_of_events_breaks_an_allreduce() {
    for (members, iterations) in [(2, 4), (3, 3), (4, 3)] {
        check_allreduce(members, iterations);
    }
}

#[test]
#[ignore = "long: weekly"]
fn no_order_of_events_breaks_an_allreduce_of_five() {
    check_allreduce(5, 2);
}

#[test]
fn no_order_of_events_breaks_a_barrier_or_a_broadcast() {
    for form in [Form::Fast, Form::Mrc] {
        for (members, iterations) in [(2, 4), (3, 3), (4, 3)] {
            check(&format!("barrier, {form}"), &world(Operation::Barrier, members, form, iterations));
            let tree = Tree { members, root: 1, shape: Shape::Binomial };
            let broadcast = Operation::Tree { tree, load: Load { up: 0, down: 16, segments: 2 } };
            check(&format!("broadcast, {form}"), &world(broadcast, members, form, iterations));
        }
    }
}

/// A plan with one wrong number is always detected.
#[test]
fn every_wrong_number_in_an_allreduce_is_found() {
    let mut found = 0;
    for members in 2..=5 {
        let right = reduction(members, 3);
        for (what, plans) in mutants(&right.plans) {
            let wrong = World { prompt: right.prompt, ..World::new(right.operation, plans, 3) };
            assert!(explore(&wrong).is_err(), "{members} members: {what}");
            found += 1;
        }
    }
    println!("{found} mutants found");
}

/// From six members on, the last step forwards blocks of others, so SELF must be waited for. Tries
/// all orders of events at two members, while the others are fast.
#[test]
fn two_slow_members_break_no_allreduce_but_one_without_self() {
    for (members, other) in (6..=8).flat_map(|members| (1..=members / 2).map(move |other| (members, other))) {
        let slow = || vec![0, other];
        let right = World { slow: slow(), ..reduction(members, 2) };
        check(&format!("allreduce, fast, 0 and {other} slow,"), &right);
        let plans = without_self(&right.plans);
        let wrong = World { prompt: true, slow: slow(), ..World::new(right.operation, plans, 2) };
        assert!(matches!(explore(&wrong), Err(Violation::Memory(_))), "{members} members, 0 and {other} slow");
    }
}

/// A member that is ahead overwrites data that another one still folds or sends.
#[test]
fn one_area_is_too_few() {
    for members in 2..=4 {
        let wrong = World { single: true, ..reduction(members, 2) };
        assert!(matches!(explore(&wrong), Err(Violation::Memory(_))), "{members} members");
    }
}

const ITERATIONS: u8 = 6;

fn kinds(members: usize) -> Vec<Operation> {
    let mut kinds = vec![Operation::Barrier];
    for shape in [Shape::Binomial, Shape::Chain] {
        for root in [0, members - 1, members / 2] {
            let tree = Tree { members, root, shape };
            kinds.extend([1, 3].map(|segments| Operation::Tree { tree, load: Load { up: 0, down: 24, segments } }));
        }
    }
    let tree = Tree { members, root: 0, shape: Shape::Binomial };
    kinds.push(allreduce(members, 0, 8));
    kinds.push(Operation::Tree { tree, load: Load { up: 8, down: 8 * members as u64, segments: 2 } });
    kinds
}

#[test]
fn plans_hold_whatever_the_network_does() {
    walk_plans(0..8);
}

#[test]
#[ignore = "long: weekly"]
fn plans_hold_whatever_the_network_does_in_more_orders() {
    walk_plans(8..40);
}

fn walk_plans(seeds: Range<u64>) {
    let mut runs = 0;
    for members in [1, 2, 3, 4, 5, 8, 13, 20] {
        for operation in kinds(members) {
            // A group of one has no data in flight.
            if members == 1 && matches!(operation, Operation::Tree { load, .. } if load.up > 0) {
                continue;
            }
            for form in [Form::Fast, Form::Mrc] {
                let Some(plans) = plans(operation, form, members) else { continue };
                let world = World::new(operation, plans, ITERATIONS);
                for seed in seeds.clone() {
                    assert_eq!(walk(&world, seed), Ok(()), "{operation:?}, {form}, {members} members, seed {seed}");
                    runs += 1;
                }
            }
        }
    }
    println!("{runs} runs");
}

#[test]
fn every_wrong_number_in_a_program_is_noticed() {
    let members = 8;
    let tree = |root| Tree { members, root, shape: Shape::Binomial };
    let kinds = [
        Operation::Barrier,
        // Member 1 in the middle, and at the root.
        Operation::Tree { tree: tree(5), load: Load { up: 0, down: 24, segments: 3 } },
        Operation::Tree { tree: tree(1), load: Load { up: 0, down: 24, segments: 3 } },
        allreduce(members, 1, 8),
    ];
    let (mut noticed, mut not) = (0, Vec::new());
    for operation in kinds {
        for form in [Form::Fast, Form::Mrc] {
            let Some(plans) = plans(operation, form, members) else { continue };
            for (what, plans) in mutants(&plans) {
                let world = World::new(operation, plans, ITERATIONS);
                match (0..300).find_map(|seed| walk(&world, seed).err()) {
                    Some(_) => noticed += 1,
                    None => not.push(format!("{operation:?}, {form}: {what}")),
                }
            }
        }
    }
    println!("{noticed} mutants noticed");
    assert!(not.is_empty(), "not noticed: {not:#?}");
    assert!(noticed > 170);
}

/// Returns all mutants of the program of one member that differ in one number.
pub(super) fn mutants(plans: &[Plan]) -> Vec<(String, Vec<Plan>)> {
    let mut mutants = Vec::new();
    let me = 1;
    for (q, queue) in plans[me].queues.iter().enumerate() {
        let mut with = |what: String, change: &dyn Fn(&mut Queue)| {
            let mut changed = plans.to_vec();
            change(&mut changed[me].queues[q]);
            mutants.push((what, changed));
        };
        with(format!("queue {q} one slot further ahead"), &|queue| queue.ahead += 1);
        for (at, slot) in queue.slots.iter().enumerate() {
            if slot.is_none() {
                with(format!("queue {q} without NOP {at}"), &|queue| {
                    queue.slots.remove(at);
                });
                with(format!("queue {q} with NOP {at} twice"), &|queue| queue.slots.insert(at, None));
            }
            if let Some(put) = slot {
                with(format!("queue {q}, put {at}: one credit more"), &|queue| {
                    queue.slots[at] = Some(Put { sps: put.sps + 1, ..*put });
                });
                if put.sps > 0 {
                    with(format!("queue {q}, put {at}: one credit less"), &|queue| {
                        queue.slots[at] = Some(Put { sps: put.sps - 1, ..*put });
                    });
                    with(format!("queue {q}, put {at}: credit lost"), &|queue| {
                        queue.slots[at] = Some(Put { sps: 0, ..*put });
                    });
                }
                if put.notice {
                    with(format!("queue {q}, put {at}: notice lost"), &|queue| {
                        queue.slots[at] = Some(Put { notice: false, ..*put });
                    });
                }
            }
        }
    }
    mutants
}

/// Returns the plans without SELFs and without the NOPs that they release.
pub(super) fn without_self(plans: &[Plan]) -> Vec<Plan> {
    let mut changed = plans.to_vec();
    for (me, plan) in changed.iter_mut().enumerate() {
        for queue in &mut plan.queues {
            queue.slots.retain(|slot| slot.is_some_and(|put| put.to.0 != me));
            for put in queue.slots.iter_mut().flatten() {
                put.sps = 1;
            }
        }
    }
    changed
}
