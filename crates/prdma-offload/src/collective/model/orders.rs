//! Small allreduces in all orders.
//!
//! Exhaustive within the members and iterations of each case. Five members, the fewest that have SELFs, and more start their slots as soon as they may
//! ([`Job::prompt`](crate::session_model::Job::prompt)): what leaves is looked at then, and no area is written to before it is free, so to leave later is to arrive later.

use super::{
    World, allreduce,
    mutants::{mutants, without_self},
    plans,
};
use crate::{
    Form,
    session_model::{Wrong, explore},
};

fn world(members: usize, form: Form, iterations: u8) -> World {
    let kind = allreduce(members, 0, 1);
    let plans = plans(kind, form, members).expect("an allreduce has both forms");
    World { prompt: members > 4, ..World::new(kind, plans, iterations) }
}

#[test]
fn no_order_of_events_breaks_an_allreduce() {
    let fast = [(2, 4), (3, 3), (4, 3), (5, 2)].map(|(members, iterations)| (members, Form::Fast, iterations));
    let mrc = [(2, 4), (3, 3), (4, 3), (5, 3)].map(|(members, iterations)| (members, Form::Mrc, iterations));
    for (members, form, iterations) in fast.into_iter().chain(mrc) {
        let states = explore(&world(members, form, iterations));
        let states = states.unwrap_or_else(|wrong| panic!("{members} members, {form}: {wrong:?}"));
        println!("allreduce of {members}, {form}, {iterations} iterations: {states} states");
    }
}

/// Whoever has one number wrong is found out.
#[test]
fn every_wrong_number_in_an_allreduce_is_found() {
    let mut found = 0;
    for members in 2..=5 {
        let right = world(members, Form::Fast, 3);
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
        let right = World { slow: slow(), ..world(members, Form::Fast, 2) };
        let states = explore(&right).unwrap_or_else(|wrong| panic!("{members} members, 0 and {other} slow: {wrong:?}"));
        println!("allreduce of {members}, 0 and {other} slow: {states} states");
        let plans = without_self(&right.plans);
        let wrong = World { prompt: true, slow: slow(), ..World::new(right.kind, plans, 2) };
        assert!(matches!(explore(&wrong), Err(Wrong::Memory(_))), "{members} members, 0 and {other} slow");
    }
}

/// Who is ahead writes what another still folds or sends.
#[test]
fn one_area_is_too_few() {
    for members in 2..=4 {
        let wrong = World { single: true, ..world(members, Form::Fast, 2) };
        assert!(matches!(explore(&wrong), Err(Wrong::Memory(_))), "{members} members");
    }
}
