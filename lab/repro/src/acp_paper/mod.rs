//! The evaluation of the ACP base layer on Tofu2: its jobs, results and comparison with the paper.
//! The eight conditions of table 3 are options of the library itself ([`Condition::options`]); the
//! cost of each step is charged at the code that performs it, on the core that executes it.
//!
//! # Placement
//! Two ranks run on neighbouring nodes, as for the paper's remote operations; local operations in
//! hardware go through the node's own network interface. In the runs about disturbance every rank
//! has its own node.

mod disturbance;
mod runs;

pub use disturbance::{DisturbanceRun, Load, initiators_in_words};
pub use runs::{AcpRuns, AddRun, StatesRun, compare, run};

use crate::{simulate::Traced, workloads::Target};
use acp::{Atomics, Mode, Options, Threads};
use std::fmt;
use tofu2_sim::virt::Platform;

/// A condition of table 3: the options of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Condition {
    /// Atomics are executed by the network's hardware; otherwise by the helper of the rank that
    /// owns the word.
    pub hardware: bool,
    /// Descriptors are prepared.
    pub prepared: bool,
    /// Any thread may call.
    pub thread_safe: bool,
    /// The program posts operations itself if no command is unfinished.
    pub bypass: bool,
}

impl Condition {
    /// The eight conditions of the paper, in its order.
    pub const TABLE: [Condition; 8] = {
        const fn condition(hardware: bool, prepared: bool, thread_safe: bool, bypass: bool) -> Condition {
            Condition { hardware, prepared, thread_safe, bypass }
        }
        [
            condition(false, false, false, false),
            condition(false, false, true, false),
            condition(true, false, false, false),
            condition(true, true, false, false),
            condition(true, false, true, false),
            condition(true, true, true, false),
            condition(true, false, true, true),
            condition(true, true, true, true),
        ]
    };

    /// Returns the library's options.
    pub fn options(self) -> Options {
        Options::default()
            .mode(Mode::CommandQueue)
            .atomics(if self.hardware { Atomics::Network } else { Atomics::Delegated })
            .prepared(self.prepared)
            .threads(if self.thread_safe { Threads::Many } else { Threads::One })
            .bypass(self.bypass)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [(self.hardware, "hw"), (self.prepared, "desc"), (self.thread_safe, "ts"), (self.bypass, "by")];
        let words: Vec<&str> = words.into_iter().filter_map(|(is, word)| is.then_some(word)).collect();
        f.pad(&if words.is_empty() { "–".to_owned() } else { words.join(" ") })
    }
}

/// The library that executes the adds, and its variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// ACP as measured in the paper.
    Table(Condition),
    /// The extended RDMA interface of Fujitsu MPI, with which the paper compares.
    Mpi,
    /// Condition 4 with that interface's cost of a network operation in place of ACP's own.
    /// Predicts A4 remote from A9 and A1 local, without any other figure of ACP.
    OverMpi,
    /// A what-if case: bypass and prepared descriptors without thread safety.
    BypassOneThread,
    /// A what-if case: local atomics by the CPU, remote ones by hardware (proposed in section 5),
    /// otherwise condition 4.
    LocalByCpu,
    /// A what-if case: control queues share their rank's address space, so that delegation has a
    /// separate helper and queue (section 4). Otherwise condition 4.
    Split,
    /// A what-if case: the same, and hardware keeps the order of commands (section 4), so that a
    /// command costs its helper nothing.
    OrderInHardware,
    /// [`How::Split`] with delegated atomics, otherwise condition 1.
    SplitDelegated,
    /// [`How::OrderInHardware`] with delegated atomics: hardware would have to wait for replies
    /// that software posts.
    OrderInHardwareDelegated,
    /// Ours: no helper; each call performs all the work that it can.
    Direct,
    /// Ours, with prepared descriptors.
    DirectPrepared,
}

impl How {
    /// The cases for which there are no published figures.
    pub const WHAT_IF: [How; 8] = [
        How::BypassOneThread,
        How::LocalByCpu,
        How::Split,
        How::OrderInHardware,
        How::SplitDelegated,
        How::OrderInHardwareDelegated,
        How::Direct,
        How::DirectPrepared,
    ];

    /// Returns the name in tables.
    pub fn name(self) -> String {
        let condition_4 = "hw desc";
        match self {
            How::Table(condition) => condition.to_string(),
            How::Mpi => "extended RDMA of Fujitsu MPI".to_owned(),
            How::OverMpi => format!("{condition_4}, over extended RDMA"),
            How::BypassOneThread => format!("{condition_4} by"),
            How::LocalByCpu => format!("{condition_4}, local ones by the CPU"),
            How::Split => format!("{condition_4}, two helpers"),
            How::OrderInHardware => format!("{condition_4}, order in hardware"),
            How::SplitDelegated => "delegated, two helpers".to_owned(),
            How::OrderInHardwareDelegated => "delegated, order in hardware".to_owned(),
            How::Direct => "hw, no helper (ours)".to_owned(),
            How::DirectPrepared => "hw desc, no helper (ours)".to_owned(),
        }
    }

    /// Returns the library's options; `None` if it is not this library.
    pub fn options(self) -> Option<Options> {
        let condition_4 = Condition::TABLE[3];
        Some(match self {
            How::Table(condition) => condition.options(),
            How::Mpi => return None,
            How::OverMpi => condition_4.options(),
            How::Split | How::OrderInHardware => condition_4.options().mode(Mode::Split),
            How::SplitDelegated | How::OrderInHardwareDelegated => Condition::TABLE[0].options().mode(Mode::Split),
            How::BypassOneThread => Condition { bypass: true, ..condition_4 }.options(),
            How::LocalByCpu => condition_4.options().atomics(Atomics::LocalByCpu),
            How::Direct => Options::default(),
            How::DirectPrepared => Options::default().prepared(true),
        })
    }

