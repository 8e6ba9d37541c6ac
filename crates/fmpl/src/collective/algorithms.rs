//! The algorithms that the collectives of one communicator use.

use super::central;
use super::choice::{Algorithm, Choice, Collective, Rule, within};
use crate::{FmplError, Result};
use rdma_fabric::Caps;

/// The algorithms of one communicator: for each kind of collective, the available ones, by length.
#[derive(Clone, Debug)]
pub(crate) struct Algorithms {
    rules: Vec<Rule>,
    /// Whether software is allowed where no rule applies.
    software: bool,
    /// For each kind of collective; `None` if hardware is required but none can execute it.
    chosen: [Option<Chosen>; 4],
}

/// How the algorithm of a kind of collective is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    Always(Algorithm),
    ByLength,
}

impl Algorithms {
    /// Chooses among the algorithms that a communicator of `members` members `has`.
    pub(crate) fn new(choice: &Choice, caps: &Caps, members: usize, has: impl Fn(Algorithm) -> bool) -> Self {
        let usable = |rule: &&Rule| {
            let possible = rule.algorithm.can(rule.collective) && has(rule.algorithm);
            possible && within(rule.members, members)
        };
        let rules: Vec<_> = choice.table(caps).rules().iter().filter(usable).cloned().collect();
        let mut algorithms = Algorithms { rules, software: *choice != Choice::Hardware, chosen: [None; 4] };
        algorithms.chosen = Collective::ALL.map(|collective| algorithms.choose(collective).ok());
        algorithms
    }

    fn choose(&self, collective: Collective) -> Result<Chosen> {
        let first = self.at(collective, 0)?;
        // The algorithm does not change at any other length.
        let ends = self.of(collective).flat_map(|rule| [rule.bytes.0, rule.bytes.1]).filter(|end| *end < usize::MAX);
        for end in ends {
            if self.at(collective, end)? != first {
                return Ok(Chosen::ByLength);
            }
        }
        Ok(Chosen::Always(first))
    }

    fn of(&self, collective: Collective) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.collective == collective)
    }

    /// Returns the algorithm for a collective of `bytes` bytes.
    pub(crate) fn at(&self, collective: Collective, bytes: usize) -> Result<Algorithm> {
        if self.some(collective, Algorithm::Central) {
            return if bytes <= central::MOST { Ok(Algorithm::Central) } else { self.otherwise(collective) };
        }
        match self.of(collective).find(|rule| within(rule.bytes, bytes)) {
            Some(rule) => Ok(rule.algorithm),
            None => self.otherwise(collective),
        }
    }

    /// Returns the algorithm of a collective that hardware can't execute.
    pub(crate) fn otherwise(&self, collective: Collective) -> Result<Algorithm> {
        if self.software { Ok(Algorithm::Tree) } else { Err(FmplError::NoHardware { collective }) }
    }

    /// Returns how the algorithm for collectives of a kind is selected.
    #[inline(always)]
    pub(crate) fn chosen(&self, collective: Collective) -> Result<Chosen> {
        self.chosen[collective as usize].ok_or(FmplError::NoHardware { collective })
    }

    /// Returns whether all collectives of a kind use trees.
    #[inline(always)]
    pub(crate) fn is_tree(&self, collective: Collective) -> bool {
        self.chosen[collective as usize] == Some(Chosen::Always(Algorithm::Tree))
    }

    /// Returns whether collectives of a kind use the counter, unless they have too many bytes.
    #[inline(always)]
    pub(crate) fn is_central(&self, collective: Collective) -> bool {
        self.chosen[collective as usize] == Some(Chosen::Always(Algorithm::Central))
    }

    /// Returns whether any collective of this kind uses the algorithm.
    pub(crate) fn some(&self, collective: Collective, algorithm: Algorithm) -> bool {
        self.of(collective).any(|rule| rule.algorithm == algorithm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn algorithms(rules: &[Rule], members: usize) -> Algorithms {
        let choice = Choice::By(rules.iter().cloned().collect());
        Algorithms::new(&choice, &Caps::weakest(), members, |algorithm| algorithm != Algorithm::Gates)
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        use Algorithm::{Colour, Gates, Multicast, Tree};
        use Collective::{Barrier, Broadcast};
        let rules = [
            Rule::new(Barrier, Gates),
            Rule::new(Barrier, Colour).members(3..usize::MAX),
            Rule::new(Broadcast, Multicast).members(2..3).bytes(10..100),
            Rule::new(Broadcast, Tree).bytes(0..1000),
            Rule::new(Broadcast, Colour),
            Rule::new(Broadcast, Multicast).members(2..5),
        ];
        let at = |members, collective, bytes| {
            algorithms(&rules, members).at(collective, bytes).expect("software is allowed")
        };
        assert_eq!([at(2, Barrier, 0), at(3, Barrier, 0)], [Tree, Colour]);
        assert_eq!(
            [0, 9, 10, 99, 100, 1000].map(|bytes| at(2, Broadcast, bytes)),
            [Tree, Tree, Multicast, Multicast, Tree, Multicast]
        );
        assert_eq!([at(4, Broadcast, 1000), at(5, Broadcast, 1000)], [Multicast, Tree]);
        let chosen = |members, collective| algorithms(&rules, members).chosen(collective).expect("software is allowed");
        assert_eq!([chosen(2, Barrier), chosen(3, Barrier)], [Chosen::Always(Tree), Chosen::Always(Colour)]);
        assert_eq!([chosen(2, Broadcast), chosen(4, Broadcast)], [Chosen::ByLength; 2]);
        assert_eq!([chosen(5, Broadcast), chosen(2, Collective::Reduce)], [Chosen::Always(Tree); 2]);
    }

    #[test]
    fn hardware_that_is_not_there_is_an_error() {
        let algorithms =
            Algorithms::new(&Choice::Hardware, &Caps::weakest(), 4, |algorithm| algorithm == Algorithm::Gates);
        assert_eq!(algorithms.at(Collective::Barrier, 0), Ok(Algorithm::Gates));
        assert_eq!(algorithms.chosen(Collective::Allreduce), Ok(Chosen::Always(Algorithm::Gates)));
        let error = FmplError::NoHardware { collective: Collective::Broadcast };
        assert_eq!(
            (algorithms.at(Collective::Broadcast, 7), algorithms.chosen(Collective::Broadcast)),
            (Err(error.clone()), Err(error))
        );
    }
}
