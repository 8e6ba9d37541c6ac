//! Random posts and advances, compared with a sequential model of the rules; and mutated rules,
//! which must be detected.

use super::script::{AT, OWN, Seen, Step, nop, run, session, word};
use crate::start::fx100;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRng, TestRunner},
};
use rdma_fabric::{
    Amo,
    control_queue::{Blocks, Command, Inline, Pointers, Posting, Width},
};
use std::{collections::VecDeque, time::Duration};
use tofu2_virt::{Job, NetworkModel};

/// One random step.
#[derive(Clone, Copy, Debug)]
enum Act {
    Nop,
    /// Posts a put of word 0 to word `to` that gives the queue itself `own` slots of credit.
    Forward {
        to: u8,
        own: u8,
    },
    /// Posts a put of two slots to word `to`.
    Long {
        to: u8,
    },
    /// Posts an add to word `to`.
    Add {
        to: u8,
    },
    /// Posts a put of blocks of zeros to the words from `to` on.
    Blocks {
        to: u8,
        count: u8,
    },
    /// Posts a compare-and-swap of two slots: word `to` from 0 to 1.
    Swap {
        to: u8,
    },
    /// Posts a get of word 0 into word `to`.
    Get {
        to: u8,
    },
    /// A put of word 0 arrives and advances the queue.
    Feed {
        value: u64,
        sps: u8,
    },
    /// A put of several packets arrives and advances the queue.
    Big {
        sps: u8,
    },
}

/// The correct rules, or mutated ones.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rules {
    True,
    SpsPerPacket,
    AdvanceBeforeData,
    BooleanCredit,
    CommandsInsteadOfSlots,
}

const PACKETS: u64 = 3;

struct Model {
    rules: Rules,
    depth: u64,
    read: u64,
    write: u64,
    offset: u64,
    /// The commands posted, block by block, with their slots.
    waiting: VecDeque<(Act, u64)>,
    words: Vec<u64>,
}

impl Model {
    fn new(rules: Rules, depth: u32) -> Self {
        let waiting = VecDeque::new();
        Model { rules, depth: depth.into(), read: 0, write: 0, offset: 0, waiting, words: vec![0; 64] }
    }

    fn advance(&mut self, slots: u64) {
        self.offset += slots;
        if self.rules == Rules::BooleanCredit {
            self.offset = self.offset.min(self.read + 1);
        }
        while self.offset - self.read >= self.depth {
            self.offset -= self.depth;
        }
        self.go();
    }

    /// Runs the commands that may run.
    fn go(&mut self) {
        while let Some(&(act, slots)) = self.waiting.front() {
            let needs = if self.rules == Rules::CommandsInsteadOfSlots { 1 } else { slots };
            if self.read + needs > self.offset {
                return;
            }
            self.waiting.pop_front();
            self.read += slots;
            match act {
                Act::Forward { to, own } => {
                    self.words[usize::from(to)] = self.words[0];
                    self.advance(own.into());
                }
                Act::Long { to } => self.words[usize::from(to)..][..2].fill(u64::from_ne_bytes([3; 8])),
                Act::Add { to } => self.words[usize::from(to)] += 1,
                Act::Get { to } => self.words[usize::from(to)] = self.words[0],
                Act::Blocks { to, .. } => self.words[usize::from(to)] = 0,
                Act::Swap { to } if self.words[usize::from(to)] == 0 => self.words[usize::from(to)] = 1,
                _ => {}
            }
        }
    }

    fn act(&mut self, act: Act) {
        let slots = match act {
            Act::Long { .. } | Act::Swap { .. } => 2,
            Act::Blocks { count, .. } => count.into(),
            Act::Feed { value, sps } => {
                if self.rules == Rules::AdvanceBeforeData {
                    self.advance(sps.into());
                }
                self.words[0] = value;
                if self.rules != Rules::AdvanceBeforeData {
                    self.advance(sps.into());
                }
                return;
            }
            Act::Big { sps } => {
                let times = if self.rules == Rules::SpsPerPacket { PACKETS } else { 1 };
                return (0..times).for_each(|_| self.advance(sps.into()));
            }
            _ => 1,
        };
        if self.write - self.read + slots >= self.depth {
            return;
        }
        self.write += slots;
        if let Act::Blocks { to, count } = act {
            self.waiting.extend((0..count).map(|block| (Act::Blocks { to: to + block, count: 1 }, 1)));
        } else {
            self.waiting.push_back((act, slots));
        }
        self.go();
    }
}

