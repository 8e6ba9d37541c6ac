//! The explicit-state models of the queue-based locks (`onesided-twin`): searched, and checked
//! against runs of the locks' own code.

mod mutants;
mod recorded;
mod reduction;
mod required;
mod short;
mod traces;
mod words;

use checks::{
    exploration::Run,
    lock::{NodesCase, mutants::QueuedMutant, program},
};
use explore::Explorer;
use rdma_fabric::{Caps, Fabric, RemoteAddr};
use rma_lock::locks::LockKind;
use twin::{Lock, Model, Role, Word};

/// A job that runs the locks' own code, and the same job in the model.
#[derive(Clone, Copy, Debug)]
struct Same {
    lock: Lock,
    roles: &'static [Role],
    /// The node of each rank, for a node-aware lock.
    nodes: &'static [u8],
    rounds: usize,
}

/// Returns the lock that a model represents.
fn tested(lock: Lock) -> LockKind {
    lock.name().parse().expect("the name of a lock's type")
}

/// The offsets of the code's words, as in `queue/layout.rs`.
const PUBLISHED: u64 = 64;
const NODE: u64 = 80;
const QUEUE: u64 = 128;
const LEVEL: u64 = 64;

impl Same {
    fn model(&self) -> Model {
        Model::new(self.lock, self.roles, self.rounds).nodes(self.nodes)
    }

    fn roles(&self) -> &'static [program::Role] {
        let role = |role: &Role| if *role == Role::Read { program::Role::Read } else { program::Role::Write };
        Vec::leak(self.roles.iter().map(role).collect())
    }

    /// Returns the job of a node-aware lock.
    fn nodes_case(&self) -> NodesCase {
        let nodes = Vec::leak(self.nodes.iter().map(|node| u32::from(*node)).collect());
        NodesCase { lock: tested(self.lock), nodes, roles: self.roles(), rounds: self.rounds }
    }

    fn explorer(&self) -> Explorer<'static> {
        match self.lock {
            Lock::Aggregated => self.nodes_case().explorer(),
            lock => {
                let mut caps = Caps::weakest();
                caps.immediate = lock == Lock::Passing;
                program::explorer(self.roles()).caps(caps)
            }
        }
    }

    /// Returns the code, with a mutated step unless the lock is node-aware.
    fn program(&self, mutant: Option<QueuedMutant>) -> Box<dyn Fn(Fabric) -> Run> {
        match self.lock {
            Lock::Aggregated => Box::new(self.nodes_case().program()),
            lock => Box::new(program::job(tested(lock), self.roles(), self.rounds, mutant)),
        }
    }

    /// Returns the model's word for a word of the code; `None` if only its owner's CPU uses it.
    fn word(&self, addr: RemoteAddr) -> Option<Word> {
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
