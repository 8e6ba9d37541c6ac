//! Errors of sessions, and the reasons why a job can't start.

use crate::rank_list::RankList;
use std::{io, net::SocketAddr, time::Duration};

/// A failed call of a [`Session`](crate::Session).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing accepts connections at the coordinator's address.
    #[error("no coordinator at {address} within {within:?}: {cause}")]
    Unreachable {
        /// The address.
        address: SocketAddr,
        /// The time spent trying.
        within: Duration,
        /// The error of the last attempt.
        cause: io::Error,
    },
    /// The process at the coordinator's address accepts connections but doesn't answer.
    #[error("what listens at {address} did not answer within {within:?}")]
    Silent {
        /// The address.
        address: SocketAddr,
        /// The time spent waiting.
        within: Duration,
    },
    /// The process at the coordinator's address is not a coordinator.
    #[error("the server at {address} is not the coordinator of a job")]
    NotACoordinator {
        /// The address.
        address: SocketAddr,
    },
    /// The coordinator uses another version of the protocol.
    #[error("the coordinator at {address} speaks version {theirs} of the protocol, this process version {ours}")]
    Version {
        /// The address.
        address: SocketAddr,
        /// The coordinator's version.
        theirs: u32,
        /// This crate's version.
        ours: u32,
    },
    /// The coordinator did not prove that it knows the secret: it belongs to another job.
    #[error("the coordinator at {address} does not know the secret of this job")]
    WrongSecret {
        /// The address.
        address: SocketAddr,
    },
    /// The job can't start, or this process can't be part of it.
    #[error(transparent)]
    Refused(Refusal),
    /// Not all ranks had joined when this process's own time limit for joining expired.
    #[error("the coordinator at {address} was still waiting for other ranks after {within:?}")]
    StillGathering {
        /// The coordinator's address.
        address: SocketAddr,
        /// The time limit of this process.
        within: Duration,
    },
    /// The coordinator ended, closed the connection to this process, or was silent for the lease.
    #[error("the coordinator at {address} is lost")]
    CoordinatorLost {
        /// The coordinator's address.
        address: SocketAddr,
    },
    /// The coordinator sent a message that is not part of the protocol.
    #[error("the coordinator at {address} sent a message that is none")]
    Malformed {
        /// The coordinator's address.
        address: SocketAddr,
    },
    /// The bytes exceed the limit of a message.
    #[error("{size} bytes are more than the {limit} of an item")]
    TooLarge {
        /// The size in bytes.
        size: usize,
        /// The maximum size in bytes.
        limit: usize,
    },
    /// An exchange is incomplete.
    #[error("an exchange is incomplete: {}", missing(absent, ended))]
    Incomplete {
        /// The ranks that had not joined the exchange when its time limit expired.
        absent: Vec<u32>,
        /// The ranks that have left or are lost, and how.
        ended: Vec<(u32, String)>,
    },
    /// This process has left its job or reported that it is lost.
    #[error("this process has already ended its part of the job")]
    AlreadyEnded,
    /// The job was aborted.
    #[error("{}: {text}", match rank {
        Some(rank) => format!("rank {rank} aborted the job with code {code}"),
        None => format!("the job was aborted with code {code}"),
    })]
    Aborted {
        /// The rank that aborted the job; `None` if it was the coordinator.
        rank: Option<u32>,
        /// The exit code of the abort.
        code: i32,
        /// The reason for the abort.
        text: String,
    },
    /// Not all ranks ended within the time limit.
    #[error("{} had not ended after {within:?}", RankList(ranks))]
    NotEnded {
        /// The ranks that had neither left nor were lost.
        ranks: Vec<u32>,
        /// The time spent waiting.
        within: Duration,
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

/// The reason why a job can't start, or why a process can't be part of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A process has a rank that is not below the number of ranks.
    #[error("a process on {host} is rank {rank} of a job that has {ranks} ranks")]
    RankOutOfRange {
        /// The rank.
        rank: u32,
        /// Its host.
        host: String,
        /// The number of ranks of the job.
        ranks: usize,
    },
    /// Two processes have the same rank.
    #[error("rank {rank} came twice: from {first} and from {second}")]
    RankTaken {
        /// The rank.
        rank: u32,
        /// The host of the process that joined first.
        first: String,
        /// The host of the other.
        second: String,
    },
    /// A process was started with a different number of ranks.
    #[error("rank {rank} on {host} was started for {theirs} ranks, the job for {ours}")]
    OtherRanks {
        /// The rank.
        rank: u32,
        /// Its host.
        host: String,
        /// The number of ranks with which the process was started.
        theirs: usize,
        /// The number of ranks of the job.
        ours: usize,
    },
    /// Two ranks run different builds.
    #[error("rank {rank} on {host} runs build `{build}`, but rank {other} on {other_host} build `{other_build}`")]
    OtherBuild {
        /// The rank that joined later.
        rank: u32,
        /// Its host.
        host: String,
        /// Its build.
        build: String,
        /// The rank that joined first.
        other: u32,
        /// The other's host.
        other_host: String,
        /// The other's build.
        other_build: String,
    },
    /// Two ranks use different providers.
    #[error("rank {rank} on {host} uses provider `{provider}`, but rank {other} on {other_host} `{other_provider}`")]
    OtherProvider {
        /// The rank that joined later.
        rank: u32,
        /// Its host.
        host: String,
        /// Its provider.
        provider: String,
        /// The rank that joined first.
        other: u32,
        /// The other's host.
        other_host: String,
        /// The other's provider.
        other_provider: String,
    },
    /// Some ranks did not join within the time limit.
    #[error("{count} of {ranks} ranks did not come within {within:?}, {}", named(first, *count))]
    Missing {
        /// The first of the missing ranks.
        first: Vec<u32>,
        /// The number of missing ranks.
        count: usize,
        /// The number of ranks of the job.
        ranks: usize,
        /// The time that the coordinator waited.
        within: Duration,
    },
    /// A rank ended before all ranks had joined.
    #[error("rank {rank}{} ended before all ranks had come: {text}", on(host))]
    Died {
        /// The rank.
        rank: u32,
        /// Its host; empty if it never joined.
        host: String,
        /// How it ended.
        text: String,
    },
    /// The job was aborted before this process joined.
    #[error("the job was aborted: {text}")]
    Aborted {
        /// The reason.
        text: String,
    },
}

