//! The channels and segmented buffers of one rank.

use super::{
    ChannelOptions,
    endpoint::{Ended, Endpoint},
    incoming::Incoming,
    link::{BLOCK_BYTES, LocalSide, Watch},
    outgoing::Outgoing,
    results::Results,
    segments::{Buffer, Destination, Source},
    table::{self, Ask, Asker, Kind},
};
use crate::{AcpError, Result};
use core::task::Waker;
use rdma_fabric::{Fabric, LocalWord, Rank, RemoteAddr, provider::Boxed};
use std::collections::HashMap;

pub(crate) struct Channels {
    pub(super) fabric: Fabric,
    pub(super) me: Rank,
    pub(super) options: ChannelOptions,
    /// This rank's table of connection requests.
    pub(super) table: RemoteAddr,
    pub(super) doorbell: LocalWord<u64>,
    pub(super) rung: u64,
    pub(super) taking: Option<Boxed<'static, Result<Vec<Ask>>>>,
    pub(super) watch: Watch,
    /// Requests for ends that this rank has not created yet.
    pub(super) unmatched: HashMap<Asker, Ask>,
    /// The ends that wait for a request.
    pub(super) expected: HashMap<Asker, u64>,
    /// By number, in ascending order.
    pub(super) ends: Vec<(u64, Ended)>,
    /// The number of ends created: in total, and for each peer, kind and direction.
    created: u64,
    numbers: HashMap<(Rank, Kind, bool), u32>,
    pub(super) results: Results,
    /// The wakers of the waiting tasks.
    pub(super) wakers: Vec<Waker>,
}

impl Channels {
    /// Creates the channels of rank `me`, whose table is at `table`.
    pub(crate) fn new(fabric: &Fabric, me: Rank, table: RemoteAddr, options: ChannelOptions) -> Result<Self> {
        Ok(Channels {
            fabric: fabric.clone(),
            me,
            options,
            table,
            doorbell: fabric.local_word(table)?,
            rung: 0,
            taking: None,
            watch: Watch::default(),
            unmatched: HashMap::new(),
            expected: HashMap::new(),
            ends: Vec::new(),
            created: 0,
            numbers: HashMap::new(),
            results: Results::default(),
            wakers: Vec::new(),
        })
    }

    /// Starts over under another rank number: drops all ends, and fails their requests.
    pub(crate) fn renew(&mut self, me: Rank, table: RemoteAddr) -> Result<()> {
        let mut begun = Channels::new(&self.fabric, me, table, self.options)?;
        begun.created = self.created;
        begun.results = core::mem::take(&mut self.results);
        for (number, mut ended) in core::mem::take(&mut self.ends) {
            ended.fail(AcpError::NoSuchChannel { number }, &mut begun.results);
        }
        self.wake();
        *self = begun;
        Ok(())
    }

    /// Checks that a connection with a rank is possible.
    fn checked(&self, peer: Rank) -> Result<()> {
        let ranks = self.fabric.ranks();
        match peer {
            _ if peer.index() >= ranks => Err(AcpError::NoSuchRank { rank: peer, ranks }),
            _ if peer == self.me => Err(AcpError::SelfChannel { rank: peer }),
            _ => Ok(()),
        }
    }

    /// Returns the number of ends of this kind and direction created so far for a peer, and
    /// increments it.
    fn number(&mut self, peer: Rank, kind: Kind, sends: bool) -> u32 {
        let next = self.numbers.entry((peer, kind, sends)).or_default();
        let number = *next;
        *next = next.wrapping_add(1);
        number
    }

    fn insert(&mut self, end: Endpoint) -> u64 {
        self.created += 1;
        self.ends.push((self.created, Ended::new(end)));
        self.created
    }

    /// Creates the sending end of a channel to rank `peer`, which is `place` of the fabric.
    pub(super) fn create_sender(&mut self, [peer, place]: [Rank; 2]) -> Result<u64> {
        self.checked(peer)?;
        let local = LocalSide::new(&self.fabric, peer, place, BLOCK_BYTES)?;
        let asking = self.asking(&local, Kind::Channel, 0, 0);
        Ok(self.insert(Endpoint::Outgoing(Box::new(Outgoing::new(local, asking, &self.options)))))
    }

