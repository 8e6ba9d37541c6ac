//! `onesided run --fabric virt`: ranks that are processes, on a simulated network.

use crate::arguments::{Network, Run};
use observe::{Output, emit};
use serde::Serialize;
use std::{error::Error, io::Write as _, path::Path, process::ExitCode};
use tofu2_sim::{shm::Bind, virt::Platform};
use tofu2_stepped::{EndedRun, Launcher};

/// Entries of a timeline that are kept.
const ENTRIES: usize = 1_000_000;

/// Figures of a run, for `--json`.
#[derive(Debug, Serialize)]
struct Figures {
    virtual_time_ns: u64,
    events: u64,
    trace_hash: String,
    requests: u64,
    wall_seconds: f64,
    commands: Commands,
}

/// Commands by the stage that they reached.
#[derive(Debug, Serialize)]
struct Commands {
    posted: u64,
    completed: u64,
    arrived: u64,
    visible: u64,
    released: u64,
}

/// Runs the job and returns the code of the first process that failed.
pub(crate) fn simulate(options: Run) -> Result<ExitCode, Box<dyn Error>> {
    for (name, is_given) in [
        ("--segment-bytes", options.segment_bytes.is_some()),
        ("--ranks-per-node", options.ranks_per_node.is_some()),
        ("--bind", options.bind != Bind::None),
        ("--shared-address-space", options.shared_address_space),
        ("--progress-thread", options.progress_thread),
    ] {
        if is_given {
            return Err(format!("{name}: ranks in virtual time do not have it").into());
        }
    }
    let json = options.json.as_deref().filter(|path| *path != Path::new("-")).map(Output::open).transpose()?;
    let trace = options.trace.as_deref().map(Output::open).transpose()?;
    let mut program = options.program.into_iter();
    let executable = program.next().ok_or("no program given")?;
    let platform = match options.platform.unwrap_or(Network::Fx100) {
        Network::Fx100 => Platform::fx100(),
        Network::Tofud => Platform::tofud(),
    };
    let seed = options.seed.unwrap_or(0);
    let mut launcher = Launcher::new(options.ranks.get(), executable, program);
    launcher = launcher.platform(platform).seed(seed).stuck_after(options.stuck_after.0);
    if trace.is_some() {
        launcher = launcher.timeline(ENTRIES);
    }
    let ended = match launcher.run() {
        Ok(ended) => ended,
        Err(error) => {
            emit(format_args!("error: {error}"));
            return Ok(ExitCode::from(error.exit_code()));
        }
    };
    let EndedRun { run, failure, code, requests, took, .. } = ended;
    let stats = run.stats;
    emit(format_args!(
        "virtual time {}, {} events, trace {:016x}, seed {seed}, {requests} calls",
        stats.end, stats.events, stats.trace_hash
    ));
    let commands = Commands {
        posted: stats.commands.posted,
        completed: stats.commands.completed,
        arrived: stats.commands.arrived,
        visible: stats.commands.visible,
        released: stats.commands.released,
    };
    if options.stats {
        emit(format_args!(
            "{} commands posted, {} completed, {} visible, {} of them advanced a session offset; {:.0} calls per second \
             in {:.2} s",
            commands.posted,
            commands.completed,
            commands.visible,
            commands.released,
            requests as f64 / took.as_secs_f64(),
            took.as_secs_f64()
        ));
    }
    if let (Some(out), Some(timeline)) = (trace, &run.timeline) {
        out.write(|file| timeline.write(file))?;
    }
    if options.json.is_some() {
        let figures = Figures {
            virtual_time_ns: stats.end.as_picos() / 1000,
            events: stats.events,
            trace_hash: format!("{:016x}", stats.trace_hash),
            requests,
            wall_seconds: took.as_secs_f64(),
            commands,
        };
        let text = serde_json::to_string_pretty(&figures)? + "\n";
        match json {
            Some(out) => out.write(|mut file| file.write_all(text.as_bytes()))?,
            None => std::io::stdout().write_all(text.as_bytes())?,
        }
    }
    if let Some(failure) = failure {
        emit(format_args!("error: {failure}"));
        return Ok(ExitCode::from(u8::try_from(code.max(1)).unwrap_or(1)));
    }
    Ok(ExitCode::SUCCESS)
}
