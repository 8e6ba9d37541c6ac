//! The launcher of this crate: the coordinator in this process, and a process for each rank, on
//! this machine or on the hosts that a file lists.
//!
//! Ranks receive the secret as the first line of their standard input. If the launcher ends, its
//! coordinator also ends, and every rank ends shortly afterwards. If ranks of other hosts can no
//! longer reach it, the larger part of the job continues without it.
//!
//! [`hosts`] reads the file. [`remote`] has an [`ssh`] process for each host, which starts this
//! program there as an [`agent`], by a [`plan`]; launcher and agent exchange [`frames`]. An agent,
//! and the launcher of a job on one machine, start ranks by [`ranks`]; [`supervise`] waits for
//! their [`end`].

mod agent;
mod end;
mod error;
mod frames;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod home;
mod hosts;
mod libfabric;
mod pipes;
mod plan;
mod quote;
mod ranks;
mod relay;
mod remote;
mod remote_input;
mod spawn;
mod ssh;
mod ssh_stderr;
mod supervise;

pub(crate) use agent::serve_if_asked;
pub(crate) use error::HostsError;

use super::{STEP, failed, interface};
use crate::{Launch, observing, report::LaunchError};
use bootstrap::{CLUSTER, Coordinator, Plan, Secret, Succession, listening_address};
use hosts::Share;
use ranks::{RankProcesses, Start};
use remote::{Job, RemoteRanks};
use std::{
    env,
    ffi::OsString,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::ChildStdin,
};
use supervise::{Supervisor, Workers};
use tofu2_sim::shm::part::Signals;

/// Starts this program again as all ranks of a job, and waits for its end. Returns the exit code: 0
/// if all ranks succeeded, otherwise that of the rank that was lost first, the one that a rank
/// aborted with, or 128 + signal after SIGINT, SIGTERM, SIGHUP, SIGQUIT or SIGUSR1.
///
/// # Errors
/// [`LaunchError::Hosts`] and [`LaunchError::Cluster`] if it could not be started.
pub(crate) fn start(launch: &Launch) -> Result<i32, LaunchError> {
    // A rank that acted as a launcher would start processes without end.
    if env::var_os(CLUSTER).is_some() {
        return Err(LaunchError::Cluster(format!("a rank can't start a cluster: {CLUSTER} is set")));
    }
    let shares = match &launch.hosts {
        None => None,
        Some(_) if launch.ranks_per_node.is_some() => return Err(HostsError::RanksPerNode.into()),
        Some(path) => Some(hosts::shares(path, launch.ranks)?).filter(|shares| !hosts::are_here(shares)),
    };
    observing::start_with(launch, |records| start_on(launch, shares.as_deref(), records))
}

/// Starts ranks on this machine, or on hosts reached by ssh.
fn start_on(
    launch: &Launch,
    shares: Option<&[Share]>,
    records: Option<(&'static str, OsString)>,
) -> Result<i32, LaunchError> {
    if shares.is_none() {
        ranks::check_room(launch.ranks)?;
    }
    let secret = Secret::random().map_err(|error| failed(&error))?;
    let segment = (launch.segment_bytes as u64).to_le_bytes().to_vec();
    // A single machine is not partitioned.
    let succession = if shares.is_some() { Succession::AfterSilence } else { Succession::Never };
    let plan = Plan { ranks: launch.ranks, join_within: 2 * STEP, lease: launch.lease, segment, succession };
    let address = match shares {
        None => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Some(_) => listening_address(interface(launch).as_ref()).map_err(|error| failed(&error))?,
    };
    // Before any child exists, so that no signal leaves one behind.
    let signals = Signals::catch()?;
    let listen = SocketAddr::new(address, 0);
    let coordinator = Coordinator::start(listen, secret.clone(), plan).map_err(|error| failed(&error))?;
    let (ranks, at) = (launch.ranks, coordinator.address());
    let workers = match shares {
        None => {
            let (per_node, provider) = (launch.ranks_per_node, Some(&*launch.ofi));
            let start =
                Start { ranks, coordinator: at, secret: &secret, per_node, provider, records, env: &launch.env };
            let started = RankProcesses::start(0..ranks as u32, &start, None);
            let mut started =
                started.map_err(|(rank, cause)| failed(&format_args!("rank {rank} can't be started: {cause}")))?;
            if let Some(input) = started.take_input() {
                pass_on_input(input).map_err(|cause| failed(&cause))?;
            }
            Workers::Here(started)
        }
        Some(shares) => {
            let job = Job { ranks, coordinator: at, secret: &secret, lease: launch.lease, env: &launch.env, records };
            Workers::There(RemoteRanks::start(shares, &job)?)
        }
    };
    Supervisor::new(workers, &coordinator, signals, ranks).run()
}

/// Passes standard input to rank 0 until either of them ends.
fn pass_on_input(mut to: ChildStdin) -> io::Result<()> {
    spawn::spawn("standard input", move || _ = io::copy(&mut io::stdin(), &mut to))
}