    /// Returns the future that requests a connection once it is polled.
    fn asking(&mut self, local: &LocalSide, kind: Kind, slots: u64, slot_bytes: u64) -> Boxed<'static, Result<()>> {
        let (fabric, entries) = (self.fabric.clone(), self.options.table_entries as u64);
        let asker = (self.me, kind, self.number(local.peer, kind, true));
        let ask = Ask { asker, block: local.region.key(), slots, slot_bytes };
        Box::pin(table::ask(fabric, RemoteAddr { rank: local.place, ..self.table }, entries, ask))
    }

    /// Creates the receiving end of a channel from rank `peer`.
    pub(super) fn create_receiver(&mut self, [peer, place]: [Rank; 2]) -> Result<u64> {
        self.checked(peer)?;
        let end = Incoming::new(&self.fabric, [peer, place], &self.options)?;
        let number = self.insert(Endpoint::Incoming(Box::new(end)));
        self.expect(peer, Kind::Channel, number)
    }

    /// Connects an end with the request that it waits for, or records that it waits.
    fn expect(&mut self, peer: Rank, kind: Kind, end: u64) -> Result<u64> {
        let asker = (peer, kind, self.number(peer, kind, false));
        match self.unmatched.remove(&asker) {
            Some(ask) => self.connect(end, ask),
            None => {
                self.expected.insert(asker, end);
            }
        }
        Ok(end)
    }

    pub(super) fn connect(&mut self, number: u64, ask: Ask) {
        if let Some(at) = self.index(number) {
            self.ends[at].1.connect(&self.fabric, ask, &mut self.results);
        }
    }

    /// Creates the source of a segmented buffer.
    pub(super) fn create_source(&mut self, [peer, place]: [Rank; 2], buffer: Buffer) -> Result<u64> {
        self.checked(peer)?;
        let local = LocalSide::new(&self.fabric, peer, place, BLOCK_BYTES)?;
        let data = self.fabric.local_span(buffer.at, buffer.bytes())?;
        let asking = self.asking(&local, Kind::Segments, buffer.segments, buffer.segment_bytes as u64);
        Ok(self.insert(Endpoint::Source(Box::new(Source::new(local, asking, buffer, data)))))
    }

    /// Creates the destination of a segmented buffer.
    pub(super) fn create_destination(&mut self, [peer, place]: [Rank; 2], buffer: Buffer) -> Result<u64> {
        self.checked(peer)?;
        let local = LocalSide::new(&self.fabric, peer, place, BLOCK_BYTES)?;
        let number = self.insert(Endpoint::Destination(Box::new(Destination::new(local, buffer))));
        self.expect(peer, Kind::Segments, number)
    }

    /// Returns an end by its number.
    pub(super) fn end(&mut self, number: u64) -> Result<&mut Ended> {
        self.index(number).map(|at| &mut self.ends[at].1).ok_or(AcpError::NoSuchChannel { number })
    }

    fn index(&self, number: u64) -> Option<usize> {
        self.ends.binary_search_by_key(&number, |(number, _)| *number).ok()
    }

    fn unfreed(&mut self, number: u64) -> Result<&mut Ended> {
        match self.end(number)? {
            ended if ended.end.is_freed() => Err(AcpError::NoSuchChannel { number }),
            ended => Ok(ended),
        }
    }

    /// Submits a request to an end.
    pub(super) fn request(&mut self, number: u64, made: impl FnOnce(&mut Endpoint, u64) -> Result<()>) -> Result<u64> {
        let request = self.results.begin();
        let ended = self.unfreed(number)?;
        ended.check()?;
        made(&mut ended.end, request)?;
        Ok(request)
    }

    /// Submits the last request to an end. The end is freed even if it has failed.
    pub(super) fn free(&mut self, number: u64) -> Result<u64> {
        let request = self.results.begin();
        let ended = self.unfreed(number)?;
        match ended.check() {
            Ok(()) => ended.end.free(request),
            Err(error) => {
                self.ends.retain(|(other, _)| *other != number);
                self.results.finish(request, Err(error));
            }
        }
        Ok(request)
    }

    /// Forgets a request whose result is no longer wanted, and withdraws it if it has not started.
    pub(super) fn forget(&mut self, end: u64, request: u64) {
        let withdrawn = self.end(end).is_ok_and(|ended| ended.end.withdraw(request));
        if !withdrawn {
            self.results.forget(request);
        }
    }
}
