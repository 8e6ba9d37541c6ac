//! Exchanges whose edges have a separate END, right and wrong.

use super::{Case, Exchange, Filled, explore};
use crate::{
    EndOfData, Form,
    engine::program::CommandTemplate,
    session_model::{self, Violation},
};
use rdma_fabric::control_queue::{Command, Posting};

impl Case {
    /// Gives each edge a separate END.
    fn ending_separately(mut self) -> Case {
        for link in self.channels.iter_mut().flatten() {
            link.demand = link.demand.ending_separately();
        }
        Case { end: EndOfData::Separate, ..self }
    }
}

fn cases() -> [(&'static str, Case); 8] {
    [
        ("ring of 1, fast", Case::ring(1, Form::Fast, 1, 3)),
        ("ring of 1, mrc", Case::ring(1, Form::Mrc, 1, 2)),
        ("ring of 2, mrc", Case::ring(2, Form::Mrc, 1, 2)),
        ("star of 3, fast", Case::star(3, Form::Fast, 2)),
        ("star of 3, mrc", Case::star(3, Form::Mrc, 2)),
        ("one way round 3, fast", Case::one_way(3, Form::Fast, 3)),
        ("fan, mrc", Case::fan(Form::Mrc, 3)),
        ("one way round 2, two slots, fast", Case::one_way(2, Form::Fast, 3).with_slots(2)),
    ]
    .map(|(name, case)| (name, case.ending_separately()))
}

#[test]
fn no_order_of_events_breaks_an_exchange_with_separate_ends() {
    for (name, case) in cases() {
        let states = explore(&case, &case.queues()).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        println!("{name}: {states} states");
    }
}

/// Returns the finding in a case whose queues were changed.
fn found(name: &str, case: &Case, change: impl Fn(&mut Filled)) -> Violation {
    let mut queues = case.queues();
    queues.iter_mut().for_each(change);
    explore(case, &queues).expect_err(name)
}

fn without_data(violation: &Violation) -> bool {
    matches!(violation, Violation::Memory(what) if what.ends_with("without its data"))
}

#[test]
fn an_end_must_follow_its_data() {
    for (name, case) in cases() {
        let wrong = found(name, &case, |queue| {
            let commands = &mut queue.program.commands;
            let ends = (1..commands.len()).filter(|at| matches!(commands[*at], CommandTemplate::End(_)));
            ends.collect::<Vec<_>>().into_iter().for_each(|at| commands.swap(at - 1, at));
        });
        assert!(without_data(&wrong), "{name}: {wrong:?}");
    }
}

#[test]
fn a_lost_end_is_found() {
    for (name, case) in cases() {
        let wrong = found(name, &case, |queue| {
            for command in &mut queue.program.commands {
                if let CommandTemplate::End(_) = command {
                    *command = CommandTemplate::Fixed(Posting::new(Command::Nop));
                }
            }
        });
        assert!(matches!(wrong, Violation::Stuck { .. }), "{name}: {wrong:?}");
    }
}

#[test]
fn a_ready_must_release_the_end() {
    for (name, case) in cases().into_iter().filter(|(_, case)| case.form == Form::Fast) {
        let wrong = found(name, &case, |queue| {
            for command in &mut queue.program.commands {
                if let CommandTemplate::Ready { credit, .. } = command {
                    *credit -= 1;
                }
            }
        });
        assert!(matches!(wrong, Violation::Stuck { .. }), "{name}: {wrong:?}");
    }
}

/// Without a notice, the word alone shows that the data have arrived.
#[test]
fn a_member_must_wait_for_the_ends() {
    for (name, case) in cases() {
        let exchange = Exchange { waits: false, ..Exchange::new(&case, &case.queues()) };
        let wrong = session_model::explore(&exchange).expect_err(name);
        assert!(without_data(&wrong), "{name}: {wrong:?}");
    }
}