    /// Returns the simulated machine, derived from the paper's.
    pub fn on(self, platform: &Platform) -> Platform {
        let set = |name, value| platform.clone().with(name, value);
        let changed = match self {
            How::OverMpi => set("software.acp.network", platform.value("software.fjmpi").unwrap_or(0)),
            How::Split | How::SplitDelegated => set("shared_tags", 1),
            How::OrderInHardware | How::OrderInHardwareDelegated => {
                set("shared_tags", 1).and_then(|shared| shared.with("software.acp.thread", 0))
            }
            _ => return platform.clone(),
        };
        // A machine without these layers is left unchanged.
        changed.unwrap_or_else(|_| platform.clone())
    }
}

/// One job of adds, for example 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddCase {
    /// The library and its variant.
    pub how: How,
    /// The rank whose word is modified.
    pub target: Target,
}

/// The jobs to run. [`AcpPlan::paper`] contains the paper's evaluation and our predictions; the
/// fields may be changed.
#[derive(Clone, Debug, PartialEq)]
pub struct AcpPlan {
    /// The jobs with adds, in order.
    pub adds: Vec<AddCase>,
    /// The number of adds of each job.
    pub count: u32,
    /// The jobs about disturbance: the load and the number of initiators. They run after the
    /// others.
    pub disturbances: Vec<(Load, u32)>,
    /// The duration for which a disturbed rank's adds are counted, in picoseconds.
    pub window: u64,
    /// The machine.
    pub platform: Platform,
    /// Seed of every job: 0 keeps simultaneous events in the order of their creation, another
    /// number shuffles them.
    pub seed: u64,
    /// Whether this is a smoke test with fewer operations.
    pub quick: bool,
    /// A timeline to record during the run, which does not affect the jobs.
    pub traced: Option<Traced>,
}

impl AcpPlan {
    /// The number of adds of each job of the paper.
    pub const COUNT: u32 = 1000;
    /// Numbers of initiators.
    pub const INITIATORS: [u32; 4] = [0, 1, 4, 16];
    /// The size of a delegated copy in bytes.
    pub const COPY: usize = 64 << 10;

    /// Returns the paper's evaluation, and the cases that the paper did not measure.
    pub fn paper(seed: u64) -> Self {
        let table = Condition::TABLE.map(How::Table);
        let hows = table.into_iter().chain([How::Mpi, How::OverMpi]).chain(How::WHAT_IF);
        let adds = hows.flat_map(|how| Target::BOTH.map(|target| AddCase { how, target })).collect();
        let loads = Load::ALL.into_iter();
        AcpPlan {
            adds,
            count: Self::COUNT,
            disturbances: loads.flat_map(|load| Self::INITIATORS.map(|initiators| (load, initiators))).collect(),
            window: 5_000_000_000,
            platform: Platform::fx100(),
            seed,
            quick: false,
            traced: None,
        }
    }

    /// Returns the same plan with fewer adds and a shorter window. It shows whether everything
    /// works, not how well it agrees with the paper.
    pub fn quick(seed: u64) -> Self {
        AcpPlan { count: Self::COUNT / 20, window: 500_000_000, quick: true, ..Self::paper(seed) }
    }

    /// Returns the same plan without the jobs that no published figure needs.
    pub fn published(mut self) -> Self {
        self.adds.retain(|case| !How::WHAT_IF.contains(&case.how));
        self.disturbances.clear();
        self
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        // One of them goes through the states of entries.
        self.adds.len() + 1 + self.disturbances.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acp::{Acp, Order};
    use rdma_fabric::{Amo, Rank};
    use std::time::Duration;
    use tofu2_sim::virt::Job;

    /// Returns, in nanoseconds, the time that the program of rank 0 takes to issue an add to rank
    /// 1, and then to complete it after having computed for 20 µs.
    fn issued_and_completed(how: How) -> (u64, u64) {
        let options = how.options().expect("this library");
        let run = Job::new(&Platform::fx100(), 2).ranks_per_node(1).run(&async move |fabric| {
            let acp = Acp::init_with(&fabric, options).await?;
            let mut took = (0, 0);
            if acp.rank() == Rank::new(0) {
                let (word, before) = (acp.starter(Rank::new(1))?, acp.starter(Rank::new(0))?.offset_by(64)?);
                let begun = fabric.now();
                let handle = acp.atomic(before, word, Amo::<u32>::Add(1), Order::None).await?;
                took.0 = fabric.now().picos_since(begun) / 1000;
                fabric.compute(Duration::from_micros(20)).await;
                let computed = fabric.now();
                acp.complete(handle).await?;
                took.1 = fabric.now().picos_since(computed) / 1000;
            }
            acp.finalize().await?;
            Ok(took)
        });
        run.expect("it runs").outs[0]
    }

    #[test]
    fn what_the_helper_does_takes_nothing_of_the_programs_core() {
        let table = |number: usize| issued_and_completed(How::Table(Condition::TABLE[number - 1]));
        // All operations have completed by the end of the computation.
        assert_eq!([1, 3, 4].map(table), [(0, 0); 3]);
        assert_eq!([2, 5, 6].map(table), [(280, 0); 3]);
        // The program posts the operation itself; the helper completes it.
        let (network, descriptor, post) = (630, 130, 150);
        assert_eq!(table(7), (280 + 230 + network + descriptor + post, 0));
        assert_eq!(table(8), (280 + 230 + network + post, 0));
        // There is no helper.
        assert_eq!(issued_and_completed(How::DirectPrepared).0, network + post);
    }
}
