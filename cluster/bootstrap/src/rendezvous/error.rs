//! Errors of a rendezvous.

use crate::{BadSecret, LauncherError, SecretFileError, StartError};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

/// A process did not find the coordinator of its job, or could not start it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RendezvousError {
    /// The launcher's store failed.
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    /// The secret file does not satisfy the requirements.
    #[error(transparent)]
    SecretFile(#[from] SecretFileError),
    /// The text is not a valid secret.
    #[error(transparent)]
    Secret(#[from] BadSecret),
    /// The coordinator can't run this job.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The caller has to open the launcher's store first.
    #[error("the store of {launcher} has to be opened first")]
    NoStore {
        /// The launcher.
        launcher: &'static str,
    },
    /// The launcher's store does not return the value that rank 0 puts.
    #[error("{launcher} does not hold the address and secret that rank 0 puts there")]
    Published {
        /// The launcher.
        launcher: &'static str,
    },
    /// This host does not have such an interface.
    #[error("this host has no interface {wanted}; it has {}", list(known))]
    UnknownInterface {
        /// The requested interface.
        wanted: String,
        /// The existing interfaces: names and addresses.
        known: Vec<(String, IpAddr)>,
    },
    /// The address of rank 0's host can't be resolved.
    #[error("{host}, the host of rank 0, has no address{}", reason(cause))]
    UnknownHost {
        /// The host.
        host: String,
        /// The error of the system.
        cause: Option<io::Error>,
    },
    /// The coordinator's process did not report the address at which it listens. If it prints
    /// nothing at all, `main` may lack the call of `serve_if_asked` at its beginning.
    #[error("the coordinator's process did not begin to listen at {listen} within {within:?}: {said}")]
    NotServing {
        /// The requested address.
        listen: SocketAddr,
        /// The time spent waiting.
        within: Duration,
        /// The output of the process.
        said: String,
    },
    /// The system refused a call.
    #[error("{call}: {cause}")]
    System {
        /// The call.
        call: &'static str,
        /// The reason.
        cause: io::Error,
    },
}

fn list(known: &[(String, IpAddr)]) -> String {
    known.iter().map(|(name, address)| format!("{name} ({address})")).collect::<Vec<_>>().join(", ")
}

fn reason(cause: &Option<io::Error>) -> String {
    cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default()
}
