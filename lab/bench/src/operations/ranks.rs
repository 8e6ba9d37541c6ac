//! The jobs of the operations: which ranks measure which cases.

use super::{
    cases::{self, Case},
    sampling::{Effort, Measured},
};
use crate::outside::{
    bare::Bare,
    job::{Size, Task},
};
use core::time::Duration;
use rdma_fabric::{Fabric, ProgramResult};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The kind of job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ranks {
    /// Two, each on its own core.
    Pair,
    /// Four, which may share cores.
    Four,
    /// Many on few cores.
    Oversubscribed,
}

impl Ranks {
    /// All, in the order in which they are run.
    pub(super) const ALL: [Ranks; 3] = [Ranks::Pair, Ranks::Four, Ranks::Oversubscribed];

    pub(super) fn size(self) -> Size {
        match self {
            // The long cases take more than the default.
            Ranks::Pair => Size { segment_bytes: 1 << 30, ..Size::of(2) },
            Ranks::Four => Size::of(cases::FOUR),
            Ranks::Oversubscribed => Size::of(cases::OVERSUBSCRIBED),
        }
    }
}

/// The plan of a job, sent to every rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct JobPlan {
    pub(super) ranks: Ranks,
    /// Names of cases.
    pub(super) cases: Vec<String>,
    pub(super) quick: bool,
    /// The time that a sample should take, if not the usual time.
    pub(super) sample_ms: Option<u32>,
    /// The cores; rank r runs on core r modulo their number.
    pub(super) cores: Vec<usize>,
}

impl JobPlan {
    pub(super) fn wants(&self, case: &Case) -> bool {
        self.cases.iter().any(|name| name == case.name)
    }

    pub(super) fn effort(&self) -> Effort {
        let usual = if self.quick { Effort::QUICK } else { Effort::FULL };
        match self.sample_ms {
            None => usual,
            Some(ms) => usual.with_sample(Duration::from_millis(ms.into())),
        }
    }
}

impl Task for JobPlan {
    const NAME: &'static str = "operations";
    /// Those of rank 0; empty at the others.
    type Out = Vec<Measured>;

    async fn measure(self, fabric: Fabric, bare: &Arc<Bare>) -> ProgramResult<Vec<Measured>> {
        cases::measure(&fabric, bare, &self).await
    }
}
