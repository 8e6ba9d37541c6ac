//! Waits of a fabric.

use super::{Reader, Wire, operations::Target, wire_enum};
use core::time::Duration;
use rdma_fabric::{
    Deps, Rank, Time,
    provider::{Place, WaitFor},
};

/// As [`Deps`].
#[derive(Clone, Debug)]
pub(crate) enum Members {
    All {},
    One { rank: Rank },
    Ranks { ranks: Vec<Rank> },
    Step { writer: Rank, group: Option<Vec<Rank>> },
}

wire_enum!(Members {
    0 = All {},
    1 = One { rank: rank },
    2 = Ranks { ranks: ranks },
    3 = Step { writer: writer, group: group },
});

impl From<Deps<'_>> for Members {
    fn from(deps: Deps<'_>) -> Self {
        match deps {
            Deps::All => Members::All {},
            Deps::One(rank) => Members::One { rank },
            Deps::Ranks(ranks) => Members::Ranks { ranks: ranks.to_vec() },
            Deps::Step { writer, group } => Members::Step { writer, group: group.map(<[_]>::to_vec) },
        }
    }
}

impl Members {
    pub(crate) fn deps(&self) -> Deps<'_> {
        match self {
            Members::All {} => Deps::All,
            Members::One { rank } => Deps::One(*rank),
            Members::Ranks { ranks } => Deps::Ranks(ranks),
            Members::Step { writer, group } => Deps::Step { writer: *writer, group: group.as_deref() },
        }
    }
}

/// As [`WaitFor`].
#[derive(Clone, Debug)]
pub(crate) enum AwaitedEvent {
    Word { word: Target, deps: Members },
    Notice { deps: Members },
    Room { of: Option<Rank> },
    Flush { to: Option<Rank> },
    Until { time: Time },
    Busy { lasts: Duration },
    Charge { layer: &'static str, bytes: usize },
}

wire_enum!(AwaitedEvent {
    0 = Word { word: word, deps: deps },
    1 = Notice { deps: deps },
    2 = Room { of: of },
    3 = Flush { to: to },
    4 = Until { time: time },
    5 = Busy { lasts: lasts },
    6 = Charge { layer: layer, bytes: bytes },
});

impl From<WaitFor<'_>> for AwaitedEvent {
    fn from(wait_for: WaitFor<'_>) -> Self {
        match wait_for {
            WaitFor::Word(word, deps) => AwaitedEvent::Word { word: word.into(), deps: deps.into() },
            WaitFor::Notice(deps) => AwaitedEvent::Notice { deps: deps.into() },
            WaitFor::Room(of) => AwaitedEvent::Room { of },
            WaitFor::Flush(to) => AwaitedEvent::Flush { to },
            WaitFor::Until(time) => AwaitedEvent::Until { time },
            WaitFor::Busy(lasts) => AwaitedEvent::Busy { lasts },
            WaitFor::Charge(layer, bytes) => AwaitedEvent::Charge { layer, bytes },
        }
    }
}

impl AwaitedEvent {
    /// Returns the event; a word is `place`, without which there is none.
    pub(crate) fn wait_for<'a>(&'a self, place: Option<&'a Place>) -> Option<WaitFor<'a>> {
        Some(match self {
            AwaitedEvent::Word { deps, .. } => WaitFor::Word(place?, deps.deps()),
            AwaitedEvent::Notice { deps } => WaitFor::Notice(deps.deps()),
            AwaitedEvent::Room { of } => WaitFor::Room(*of),
            AwaitedEvent::Flush { to } => WaitFor::Flush(*to),
            AwaitedEvent::Until { time } => WaitFor::Until(*time),
            AwaitedEvent::Busy { lasts } => WaitFor::Busy(*lasts),
            AwaitedEvent::Charge { layer, bytes } => WaitFor::Charge(layer, *bytes),
        })
    }
}
