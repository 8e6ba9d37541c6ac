//! Locks that are aware of nodes: correct, mutated, and when ranks die.

mod mutants;

use super::{
    crashes::{names_a_loss, once},
    mutants::{assert_idle, in_lock, lock_words},
    program::{
        Role::{self, *},
        of_any_lock, part,
    },
};
use crate::exploration::{
    Expected, Exploration, Run,
    Size::{self, *},
};
use explore::{Explorer, Probe, View, mutant::mutated};
use mutants::{MutatedNodes, NodesMutant};
use rdma_fabric::{Fabric, Rank};
use rma_lock::locks::{Aggregated, LockKind, RpLock};
use std::cell::Cell;

/// A job of ranks on nodes.
#[derive(Clone, Copy, Debug)]
pub struct NodesCase {
    /// [`LockKind::ByNode`], [`LockKind::Tree`] or [`LockKind::ByNodeBackOff`].
    pub lock: LockKind,
    /// The node of each rank.
    pub nodes: &'static [u32],
    /// The role of each rank.
    pub roles: &'static [Role],
    /// The number of rounds.
    pub rounds: usize,
}

const fn nodes(nodes: &'static [u32], roles: &'static [Role], rounds: usize) -> NodesCase {
    NodesCase { lock: LockKind::ByNode, nodes, roles, rounds }
}

/// Returns a job with a tree of radix 2.
const fn tree(nodes: &'static [u32], roles: &'static [Role], rounds: usize) -> NodesCase {
    NodesCase { lock: LockKind::Tree { radix: 2 }, nodes, roles, rounds }
}

const fn back_off(nodes: &'static [u32], roles: &'static [Role], rounds: usize) -> NodesCase {
    NodesCase { lock: LockKind::ByNodeBackOff, nodes, roles, rounds }
}