/// Describes the ranks that did not contribute to an exchange.
fn missing(absent: &[u32], ended: &[(u32, String)]) -> String {
    let late = (!absent.is_empty()).then(|| format!("{} did not come in time", RankList(absent)));
    let ended = ended.iter().map(|(rank, how)| format!("rank {rank} has ended ({how})"));
    late.into_iter().chain(ended).collect::<Vec<_>>().join(", ")
}

/// Describes the missing ranks, of which only the first are known.
fn named(first: &[u32], count: usize) -> String {
    if first.len() < count { format!("among them {}", RankList(first)) } else { RankList(first).to_string() }
}

/// Describes where a rank runs, if that is known.
fn on(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!(" on {host}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_ranks_and_hosts_or_leave_them_out() {
        let incomplete = |absent: &[u32], ended: &[(u32, &str)]| {
            let ended = ended.iter().map(|(rank, how)| (*rank, (*how).to_owned())).collect();
            Error::Incomplete { absent: absent.to_vec(), ended }.to_string()
        };
        assert_eq!(incomplete(&[2], &[]), "an exchange is incomplete: rank 2 did not come in time");
        assert_eq!(incomplete(&[], &[(1, "it left")]), "an exchange is incomplete: rank 1 has ended (it left)");
        assert_eq!(
            incomplete(&[0, 1, 3], &[(2, "it left")]),
            "an exchange is incomplete: ranks 0-1, 3 did not come in time, rank 2 has ended (it left)"
        );
        let died = |host: &str| Refusal::Died { rank: 1, host: host.into(), text: "exited with 3".into() }.to_string();
        assert_eq!(died(""), "rank 1 ended before all ranks had come: exited with 3");
        assert_eq!(died("node7"), "rank 1 on node7 ended before all ranks had come: exited with 3");
        let within = Duration::from_secs(1);
        let absent = |first: &[u32], count| Refusal::Missing { first: first.to_vec(), count, ranks: 30, within };
        let text = "2 of 30 ranks did not come within 1s, ranks 4-5";
        assert_eq!(absent(&[4, 5], 2).to_string(), text);
        let text = "9 of 30 ranks did not come within 1s, among them ranks 0-7";
        assert_eq!(absent(&[0, 1, 2, 3, 4, 5, 6, 7], 9).to_string(), text);
        let ranks = Error::NotEnded { ranks: vec![1, 2], within }.to_string();
        assert_eq!(ranks, "ranks 1-2 had not ended after 1s");
    }
}
