//! `onesided run`.

use crate::arguments::{Run, RunFabric};
use observe::{WantedReport, emit};
use std::{error::Error, process::ExitCode};
use tofu2_sim::{
    JobError,
    shm::{DEFAULT_SEGMENT_BYTES, Launcher, SegmentBytes},
};

/// Bytes that a rank of an unknown program can register by default. A program in C may register any of
/// its memory; unused bytes take none.
const AMPLE_SEGMENT: usize = 16 << 30;
/// The ranks for which the address space has room for so much.
const FEW_RANKS: usize = 256;

/// Starts the ranks and returns their exit code.
pub(crate) fn start(options: Run) -> Result<ExitCode, Box<dyn Error>> {
    if options.fabric != RunFabric::Shm {
        return Err("--fabric virt: ranks in virtual time are processes of Linux".into());
    }
    for (name, is_given) in [("--platform", options.platform.is_some()), ("--seed", options.seed.is_some())] {
        if is_given {
            return Err(format!("{name}: only `--fabric virt` has it").into());
        }
    }
    let mut program = options.program.into_iter();
    let executable = program.next().ok_or("no program given")?;
    let mut launcher = Launcher::new(options.ranks.get()).bind(options.bind).stuck_after(options.stuck_after.0);
    launcher = launcher.shared_address_space(options.shared_address_space).progress_thread(options.progress_thread);
    let ranks = options.ranks.get();
    let default = if ranks <= FEW_RANKS { AMPLE_SEGMENT } else { DEFAULT_SEGMENT_BYTES };
    let SegmentBytes(bytes) = options.segment_bytes.unwrap_or(SegmentBytes(default));
    launcher = launcher.segment_bytes(bytes);
    if let Some(ranks) = options.ranks_per_node {
        launcher = launcher.ranks_per_node(ranks.get());
    }
    launcher = launcher.command(executable, program);
    let wanted = WantedReport { stats: options.stats, json: options.json, trace: options.trace };
    let run = |launcher: Launcher| match launcher.run() {
        // Limits may allow less. Nothing was started.
        Err(JobError::TooManyRanks { .. }) if options.segment_bytes.is_none() => {
            launcher.segment_bytes(DEFAULT_SEGMENT_BYTES).run()
        }
        ended => ended,
    };
    let (ended, told) = wanted.of_processes(ranks, |variable| match variable {
        Some((name, value)) => run(launcher.env(name, value)),
        None => run(launcher),
    })?;
    let code = match ended {
        Err(aborted @ JobError::Aborted { .. }) => {
            emit(format_args!("error: {aborted}"));
            aborted.exit_code().into()
        }
        ended => ended?,
    };
    if let Err(error) = told {
        emit(format_args!("error: {error}"));
        // The job's own failure is more informative.
        return Ok(ExitCode::from(u8::try_from(code.max(1)).unwrap_or(1)));
    }
    // A code that does not fit into an exit code is still a failure.
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
