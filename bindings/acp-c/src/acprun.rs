//! Ranks that ACP's launcher `acprun` starts: each process has its number, and the ports and the host
//! of a connection, on its command line.
//!
//! Ranks share memory, so all of them must be on one machine, and the ports are not used. Jobs of one
//! user with the same task number differ by their process group.

use crate::{
    error::{CallError, Result},
    options::Options,
};
use onesided::Backend;
use rdma_fabric::{Fabric, Rank};

/// The names of this machine in the arguments of a job that was started without a list of hosts.
const LOCAL: [&str; 2] = ["127.0.0.1", "localhost"];

/// Attaches this process as `rank`.
///
/// # Errors
/// [`CallError::Options`] for a job on several machines; those of [`Backend::attach_as`].
pub(crate) fn attach(options: &Options, rank: u64) -> Result<Fabric> {
    if !LOCAL.contains(&&*options.remote_host) {
        let host = &options.remote_host;
        return Err(CallError::Options(format!(
            "acprun started ranks on several machines (--acp-host-remote {host}): all have to be on one"
        )));
    }
    let group = rustix::process::getpgrp().as_raw_nonzero();
    let job = format!("acprun {} {group}", options.task);
    let rank = Rank::new(u32::try_from(rank).unwrap_or(u32::MAX));
    Ok(Backend::attach_as(rank, usize::try_from(options.ranks).unwrap_or(usize::MAX), &job)?)
}
