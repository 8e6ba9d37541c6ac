//! A job of the locks' own code, and the same job of the model.

use crate::{
    mutant::{Step, Subject},
    nodes_cases::{self, Which},
    program::{self, Run},
};
use explore::Explorer;
use rdma_fabric::{Fabric, RemoteAddr};
use twin::{Job, Lock, Role, Word};

/// What both do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Same {
    pub(crate) lock: Lock,
    pub(crate) roles: &'static [Role],
    /// The node of each rank, for a lock that knows nodes.
    pub(crate) nodes: &'static [u8],
    pub(crate) rounds: usize,
}

/// Offsets of the code's words, as `queue/layout.rs` has them.
const PUBLISHED: u64 = 64;
const NODE: u64 = 80;
const QUEUE: u64 = 128;
const LEVEL: u64 = 64;

impl Same {
    pub(crate) fn model(&self) -> Job {
        Job::new(self.lock, self.roles, self.rounds).nodes(self.nodes)
    }

    fn subject(&self) -> Option<Subject> {
        Some(match self.lock {
            Lock::Flat => Subject::Flat,
            Lock::Packed => Subject::Packed,
            Lock::WritersFirst => Subject::WritersFirst,
            Lock::Fair => Subject::Fair,
            Lock::Aggregated => return None,
        })
    }

    fn roles(&self) -> &'static [program::Role] {
        let role = |role: &Role| if *role == Role::Read { program::Role::Read } else { program::Role::Write };
        Vec::leak(self.roles.iter().map(role).collect())
    }

    fn case(&self) -> nodes_cases::Case {
        let nodes = Vec::leak(self.nodes.iter().map(|node| u32::from(*node)).collect());
        let (roles, rounds) = (self.roles(), self.rounds);
        nodes_cases::Case { which: Which::Nodes, nodes, roles, rounds, at_least: 0, quick: true }
    }

    pub(crate) fn explorer(&self) -> Explorer<'static> {
        match self.subject() {
            Some(_) => program::explorer(self.roles()),
            None => nodes_cases::explorer(&self.case()),
        }
    }

    /// The code, with a step done wrong if the lock has a [`Subject`].
    pub(crate) fn program(&self, step: Step) -> Box<dyn Fn(Fabric) -> Run> {
        match self.subject() {
            Some(subject) => Box::new(program::job(subject, self.roles(), self.rounds, step)),
            None => Box::new(nodes_cases::job(&self.case(), None)),
        }
    }

    /// The model's word for one of the code's; `None` if it is one that only its owner's CPU uses.
    pub(crate) fn word(&self, addr: RemoteAddr) -> Option<Word> {
        if addr.region.index == 1 {
            return (addr.offset == 0).then_some(Word::Data);
        }
        let rank = addr.rank.number() as u8;
        let reads = self.roles[rank as usize] == Role::Read;
        let mut offset = addr.offset;
        let mut of_level = false;
        if self.lock == Lock::Aggregated {
            match offset {
                0..QUEUE => of_level = true,
                QUEUE.. if offset < QUEUE + LEVEL => {
                    let (node, word) = (self.nodes[rank as usize], (offset - QUEUE) / 8);
                    return Some(Word::Level { node, word: word as u8 });
                }
                _ => offset -= QUEUE + LEVEL,
            }
        }
        if offset < 32 && !of_level {
            return Some(Word::Home((offset / 8) as u8));
        }
        if (PUBLISHED..NODE).contains(&offset) {
            return None;
        }
        let node = offset.checked_sub(NODE).unwrap_or_else(|| panic!("offset {offset} is of no word of the model"));
        let slot = node / 16;
        let cell = match (self.lock, reads, of_level) {
            (Lock::Aggregated, true, true) => slot + 1,
            (Lock::Aggregated, true, false) => slot,
            _ => slot,
        };
        assert!(cell < 2, "the model has no room for node {slot} of rank {rank}");
        let cell = cell as u8;
        Some(if offset.is_multiple_of(16) { Word::Wake(rank, cell) } else { Word::Next(rank, cell) })
    }
}
