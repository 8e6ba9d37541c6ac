//! Messages of collectives along one edge of the tree.

use crate::{
    Communicator, FmplError, Result,
    area::{Channel, Ends, Kind, Record},
    point::{Body, FlagPlace, HEADERS, Message, deliver, posted},
    state::{ChannelId, ChannelState},
};
use core::future::Future;
use rdma_fabric::{
    FabricError, LocalSpan, RegionKey,
    join::{Either, race},
};

/// The direction of a message: the two collective channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Towards the root.
    Up,
    /// Away from it.
    Down,
}

/// Two members that have passed different lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Differ {
    member: usize,
    bytes: usize,
    other: usize,
    other_bytes: usize,
}

impl Differ {
    fn to_record(self) -> Record {
        let region = RegionKey { index: self.member as u32, generation: self.other as u32 };
        let length = Record::without_address(Kind::Differs, self.bytes);
        Record { region, offset: self.other_bytes as u64, ..length }
    }

    fn of_record(Record { bytes, region, offset, .. }: Record) -> Self {
        let RegionKey { index, generation } = region;
        Differ { member: index as usize, bytes, other: generation as usize, other_bytes: offset as usize }
    }

    pub(crate) fn error(self) -> FmplError {
        let Differ { member, bytes, other, other_bytes } = self;
        FmplError::CountMismatch { member, bytes, other, other_bytes }
    }
}

/// An edge of the tree, seen from this member.
pub(crate) struct Edge<'a> {
    comm: &'a Communicator,
    /// The member at the other end.
    pub(crate) member: usize,
    /// The member's index among the known peers.
    pub(crate) peer: usize,
    pub(crate) ends: Ends,
}

impl<'a> Edge<'a> {
    /// Meets a neighbour.
    pub(crate) async fn new(comm: &'a Communicator, member: usize) -> Result<Self> {
        let peer = comm.met(member).await.map_err(|error| named(comm, member, error))?;
        let ends = comm.with(|state| state.peers[peer].ends.clone())?;
        Ok(Edge { comm, member, peer, ends })
    }

    /// Returns whether its flags can be loaded directly.
    pub(crate) fn is_direct(&self) -> bool {
        self.comm.fabric.direct().load_words_at::<u64, 1>(&self.ends.here, 0).is_some()
    }

    fn id(&self, way: Way) -> ChannelId {
        ChannelId { peer: self.peer, channel: self.comm.layout.collective_channel(way as usize) }
    }

