//! Broadcast by the network's multicast, through staging buffers (paper, section 5.2).
//!
//! A multicast writes to the same address at each member, which cannot be guaranteed for a
//! program's buffers. So a communicator has buffers that are at the same address everywhere. A
//! broadcast is cut into pieces; all pieces that a communicator ever broadcasts are numbered, and
//! piece n is written to buffer n mod 3, followed by a flag with its number and the total length.
//! While members copy a piece out of one buffer, the next one arrives in another.
//!
//! # When a buffer is free
//! A member that has copied piece n enters round n of the barrier hardware, and it enters a round
//! only after the previous one has completed. So a member that has entered round n − 1 knows that
//! all members have copied piece n − 2. This also holds for the root of the next broadcast,
//! whichever member that is, so buffers need not be announced to the root.
//!
//! A multicast also writes to its root's own memory. No call reads that copy, and it may arrive later
//! than the others. A root waits for the copy of piece n before it enters round n + 1, when all
//! other members have copied the piece, so that it rarely has to wait. Hence a member that has entered
//! round n − 1 knows that all copies of piece n − 3 have been written, and may write piece n to
//! their buffer. The two buffers of the paper would be enough if roots waited for their own copies
//! before they send the next piece.
//!
//! # When a member leaves
//! It writes this to a word of each member's staging memory, and releases the barrier hardware.

use super::{
    Rounds,
    piece_flag::Flag,
    pieces::{Origin, PACKED, Packing, Target},
};
use crate::{Communicator, FmplError, Result, cost};
use core::fmt;
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, GroupMemory, Handle, LocalSpan, LocalWord, MulticastSpan, Multicasts, Pod,
    PutSource, Rank, Refused, RemoteAddr, RemoteWord,
    join::{Either, join_all, race},
};

/// The number of buffers.
pub(super) const BUFFERS: usize = 3;
/// The offsets of their flags, of the word that contains the member that left, and of the first buffer.
const FLAGS: [usize; BUFFERS] = [0, 64, 128];
const LEFT: usize = 192;
const FIRST: usize = 256;

pub(crate) struct Staging {
    /// The bytes of a buffer.
    piece: usize,
    flags: [MulticastSpan<u64>; BUFFERS],
    buffers: [MulticastSpan<u8>; BUFFERS],
    /// The pieces of this member's sources.
    packing: Packing,
    own_flags: [LocalWord<u64>; BUFFERS],
    own_left: LocalWord<u64>,
    own_buffers: [LocalSpan<u8>; BUFFERS],
    memory: GroupMemory,
    /// The number of pieces so far.
    pieces: u64,
    /// The last piece that this member has sent, until its copy has been written to this member's memory.
    sent: Option<u64>,
}

impl fmt::Debug for Staging {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Staging({BUFFERS} buffers of {} bytes, {} pieces)", self.piece, self.pieces)
    }
}

/// The outcome of a multicast broadcast at a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The broadcast has completed; the root has passed this number of bytes.
    Complete(usize),
    /// It goes along the tree.
    ByTree,
}

impl Staging {
    /// Returns the number of bytes of memory that buffers of this size take.
    pub(crate) fn memory_bytes(piece: usize) -> usize {
        FIRST + BUFFERS * piece.next_multiple_of(64)
    }

