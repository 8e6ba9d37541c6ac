//! The instructions of a launcher for the agent of a host, in a variable.

use super::error::HostsError;
use std::{net::SocketAddr, ops::Range, time::Duration};

/// The variable that makes a process the agent of a host:
/// `v1;ranks=N;first=F;last=L;coordinator=ADDRESS:PORT;silence=NS;records=WHAT`. The secret arrives
/// on standard input.
pub(crate) const AGENT: &str = "ONESIDED_AGENT";

/// The instructions for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentPlan {
    /// Number of ranks of the whole job.
    pub(super) ranks: usize,
    /// The ranks that it starts.
    pub(super) share: Range<u32>,
    pub(super) coordinator: SocketAddr,
    /// How long the launcher may be silent before the agent considers it unreachable.
    pub(super) silence: Duration,
    /// The records that ranks write, to be sent to the launcher: `stats`, `trace` or nothing.
    pub(super) records: Option<String>,
}

impl AgentPlan {
    /// Returns the variable's value.
    pub(super) fn to_text(&self) -> String {
        let Self { ranks, share, coordinator, silence, records } = self;
        let (records, silence) = (records.as_deref().unwrap_or("none"), silence.as_nanos());
        let Range { start, end } = share;
        format!(
            "v1;ranks={ranks};first={start};last={};coordinator={coordinator};silence={silence};records={records}",
            end - 1
        )
    }

    /// Reads the variable's value.
    pub(super) fn from_text(text: &str) -> Result<Self, HostsError> {
        Self::parse(text).ok_or_else(|| HostsError::Plan { text: text.to_owned() })
    }

    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(';').collect();
        let ["v1", ranks, first, last, coordinator, silence, records] = parts[..] else { return None };
        let ranks = ranks.strip_prefix("ranks=")?.parse::<u32>().ok()? as usize;
        let first: u32 = first.strip_prefix("first=")?.parse().ok()?;
        let last: u32 = last.strip_prefix("last=")?.parse().ok()?;
        let coordinator = coordinator.strip_prefix("coordinator=")?.parse().ok()?;
        let silence = Duration::from_nanos(silence.strip_prefix("silence=")?.parse().ok()?);
        let records = match records.strip_prefix("records=")? {
            "none" => None,
            what @ ("stats" | "trace") => Some(what.to_owned()),
            _ => return None,
        };
        let fits = first <= last && (last as usize) < ranks;
        fits.then(|| Self { ranks, share: first..last + 1, coordinator, silence, records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_comes_back_and_other_text_is_refused() {
        let coordinator = "10.0.0.1:4000".parse().unwrap();
        let silence = Duration::from_millis(2500);
        for records in [None, Some("trace".to_owned())] {
            let plan = AgentPlan { ranks: 7, share: 2..5, coordinator, silence, records };
            assert_eq!(AgentPlan::from_text(&plan.to_text()).unwrap(), plan);
        }
        let text = "v1;ranks=4;first=0;last=3;coordinator=10.0.0.1:4000;silence=1;records=none";
        assert!(AgentPlan::from_text(text).is_ok());
        let most = "v1;ranks=4294967295;first=0;last=4294967294;coordinator=10.0.0.1:4000;silence=1;records=none";
        assert!(AgentPlan::from_text(most).is_ok());
        assert!(AgentPlan::from_text(&most.replace("7295", "7296").replace("7294", "7295")).is_err());
        for (one, other) in [("v1", "v2"), ("last=3", "last=4"), ("first=0", "first=4"), ("none", "all"), (":4000", "")]
        {
            let error = AgentPlan::from_text(&text.replace(one, other)).unwrap_err();
            assert!(matches!(error, HostsError::Plan { .. }), "{other}: {error}");
        }
    }
}
