//! Barriers, and reductions to all and broadcasts of few bytes, for members that share CPUs: at member 0
//! all members count, and the last one to arrive releases each of the others by one put.
//!
//! In a tree an inner member runs between its children and its parent, so where ranks outnumber CPUs
//! each stage costs a change of the running rank. Here members may run in any order, each once.
//!
//! # Memory
//! The same layout at every member; counters, marks and rows are used at member 0.
//!
//! | part | contents |
//! |---|---|
//! | [`Tally`]s | the members that have arrived in a round, and that have taken broadcasts |
//! | released, freed | the last complete round; the broadcasts that all members have taken |
//! | left | 1 + the member that has left; above 16 bits, the number of collectives it has completed |
//! | gone | 1 + the last mark of each tally that member 0 passed before it dropped its memory |
//! | result | of a reduction |
//! | slots | of broadcasts |
//! | rows | one for each member, with its contribution to a reduction |
//!
//! # When a member leaves
//! It writes this to a word of each member, which concerns only members that have completed no more
//! collectives: the others have all that they need of it, though perhaps not from the last member to
//! arrive. A member that waits depends on one that has not arrived
//! yet, as the marks of a tally show. The member that arrived last before another one finished without
//! arriving sees only such members, so one of them ends its wait, and it notifies the others.

mod fast;
mod rounds;
mod slots;
mod tally;
mod waits;

pub(crate) use fast::Arrival;

use crate::{Communicator, FmplError, Result};
use core::fmt;
use rdma_fabric::{Deps, Fabric, FabricError, Group, GroupMemory, LocalSpan, LocalWord, Rank, RemoteSpan, RemoteWord};
use slots::Slots;
use tally::Tally;

/// The most bytes of a reduction or of a broadcast.
pub(crate) const MOST: usize = 192;
/// The most members.
pub(crate) const MEMBERS: usize = 256;

/// The bytes of a header, and with the bytes that follow it.
const HEADER: usize = 64;
const ROW: usize = HEADER + MOST;

/// Returns the offset of a body of `bytes` bytes, of a row, a result or a slot whose header has `header` bytes: in the
/// same cache line, if it is short enough.
#[inline]
fn body_after(header: usize, bytes: usize) -> usize {
    if bytes <= HEADER - header { header } else { HEADER }
}

/// The position of the number of completed collectives in the word of a member that has left.
const COMPLETED: u32 = 16;

/// Offsets.
const RELEASED: usize = 0;
const FREED: usize = 64;
const LEFT: usize = 128;
const GONE: usize = 192;
const RESULT: usize = 256;
const SLOTS: usize = RESULT + ROW;
const TALLIES: usize = SLOTS + slots::COUNT * ROW;

pub(crate) struct Central {
    memory: GroupMemory,
    /// Whether other ranks run on the CPU of this one.
    shares_cpus: bool,
    left: LocalWord<u64>,
    /// The number of collectives that this member has completed.
    completed: u64,
    arrivals: Tally,
    /// The number of rounds in which this member has arrived.
    round: u64,
    released: LocalWord<u64>,
    /// At every member.
    releases: Box<[RemoteWord<u64>]>,
    results: Box<[RemoteSpan<u8>]>,
    result: LocalSpan<u8>,
    /// This member's row, all rows, and as much memory of this member.
    row: RemoteSpan<u8>,
    rows: RemoteSpan<u8>,
    copies: LocalSpan<u8>,
    /// Keeps its memory between reductions.
    gathered: Vec<u64>,
    slots: Slots,
}

impl fmt::Debug for Central {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Central(round {}, {:?})", self.round, self.slots)
    }
}

/// The outcome of a reduction or a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Here,
    /// There are too many bytes: all members use the tree.
    ByTree,
}

impl Central {
    /// Allocates memory at all ranks. Collective over the job.
    pub(crate) async fn memory(fabric: &Fabric) -> Result<GroupMemory> {
        let members = fabric.ranks().min(MEMBERS);
        let bytes = TALLIES + 2 * Tally::bytes(members) + members * ROW;
        Ok(GroupMemory::symmetric(fabric, bytes).await?)
    }

    /// Resolves memory at all members; `None` if there are too many.
    pub(crate) async fn new(group: &Group, memory: GroupMemory) -> Result<Option<Self>> {
        if group.len() > MEMBERS {
            return Ok(None);
        }
        let fabric = group.fabric();
        let left = fabric.local_word::<u64>(memory.at(fabric.rank(), LEFT as u64)?)?;
        match Self::resolved(group, memory.clone()) {
            Err(FmplError::Fabric(error @ FabricError::StaleRegion { rank, .. })) => {
                // That rank has failed before this one has begun, perhaps by a loss that is reported soon.
                let deps = Deps::Step { writer: rank, group: None };
                match fabric.wait_until(&left, deps, |member| member != 0).await {
                    Ok(_) | Err(FabricError::PeersLeft) => Err(error.into()),
                    Err(loss) => Err(loss.into()),
                }
            }
            resolved => resolved.map(Some),
        }
    }

