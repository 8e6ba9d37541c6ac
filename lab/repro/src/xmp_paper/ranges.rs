//! The values of the assumed constants for which the orderings hold, and the values at which they
//! flip.

use super::{Ordering, Version, XmpPlan};
use crate::{quantity, simulate::JobRecord};
use tofu2_sim::virt::Platform;

/// A constant without a published value, with the range in which the orderings have to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assumed {
    /// The name of the constant of [`Platform::k`], or of one of the workload.
    pub name: &'static str,
    /// The ends of the range, in the constant's unit.
    pub range: [u64; 2],
    /// The versions whose time depends on it.
    versions: &'static [Version],
    /// A description for display.
    pub what: &'static str,
}

/// The time of a stage of a cell, in picoseconds.
pub(super) const CELL: &str = "compute";
/// The maximum additional computation time of a rank, in ten-thousandths.
pub(super) const IMBALANCE: &str = "imbalance";

use Version::{
    Async, Datatypes, Mpi, Overlap, Pack, Rdma, RdmaByHand, RdmaUnit, Scattered, ScatteredAsync, ScatteredOverlap,
};

/// The versions whose orderings are checked.
pub(super) const SWEPT: [Version; 11] =
    [Mpi, Datatypes, Pack, Async, Overlap, RdmaByHand, Rdma, RdmaUnit, Scattered, ScatteredAsync, ScatteredOverlap];

const MESSAGES: [Version; 9] =
    [Mpi, Pack, Datatypes, Async, Overlap, RdmaUnit, Scattered, ScatteredAsync, ScatteredOverlap];
const RUNTIME: [Version; 9] =
    [Pack, Datatypes, Async, Overlap, Rdma, RdmaUnit, Scattered, ScatteredAsync, ScatteredOverlap];
const ASYNCHRONOUS: [Version; 4] = [Async, Overlap, ScatteredAsync, ScatteredOverlap];
/// The versions with derived datatypes.
const DERIVED: [Version; 6] = [Datatypes, Async, Overlap, Scattered, ScatteredAsync, ScatteredOverlap];

const fn assumed(name: &'static str, range: [u64; 2], versions: &'static [Version], what: &'static str) -> Assumed {
    Assumed { name, range, versions, what }
}

/// All assumed constants on which the orderings depend, each with a range from half to twice the
/// assumed value, unless higher values do not fit.
pub const RANGES: [Assumed; 14] = [
    assumed(CELL, [12_500, 50_000], &SWEPT, "a stage of a cell, by all of a node's threads"),
    assumed(IMBALANCE, [0, 1_000], &SWEPT, "how much longer a rank computes at most"),
    assumed("software.pack", [125_000, 500_000], &[Mpi, Pack, Datatypes, Async, Overlap], "packing by one thread"),
    assumed("software.fork", [250_000, 1_000_000], &[Mpi, Pack], "threads start and end"),
    assumed("software.mpi", [300_000, 1_200_000], &MESSAGES, "MPI, each message"),
    assumed("software.mpi.setup", [150_000, 600_000], &[Mpi], "message that is not persistent, besides"),
    assumed("software.mpi.block", [25_000, 100_000], &DERIVED, "block of a derived datatype"),
    assumed("software.fjmpi", [285_000, 1_140_000], &[RdmaByHand, Rdma, RdmaUnit], "extended RDMA, each command"),
    assumed("software.xmp.reflect", [250_000, 1_000_000], &RUNTIME, "runtime, each array"),
    assumed("software.xmp.act", [2_500_000, 10_000_000], &ASYNCHRONOUS, "asynchronous, each array"),
    assumed("barrier_gate", [75_000, 300_000], &[RdmaUnit], "one gate of the barrier unit"),
    assumed("hop", [50_000, 200_000], &[Rdma, RdmaUnit], "each hop after the first"),
    assumed("post", [100_000, 300_000], &SWEPT, "the CPU writes a command"),
    assumed("send_gap", [50_000, 200_000], &SWEPT, "shortest distance of two commands"),
];

/// The factors of the tried values: a sixteenth to sixteen times the assumed value.
const FACTORS: [(u64, u64); 6] = [(1, 16), (1, 4), (1, 2), (2, 1), (4, 1), (16, 1)];

impl Assumed {
    /// Returns the assumed value.
    pub fn default(&self, platform: &Platform) -> u64 {
        match self.name {
            CELL => XmpPlan::CELL,
            IMBALANCE => 0,
            name => platform.value(name).unwrap_or(0),
        }
    }

    /// Returns the tried values: around the default, and the ends of the range.
    pub(super) fn values(&self, platform: &Platform) -> Vec<u64> {
        let default = self.default(platform);
        let mut values: Vec<u64> = match self.name {
            IMBALANCE => vec![1_000],
            // Higher values do not fit into a put's latency.
            "post" | "hop" => self.range.to_vec(),
            _ => FACTORS.iter().map(|(by, over)| default * by / over).chain(self.range).collect(),
        };
        values.sort_unstable();
        values.dedup();
        values.retain(|value| *value != default);
        values
    }

