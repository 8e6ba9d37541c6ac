//! Ranks that another launcher started, or that run on several nodes: how a process finds its job,
//! becomes a rank of it, and ends with it.
//!
//! [`launcher`] starts the ranks; [`member`] is a rank; [`identity`] identifies its program and
//! machine; [`membership`] receives the membership events; `network` selects the network, and
//! `nearest` the nearest interface of a host; [`attached`] refuses processes that can't become
//! ranks; [`one_machine`] attaches those whose ranks are all on this machine.

mod attached;
mod deadlock;
mod identity;
mod launcher;
mod member;
mod membership;
#[cfg(any(feature = "ofi", test))]
mod nearest;
#[cfg(feature = "ofi")]
mod network;
mod one_machine;

use crate::{Backend, Launch, report::LaunchError, settings::setting};
use bootstrap::{Found, How, Interface, Rendezvous, pmix::Pmix, rendezvous, rendezvous_over};
use rdma_fabric::FabricError;
use std::{env, time::Duration};

pub(crate) use attached::is_alone;
#[cfg(fuzzing)]
pub use launcher::fuzz;
pub(crate) use launcher::{HostsError, serve_if_asked, start};
pub(crate) use member::{run, run_shared};
pub(crate) use one_machine::{attach_here, attach_rank};

/// The variable that names the node of a process and overrides its machine: processes with the same
/// text share memory.
pub(crate) const NODE_VARIABLE: &str = "ONESIDED_NODE";

/// Time limit for each step of joining a job.
const STEP: Duration = Duration::from_secs(30);

/// Returns the job that this process was started for, by our launcher, or by another one if the job
/// has several ranks. The options must not contradict it.
///
/// # Errors
/// [`FabricError::Setting`].
pub(crate) fn found(launch: &Launch) -> Result<Option<Found>, FabricError> {
    if !matches!(launch.backend, Backend::Shm | Backend::Cluster) {
        return Ok(None);
    }
    let problem = |error: bootstrap::DetectError| setting("launcher", error.to_string());
    let Some(found) = bootstrap::detect(&|name| env::var_os(name)).map_err(problem)? else { return Ok(None) };
    // The only process of another launcher may start ranks itself; a rank of ours never does.
    if found.ranks() == Some(1) && !matches!(found, Found::Cluster(_)) {
        return Ok(None);
    }
    if let (Some(asked), Some(ranks)) = (launch.asked_ranks, found.ranks())
        && asked != ranks
    {
        let problem = format!("asks for {asked} ranks, but {} started {ranks}", found.launcher());
        return Err(setting("--ranks", problem));
    }
    Ok(Some(found))
}

/// Finds the other ranks, or their coordinator.
fn meet(launch: &Launch, found: &Found) -> Result<Rendezvous, LaunchError> {
    let segment = (launch.segment_bytes as u64).to_le_bytes().to_vec();
    let how = How { interface: interface(launch), segment, lease: launch.lease, within: STEP, ..How::default() };
    let met = match found {
        Found::Pmix { .. } => {
            let mut store = Pmix::open(STEP).map_err(|error| failed(&error))?;
            rendezvous_over(&mut store, &how)
        }
        other => rendezvous(other, &how),
    };
    met.map_err(|error| failed(&error))
}

/// Returns the interface that the options name.
fn interface(launch: &Launch) -> Option<Interface> {
    launch.interface.as_ref().map(|name| match name.parse() {
        Ok(address) => Interface::Address(address),
        Err(_) => Interface::Named(name.clone()),
    })
}

/// Converts an error before the start of a job to the error of a launch.
fn failed(error: &dyn std::fmt::Display) -> LaunchError {
    LaunchError::Cluster(error.to_string())
}