    fn channel(&self, way: Way) -> Channel<'_> {
        Channel::new(&self.comm.fabric, &self.ends, self.id(way).channel).within(self.comm.listed.as_deref())
    }

    fn with<T>(&self, way: Way, f: impl FnOnce(&mut ChannelState) -> T) -> Result<T> {
        self.comm.with(|state| f(state.channel(self.id(way))))
    }

    // ----- with a body ---------------------------------------------------------------------------

    /// Posts the receive for the next message.
    pub(crate) async fn post(&self, way: Way, into: &LocalSpan<u8>) -> Result<()> {
        let n = self.with(way, |channel| channel.received)?;
        self.named(self.channel(way).put_header(n, posted(into)).await)
    }

    /// Waits for the message whose receive was posted; returns the reason why it will not arrive,
    /// if members' lengths differ.
    pub(crate) async fn arrival(&self, way: Way) -> Result<Option<Differ>> {
        let flag = self.flag(way).await?;
        match flag.kind {
            Kind::Arrived => Ok(None),
            Kind::Differs => Ok(Some(Differ::of_record(flag))),
            _ => Err(FmplError::BufferGone { from: self.member, index: self.id(way).channel }),
        }
    }

    /// Sends a message when its receive is posted, or reports that it will not arrive because
    /// members' lengths differ: the lengths passed, or otherwise those of the two ends of this
    /// edge, which are returned.
    pub(crate) async fn send(&self, way: Way, body: &LocalSpan<u8>, differ: Option<Differ>) -> Result<Option<Differ>> {
        let (channel, n) = (self.channel(way), self.with(way, |channel| channel.sent)?);
        let header = self.unless_departed(Box::pin(channel.until_header(n)), || channel.header(n)).await?;
        let (bytes, other_bytes) = (body.len(), header.bytes);
        let here = Differ { member: self.comm.me(), bytes, other: self.member, other_bytes };
        let differ = differ.or((bytes != other_bytes).then_some(here));
        match differ {
            Some(differ) => self.named(channel.put_offer(n, differ.to_record()).await)?,
            None => self.named(self.put(way, n, header, body).await)?,
        }
        self.with(way, |channel| channel.sent += 1)?;
        Ok(differ)
    }

    async fn put(&self, way: Way, n: u64, header: Record, body: &LocalSpan<u8>) -> Result<()> {
        let at = header.at(self.ends.there.rank());
        let known = self.with(way, |channel| channel.target_at(at, header.bytes).cloned())?;
        let flag = FlagPlace::Channel(self.id(way).channel);
        let message = Message { fabric: &self.comm.fabric, ends: &self.ends, flag, n };
        let target = deliver(message, header, known, Body::Span(body)).await?;
        self.with(way, |channel| channel.target = Some(target))
    }

    // ----- without one ---------------------------------------------------------------------------

    /// Sends an empty message, which needs no receive: the message before the last is known to have
    /// been received, so its flag may be overwritten.
    pub(crate) async fn signal(&self, way: Way) -> Result<()> {
        let (channel, n) = (self.channel(way), self.with(way, |channel| channel.sent)?);
        let word = Record::first_word(Kind::Arrived, 0, n);
        if !channel.put_flag_now(n, word) {
            self.named(channel.put_signal(n, word).await)?;
        }
        self.with(way, |channel| channel.sent += 1)
    }

    /// Waits for a message of no bytes.
    pub(crate) async fn signalled(&self, way: Way) -> Result<()> {
        let (channel, n) = (self.channel(way), self.with(way, |channel| channel.received)?);
        if n % HEADERS == 0 {
            // No receive reads it: it keeps an older header from being mistaken for a later one.
            let none = Record::without_address(Kind::NotThere, 0);
            self.named(channel.put_header(n, none).await)?;
            self.comm.fabric.flush(channel.peer()).await?;
        }
        self.flag(way).await?;
        Ok(())
    }

    fn named<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| named(self.comm, self.member, error))
    }

    // ----- waiting -------------------------------------------------------------------------------

    /// Waits for the flag of the next message.
    async fn flag(&self, way: Way) -> Result<Record> {
        let (channel, n) = (self.channel(way), self.with(way, |channel| channel.received)?);
        let flag = match channel.flag(n)? {
            Some(flag) => flag,
            None => self.unless_departed(Box::pin(channel.until_flag(n)), || channel.flag(n)).await?,
        };
        self.with(way, |channel| channel.received += 1)?;
        Ok(flag)
    }

    /// Waits for a record of the neighbour, which may leave instead: records that it put before
    /// leaving are found by another `look`.
    async fn unless_departed(
        &self,
        record: impl Future<Output = Result<Record>> + Unpin,
        look: impl Fn() -> Result<Option<Record>>,
    ) -> Result<Record> {
        let left = self.channel(Way::Up).until_departed();
        let member = match self.comm.progressing(race(record, left)).await {
            Either::First(Err(FmplError::Fabric(FabricError::PeersLeft))) => self.member,
            Either::First(record) => return record,
            Either::Second(Err(FmplError::Fabric(FabricError::PeersLeft))) => self.member,
            Either::Second(left) => left?,
        };
        look()?.ok_or(FmplError::MemberLeft { member })
    }
}

/// Returns the error with the member that has dropped its communicator.
fn named(comm: &Communicator, member: usize, error: FmplError) -> FmplError {
    let areas = comm.rank(member).and_then(|rank| Ok(comm.memory.at(rank, 0)?));
    match (&error, areas) {
        (FmplError::Fabric(FabricError::StaleRegion { rank, region }), Ok(areas))
            if (*rank, *region) == (areas.rank, areas.region) =>
        {
            FmplError::MemberLeft { member }
        }
        _ => error,
    }
}
