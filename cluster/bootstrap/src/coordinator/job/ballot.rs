//! The votes of an election: whether the ranks that have voted for a standby are the larger part of
//! their job.
//!
//! With several standbys, the rule may hold for at most one of them, regardless of the state known
//! to each, and for none of them while the old coordinator continues. A host counts for a standby
//! only if *all* of its ranks that may run have voted for it; for a coordinator it counts if any of
//! its ranks is present. So no host counts twice. The hosts that count are those that run according
//! to the last epoch that any voter has resumed. A later epoch that some voter has drained for may
//! have been resumed elsewhere, so the voters have to be the larger part according to that epoch,
//! too.

use super::mutant::Mutant;
use crate::wire::Vote;
use std::collections::{HashMap, HashSet};

/// The votes that a standby has received.
#[derive(Debug, Default)]
pub(super) struct Ballot {
    /// By rank, in ascending order.
    pub(super) votes: Vec<Vote>,
    pub(super) mutant: Option<Mutant>,
}

/// The result of counting a ballot.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tally {
    /// All ranks that may run, or have left, have voted.
    pub(super) complete: bool,
    /// The voters are the larger part.
    pub(super) larger: bool,
    /// The number of hosts all of whose ranks have voted.
    pub(super) here: usize,
    /// The number of hosts that may run.
    pub(super) of: usize,
}

impl Ballot {
    /// Adds a vote, which replaces an earlier one of its rank.
    pub(super) fn add(&mut self, vote: Vote) {
        match self.index(vote.rank) {
            Ok(at) => self.votes[at] = vote,
            Err(at) => self.votes.insert(at, vote),
        }
    }

    /// Returns the vote of a rank.
    pub(super) fn vote(&self, rank: u32) -> Option<&Vote> {
        self.index(rank).ok().map(|at| &self.votes[at])
    }

    fn index(&self, rank: u32) -> Result<usize, usize> {
        self.votes.binary_search_by_key(&rank, |vote| vote.rank)
    }

    /// Returns the last epoch that any voter has resumed.
    pub(super) fn epoch(&self) -> u64 {
        self.votes.iter().map(|vote| vote.epoch).max().unwrap_or(0)
    }

    /// Returns the last epoch that any voter knows of.
    pub(super) fn last_epoch(&self) -> u64 {
        let pending = self.votes.iter().flat_map(|vote| &vote.pending).map(|(epoch, _)| *epoch);
        pending.fold(self.epoch(), u64::max)
    }

    /// Returns the ranks that have ended: left (`None`), or lost for a reason.
    pub(super) fn ended(&self) -> HashMap<u32, Option<String>> {
        let mut all = HashMap::new();
        for (rank, lost) in self.votes.iter().flat_map(|vote| &vote.ended) {
            let known: &mut Option<String> = all.entry(*rank).or_default();
            if known.is_none() {
                known.clone_from(lost);
            }
        }
        all
    }

    /// Returns the ranks whose processes have certainly ended.
    pub(super) fn dead(&self) -> HashSet<u32> {
        let all = self.votes.iter().flat_map(|vote| &vote.dead).copied();
        all.filter(|rank| self.vote(*rank).is_none()).collect()
    }

    /// Counts the hosts; `nodes` contains the node of each rank.
    pub(super) fn tally(&self, nodes: &[u32]) -> Tally {
        let epoch = self.epoch();
        let mut gone = self.dead();
        gone.extend(self.ended().into_keys());
        let base = self.side(nodes, &gone, &[]);
        let pending = self.votes.iter().flat_map(|vote| &vote.pending).filter(|(number, _)| *number > epoch);
        let larger_then = |lost: &[u32]| self.side(nodes, &gone, lost).is_larger(self.mutant);
        let forgets = self.mutant == Some(Mutant::PendingForgotten);
        let larger =
            base.is_larger(self.mutant) && (forgets || pending.map(|(_, lost)| lost).all(|lost| larger_then(lost)));
        // A rank that has left is not part of this, but may be communicated with until all have
        // ended.
        let (dead, ended) = (self.dead(), self.ended());
        let is_there = |rank: &u32| !dead.contains(rank) && !matches!(ended.get(rank), Some(Some(_)));
        let complete = (0..nodes.len() as u32).filter(is_there).all(|rank| self.vote(rank).is_some());
        Tally { complete, larger, here: base.here.len(), of: base.running.len() }
    }

