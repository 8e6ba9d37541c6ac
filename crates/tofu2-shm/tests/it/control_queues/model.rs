//! Random posts and advances, compared with a sequential model of a session queue.

use super::fixture::{Fixture, alone_with, completed_tags, session_of};
use proptest::prelude::*;
use rdma_fabric::control_queue::{Command, Posting};
use std::collections::VecDeque;

const DEPTH: u64 = 16;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Posts a command: whether it takes two slots, and whether its start is delayed.
    Post(bool, bool),
    /// Posts a put to the queue itself that gives this much credit.
    PostCredit(u8),
    Advance(u8),
    Poll,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (any::<bool>(), prop::bool::weighted(0.2)).prop_map(|(long, delayed)| Step::Post(long, delayed)),
        1 => (0..4u8).prop_map(Step::PostCredit),
        3 => (0..16u8).prop_map(Step::Advance),
        1 => Just(Step::Poll),
    ]
}

/// A minimal model of a session queue.
#[derive(Default)]
struct Model {
    /// For each command: its slots, its credit for the queue itself, and the value that it stores.
    ring: VecDeque<(u64, u64, u64)>,
    read: u64,
    write: u64,
    started: u64,
    scheduled: u64,
    stored: Vec<u64>,
}

impl Model {
    fn post(&mut self, slots: u64, credit: u64, value: u64, delayed: bool) -> bool {
        if self.write - self.read + slots > DEPTH - 1 {
            return false;
        }
        self.ring.push_back((slots, credit, value));
        self.write += slots;
        if !delayed {
            self.started = self.write;
        }
        self.run();
        true
    }

    fn run(&mut self) {
        while let Some(&(slots, credit, value)) = self.ring.front() {
            if (self.scheduled - self.read) % DEPTH < slots || self.started < self.read + slots {
                return;
            }
            self.ring.pop_front();
            self.stored.push(value);
            // The session offset advances before the read pointer moves to the next command.
            self.scheduled += credit;
            self.read += slots;
        }
    }
}

fn check(fixture: &Fixture, ahead: u32, steps: &[Step]) -> Result<(), TestCaseError> {
    let mut model = Model { scheduled: ahead.into(), ..Model::default() };
    let mut seen = Vec::new();
    for (value, &step) in (1u64..).zip(steps) {
        match step {
            Step::Post(long, delayed) => {
                let command = if long { fixture.store_long(0, value) } else { fixture.store(0, value) };
                let posting = Posting { delay_start: delayed, ..Posting::new(command).tcq(value) };
                let posted = fixture.session.try_post(posting).is_ok();
                prop_assert_eq!(posted, model.post(command.slots(), 0, value, delayed));
            }
            Step::PostCredit(credit) => {
                let posting = Posting::new(fixture.store(0, value)).sps(credit).tcq(value);
                let posted = fixture.session.try_post(posting).is_ok();
                prop_assert_eq!(posted, model.post(1, credit.into(), value, false));
            }
            Step::Advance(slots) => {
                fixture.advance(slots);
                model.scheduled += u64::from(slots);
                model.run();
            }
            Step::Poll => seen.extend(completed_tags(&fixture.session)),
        }
        let pointers = fixture.session.pointers();
        prop_assert_eq!((pointers.read, pointers.write), (model.read, model.write), "after {:?}", step);
        prop_assert_eq!(pointers.scheduled, model.read + (model.scheduled - model.read) % DEPTH);
        prop_assert_eq!(fixture.word(0), model.stored.last().copied().unwrap_or(0));
    }
    seen.extend(completed_tags(&fixture.session));
    prop_assert_eq!(&seen, &model.stored);
    prop_assert_eq!(fixture.session.try_post(Command::Nop.into()).is_ok(), model.post(1, 0, 0, false));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

    #[test]
    fn a_session_queue_does_what_the_model_does(
        ahead in 0..DEPTH as u32, steps in prop::collection::vec(step(), 1..120)
    ) {
        let outcome = std::sync::Mutex::new(Ok(()));
        alone_with(session_of(DEPTH as u32).ahead(ahead), |fixture| {
            *outcome.lock().unwrap() = check(fixture, ahead, &steps);
        });
        outcome.into_inner().unwrap()?;
    }
}