    /// Returns the number of bytes of memory that it takes on this member.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.len() + self.packing.bytes()
    }

    /// Resolves memory at all members; `None` if no multicast reaches them.
    pub(crate) fn new(group: &Group, memory: GroupMemory, piece: usize) -> Result<Option<Self>> {
        let fabric = group.fabric();
        // Not the ranks of the memory, which belongs to the whole job.
        let ranks: Vec<Rank> = (0..group.len()).map(|member| group.rank(member)).collect::<Result<_, _>>()?;
        match Multicasts::reach(fabric, &ranks) {
            Ok(()) => {}
            Err(FabricError::Multicast(_) | FabricError::Unsupported { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        let at = |rank: Rank, offset: usize| memory.at(rank, offset as u64);
        let everywhere = |offset: usize| -> Result<Vec<RemoteAddr>> {
            Ok(ranks.iter().map(|rank| at(*rank, offset)).collect::<Result<_, _>>()?)
        };
        let buffer = |n: usize| FIRST + n * piece.next_multiple_of(64);
        let flags = |n: usize| -> Result<_> { Ok(MulticastSpan::new(fabric, &everywhere(FLAGS[n])?, 1)?) };
        let buffers = |n: usize| -> Result<_> { Ok(MulticastSpan::new(fabric, &everywhere(buffer(n))?, piece)?) };
        let me = fabric.rank();
        let own = |n: usize| fabric.local_span::<u8>(at(me, buffer(n))?, piece);
        let word = |offset: usize| fabric.local_word::<u64>(at(me, offset)?);
        Ok(Some(Staging {
            piece,
            flags: [flags(0)?, flags(1)?, flags(2)?],
            buffers: [buffers(0)?, buffers(1)?, buffers(2)?],
            packing: Packing::default(),
            own_flags: [word(FLAGS[0])?, word(FLAGS[1])?, word(FLAGS[2])?],
            own_left: word(LEFT)?,
            own_buffers: [own(0)?, own(1)?, own(2)?],
            memory,
            pieces: 0,
            sent: None,
        }))
    }

    /// Announces that a tree broadcast follows.
    pub(crate) async fn announce_tree(&mut self, comm: &Communicator, rounds: &mut Rounds, bytes: usize) -> Result<()> {
        let flag = Flag { piece: self.pieces, by_tree: true, bytes };
        self.flags[self.turn()].put(&comm.fabric, [flag.to_word()]).await?;
        self.sent_next(comm, rounds).await
    }

    /// Broadcasts a message.
    pub(crate) async fn send(&mut self, comm: &Communicator, rounds: &mut Rounds, mut from: Origin<'_>) -> Result<()> {
        let (fabric, bytes) = (&comm.fabric, from.bytes());
        let mut leaving = None;
        for at in self.starts(bytes) {
            // The piece before the last has left, so its place may be packed again.
            let turn = (self.pieces % PACKED as u64) as usize;
            let part = from.piece(comm, at..bytes.min(at + self.piece), &mut self.packing, (turn, self.piece)).await?;
            let flag = Flag { piece: self.pieces, by_tree: false, bytes };
            let (buffer, flags) = (&self.buffers[self.turn()], &self.flags[self.turn()]);
            let body = if part.len() == self.piece {
                post(fabric, buffer, part).await?
            } else {
                post(fabric, &buffer.slice(0..part.len())?, part).await?
            };
            if !fabric.caps().puts_in_order {
                fabric.flush_all().await?;
            }
            let flag = post(fabric, flags, [flag.to_word()]).await?;
            // The previous piece was sent before this one; while this one is in flight, the members
            // copy the previous one.
            if let Some((body, flag)) = leaving.replace((body, flag)) {
                over(body, flag).await?;
            }
            self.sent_next(comm, rounds).await?;
        }
        match leaving {
            Some((body, flag)) => over(body, flag).await,
            None => Ok(()),
        }
    }

    /// Receives the broadcast of `root`, unless its length differs.
    pub(crate) async fn receive(
        &mut self,
        comm: &Communicator,
        rounds: &mut Rounds,
        mut to: Target<'_>,
        root: usize,
    ) -> Result<Outcome> {
        let flag = self.flag(comm, root).await?;
        if flag.by_tree {
            self.next(comm, rounds).await?;
            return Ok(Outcome::ByTree);
        }
        for at in self.starts(flag.bytes) {
            if at > 0 {
                self.flag(comm, root).await?;
            }
            if flag.bytes == to.bytes() {
                let range = at..flag.bytes.min(at + self.piece);
                to.fill(comm, &self.own_buffers[self.turn()], range.clone())?;
                comm.fabric.charge_bytes(cost::COPY, range.len()).await;
            }
            self.next(comm, rounds).await?;
        }
        Ok(Outcome::Complete(flag.bytes))
    }

    /// Returns where the pieces of a broadcast start. An empty broadcast has one piece as well.
    fn starts(&self, bytes: usize) -> impl Iterator<Item = usize> + use<> {
        (0..bytes.max(1)).step_by(self.piece)
    }

    /// Returns the buffer of a piece.
    fn place(piece: u64) -> usize {
        (piece % BUFFERS as u64) as usize
    }

    /// Returns the buffer of the next piece.
    fn turn(&self) -> usize {
        Self::place(self.pieces)
    }

    /// Announces that this member no longer needs the piece.
    async fn next(&mut self, comm: &Communicator, rounds: &mut Rounds) -> Result<()> {
        self.pieces += 1;
        rounds.over(comm).await?;
        if let Some(piece) = self.sent.take() {
            self.own_copy(comm, piece).await?;
        }
        rounds.enter(comm).await
    }

    /// Announces that this member, which has sent the piece, no longer needs it.
    async fn sent_next(&mut self, comm: &Communicator, rounds: &mut Rounds) -> Result<()> {
        let piece = self.pieces;
        self.next(comm, rounds).await?;
        self.sent = Some(piece);
        Ok(())
    }

    /// Waits until a piece that this member has sent is in its own memory.
    async fn own_copy(&self, comm: &Communicator, piece: u64) -> Result<()> {
        let (word, fabric) = (&self.own_flags[Self::place(piece)], &comm.fabric);
        if Flag::of_word(fabric.load(word)?, piece).is_none() {
            let written =
                fabric.wait_until(word, Deps::One(fabric.rank()), |word| Flag::of_word(word, piece).is_some());
            comm.progressing(written).await?;
        }
        Ok(())
    }

    /// Waits for the flag of the next piece.
    async fn flag(&self, comm: &Communicator, root: usize) -> Result<Flag> {
        let (word, fabric) = (&self.own_flags[self.turn()], &comm.fabric);
        let look = || Ok::<_, FabricError>(Flag::of_word(fabric.load(word)?, self.pieces));
        if let Some(flag) = look()? {
            return Ok(flag);
        }
        let deps = Deps::Step { writer: comm.rank(root)?, group: comm.listed.as_deref() };
        let arrived = fabric.wait_until(word, deps, |word| Flag::of_word(word, self.pieces).is_some());
        let left = fabric.wait_until(&self.own_left, deps, |member| member != 0);
        let member = match comm.progressing(race(arrived, left)).await {
            Either::First(Ok(_)) | Either::Second(Ok(_)) => (fabric.load(&self.own_left)? as usize).checked_sub(1),
            Either::First(Err(FabricError::PeersLeft)) | Either::Second(Err(FabricError::PeersLeft)) => Some(root),
            Either::First(Err(error)) | Either::Second(Err(error)) => return Err(error.into()),
        };
        look()?.ok_or(FmplError::MemberLeft { member: member.unwrap_or(root) })
    }

    /// Returns the error with the member that has dropped its communicator.
    pub(crate) fn named(&self, comm: &Communicator, error: FmplError) -> FmplError {
        let FmplError::Fabric(FabricError::StaleRegion { rank, region }) = &error else { return error };
        match (self.memory.at(*rank, 0), comm.memory.number(*rank)) {
            (Ok(staging), Some(member)) if staging.region == *region => FmplError::MemberLeft { member },
            _ => error,
        }
    }

    /// Returns the words at all other members that record which member has left.
    pub(crate) fn left_words(&self, fabric: &Fabric) -> Vec<RemoteWord<u64>> {
        let others = self.flags[0].members().filter(|rank| *rank != fabric.rank());
        others.filter_map(|rank| fabric.remote_word(self.memory.at(rank, LEFT as u64).ok()?).ok()).collect()
    }
}

/// Writes that `member` has left. Errors are ignored, since no call is left to return them.
pub(crate) async fn notify_all(fabric: &Fabric, words: &[(RemoteWord<u64>, u64)]) {
    join_all(words.iter().map(|(word, value)| fabric.put_word(word, *value))).await;
}

/// Posts a multicast without waiting until it has been sent.
async fn post<T: Pod, S: PutSource<T>>(fabric: &Fabric, to: &MulticastSpan<T>, mut from: S) -> Result<Handle<S>> {
    loop {
        match to.try_put(fabric, from) {
            Ok(handle) => return Ok(handle),
            Err(Refused::Full(back)) => from = back,
            Err(Refused::Failed(error, _)) => return Err(error.into()),
        }
        fabric.room(None).await?;
    }
}

/// Waits until a piece has left.
async fn over(body: Handle<LocalSpan<u8>>, flag: Handle<[u64; 1]>) -> Result<()> {
    body.await?;
    flag.await?;
    Ok(())
}
