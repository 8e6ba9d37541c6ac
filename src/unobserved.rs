//! Replaces `observing.rs` in a build without the feature `observe`: requests for counters, traces
//! or timelines are refused.

use crate::{
    Launch,
    refusal::{refuse_launcher, refuse_options, unable},
    report::{LaunchError, UNOBSERVED, emit},
};
use rdma_fabric::{Fabric, FabricError, Program, Rank};
use std::{
    convert::Infallible,
    ffi::{OsStr, OsString},
};
use tofu2_sim::{
    shm::{self, Launcher},
    virt::{Job, Run},
};

fn env(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

pub(crate) fn from_args(_: &mut Launch, args: &mut pico_args::Arguments) -> Result<(), FabricError> {
    refuse_options(args, env)
}

pub(crate) fn leave_out(endpoint: &Fabric) {
    if endpoint.rank() == Rank::new(0) && refuse_launcher(env).is_err() {
        emit(UNOBSERVED);
    }
}

pub(crate) fn leave_out_threads(_: &Launch) {}

pub(crate) fn run_rank<P: Program>(endpoint: Fabric, program: &P) -> Result<(), LaunchError> {
    refuse_launcher(env)?;
    Ok(shm::run_rank(endpoint, program).map(drop)?)
}

#[cfg(feature = "ofi")]
pub(crate) fn wants_counters(_: &Launch) -> bool {
    false
}

#[cfg(target_os = "linux")]
pub(crate) fn run_over<P: Program>(part: &shm::part::Part, fabric: Fabric, program: &P) -> Result<(), LaunchError> {
    refuse_launcher(env)?;
    Ok(part.run(fabric, program).map(drop)?)
}

pub(crate) fn start(_: &Launch, launcher: Launcher) -> Result<i32, LaunchError> {
    Ok(launcher.run()?)
}

pub(crate) fn start_with(
    _: &Launch,
    run: impl FnOnce(Option<(&'static str, OsString)>) -> Result<i32, LaunchError>,
) -> Result<i32, LaunchError> {
    run(None)
}

#[cfg(target_os = "linux")]
pub(crate) fn what_to_record(_: &OsStr) -> String {
    "none".to_owned()
}

#[cfg(target_os = "linux")]
pub(crate) fn bring_home(_: &OsStr, _: u32, _: &[u8]) -> Result<(), Infallible> {
    Ok(())
}

/// Replaces records of ranks of this host, which this build does not write.
#[cfg(target_os = "linux")]
pub(crate) enum Records {}

#[cfg(target_os = "linux")]
impl Records {
    pub(crate) fn create(_: &str) -> Result<Self, FabricError> {
        Err(unable("ONESIDED_OBSERVE"))
    }

    pub(crate) fn variable(&self) -> (&'static str, OsString) {
        match *self {}
    }

    pub(crate) fn of(&self, _: u32) -> Option<Vec<u8>> {
        match *self {}
    }
}

pub(crate) fn run_here<P: Program>(launch: &Launch, program: &P) -> Result<(), LaunchError> {
    launch.run_here(program)
}

/// Replaces the timeline file, which this build does not write.
pub(crate) struct TimelineFile;

impl TimelineFile {
    pub(crate) fn open(_: &Launch) -> Result<Self, LaunchError> {
        Ok(TimelineFile)
    }

    pub(crate) fn of<'a>(&self, job: Job<'a>) -> Job<'a> {
        job
    }

    pub(crate) fn write<T>(self, _: &Run<T>) -> Result<(), Infallible> {
        Ok(())
    }
}

pub(crate) fn both<T, E: Into<LaunchError>>(
    ended: Result<T, E>,
    Ok(()): Result<(), Infallible>,
) -> Result<T, LaunchError> {
    ended.map_err(Into::into)
}
