//! The slowdown of a rank's own adds while it executes copies for other ranks. Section 4 of the
//! paper proposes to avoid the slowdown, but does not measure it.

use super::{AcpPlan, Condition};
use crate::{
    ReproError,
    shape::Shape,
    simulate::{BEGIN, JobRecord, Runner, Setting},
    workloads::{Disturbance, Done, Together, disturbed_adds},
};
use acp::{Mode, Options};
use rdma_fabric::Time;
use std::fmt;
use tofu2_sim::virt::Platform;

/// The component that executes the copies, and the one that executes the disturbed rank's own adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// The paper's library: one helper for both (condition 4).
    Queue,
    /// The helper executes the copies; the program posts its adds directly (condition 8).
    Bypass,
    /// The paper's proposal: one helper for the adds, and another one for the copies. A what-if
    /// case: queues share their rank's address space.
    Split,
    /// Ours: the program executes both, the copies while it waits for its adds.
    Direct,
    /// Ours: the program executes its adds, and a helper the copies.
    Serving,
    /// A what-if case: the network copies between two other ranks, and no software at the
    /// destination takes part. The remaining slowdown is one that copies cause with any library.
    Network,
}

impl Load {
    /// All of them.
    pub const ALL: [Load; 6] = [Load::Queue, Load::Bypass, Load::Split, Load::Direct, Load::Serving, Load::Network];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Load::Queue => "one helper (4)",
            Load::Bypass => "helper, bypass (8)",
            Load::Split => "two helpers (4, split)",
            Load::Direct => "no helper (ours)",
            Load::Serving => "helper only serves (ours)",
            Load::Network => "no helper, copies by hardware",
        }
    }

    fn options(self) -> Options {
        match self {
            Load::Queue => Condition::TABLE[3].options(),
            Load::Bypass => Condition::TABLE[7].options(),
            Load::Split => Condition::TABLE[3].options().mode(Mode::Split),
            Load::Direct | Load::Network => Options::default().prepared(true),
            Load::Serving => Options::default().prepared(true).serving_helper(true),
        }
    }

    fn on(self, platform: &Platform) -> Platform {
        let same = || platform.clone();
        match self {
            Load::Network => same().with("third_party_copy", 1).unwrap_or_else(|_| same()),
            Load::Split => same().with("shared_tags", 1).unwrap_or_else(|_| same()),
            _ => same(),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Returns the number of initiators in words, for the headings of tables.
pub fn initiators_in_words(initiators: u32) -> String {
    match initiators {
        0 => "alone".to_owned(),
        1 => "1 initiator".to_owned(),
        more => format!("{more} initiators"),
    }
}

/// A job with a disturbed rank, and its measured times.
#[derive(Clone, Debug, PartialEq)]
pub struct DisturbanceRun {
    /// The configuration of the helpers.
    pub load: Load,
    /// The number of ranks that delegate copies, one at a time each.
    pub initiators: u32,
    /// Mean time of an add of the disturbed rank, in seconds.
    pub add: f64,
    /// Copies per second, over all initiators.
    pub copies: f64,
    /// The job.
    pub job: JobRecord,
}

/// The head start of the initiators before adds are counted, in picoseconds: more than one copy of
/// each takes.
const WARM_UP: u64 = 500_000_000;

pub(super) fn disturb(
    plan: &AcpPlan,
    (load, initiators): (Load, u32),
    runner: &mut Runner<'_>,
) -> Result<DisturbanceRun, ReproError> {
    let begin = BEGIN.as_picos() + WARM_UP;
    let window = [begin, begin + plan.window].map(Time::from_picos);
    let (options, bytes) = (load.options(), AcpPlan::COPY);
    let disturbance = Disturbance { options, initiators, bytes, window };
    // Of 20 nodes, ranks 0 and 1 are neighbours.
    let shape = Shape::new(&[4, 5]);
    let together = Together::Clock { start: BEGIN, end: Time::from_picos(u64::MAX) };
    let setting = Setting::routed(load.on(&plan.platform), initiators + 3, 1, shape, plan.seed);
    let label = format!("adds of a rank that {initiators} others copy to, {load}");
    let simulated = runner.run(label, setting, &async |fabric| disturbed_adds(fabric, disturbance, together).await)?;
    let add = simulated.outs.first().copied().unwrap_or_default().mean();
    let rate = |done: &Done| if done.operations > 0 { 1.0 / done.mean() } else { 0.0 };
    let copies = simulated.outs.iter().skip(2).map(rate).sum();
    Ok(DisturbanceRun { load, initiators, add, copies, job: simulated.job })
}
