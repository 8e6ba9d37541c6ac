//! Explorations of programs, right and wrong.

use super::super::program::CommandTemplate;
use super::{Case, early, explore};
use crate::{Form, session_model::Violation};
use rdma_fabric::control_queue::{Command, Posting};

#[test]
fn no_order_of_events_breaks_an_exchange() {
    explore_all(&[
        ("ring of 1, fast", Case::ring(1, Form::Fast, 1, 3)),
        ("ring of 1, mrc", Case::ring(1, Form::Mrc, 2, 3)),
        ("ring of 2, fast", Case::ring(2, Form::Fast, 1, 2)),
        ("ring of 2, mrc", Case::ring(2, Form::Mrc, 1, 3)),
        ("ring of 3, mrc", Case::ring(3, Form::Mrc, 1, 2)),
        ("star of 3, fast", Case::star(3, Form::Fast, 3)),
        ("star of 4, mrc", Case::star(4, Form::Mrc, 2)),
        ("one way round 3, fast", Case::one_way(3, Form::Fast, 3)),
        ("one way round 3, mrc", Case::one_way(3, Form::Mrc, 3)),
        ("fan, fast", Case::fan(Form::Fast, 3)),
        ("fan, mrc", Case::fan(Form::Mrc, 3)),
        ("ring of 2, two slots, mrc", Case::ring(2, Form::Mrc, 2, 2)),
    ]);
}

#[test]
#[ignore = "long: weekly"]
fn no_order_of_events_breaks_a_longer_exchange() {
    explore_all(&[
        ("star of 4, two queues", Case::star(4, Form::Queues(2), 2)),
        ("a chain, fast", Case::one_way(2, Form::Fast, 2).with_slots(17)),
    ]);
}

fn explore_all(cases: &[(&str, Case)]) {
    for (name, case) in cases {
        let states = explore(case, &case.queues()).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        println!("{name}: {states} states");
    }
}

/// Returns whether slots were released too early, or too often.
fn released(violation: &Violation) -> bool {
    early(violation) || matches!(violation, Violation::Credit { .. })
}

/// Deliberately wrong steps, and the resulting error in the smallest known case.
#[test]
fn wrong_programs_are_found() {
    type Mutant = fn(&mut Posting);
    type Look = fn(&Violation) -> bool;
    let one_more: Mutant = |posting| posting.sps += u8::from(posting.sps > 0 && posting.sps < 15);
    let one_less: Mutant = |posting| posting.sps = posting.sps.saturating_sub(1);
    let lost: Mutant = |posting| posting.sps = 0;
    let stuck: Look = |violation| matches!(violation, Violation::Stuck { .. });
    let cases: [(&str, Case, Mutant, Look); 6] = [
        ("credit one too many, fast", Case::star(3, Form::Fast, 3), one_more, released),
        ("credit one too many, mrc", Case::ring(2, Form::Mrc, 1, 3), one_more, released),
        ("credit one too few, fast", Case::ring(2, Form::Fast, 1, 2), one_less, stuck),
        ("credit one too few, mrc", Case::ring(2, Form::Mrc, 1, 2), one_less, stuck),
        ("lost, fast", Case::one_way(2, Form::Fast, 2), lost, stuck),
        ("lost, mrc", Case::star(3, Form::Mrc, 2), lost, stuck),
    ];
    for (name, case, mutant, wrong) in cases {
        let mut queues = case.queues();
        for command in queues.iter_mut().flat_map(|queue| &mut queue.program.commands) {
            match command {
                CommandTemplate::Ready { credit, .. } => {
                    let mut posting = Posting::new(Command::Nop).sps(*credit);
                    mutant(&mut posting);
                    *credit = posting.sps;
                }
                CommandTemplate::Fixed(posting) => mutant(posting),
                CommandTemplate::End(_) | CommandTemplate::Alternating(_) => unreachable!("whole blocks have none"),
            }
        }
        let found = explore(&case, &queues).expect_err(name);
        assert!(wrong(&found), "{name}: {found:?}");
    }
}

/// One NOP too few: the first SELF runs before the last READY.
#[test]
fn a_nop_too_few_is_found() {
    let case = Case::star(4, Form::Mrc, 2);
    let mut queues = case.queues();
    let commands = &mut queues[0].program.commands;
    let nop = commands
        .iter()
        .position(|template| template.posting(0).command == Command::Nop)
        .expect("three neighbours, two NOPs");
    commands.remove(nop);
    assert!(matches!(explore(&case, &queues), Err(wrong) if released(&wrong)));
}