    fn side(&self, nodes: &[u32], gone: &HashSet<u32>, lost: &[u32]) -> Side {
        let (mut running, mut absent, mut some) = (HashSet::new(), HashSet::new(), HashSet::new());
        for (rank, node) in (0..).zip(nodes) {
            if gone.contains(&rank) || lost.contains(&rank) {
                continue;
            }
            running.insert(*node);
            match self.vote(rank).is_some() {
                true => some.insert(*node),
                false => absent.insert(*node),
            };
        }
        let by_halves = self.mutant == Some(Mutant::HostsByHalves);
        let here = if by_halves { some } else { &running - &absent };
        Side { running, here }
    }
}

/// The hosts of one side.
struct Side {
    /// The hosts that may run.
    running: HashSet<u32>,
    /// The hosts that are present.
    here: HashSet<u32>,
}

impl Side {
    /// Returns whether it is the larger part: more than half of the hosts, or half of them
    /// including rank 0's.
    fn is_larger(&self, mutant: Option<Mutant>) -> bool {
        let (here, all) = (2 * self.here.len(), self.running.len());
        here > all || (here == all && (self.here.contains(&0) || all == 0 || mutant == Some(Mutant::AnyHalf)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ballot(votes: impl IntoIterator<Item = Vote>) -> Ballot {
        let mut ballot = Ballot::default();
        votes.into_iter().for_each(|vote| ballot.add(vote));
        ballot
    }

    fn plain(rank: u32) -> Vote {
        Vote { rank, ..Vote::default() }
    }

    fn is_larger(nodes: &[u32], votes: impl IntoIterator<Item = Vote>) -> bool {
        ballot(votes).tally(nodes).larger
    }

    #[test]
    fn more_than_half_of_the_hosts_or_half_with_rank_0() {
        let nodes = [0, 0, 1, 1, 2, 3];
        assert!(is_larger(&nodes, [2, 3, 4, 5].map(plain)));
        assert!(is_larger(&nodes, [0, 1, 2, 3].map(plain)));
        assert!(!is_larger(&nodes, [4, 5, 2, 0].map(plain)), "two hosts are here by halves");
        assert!(!is_larger(&nodes[1..], [4, 3].map(plain)), "half, without the host of number 0");
        assert!(is_larger(&[], []));
        let tally = ballot([0, 1, 2].map(plain)).tally(&nodes);
        assert_eq!(tally, Tally { complete: false, larger: false, here: 1, of: 4 });
    }

    #[test]
    fn hosts_of_ranks_that_have_ended_do_not_count() {
        let nodes = [0, 1, 2, 2];
        let left = Vote { ended: vec![(0, None)], ..plain(1) };
        assert!(!is_larger(&nodes, [left.clone()]));
        assert!(is_larger(&nodes, [left.clone(), Vote { ended: vec![(3, Some("failed".into()))], ..plain(2) }]));
        assert!(!ballot([left]).tally(&nodes).complete);
        let dead = Vote { dead: vec![0, 2, 3], ..plain(1) };
        assert!(ballot([dead]).tally(&nodes).complete);
    }

    #[test]
    fn an_epoch_that_may_have_ended_elsewhere_counts_too() {
        // Rank 2 has drained for the loss of 3 and 4, from which 0 and 1 may have resumed.
        let drained = Vote { pending: vec![(1, vec![3, 4])], ..plain(2) };
        let votes = [drained, plain(3), plain(4)];
        assert!(!is_larger(&[0, 1, 2, 3, 4], votes.clone()));
        assert_eq!(ballot(votes.clone()).last_epoch(), 1);
        // If a later epoch has certainly ended, the pending one does not count.
        let resumed = Vote { epoch: 2, ended: vec![(0, Some("killed".into()))], ..plain(3) };
        assert!(is_larger(&[0, 1, 2, 3, 4], [votes[0].clone(), resumed, plain(4)]));
    }
}