    /// Returns the number of jobs of all values.
    pub(super) fn jobs(&self) -> usize {
        self.values(&Platform::k()).len() * self.versions.len()
    }

    /// Returns whether the time of a barrier of all nodes may depend on it.
    pub(super) fn changes_barriers(&self) -> bool {
        matches!(self.name, "barrier_gate" | "post" | "send_gap" | "hop" | "software.fjmpi")
    }

    /// Returns the versions whose time depends on it.
    pub(super) fn versions(&self) -> &'static [Version] {
        self.versions
    }

    /// Returns whether it is the time of a byte, which is displayed as a rate.
    pub fn is_rate(&self) -> bool {
        self.name == "software.pack"
    }

    /// Formats a value for display.
    pub fn readable(&self, value: u64) -> String {
        match self.name {
            IMBALANCE => format!("{} %", quantity::number(value as f64 * 1e-2)),
            _ if self.is_rate() && value > 0 => format!("{} GB/s", quantity::number(1e6 / value as f64)),
            _ if value >= 1_000_000 => format!("{} µs", quantity::number(value as f64 * 1e-6)),
            _ => format!("{} ns", quantity::number(value as f64 * 1e-3)),
        }
    }
}

/// The times with one value of a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value.
    pub value: u64,
    /// Seconds of a step, by version; missing versions don't depend on the constant.
    pub times: Vec<(Version, f64)>,
}

/// The times as a function of a constant, with the blocks of 1024 nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Swept {
    /// The constant.
    pub assumed: &'static Assumed,
    /// Sorted by value, ascending, including the default.
    pub points: Vec<Point>,
    /// The record of all its jobs.
    pub job: JobRecord,
}

/// A value at which an ordering begins or ceases to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flip {
    /// The value, by linear interpolation between the tried values.
    pub at: u64,
    /// Whether the ordering holds above it.
    pub holds_above: bool,
}

impl Swept {
    /// Returns the share of the time by which an ordering holds, for each value.
    pub fn margins(&self, ordering: Ordering) -> Vec<(u64, f64)> {
        let margin = |point: &Point| {
            let time = |version| point.times.iter().find(|(of, _)| *of == version).map(|(_, time)| *time);
            Some((point.value, ordering.margin(&time)?))
        };
        self.points.iter().filter_map(margin).collect()
    }

    /// Returns the values at which an ordering flips.
    pub fn flips(&self, ordering: Ordering) -> Vec<Flip> {
        let margins = self.margins(ordering);
        let flips = margins.windows(2).filter(|pair| (pair[0].1 > 0.0) != (pair[1].1 > 0.0));
        flips
            .map(|pair| {
                let [(low, below), (high, above)] = [pair[0], pair[1]];
                let at = low as f64 + (high - low) as f64 * below / (below - above);
                Flip { at: at as u64, holds_above: above > 0.0 }
            })
            .collect()
    }

    /// Returns whether an ordering flips within the range.
    pub fn flips_inside(&self, ordering: Ordering) -> bool {
        let [low, high] = self.assumed.range;
        self.flips(ordering).iter().any(|flip| (low..=high).contains(&flip.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::tests::example;

    fn swept(margins: &[(u64, f64)]) -> Swept {
        let point =
            |(value, margin): &(u64, f64)| Point { value: *value, times: vec![(Mpi, 1.0), (Datatypes, 1.0 + margin)] };
        Swept { assumed: &RANGES[6], points: margins.iter().map(point).collect(), job: example().jobs[0].clone() }
    }

    #[test]
    fn flips_are_where_margins_change_their_sign() {
        let swept = swept(&[(50_000, -0.1), (150_000, 0.1), (400_000, 0.2), (800_000, -0.2)]);
        let flips = swept.flips(Ordering::Datatypes);
        assert_eq!(flips.iter().map(|flip| flip.holds_above).collect::<Vec<_>>(), [true, false]);
        assert!(flips[0].at.abs_diff(100_000) < 5 && flips[1].at.abs_diff(600_000) < 5, "{flips:?}");
        assert_eq!(swept.flips(Ordering::Rdma), [], "its versions were not run");
    }

    #[test]
    fn a_flip_outside_of_the_range_is_not_inside() {
        // The range ends at 100,000.
        assert!(swept(&[(50_000, -0.1), (100_000, 0.1)]).flips_inside(Ordering::Datatypes));
        assert!(!swept(&[(150_000, -0.1), (200_000, 0.1)]).flips_inside(Ordering::Datatypes));
    }

    #[test]
    fn ranges_contain_what_is_assumed_and_their_ends_are_tried() {
        let k = Platform::k();
        for assumed in &RANGES {
            let (default, [low, high]) = (assumed.default(&k), assumed.range);
            assert!((low..=high).contains(&default), "{}", assumed.name);
            let values = assumed.values(&k);
            for end in assumed.range {
                assert!(end == default || values.contains(&end), "{}: {end}", assumed.name);
            }
        }
    }
}
