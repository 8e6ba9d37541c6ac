//! A Slurm step.

use super::{DetectError, Found, node_list, variables::Variables};

/// Slurm's description of a task of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slurm {
    /// The rank: `SLURM_PROCID`.
    pub rank: u32,
    /// The number of tasks of the step: `SLURM_STEP_NUM_TASKS`, or `SLURM_NTASKS`.
    pub ranks: usize,
    /// The nodes of the step: `SLURM_STEP_NODELIST`, or `SLURM_JOB_NODELIST`.
    pub nodes: Vec<String>,
    /// The job: `SLURM_JOB_ID`.
    pub job: u64,
    /// The step: `SLURM_STEP_ID`.
    pub step: u32,
}

/// Steps with this number or higher were not started by `srun`: a batch script, an interactive
/// shell.
const FIRST_SPECIAL: u32 = 0xffff_fff0;

impl Slurm {
    /// Returns the port at which the coordinator of this step listens. The port is derived from the
    /// numbers of job and step and is in the range 20000 to 31999, below the ephemeral ports.
    pub fn port(&self) -> u16 {
        let mixed = self.job.wrapping_mul(8_191).wrapping_add(u64::from(self.step).wrapping_mul(131));
        20_000 + (mixed % 12_000) as u16
    }
}

/// Looks for a step. Without `SLURM_STEP_ID`, or in a special step, the process is a shell or
/// script started by Slurm and not a rank, regardless of the other variables.
pub(super) fn find(env: Variables<'_>) -> Result<Option<Found>, DetectError> {
    if !env.has("SLURM_STEP_ID") || !env.has("SLURM_PROCID") {
        return Ok(None);
    }
    let step = env.number("SLURM_STEP_ID")?;
    if step >= FIRST_SPECIAL {
        return Ok(None);
    }
    let first = |one, other| if env.has(one) { one } else { other };
    let tasks = first("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS");
    let list = first("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
    env.whole(&["SLURM_PROCID"], &[tasks, list, "SLURM_JOB_ID"])?;
    let (rank, ranks) = env.rank_of("SLURM_PROCID", tasks)?;
    let nodes = node_list(&env.text(list)?).map_err(|cause| DetectError::NodeList { variable: list, cause })?;
    Ok(Some(Found::Slurm(Slurm { rank, ranks, nodes, job: env.number("SLURM_JOB_ID")?, step })))
}
