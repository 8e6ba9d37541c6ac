//! A rank's record of its job, for the case that it loses the coordinator.

use crate::wire::{Down, Vote};
use std::{collections::HashMap, sync::Arc};

/// The number of ranks of a host that are candidates for the next coordinator.
const STANDBYS: usize = 4;

/// The state of the job that a rank has received.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    pub(crate) rank: u32,
    pub(crate) nodes: Arc<[u32]>,
    /// The ranks that have ended: left (`None`), or lost for a reason.
    pub(crate) ended: HashMap<u32, Option<String>>,
    /// The last epoch that was resumed, and the resuming message.
    epoch: u64,
    resume: Vec<u8>,
    /// Later epochs whose drain was received, with the ranks lost in them.
    pending: Vec<(u64, Vec<u32>)>,
}

impl Memory {
    pub(crate) fn new(rank: u32, nodes: Arc<[u32]>) -> Self {
        Self { rank, nodes, ended: HashMap::new(), epoch: 0, resume: Vec::new(), pending: Vec::new() }
    }

    /// Records a message, given also as its bytes; returns whether it contains anything new.
    pub(crate) fn note(&mut self, down: &Down, message: &[u8]) -> bool {
        match down {
            Down::Left { rank } => self.note_end(*rank, None),
            Down::Lost { rank, text } => self.note_end(*rank, Some(text.clone())),
            Down::Drain { epoch, lost } => {
                self.pending.push((*epoch, lost.clone()));
                true
            }
            Down::Resume { epoch, lost, .. } => {
                (self.epoch, self.resume) = (*epoch, message.to_vec());
                self.pending.retain(|(pending, _)| pending > epoch);
                for (rank, text) in lost {
                    self.note_end(*rank, Some(text.clone()));
                }
                true
            }
            _ => true,
        }
    }

    /// Records that a rank has ended; returns whether that is new.
    pub(crate) fn note_end(&mut self, rank: u32, lost: Option<String>) -> bool {
        let news = !self.ended.contains_key(&rank);
        self.ended.entry(rank).or_insert(lost);
        news
    }

    /// Returns the ranks that have not ended.
    pub(crate) fn running(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.nodes.len() as u32).filter(|rank| !self.ended.contains_key(rank))
    }

    /// Returns the candidates for the next coordinator, in an order that is the same for all ranks:
    /// the first rank of each host, then the second of each, and so on. Ranks that have left are
    /// included, since other ranks may be notified of that late.
    pub(crate) fn candidates(&self) -> Vec<u32> {
        let mut of_host: HashMap<u32, usize> = HashMap::new();
        let mut all = Vec::new();
        for (rank, node) in (0..).zip(&*self.nodes) {
            if !matches!(self.ended.get(&rank), Some(Some(_))) {
                let before = of_host.entry(*node).or_default();
                all.push((*before, *node, rank));
                *before += 1;
            }
        }
        all.retain(|(before, ..)| *before < STANDBYS);
        all.sort_unstable();
        all.into_iter().map(|(.., rank)| rank).collect()
    }

    /// Returns the vote for a standby; `dead` contains the ranks whose processes have certainly
    /// ended, `round` is the number of the next exchange.
    pub(crate) fn vote(&self, dead: Vec<u32>, round: u64) -> Vote {
        let ended = |rank| Some((rank, self.ended.get(&rank)?.clone()));
        Vote {
            rank: self.rank,
            ended: (0..self.nodes.len() as u32).filter_map(ended).collect(),
            epoch: self.epoch,
            resume: self.resume.clone(),
            pending: self.pending.clone(),
            dead,
            round,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standbys_of_all_hosts_come_in_turn_apart_from_those_that_are_lost() {
        let mut memory = Memory::new(4, [0, 1, 0, 2, 1, 0, 0, 0].into());
        memory.note_end(1, Some("killed".into()));
        memory.note_end(0, None);
        assert_eq!(memory.candidates(), [0, 4, 3, 2, 5, 6]);
        assert_eq!(memory.running().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_vote_tells_what_may_have_been_resumed_elsewhere() {
        let mut memory = Memory::new(0, [0, 1, 2].into());
        let drain = |epoch, lost: &[u32]| Down::Drain { epoch, lost: lost.to_vec() };
        memory.note(&drain(1, &[1]), &[]);
        memory.note(&drain(2, &[1, 2]), &[]);
        assert_eq!(memory.vote(vec![], 0).pending, [(1, vec![1]), (2, vec![1, 2])]);
        let resume = Down::Resume { epoch: 1, contacts: vec![], lost: vec![(1, "killed".into())] };
        memory.note(&resume, &[9]);
        let vote = memory.vote(vec![], 0);
        assert_eq!((vote.epoch, vote.resume, vote.pending), (1, vec![9], vec![(2, vec![1, 2])]));
        assert!(!memory.note(&Down::Lost { rank: 1, text: "again".into() }, &[]), "that is no news");
    }
}