/// Jobs, each with its minimum number of states and its size.
const CASES: &[(NodesCase, u64, Size)] = &[
    (nodes(&[0, 0], &[Read, Read], 2), 2_900, Test),
    (nodes(&[0, 0], &[Read, Write], 2), 800, Test),
    (nodes(&[0, 0, 1], &[Read, Read, Write], 1), 5_900, Test),
    (nodes(&[0, 0, 0], &[Read, Read, Read], 1), 34_300, Quick),
    (nodes(&[0, 1, 1], &[Write, Read, Read], 1), 5_900, Test),
    (nodes(&[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1), 9_800, Test),
    (nodes(&[0, 1], &[ReadAndPut, WriteAndLook], 2), 1_000, Test),
    (tree(&[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1), 9_800, Test),
    (back_off(&[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1), 7_000, Test),
    (nodes(&[0, 0, 1], &[ReadBefore, Read, Write], 1), 9_400, Test),
    (nodes(&[0, 0], &[ReadBefore, ReadBefore], 2), 9_700, Test),
    (nodes(&[0, 0], &[ReadDropped, Read], 1), 8_300, Test),
    (nodes(&[0, 0, 1], &[ReadDropped, Read, Write], 1), 910_000, Full),
    (nodes(&[0, 0, 1], &[TryRead, Read, Write], 1), 4_300, Test),
    (nodes(&[0, 0, 1], &[ReadReleaseDropped, Read, Write], 1), 161_000, Quick),
    (back_off(&[0, 0], &[Read, Read], 2), 1_400, Test),
    (back_off(&[0, 0, 1], &[Read, Read, Write], 1), 3_600, Test),
    (tree(&[0, 0, 1], &[Read, Read, Read], 1), 9_100, Test),
    (nodes(&[0, 0, 1, 1], &[Read, Read, Read, Write], 1), 1_035_900, Full),
    (nodes(&[0, 0, 1, 1], &[Read, Read, Write, Write], 1), 157_500, Full),
    (nodes(&[0, 0, 1], &[Read, Read, Write], 2), 399_000, Full),
    (nodes(&[0, 0, 0, 1], &[ReadBefore, Read, Read, Write], 1), 1_288_000, Full),
    (nodes(&[0, 0, 0], &[ReadBefore, ReadBefore, ReadBefore], 1), 104_300, Full),
    (tree(&[0, 0, 1, 2], &[Read, Read, Read, Write], 1), 1, Full),
    // Larger than the largest number of states exhausted so far.
    (nodes(&[0, 0, 1, 1, 1], &[Read, Read, Read, Read, Write], 1), 1, Full),
    (nodes(&[0, 0, 1, 1, 1], &[Read, Read, Read, Write, Write], 1), 1, Full),
];

const MUTANTS: &[(NodesMutant, NodesCase)] = &[
    (NodesMutant::OthersIgnored, nodes(&[0, 0, 1], &[Read, Read, Write], 1)),
    (NodesMutant::ComparisonIgnored, nodes(&[0, 0, 1], &[Read, Read, Write], 1)),
    (NodesMutant::DataNotFlushed, nodes(&[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1)),
    (NodesMutant::FlushNotAwaited, nodes(&[0, 0, 1], &[ReadAndPut, ReadAndPut, WriteAndLook], 1)),
    (NodesMutant::FlushNotAwaited, nodes(&[0, 1], &[ReadAndPut, WriteAndLook], 1)),
    (NodesMutant::HeldTooEarly, nodes(&[0, 0, 1], &[Read, Read, Write], 1)),
    (NodesMutant::WakeDropped, nodes(&[0, 0], &[Read, Read], 1)),
    (NodesMutant::NoSecondLook, nodes(&[0, 0], &[Read, Read], 1)),
    (NodesMutant::GivenUpSilently, nodes(&[0, 0, 1], &[ReadBefore, Read, Write], 1)),
    (NodesMutant::OfferTakenForGrant, nodes(&[0, 0, 1], &[ReadBefore, Read, Write], 1)),
    (NodesMutant::ClaimedTwice, nodes(&[0, 0, 0, 1], &[ReadBefore, Read, Read, Write], 1)),
    (NodesMutant::AbandonedTakenForWoken, nodes(&[0, 0], &[ReadBefore, ReadBefore], 1)),
    (NodesMutant::Forgotten, nodes(&[0, 0, 1], &[ReadDropped, Read, Write], 1)),
    (NodesMutant::Forgotten, nodes(&[0, 0, 1], &[ReadReleaseDropped, Read, Write], 1)),
];

/// More ranks and rounds than can be exhausted.
const AT_RANDOM: &[NodesCase] = &[
    nodes(&[0, 0, 1, 1, 1], &[Read, Read, Read, Read, Write], 3),
    nodes(&[0, 0, 0, 1, 1, 1], &[ReadBefore, ReadDropped, Read, TryRead, WriteBefore, Write], 3),
    nodes(&[0, 0, 0, 1, 1, 1], &[ReadBefore, ReadBefore, ReadBefore, ReadDropped, ReadDropped, Write], 3),
    tree(&[0, 0, 1, 1, 2, 2], &[Read, ReadBefore, ReadDropped, Read, TryRead, Write], 3),
    tree(&[0, 0, 1, 2, 3, 3], &[ReadAndPut, ReadAndPut, ReadAndPut, ReadAndPut, Read, WriteAndLook], 3),
];

/// Jobs, each with the rank that may die and its minimum number of states. The ranks of a node
/// synchronise in words of its first rank; here that rank dies, or another one. The lock is not
/// recovered, but no rank waits forever, and no rank enters together with a dead holder.
const MORTAL: &[(NodesCase, u32, u64)] = &[
    (nodes(&[0, 0], &[Read, Read], 1), 0, 500),
    (nodes(&[0, 1, 1], &[Write, Read, Read], 1), 1, 1_000),
    (nodes(&[0, 0], &[Read, Read], 1), 1, 500),
    (nodes(&[0, 0], &[Read, Write], 1), 1, 500),
    (nodes(&[0, 1, 1], &[Write, Read, Read], 1), 2, 1_000),
];

/// The bytes of the words of a lock with queues, at each rank.
const QUEUE: u64 = 128;

const LINE: u64 = 64;

impl NodesCase {
    fn name(&self) -> String {
        let roles: Vec<_> = self.roles.iter().zip(self.nodes).map(|(role, node)| format!("{role:?}@{node}")).collect();
        let lock = match self.lock {
            LockKind::ByNodeBackOff => "BackOff",
            LockKind::Tree { .. } => "Tree",
            _ => "Nodes",
        };
        format!("{lock}: {} x{}", roles.join(" "), self.rounds)
    }

    /// Returns the offset of the lock above the levels of nodes.
    fn above(&self) -> u64 {
        let levels = match (self.lock, self.roles.len()) {
            (LockKind::Tree { .. }, 3..=4) => 2,
            (LockKind::Tree { .. }, 5..) => 3,
            _ => 1,
        };
        QUEUE + LINE * levels
    }

    /// Returns whether the words of the queue nodes below and of the reader-preference lock above
    /// are idle, and all others are 0.
    fn is_idle(&self, view: &View<'_>) -> bool {
        let (above, queue_above) = (self.above(), self.lock != LockKind::ByNodeBackOff);
        assert_idle(lock_words(view, 0, QUEUE));
        if queue_above {
            assert_idle(lock_words(view, above, above + QUEUE));
        }
        let in_queue = |offset: u64| offset < QUEUE || queue_above && (above..above + QUEUE).contains(&offset);
        view.words().all(|(addr, value)| !in_lock(addr) || value == 0 || in_queue(addr.offset))
    }

    /// Returns an explorer with the invariants of the job without deaths.
    pub fn explorer(self) -> Explorer<'static> {
        self.explorer_ending(move |view| self.is_idle(view))
    }

    /// Returns an explorer with the invariants of the job; `idle` must hold at the end.
    fn explorer_ending(&self, idle: impl Fn(&View<'_>) -> bool + 'static) -> Explorer<'static> {
        let above = self.above();
        of_any_lock(self.roles)
            .nodes(self.nodes)
            .name(0, 48, "wake 4")
            .name(0, 80, "wake")
            .name(0, 88, "next")
            .name(0, 128, "node")
            .name(0, 136, "waiting")
            .name(0, above, "count")
            .name(0, above + 8, "readers")
            .name(0, above + 16, "tail")
            .name(0, above + 24, "head")
            .at_end("idle", idle)
    }

    /// Returns the job's program.
    pub fn program(self) -> impl Fn(Fabric) -> Run {
        self.program_with(None)
    }

    fn program_with(self, mutant: Option<NodesMutant>) -> impl Fn(Fabric) -> Run {
        move |fabric| {
            let (probe, me) = (Probe::of(&fabric), fabric.rank().index());
            let role = self.roles[me];
            let fabric = match mutant {
                None => fabric,
                Some(mutant) => {
                    let first = self.nodes.iter().position(|node| *node == self.nodes[me]).unwrap_or(me);
                    let (first, opened) = (Rank::new(first as u32), Cell::new(false));
                    mutated(fabric, MutatedNodes { mutant, first, opened, reads: !role.writes() })
                }
            };
            part(fabric, self.lock, probe, role, self.rounds)
        }
    }

    /// Returns the job in which `mortal` may die.
    fn in_which_dies(self, mortal: u32, at_least: u64) -> Exploration {
        let (name, mortal) = (format!("{}, rank {mortal} may die", self.name()), Rank::new(mortal));
        let explorer = move || {
            let ends = move |view: &View<'_>| view.is_lost(mortal) || self.is_idle(view);
            self.explorer_ending(ends).mortal(mortal).possible("it dies", move |view| view.is_lost(mortal))
        };
        let program = move |fabric: Fabric| {
            let role = self.roles[fabric.rank().index()];
            Box::pin(async move {
                match once::<Aggregated<RpLock>>(fabric, role).await {
                    Err(error) if names_a_loss(&*error) => Ok(()),
                    end => end,
                }
            }) as Run
        };
        let size = if self.roles.len() > 2 { Full } else { Test };
        Exploration::new(name, Expected::Exhausted { at_least }, explorer, program).of_size(size)
    }
}

/// Returns the explorations of locks that are aware of nodes.
pub(super) fn explorations() -> Vec<Exploration> {
    let exploration = |name: String, case: NodesCase, mutant, expected| {
        Exploration::new(name, expected, move || case.explorer(), case.program_with(mutant))
    };
    let right = CASES.iter().map(|&(case, at_least, size)| {
        exploration(case.name(), case, None, Expected::Exhausted { at_least }).of_size(size)
    });
    let wrong = MUTANTS.iter().map(|&(mutant, case)| {
        let name = format!("{mutant:?} ({})", case.name());
        // It is found only after half a million states.
        let size = if mutant == NodesMutant::ClaimedTwice { Quick } else { Test };
        exploration(name, case, Some(mutant), Expected::Violated { saying: "", within: 1_000_000 }).of_size(size)
    });
    let random = AT_RANDOM.iter().map(|&case| exploration(case.name(), case, None, Expected::Sampled { runs: 2_000 }));
    let mortal = MORTAL.iter().map(|&(case, rank, at_least)| case.in_which_dies(rank, at_least));
    right.chain(wrong).chain(random).chain(mortal).collect()
}
