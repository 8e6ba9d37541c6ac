//! The exchanges that are tried, and wrong ones.

use super::{
    super::{dealing::Edges, program::Step},
    Case, Link, early, explore,
};
use crate::{Form, session_model::Wrong};
use rdma_fabric::control_queue::{Command, Posting};

impl Link {
    fn new(other: usize, there: usize, out: bool, inn: bool) -> Link {
        Link { other, there, edges: Edges::new(out.then_some(1), inn) }
    }
}

impl Case {
    /// Members in a ring, each exchanging with both sides; with one or two members both sides are the same one.
    fn ring(members: usize, form: Form, slots: u64, rounds: u8) -> Case {
        let channels = |me: usize| {
            let (left, right) = ((me + members - 1) % members, (me + 1) % members);
            vec![Link::new(left, 1, true, true), Link::new(right, 0, true, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, rounds }.with_slots(slots)
    }

    /// Member 0 exchanges with all others.
    fn star(members: usize, form: Form, rounds: u8) -> Case {
        let leaf = |me: usize| vec![Link::new(0, me - 1, true, true)];
        let hub = (1..members).map(|leaf| Link::new(leaf, 0, true, true)).collect();
        Case { channels: [hub].into_iter().chain((1..members).map(leaf)).collect(), form, rounds }
    }

    /// Along a ring in one direction.
    fn one_way(members: usize, form: Form, rounds: u8) -> Case {
        let channels = |me: usize| {
            let (before, after) = ((me + members - 1) % members, (me + 1) % members);
            vec![Link::new(after, 1, true, false), Link::new(before, 0, false, true)]
        };
        Case { channels: (0..members).map(channels).collect(), form, rounds }
    }

    /// Member 0 sends to 1 and 2, who send nothing.
    fn fan(form: Form, rounds: u8) -> Case {
        let channels = vec![
            vec![Link::new(1, 0, true, false), Link::new(2, 0, true, false)],
            vec![Link::new(0, 0, false, true)],
            vec![Link::new(0, 1, false, true)],
        ];
        Case { channels, form, rounds }
    }

    fn with_slots(mut self, slots: u64) -> Case {
        for data in self.channels.iter_mut().flatten().filter_map(|link| link.edges.data.as_mut()) {
            *data = slots;
        }
        self
    }
}

#[test]
fn no_order_of_events_breaks_an_exchange() {
    let cases = [
        ("ring of 1, fast", Case::ring(1, Form::Fast, 1, 3)),
        ("ring of 1, mrc", Case::ring(1, Form::Mrc, 2, 3)),
        ("ring of 2, fast", Case::ring(2, Form::Fast, 1, 2)),
        ("ring of 2, mrc", Case::ring(2, Form::Mrc, 1, 3)),
        ("ring of 3, mrc", Case::ring(3, Form::Mrc, 1, 2)),
        ("star of 3, fast", Case::star(3, Form::Fast, 3)),
        ("star of 4, mrc", Case::star(4, Form::Mrc, 2)),
        ("star of 4, two queues", Case::star(4, Form::Queues(2), 2)),
        ("one way round 3, fast", Case::one_way(3, Form::Fast, 3)),
        ("one way round 3, mrc", Case::one_way(3, Form::Mrc, 3)),
        ("fan, fast", Case::fan(Form::Fast, 3)),
        ("fan, mrc", Case::fan(Form::Mrc, 3)),
        ("ring of 2, two slots, mrc", Case::ring(2, Form::Mrc, 2, 2)),
        ("a chain, fast", Case::one_way(2, Form::Fast, 2).with_slots(17)),
    ];
    for (name, case) in cases {
        let states = explore(&case, &case.queues()).unwrap_or_else(|wrong| panic!("{name}: {wrong:?}"));
        println!("{name}: {states} states");
    }
}

/// What was released too early, or too often.
fn released(wrong: &Wrong) -> bool {
    early(wrong) || matches!(wrong, Wrong::Credit { .. })
}

/// Steps done wrong, and how it shows in the smallest case known.
#[test]
fn wrong_programs_are_found() {
    type Mutation = fn(&mut Posting);
    type Look = fn(&Wrong) -> bool;
    let one_more: Mutation = |posting| posting.sps += u8::from(posting.sps > 0 && posting.sps < 15);
    let one_less: Mutation = |posting| posting.sps = posting.sps.saturating_sub(1);
    let lost: Mutation = |posting| posting.sps = 0;
    let stuck: Look = |wrong| matches!(wrong, Wrong::Stuck { .. });
    let cases: [(&str, Case, Mutation, Look); 6] = [
        ("credit one too many, fast", Case::star(3, Form::Fast, 3), one_more, released),
        ("credit one too many, mrc", Case::ring(2, Form::Mrc, 1, 3), one_more, released),
        ("credit one too few, fast", Case::ring(2, Form::Fast, 1, 2), one_less, stuck),
        ("credit one too few, mrc", Case::ring(2, Form::Mrc, 1, 2), one_less, stuck),
        ("lost, fast", Case::one_way(2, Form::Fast, 2), lost, stuck),
        ("lost, mrc", Case::star(3, Form::Mrc, 2), lost, stuck),
    ];
    for (name, case, mutation, wrong) in cases {
        let mut queues = case.queues();
        for step in queues.iter_mut().flat_map(|queue| &mut queue.program.steps) {
            match step {
                Step::Ready { credit, .. } => {
                    let mut posting = Posting::new(Command::Nop).sps(*credit);
                    mutation(&mut posting);
                    *credit = posting.sps;
                }
                Step::Fixed(posting) => mutation(posting),
                Step::End { .. } | Step::Alternating(_) => unreachable!("whole blocks have none"),
            }
        }
        let found = explore(&case, &queues).expect_err(name);
        assert!(wrong(&found), "{name}: {found:?}");
    }
}

/// A NOP less: the first SELF runs before the last READY.
#[test]
fn a_nop_too_few_is_found() {
    let case = Case::star(4, Form::Mrc, 2);
    let mut queues = case.queues();
    let steps = &mut queues[0].program.steps;
    let nop =
        steps.iter().position(|step| step.posting(0).command == Command::Nop).expect("three neighbours, two NOPs");
    steps.remove(nop);
    assert!(matches!(explore(&case, &queues), Err(wrong) if released(&wrong)));
}
