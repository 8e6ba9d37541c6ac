//! Small collectives in all orders.
//!
//! Exhaustive within the members and iterations of each case. Five members, the fewest that have SELFs, and more start their slots as soon as they may
//! ([`Job::prompt`](crate::session_model::Job::prompt)): what leaves of an allreduce is looked at then, and no area is written to before it is free, so to leave later is
//! to arrive later.

use super::{
    super::{
        making::Kind,
        tree::{Shape, Tree},
        tree_plan::Load,
    },
    World, allreduce,
    mutants::{mutants, without_self},
    plans,
};
use crate::{
    Form,
    session_model::{Wrong, explore},
};

fn world(kind: Kind, members: usize, form: Form, iterations: u8) -> World {
    let plans = plans(kind, form, members).expect("there is such a form");
    World { prompt: members > 4, ..World::new(kind, plans, iterations) }
}

fn reduction(members: usize, iterations: u8) -> World {
    world(allreduce(members, 0, 1), members, Form::Fast, iterations)
}

fn check(what: &str, world: &World) {
    let (members, k) = (world.plans.len(), world.iterations);
    let states = explore(world).unwrap_or_else(|wrong| panic!("{what} of {members}: {wrong:?}"));
    println!("{what} of {members}, {k} iterations: {states} states");
}

#[test]
fn no_order_of_events_breaks_an_allreduce() {
    for (members, iterations) in [(2, 4), (3, 3), (4, 3), (5, 2)] {
        check("allreduce, fast", &reduction(members, iterations));
        check("allreduce, mrc", &world(allreduce(members, 0, 1), members, Form::Mrc, iterations));
    }
}

#[test]
fn no_order_of_events_breaks_a_barrier_or_a_broadcast() {
    for form in [Form::Fast, Form::Mrc] {
        for (members, iterations) in [(2, 4), (3, 3), (4, 3)] {
            check(&format!("barrier, {form}"), &world(Kind::Barrier, members, form, iterations));
            let tree = Tree { members, root: 1, shape: Shape::Binomial };
            let broadcast = Kind::Tree { tree, load: Load { up: 0, down: 16, segments: 2 } };
            check(&format!("broadcast, {form}"), &world(broadcast, members, form, iterations));
        }
    }
}

/// Whoever has one number wrong is found out.
#[test]
fn every_wrong_number_in_an_allreduce_is_found() {
    let mut found = 0;
    for members in 2..=5 {
        let right = reduction(members, 3);
        for (what, plans) in mutants(&right.plans) {
            let wrong = World { prompt: right.prompt, ..World::new(right.kind, plans, 3) };
            assert!(explore(&wrong).is_err(), "{members} members: {what}");
            found += 1;
        }
    }
    println!("{found} mutants found");
}

/// From six members on the last step passes on blocks of others: SELF must be waited for. All orders of what happens at two members, while the others are quick.
#[test]
fn two_slow_members_break_no_allreduce_but_one_without_self() {
    for (members, other) in (6..=8).flat_map(|members| (1..=members / 2).map(move |other| (members, other))) {
        let slow = || vec![0, other];
        let right = World { slow: slow(), ..reduction(members, 2) };
        check(&format!("allreduce, fast, 0 and {other} slow,"), &right);
        let plans = without_self(&right.plans);
        let wrong = World { prompt: true, slow: slow(), ..World::new(right.kind, plans, 2) };
        assert!(matches!(explore(&wrong), Err(Wrong::Memory(_))), "{members} members, 0 and {other} slow");
    }
}

/// Who is ahead writes what another still folds or sends.
#[test]
fn one_area_is_too_few() {
    for members in 2..=4 {
        let wrong = World { single: true, ..reduction(members, 2) };
        assert!(matches!(explore(&wrong), Err(Wrong::Memory(_))), "{members} members");
    }
}
