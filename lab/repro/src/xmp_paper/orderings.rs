//! The paper's statements about its figures 8 to 10, as comparisons of times.

use super::Version;
use std::fmt;

/// "About equal", below 1024 nodes: within this share of the time.
pub const SAME: f64 = 0.05;
/// "Gains much": at least this share of the time.
pub const MUCH: f64 = 0.1;

/// Times of a step by version, with one number of nodes.
pub type Times<'a> = &'a dyn Fn(Version) -> Option<f64>;

/// An ordering printed in the paper. The statements about derived datatypes are checked twice,
/// since the paper does not describe how its message layer handles them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    /// X6: pack is about as fast as MPI by hand, and faster on 1024 nodes.
    Pack,
    /// X7: derived datatypes are slower than MPI by hand.
    Datatypes,
    /// X7, if the message layer puts block after block.
    Scattered,
    /// X8: on 1024 nodes, overlap saves much of the time of asynchronous reflects, which take
    /// longer than synchronous ones.
    Overlap,
    /// X8, if the message layer puts block after block.
    ScatteredOverlap,
    /// X9: RDMA with two barriers is slower than RDMA by hand and than pack.
    Rdma,
    /// X9 with barriers of the barrier unit.
    RdmaUnit,
}

impl Ordering {
    /// All of them.
    pub const ALL: [Ordering; 7] = [
        Ordering::Pack,
        Ordering::Datatypes,
        Ordering::Scattered,
        Ordering::Overlap,
        Ordering::ScatteredOverlap,
        Ordering::Rdma,
        Ordering::RdmaUnit,
    ];

    /// Returns the figure's id.
    pub const fn id(self) -> &'static str {
        match self {
            Ordering::Pack => "X6",
            Ordering::Datatypes => "X7",
            Ordering::Scattered => "X7-puts",
            Ordering::Overlap => "X8",
            Ordering::ScatteredOverlap => "X8-puts",
            Ordering::Rdma => "X9",
            Ordering::RdmaUnit => "X9-unit",
        }
    }

    /// Returns the share of the time by which the ordering holds on 1024 nodes; negative if it
    /// doesn't hold. `None` if a version was not run.
    pub fn margin(self, times: Times<'_>) -> Option<f64> {
        // The share by which one version takes longer than another.
        let over = |slower, faster| Some(times(slower)? / times(faster)? - 1.0);
        let gain = |apart, overlapped| Some(1.0 - times(overlapped)? / times(apart)? - MUCH);
        Some(match self {
            Ordering::Pack => over(Version::Mpi, Version::Pack)?,
            Ordering::Datatypes => over(Version::Datatypes, Version::Mpi)?,
            Ordering::Scattered => over(Version::Scattered, Version::Mpi)?,
            Ordering::Overlap => gain(Version::Async, Version::Overlap)?.min(over(Version::Async, Version::Datatypes)?),
            Ordering::ScatteredOverlap => gain(Version::ScatteredAsync, Version::ScatteredOverlap)?
                .min(over(Version::ScatteredAsync, Version::Scattered)?),
            Ordering::Rdma => over(Version::Rdma, Version::RdmaByHand)?.min(over(Version::Rdma, Version::Pack)?),
            Ordering::RdmaUnit => {
                over(Version::RdmaUnit, Version::RdmaByHand)?.min(over(Version::RdmaUnit, Version::Pack)?)
            }
        })
    }

    /// Returns whether the times agree with the paper's curves below 1024 nodes: no contradiction
    /// of the ordering is larger than a hundredth, about the width of a line.
    pub fn holds_below(self, times: Times<'_>) -> Option<bool> {
        let over = |slower, faster| Some(times(slower)? / times(faster)? - 1.0);
        let not_under = |slower, faster| Some(over(slower, faster)? > -LINE);
        Some(match self {
            Ordering::Pack => over(Version::Mpi, Version::Pack)?.abs() <= SAME,
            Ordering::Datatypes => not_under(Version::Datatypes, Version::Mpi)?,
            Ordering::Scattered => not_under(Version::Scattered, Version::Mpi)?,
            Ordering::Overlap => not_under(Version::Async, Version::Overlap)?,
            Ordering::ScatteredOverlap => not_under(Version::ScatteredAsync, Version::ScatteredOverlap)?,
            Ordering::Rdma => {
                not_under(Version::Rdma, Version::RdmaByHand)? && not_under(Version::Rdma, Version::Pack)?
            }
            Ordering::RdmaUnit => {
                not_under(Version::RdmaUnit, Version::RdmaByHand)? && not_under(Version::RdmaUnit, Version::Pack)?
            }
        })
    }
}

/// The width of a line in a plot of speed-ups.
const LINE: f64 = 0.01;

impl fmt::Display for Ordering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns times for which all orderings hold.
    fn holding(version: Version) -> Option<f64> {
        Some(match version {
            Version::Mpi => 1.02,
            Version::Pack => 1.0,
            Version::Datatypes | Version::Scattered => 1.2,
            Version::Async | Version::ScatteredAsync => 1.25,
            Version::Overlap | Version::ScatteredOverlap => 1.05,
            Version::RdmaByHand => 0.95,
            Version::Rdma | Version::RdmaUnit => 1.1,
            Version::Blocks | Version::BlocksOverlap => return None,
        })
    }

    #[test]
    fn each_comparison_can_fail() {
        for ordering in Ordering::ALL {
            assert!(ordering.margin(&holding).expect("all were run") > 0.0, "{ordering}");
            assert_eq!(ordering.holds_below(&holding), Some(true), "{ordering}");
            // If all versions take equally long, as they do if only bytes count, no ordering holds.
            assert!(ordering.margin(&|_| Some(1.0)).expect("all were run") <= 0.0, "{ordering}");
        }
        for (ordering, version, time) in [
            (Ordering::Pack, Version::Mpi, 0.99),
            (Ordering::Datatypes, Version::Datatypes, 1.01),
            (Ordering::Overlap, Version::Overlap, 1.2),
            (Ordering::Overlap, Version::Datatypes, 1.3),
            (Ordering::Scattered, Version::Scattered, 1.01),
            (Ordering::ScatteredOverlap, Version::ScatteredOverlap, 1.2),
            (Ordering::ScatteredOverlap, Version::Scattered, 1.3),
            (Ordering::Rdma, Version::RdmaByHand, 1.11),
            (Ordering::Rdma, Version::Pack, 1.11),
            (Ordering::RdmaUnit, Version::RdmaByHand, 1.11),
            (Ordering::RdmaUnit, Version::Pack, 1.11),
        ] {
            let changed = |other| if other == version { Some(time) } else { holding(other) };
            assert!(ordering.margin(&changed).expect("all were run") < 0.0, "{ordering}, {version}");
        }
        let apart = |version| if version == Version::Pack { Some(0.96) } else { holding(version) };
        assert_eq!(Ordering::Pack.holds_below(&apart), Some(false));
        assert_eq!(Ordering::Rdma.margin(&|version| holding(version).filter(|_| version != Version::Pack)), None);
    }
}
