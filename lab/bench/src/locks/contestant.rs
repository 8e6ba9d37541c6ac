//! The locks that contend, and the mutex beside them.

use core::{fmt, str::FromStr};
use repro::{
    peers::{Competitor, UnknownCompetitor},
    workloads::locks::compared,
};
use serde::{Deserialize, Serialize};

/// A contestant: one of the locks, or the mutex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Contestant {
    Lock(Competitor),
    Mutex,
}

impl Contestant {
    /// Returns the locks that are compared, and the mutex.
    pub(super) fn all() -> impl Iterator<Item = Contestant> {
        compared().map(|kind| Contestant::Lock(kind.into())).chain([Contestant::Mutex])
    }
}

const MUTEX: &str = "futex-mutex";

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Contestant::Lock(lock) => lock.fmt(f),
            Contestant::Mutex => f.write_str(MUTEX),
        }
    }
}

impl FromStr for Contestant {
    type Err = UnknownCompetitor;

    fn from_str(name: &str) -> Result<Self, UnknownCompetitor> {
        if name == MUTEX { Ok(Contestant::Mutex) } else { name.parse().map(Contestant::Lock) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use repro::peers::Peer;
    use rma_lock::locks::LockKind;

    #[test]
    fn contestants_are_read_back() {
        for contestant in Contestant::all().chain(Peer::ALL.map(|peer| Contestant::Lock(Competitor::Peer(peer)))) {
            assert_eq!(contestant.to_string().parse(), Ok(contestant));
            let json = serde_json::to_string(&contestant).unwrap_or_default();
            assert_eq!(serde_json::from_str::<Contestant>(&json).ok(), Some(contestant));
        }
        let fair = serde_json::to_string(&Contestant::Lock(LockKind::Fair.into())).unwrap_or_default();
        assert_eq!(fair, r#"{"Lock":"fair"}"#);
        assert!("none".parse::<Contestant>().is_err());
    }
}
