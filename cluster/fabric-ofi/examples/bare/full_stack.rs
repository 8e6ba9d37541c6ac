//! The whole provider, as one side of the measurement: programs as users write them.

use crate::{LONG, OPERATIONS, Operation, Result, Side};
use core::time::Duration;
use fabric_ofi::{
    Domain, Wanted,
    cluster::{AtomicsBy, Council, Member},
    providers,
};
use rdma_fabric::{
    Amo, Deps, Fabric, LocalSpan, LocalWord, Rank, Region, RegionKey, RemoteAddr, RemoteSpan, RemoteWord,
};
use std::{collections::BTreeSet, process};
use tofu2_shm::{
    block_on,
    part::{Part, PartPlan},
};

/// Number of bytes that a rank can register.
const SEGMENT: usize = 8 << 20;
/// Offset of the word that ends a turn: after the memory that peers write and that operations read.
const TURN: usize = 2 * LONG;
const BYTES: usize = TURN + 64;

/// No rank is lost here.
#[derive(Debug)]
struct Alone;

impl Council for Alone {
    fn drained(&self, _: u64) {}
    fn aborted(&self, _: &str, _: i32) {}
}

/// Memory of the other rank, and own memory, both resolved once.
struct Resolved {
    peer: Rank,
    word: RemoteWord<u64>,
    spans: Vec<Spans>,
    /// The word of the other rank that ends its turn.
    turn: RemoteWord<u64>,
}

/// The memory of operations of one length.
struct Spans {
    remote: RemoteSpan<u64>,
    /// Operations take it, and return it.
    own: Option<LocalSpan<u64>>,
}

pub(crate) struct FullStack {
    me: Rank,
    fabric: Fabric,
    region: Region,
    own_turn: LocalWord<u64>,
    contact: Vec<u8>,
    bytes: Vec<u64>,
    other: Option<Resolved>,
    turns: u64,
    /// Dropped last, so that the endpoint is open until it is no longer used.
    member: Member,
}

impl FullStack {
    /// Joins as one of two ranks on different nodes.
    pub(crate) fn open(me: u32, provider: &str, domain: &str, atomics: AtomicsBy) -> Result<Self> {
        let offers = providers(&Wanted::default().provider(provider).domain(domain))?;
        let offer = offers.iter().find(|offer| offer.is_usable()).ok_or("no usable offer")?;
        let me = Rank::new(me);
        let age = Duration::from_millis(1);
        let plan = PartPlan { ranks: 2, local: vec![me], me, segment_bytes: SEGMENT, age, oversubscribed: false };
        let part = Part::lead(&plan, u64::from(process::id()), 1)?;
        let (member, contact) = Member::join(part, Domain::open(offer)?, [0, 1].into(), atomics, Alone)?;
        let fabric = member.fabric();
        let region = fabric.alloc(BYTES)?;
        let own_turn = fabric.local_word(region.at(me, TURN as u64))?;
        Ok(Self { me, fabric, region, own_turn, contact, bytes: vec![1; LONG / 8], other: None, turns: 0, member })
    }

    /// Resolves the memory of the operations of each length.
    fn spans(&self, there: RemoteAddr) -> Result<Vec<Spans>> {
        let lengths: BTreeSet<usize> = OPERATIONS.iter().map(|(_, operation, _)| operation.bytes()).collect();
        let spans = lengths.into_iter().map(|bytes| {
            let remote = self.fabric.remote_span(there, bytes / 8)?;
            let own = self.fabric.local_span(self.region.at(self.me, LONG as u64), bytes / 8)?;
            Ok(Spans { remote, own: Some(own) })
        });
        spans.collect()
    }
}

impl Side for FullStack {
    fn contact(&self) -> Vec<u8> {
        [&self.region.key().to_bits().to_le_bytes()[..], &self.contact].concat()
    }

    fn connect(&mut self, contact: &[u8]) -> Result<()> {
        let (key, contact) = contact.split_first_chunk().ok_or("no contact")?;
        let peer = Rank::new(1 - self.me.number());
        let mut contacts = [None, None];
        contacts[self.me.index()] = Some(self.contact.clone());
        contacts[peer.index()] = Some(contact.to_vec());
        self.member.connect(&contacts)?;
        let at = |offset: usize| RemoteAddr {
            rank: peer,
            region: RegionKey::from_bits(u64::from_le_bytes(*key)),
            offset: offset as u64,
        };
        self.other = Some(Resolved {
            peer,
            word: self.fabric.remote_word(at(0))?,
            spans: self.spans(at(0))?,
            turn: self.fabric.remote_word(at(TURN))?,
        });
        Ok(())
    }

    fn run(&mut self, operation: Operation, count: usize) -> Result<()> {
        let Self { fabric, bytes, other: Some(other), .. } = self else { return Err("no other process".into()) };
        let Resolved { peer, word, spans, .. } = other;
        let of_length = |spans: &Spans| spans.remote.len() * 8 == operation.bytes();
        let Spans { remote, own } =
            spans.iter_mut().find(|spans| of_length(spans)).ok_or("no memory of this length")?;
        let bytes = &bytes[..remote.len()];
        let mut span = own.take().ok_or("an operation has failed")?;
        block_on(async {
            for _ in 0..count {
                match operation {
                    Operation::PutBytes(8) => {
                        fabric.put(remote, [1]).await?;
                        fabric.flush(*peer).await?;
                    }
                    Operation::PutBytes(_) => {
                        fabric.put_slice(remote, bytes).await?;
                        fabric.flush(*peer).await?;
                    }
                    Operation::Put(_) => {
                        span = fabric.put(remote, span).await?;
                        fabric.flush(*peer).await?;
                    }
                    Operation::Get(8) => _ = fabric.get(remote, [0]).await?,
                    Operation::Get(_) => span = fabric.get(remote, span).await?,
                    Operation::Add => _ = fabric.atomic(word, Amo::Add(1)).await?,
                    Operation::PingPong => return Err("a fabric has no messages".into()),
                }
            }
            *own = Some(span);
            Ok(())
        })
    }

    fn end_turn(&mut self) -> Result<()> {
        let other = self.other.as_ref().ok_or("no other process")?;
        self.turns += 1;
        Ok(block_on(self.fabric.put_word(&other.turn, self.turns))?)
    }

    /// Waits, like a program without other work.
    fn serve(&mut self, _: &mut dyn FnMut() -> Result<bool>) -> Result<()> {
        self.turns += 1;
        let Self { fabric, own_turn, turns, .. } = self;
        block_on(fabric.wait_until(own_turn, Deps::All, |turn| turn == *turns))?;
        Ok(())
    }
}
