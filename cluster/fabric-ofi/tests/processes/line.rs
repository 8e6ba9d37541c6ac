//! An endpoint whose events are sorted by kind, so that cases can wait for one of them.

use fabric_ofi::{Brought, Domain, Endpoint, EndpointOptions, Event, Failure, Peer, Reply, Result};
use std::{
    collections::{HashMap, VecDeque},
    thread,
    time::{Duration, Instant},
};

/// Time limit for each step of a case: ten times the expected time.
pub(crate) const BOUND: Duration = Duration::from_secs(10);

/// The result of an operation, as owned data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Nothing,
    Bytes(Vec<u8>),
    Word(u64),
}

/// An endpoint, with the events that it has reported.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) endpoint: Endpoint,
    next: u64,
    completed: HashMap<u64, core::result::Result<Ended, Failure>>,
    pub(crate) messages: VecDeque<Vec<u8>>,
    pub(crate) data: VecDeque<u64>,
    pub(crate) faults: VecDeque<Reply>,
}

impl Line {
    pub(crate) fn open(domain: &Domain, options: EndpointOptions) -> Self {
        let endpoint = Endpoint::open(domain, options).expect("an endpoint");
        let (completed, messages, data, faults) = Default::default();
        Self { endpoint, next: 1, completed, messages, data, faults }
    }

    /// Opens an endpoint that has itself as a peer.
    pub(crate) fn with_itself(domain: &Domain, options: EndpointOptions) -> (Self, Peer) {
        let mut line = Self::open(domain, options);
        let name = line.endpoint.name();
        let peer = line.endpoint.insert(&name).expect("the endpoint itself");
        (line, peer)
    }

    /// Makes progress once, and returns the number of events.
    pub(crate) fn progress(&mut self) -> usize {
        let Self { endpoint, completed, messages, data, faults, .. } = self;
        let events = endpoint.progress(&mut |event| match event {
            Event::Complete { tag, outcome } => {
                let outcome = outcome.map(|brought| match brought {
                    Brought::Nothing => Ended::Nothing,
                    Brought::Bytes(bytes) => Ended::Bytes(bytes.to_vec()),
                    Brought::Word(word) => Ended::Word(word),
                });
                assert!(completed.insert(tag, outcome).is_none(), "operation {tag} completes twice");
            }
            Event::Message(bytes) => messages.push_back(bytes.to_vec()),
            Event::Data(word) => data.push_back(word),
            Event::Fault(reply) => faults.push_back(reply),
            other => panic!("{other:?}"),
        });
        events.expect("progress")
    }

    /// Posts as soon as there is room, and returns the tag; `None` if there is no room in time.
    pub(crate) fn post_within(
        &mut self,
        within: Duration,
        mut post: impl FnMut(&mut Endpoint, u64) -> Result<bool>,
    ) -> Result<Option<u64>> {
        let begun = Instant::now();
        self.next += 1;
        while !post(&mut self.endpoint, self.next)? {
            self.rest();
            if begun.elapsed() > within {
                return Ok(None);
            }
        }
        Ok(Some(self.next))
    }

    /// Posts an operation that must be accepted, and returns the tag.
    pub(crate) fn post(&mut self, post: impl FnMut(&mut Endpoint, u64) -> Result<bool>) -> u64 {
        self.post_within(BOUND, post).expect("a good operation").expect("room for it")
    }

    /// Makes progress until `look` returns a value, or the time has passed.
    pub(crate) fn find<T>(&mut self, within: Duration, mut look: impl FnMut(&mut Self) -> Option<T>) -> Option<T> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self) {
                return Some(found);
            }
            self.rest();
            if begun.elapsed() > within {
                return None;
            }
        }
    }

    fn rest(&mut self) {
        if self.progress() == 0 {
            thread::yield_now();
        }
    }

    /// Returns the outcome of an operation, if it completes in time.
    pub(crate) fn outcome(&mut self, tag: u64, within: Duration) -> Option<core::result::Result<Ended, Failure>> {
        self.find(within, |line| line.completed.remove(&tag))
    }

    /// Waits until an operation has succeeded.
    pub(crate) fn done(&mut self, tag: u64) -> Ended {
        let outcome = self.outcome(tag, BOUND).unwrap_or_else(|| panic!("operation {tag} does not complete in time"));
        outcome.expect("an operation that succeeds")
    }

    /// Waits for a message.
    pub(crate) fn message(&mut self) -> Vec<u8> {
        self.find(BOUND, |line| line.messages.pop_front()).expect("a message in time")
    }

    /// Waits for the data of a put.
    pub(crate) fn put_data(&mut self) -> u64 {
        self.find(BOUND, |line| line.data.pop_front()).expect("a put with data in time")
    }
}
