//! The variable by which this crate's own launcher describes the job to a process.

use super::{DetectError, Found, variables::Variables};
use std::{fmt, net::SocketAddr, str::FromStr};

/// The variable's name.
pub const CLUSTER: &str = "ONESIDED_CLUSTER";

/// The content of the variable. Its text, which `Display` writes and `FromStr` parses, is
/// `v1;rank=R;ranks=N;coordinator=ADDRESS:PORT;secret=stdin`, or has `secret=fd:F` at its end. It
/// never contains the secret itself, since others may read a process's variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// The rank.
    pub rank: u32,
    /// The number of ranks of the job.
    pub ranks: usize,
    /// The address at which the coordinator listens.
    pub coordinator: SocketAddr,
    /// Where to read the secret's text form, which is followed by a newline or the end of the file.
    pub secret: SecretAt,
}

/// Where a process can read the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretAt {
    /// The first line of its standard input, the rest of which belongs to the program.
    Stdin,
    /// This descriptor, which it inherited.
    Fd(i32),
}

/// A text that does not have this form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotACluster;

impl fmt::Display for NotACluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not of the form `v1;rank=R;ranks=N;coordinator=ADDRESS:PORT;secret=stdin`")
    }
}

impl std::error::Error for NotACluster {}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, ranks, coordinator, secret } = self;
        write!(f, "v1;rank={rank};ranks={ranks};coordinator={coordinator};secret=")?;
        match secret {
            SecretAt::Stdin => f.write_str("stdin"),
            SecretAt::Fd(fd) => write!(f, "fd:{fd}"),
        }
    }
}

impl FromStr for Cluster {
    type Err = NotACluster;

    fn from_str(text: &str) -> Result<Self, NotACluster> {
        let parts: Vec<&str> = text.split(';').collect();
        let ["v1", rank, ranks, coordinator, secret] = parts[..] else { return Err(NotACluster) };
        let field = |part: &'_ str, name: &str| part.strip_prefix(name).map(str::to_owned).ok_or(NotACluster);
        let secret = match field(secret, "secret=")?.as_str() {
            "stdin" => SecretAt::Stdin,
            at => SecretAt::Fd(number(at.strip_prefix("fd:").ok_or(NotACluster)?)?),
        };
        let coordinator = field(coordinator, "coordinator=")?.parse().map_err(|_| NotACluster)?;
        let (rank, ranks) = (number(&field(rank, "rank=")?)?, number(&field(ranks, "ranks=")?)?);
        Ok(Self { rank, ranks, coordinator, secret })
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, NotACluster> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits).ok_or(NotACluster)
}

pub(super) fn find(env: Variables<'_>) -> Result<Option<Found>, DetectError> {
    if !env.has(CLUSTER) {
        return Ok(None);
    }
    let malformed = || env.malformed(CLUSTER, "`v1;rank=R;ranks=N;coordinator=ADDRESS:PORT;secret=stdin`");
    let cluster: Cluster = env.text(CLUSTER)?.parse().map_err(|_| malformed())?;
    let Cluster { rank, ranks, .. } = cluster;
    if rank as usize >= ranks {
        return Err(DetectError::RankOutOfRange { variable: CLUSTER, rank, of: CLUSTER, ranks });
    }
    Ok(Some(Found::Cluster(cluster)))
}