/// Returns the post of this act to the queue.
fn step(act: Act) -> Step {
    let at = |word: u8| AT + 8 * u64::from(word);
    Step::Own(match act {
        Act::Nop => nop(0),
        Act::Forward { to, own } => Posting::new(Command::put(OWN, AT, at(to), 8)).sps(own),
        Act::Long { to } => Command::PutInline { to: OWN, bytes: Inline::new(&[3; 16]).unwrap(), at: at(to) }.into(),
        Act::Add { to } => Command::Atomic { to: OWN, at: at(to), width: Width::Eight, amo: Amo::Add(1) }.into(),
        Act::Blocks { to, count } => {
            let blocks = Blocks { count: count.into(), stride: 8 };
            Command::Put { to: OWN, from: AT + (1 << 19), at: at(to), len: 8, blocks }.into()
        }
        Act::Swap { to } => {
            Command::Atomic { to: OWN, at: at(to), width: Width::Eight, amo: Amo::CompareSwap { expected: 0, new: 1 } }
                .into()
        }
        Act::Get { to } => Command::get(OWN, AT, at(to), 8).into(),
        Act::Feed { value, sps } => return Step::Send(Posting::new(word(OWN, value, AT)).sps(sps)),
        Act::Big { sps } => {
            let put = Command::put(OWN, AT + (1 << 20), AT + (2 << 20), 1920 * PACKETS as u32);
            return Step::Send(Posting::new(put).sps(sps));
        }
    })
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    // Each kind of command has its own words, so that commands in flight together commute.
    let act = prop_oneof![
        Just(Act::Nop),
        (1u8..8, 0u8..3).prop_map(|(to, own)| Act::Forward { to, own }),
        (8u8..14).prop_map(|to| Act::Long { to: to & !1 }),
        (16u8..20).prop_map(|to| Act::Add { to }),
        (24u8..28, 1u8..5).prop_map(|(to, count)| Act::Blocks { to, count }),
        (32u8..36).prop_map(|to| Act::Swap { to }),
        (40u8..44).prop_map(|to| Act::Get { to }),
        (1u64..1000, 0u8..5).prop_map(|(value, sps)| Act::Feed { value, sps }),
        (1u64..1000, 0u8..5).prop_map(|(value, sps)| Act::Feed { value, sps }),
        (0u8..4).prop_map(|sps| Act::Big { sps }),
    ];
    prop::collection::vec(act, 0..40)
}

/// Checks that queue and model agree after each step.
fn agree(job: &Job<'_>, acts: &[Act], depth: u32, rules: Rules) -> Result<(), String> {
    let steps: Vec<Step> = acts.iter().map(|&act| step(act)).collect();
    let mut model = Model::new(rules, depth);
    for (number, (seen, &act)) in run(job, session(depth), &steps).into_iter().zip(acts).enumerate() {
        model.act(act);
        let Model { read, write, offset: scheduled, .. } = model;
        let Seen { pointers, words, .. } = seen;
        let want = Pointers { read, write, scheduled };
        if pointers != want || words != model.words {
            return Err(format!(
                "after step {number}, {act:?}: {pointers:?}, not {want:?}\n{words:?}\n{:?}",
                model.words
            ));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn queues_agree_with_a_sequential_model(
        acts in acts(), routed: bool, two: bool, jitter in 0u64..2, shuffle: bool, seed: u64,
    ) {
        let network = if routed { NetworkModel::Router } else { NetworkModel::Latency };
        let job = fx100(1 + usize::from(two)).network(network).jitter(Duration::from_nanos(300 * jitter));
        // Credit stays within the ring: 40 steps of at most 4, and the queue's own credit of at
        // most 2.
        let agreed = agree(&job.shuffle_ties(shuffle).seed(seed), &acts, 256, Rules::True);
        prop_assert!(agreed.is_ok(), "{}", agreed.unwrap_err());
    }

    /// Small rings, which fill up and wrap around. Queues give themselves no credit here, since its
    /// arrival time would matter.
    #[test]
    fn small_rings_fill_and_wrap_as_the_model_does(acts in acts(), depth in 2u32..5) {
        let acts: Vec<Act> = acts
            .into_iter()
            .map(|act| if let Act::Forward { to, .. } = act { Act::Forward { to, own: 0 } } else { act })
            .collect();
        let agreed = agree(&fx100(1), &acts, 1 << depth, Rules::True);
        prop_assert!(agreed.is_ok(), "{}", agreed.unwrap_err());
    }
}

/// Mutants: the random steps distinguish the queue from one with mutated rules.
#[test]
fn wrong_rules_are_noticed() {
    use Rules::{AdvanceBeforeData, BooleanCredit, CommandsInsteadOfSlots, SpsPerPacket};
    for rules in [SpsPerPacket, AdvanceBeforeData, BooleanCredit, CommandsInsteadOfSlots] {
        let config = Config { cases: 150, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(Default::default()));
        let found = runner.run(&acts(), |acts| {
            let agreed = agree(&fx100(1), &acts, 256, rules);
            prop_assert!(agreed.is_ok(), "{}", agreed.unwrap_err());
            Ok(())
        });
        assert!(found.is_err(), "{rules:?} is not noticed");
    }
}