    fn resolved(group: &Group, memory: GroupMemory) -> Result<Self> {
        let (fabric, members) = (group.fabric(), group.len());
        let ranks: Vec<Rank> = (0..members).map(|member| group.rank(member)).collect::<Result<_, _>>()?;
        let me = group.me();
        let at = |member: usize, offset: usize| memory.at(ranks[member], offset as u64);
        let everywhere = |offset: usize| (0..members).map(move |member| (member, offset));
        let words = |offset: usize| -> Result<Box<[RemoteWord<u64>]>> {
            everywhere(offset).map(|(member, offset)| Ok(fabric.remote_word(at(member, offset)?)?)).collect()
        };
        let spans = |offset: usize| -> Result<Box<[RemoteSpan<u8>]>> {
            everywhere(offset).map(|(member, offset)| Ok(fabric.remote_span(at(member, offset)?, ROW)?)).collect()
        };
        let tally = |offset: usize, gone: usize| Tally::new(fabric, &memory, &ranks, me, (offset, gone));
        let rows = TALLIES + 2 * Tally::bytes(members);
        Ok(Central {
            shares_cpus: fabric.caps().oversubscribed,
            left: fabric.local_word(at(me, LEFT)?)?,
            completed: 0,
            arrivals: tally(TALLIES, GONE)?,
            round: 0,
            released: fabric.local_word(at(me, RELEASED)?)?,
            releases: words(RELEASED)?,
            results: spans(RESULT)?,
            result: fabric.local_span(at(me, RESULT)?, ROW)?,
            row: fabric.remote_span(at(0, rows + me * ROW)?, ROW)?,
            rows: fabric.remote_span(at(0, rows)?, members * ROW)?,
            copies: fabric.local_span(at(me, rows)?, members * ROW)?,
            gathered: Vec::new(),
            slots: Slots {
                taken: tally(TALLIES + Tally::bytes(members), GONE + 8)?,
                freed: fabric.local_word(at(me, FREED)?)?,
                freeing: words(FREED)?,
                here: (0..slots::COUNT)
                    .map(|slot| Ok(fabric.local_span(at(me, SLOTS + slot * ROW)?, ROW)?))
                    .collect::<Result<_>>()?,
                there: everywhere(SLOTS)
                    .map(|(member, offset)| Ok(fabric.remote_span(at(member, offset)?, slots::COUNT * ROW)?))
                    .collect::<Result<_>>()?,
                flags: (0..slots::COUNT)
                    .map(|slot| Ok(fabric.local_word(at(me, SLOTS + slot * ROW)?)?))
                    .collect::<Result<_>>()?,
                number: 0,
            },
            memory,
        })
    }

    /// Returns the words at all other members that record which member has left, and their value if
    /// `member` has.
    ///
    /// If this member leaves because another one has, it repeats the other's number of collectives: its
    /// own word may replace that one.
    pub(crate) fn left_words(&self, comm: &Communicator, member: usize) -> Vec<(RemoteWord<u64>, u64)> {
        let others = (0..comm.len()).filter(|other| *other != comm.me());
        let at = |other| self.memory.at(comm.rank(other).ok()?, LEFT as u64).ok();
        let completed = match comm.fabric.load(&self.left) {
            Ok(0) | Err(_) => self.completed,
            Ok(word) => self.completed.min(word >> COMPLETED),
        };
        let value = completed << COMPLETED | (member as u64 + 1);
        others.filter_map(|other| Some((comm.fabric.remote_word(at(other)?).ok()?, value))).collect()
    }

    /// Returns the member that has left according to a word, unless it completed the collective in which
    /// this member is.
    fn leaver(&self, word: u64) -> Option<usize> {
        let member = (word & ((1 << COMPLETED) - 1)) as usize;
        if word >> COMPLETED <= self.completed { member.checked_sub(1) } else { None }
    }

    /// Counts a collective unless its outcome makes this member leave.
    fn count(&mut self, outcome: &Result<()>) {
        if matches!(outcome, Ok(()) | Err(FmplError::CountMismatch { .. })) {
            self.completed += 1;
        }
    }

    /// Returns the error with the member that has dropped its communicator, or with the loss for which it
    /// did.
    pub(crate) async fn named(&self, comm: &Communicator, error: FmplError) -> FmplError {
        let FmplError::Fabric(FabricError::StaleRegion { rank, region }) = &error else { return error };
        let (Ok(memory), Some(member)) = (self.memory.at(*rank, 0), comm.memory.number(*rank)) else { return error };
        if memory.region != *region {
            return error;
        }
        // Its last word, or the report of the loss, is in flight.
        let deps = Deps::Step { writer: *rank, group: comm.listed.as_deref() };
        let gone = comm.fabric.wait_until(&self.arrivals.gone, deps, |mark| mark != 0);
        match self.unless_left(comm, deps, Box::pin(gone)).await {
            Ok(left) => FmplError::MemberLeft { member: left.unwrap_or(member) },
            Err(loss) => loss,
        }
    }

    /// Does not notify others when it is dropped.
    pub(crate) fn silence(&mut self) {
        self.arrivals.silence();
        self.slots.taken.silence();
    }
}

/// Writes a number to a word at every member but this one.
///
/// Its own word could be overtaken by that of the next number.
async fn announce(fabric: &Fabric, words: &[RemoteWord<u64>], number: u64) -> Result<()> {
    for word in words.iter().filter(|word| word.rank() != fabric.rank()) {
        fabric.put_word(word, number).await?;
    }
    Ok(())
}
