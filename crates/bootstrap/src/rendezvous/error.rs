//! Why ranks do not find each other.

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
    /// The file of the secret is not as it has to be.
    #[error(transparent)]
    SecretFile(#[from] SecretFileError),
    /// What stands where the secret should be is none.
    #[error(transparent)]
    Secret(#[from] BadSecret),
    /// The coordinator can't have this job.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The launcher's store has to be opened by the caller.
    #[error("the store of {launcher} has to be opened first")]
    NoStore {
        /// The launcher.
        launcher: &'static str,
    },
    /// What rank 0 put into the launcher's store did not come back.
    #[error("{launcher} does not hold the address and secret that rank 0 puts there")]
    Published {
        /// The launcher.
        launcher: &'static str,
    },
    /// This host has no such interface.
    #[error("this host has no interface {wanted}; it has {}", list(known))]
    UnknownInterface {
        /// What was asked for.
        wanted: String,
        /// What there is: names and addresses.
        known: Vec<(String, IpAddr)>,
    },
    /// Rank 0's host has no address.
    #[error("{host}, the host of rank 0, has no address{}", reason(cause))]
    UnknownHost {
        /// The host.
        host: String,
        /// What the system says.
        cause: Option<io::Error>,
    },
    /// The coordinator's process did not say where it listens. If it says nothing at all, `main` may
    /// not call `serve_if_asked` first.
    #[error("the coordinator's process did not begin to listen at {listen} within {within:?}: {said}")]
    NotServing {
        /// Where it should listen.
        listen: SocketAddr,
        /// How long it was waited for.
        within: Duration,
        /// What it said.
        said: String,
    },
    /// The system refused a call.
    #[error("{call}: {cause}")]
    System {
        /// The call.
        call: &'static str,
        /// Why.
        cause: io::Error,
    },
}

fn list(known: &[(String, IpAddr)]) -> String {
    known.iter().map(|(name, address)| format!("{name} ({address})")).collect::<Vec<_>>().join(", ")
}

fn reason(cause: &Option<io::Error>) -> String {
    cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default()
}
