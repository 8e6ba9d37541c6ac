//! The ranks: who runs, who is to be polled, whose CPU is busy, what each has under way, and how
//! they end.

mod flush;
mod helpers;
mod room;
mod under_way;
mod watches;

pub(super) use flush::FlushState;
pub(super) use watches::{QueueReport, Watched};

use super::{prefetch::Near, waits::EndOfTime};
use flush::Unflushed;
use helpers::Helpers;
use rdma_fabric::{Rank, Result, error::OutOfMemory};
use room::ReceiveQueue;
use std::{collections::VecDeque, mem, task::Waker};
use watches::Watch;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Status {
    #[default]
    Running,
    /// Its program has ended well.
    Finished,
    /// Its program failed.
    Lost,
}

/// All ranks of a job.
#[derive(Debug, Default)]
pub(super) struct Ranks {
    /// The ranks' states, then those of their helpers.
    states: Vec<RankState>,
    ranks: u32,
    helpers: Helpers,
    /// Ranks to poll now, each at most once.
    ready: VecDeque<u32>,
    /// The first rank lost.
    first_lost: Option<u32>,
    /// Waiting ranks have not been woken for a loss yet.
    loss_unknown: bool,
    /// Ranks that are gone for good.
    departed: u32,
    next_ticket: u64,
    /// A rank that wants to compute beyond the end of time, until it is ended.
    out_of_time: Option<(u32, EndOfTime)>,
}

/// What is kept of every rank.
#[derive(Debug, Default)]
struct RankState {
    /// Until when the rank's CPU is busy, in picoseconds.
    cpu_until: u64,
    /// Bytes of memory registered.
    registered: u64,
    /// Operations posted and not complete, and commands of control queues under way.
    outstanding: u32,
    /// Number of symmetric allocations so far.
    symmetric: u32,
    /// Number of registered waits.
    watching: u32,
    /// Where its fabric is, and what it passed to its last atomic.
    near: [Near; 2],
    /// In the queue of those to be polled.
    queued: bool,
    status: Status,
    /// Not running, and none of its operations is under way any more.
    departed: bool,
    extra: Option<Box<Extra>>,
}

const _: () = assert!(size_of::<RankState>() <= 48);

/// State that most ranks of a large job never need.
#[derive(Debug, Default)]
struct Extra {
    watches: Vec<Watch>,
    next_watch: u32,
    /// Ranks to wake when this one leaves.
    dependents: Vec<u32>,
    unflushed: Unflushed,
    /// Tickets of those who wait for room in the own TOQ.
    room_line: VecDeque<u64>,
    receive_queue: ReceiveQueue,
    /// Open control queues.
    queues: Vec<u32>,
    /// Commands of control queues under way; counted in `outstanding` too.
    commands: u32,
    /// Wakers of combinators that want to know which of their parts to poll.
    wakers: Vec<Waker>,
}

impl RankState {
    /// The rare state, made now if need be.
    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// The rare state, if there is any.
    #[inline]
    fn existing(&mut self) -> Option<&mut Extra> {
        self.extra.as_deref_mut()
    }
}

impl Ranks {
    /// What [`Ranks::new`] takes for each rank.
    pub(super) const BYTES_PER_RANK: usize = Self::STATE_BYTES + size_of::<u32>();
    pub(super) const STATE_BYTES: usize = size_of::<RankState>();

    pub(super) fn new(ranks: u32) -> Self {
        let states = (0..ranks).map(|_| RankState { queued: true, ..RankState::default() }).collect();
        Ranks { states, ranks, ready: (0..ranks).collect(), ..Ranks::default() }
    }

    #[inline]
    fn at(&mut self, rank: u32) -> &mut RankState {
        &mut self.states[rank as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.ranks as usize
    }

    /// `None` if there is no such rank.
    pub(super) fn status_of(&self, rank: u32) -> Option<Status> {
        if rank < self.ranks { self.states.get(rank as usize).map(|state| state.status) } else { None }
    }

    /// Returns whether a rank's program has not ended.
    pub(super) fn is_running(&self, rank: u32) -> bool {
        self.status_of(rank) == Some(Status::Running)
    }

    #[inline]
    pub(super) fn is_lost(&self, rank: u32) -> bool {
        self.first_lost.is_some() && self.states[rank as usize].status == Status::Lost
    }

    // ----- polling ---------------------------------------------------------------------------

    /// Polls a rank's task as soon as it is its turn.
    #[inline]
    pub(super) fn wake(&mut self, rank: u32) {
        let state = &mut self.states[rank as usize];
        if !state.queued && state.status == Status::Running {
            state.queued = true;
            self.ready.push_back(rank);
        }
    }

    #[inline]
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the rank whose turn it is to be polled.
    #[inline]
    pub(super) fn next_ready(&mut self) -> Option<u32> {
        let rank = self.ready.pop_front()?;
        self.at(rank).queued = false;
        Some(rank)
    }

    /// Lets every waiting rank know of losses since the last call.
    #[inline]
    pub(super) fn spread_losses(&mut self) {
        if !mem::take(&mut self.loss_unknown) {
            return;
        }
        for rank in 0..self.states.len() as u32 {
            if self.at(rank).watching > 0 {
                self.wake(rank);
            }
        }
    }

    /// Keeps a waker until the rank is resumed; gives back one that is known already.
    pub(super) fn listen(&mut self, rank: u32, waker: Waker) -> Option<Waker> {
        let wakers = &mut self.at(rank).extra().wakers;
        if wakers.iter().any(|known| known.will_wake(&waker)) {
            return Some(waker);
        }
        wakers.push(waker);
        None
    }

    #[inline]
    pub(super) fn take_wakers(&mut self, rank: u32) -> Vec<Waker> {
        match self.at(rank).existing() {
            Some(extra) if !extra.wakers.is_empty() => mem::take(&mut extra.wakers),
            _ => Vec::new(),
        }
    }

    /// Notes where a rank's fabric is, and what it passed to its last atomic.
    #[inline]
    pub(super) fn note_near(&mut self, rank: u32, near: [Near; 2]) {
        self.at(rank).near = near;
    }

    #[inline]
    pub(super) fn near(&self, rank: u32) -> [Near; 2] {
        self.states[rank as usize].near
    }

    /// Asks for the memory of a rank's state.
    #[inline]
    pub(super) fn prefetch(&self, rank: u32) {
        super::prefetch::prefetch(&self.states[rank as usize]);
    }

    // ----- CPU and memory --------------------------------------------------------------------

    /// Until when the rank's CPU is busy, in picoseconds.
    #[inline]
    pub(super) fn cpu_until(&self, rank: u32) -> u64 {
        self.states[rank as usize].cpu_until
    }

    /// Keeps the rank's CPU busy for `picos` picoseconds more; returns until when.
    #[inline]
    pub(super) fn occupy_cpu(&mut self, rank: u32, now: u64, picos: u64) -> u64 {
        let until = &mut self.at(rank).cpu_until;
        *until = now.max(*until).saturating_add(picos);
        *until
    }

    /// The rank wants to compute beyond the end of time.
    pub(super) fn set_out_of_time(&mut self, rank: u32, end: EndOfTime) {
        self.out_of_time = Some((rank, end));
    }

    #[inline]
    pub(super) fn take_out_of_time(&mut self, rank: u32) -> Option<EndOfTime> {
        self.out_of_time.take_if(|(who, _)| *who == rank).map(|(_, end)| end)
    }

    /// The number of the symmetric allocation that the rank makes now.
    pub(super) fn next_symmetric(&mut self, rank: u32) -> u32 {
        let number = &mut self.at(rank).symmetric;
        *number += 1;
        *number - 1
    }

    /// Counts memory that a rank is about to register against its `limit`.
    ///
    /// # Errors
    /// [`FabricError::OutOfMemory`].
    pub(super) fn reserve_memory(&mut self, rank: u32, bytes: usize, limit: u64) -> Result<()> {
        let registered = &mut self.at(rank).registered;
        let free = limit.saturating_sub(*registered);
        if bytes as u64 > free {
            let (rank, available, segment) = (Rank::new(rank), free as usize, limit as usize);
            return Err(OutOfMemory { rank, requested: bytes, available, segment }.into());
        }
        *registered += bytes as u64;
        Ok(())
    }

    pub(super) fn return_memory(&mut self, rank: u32, bytes: usize) {
        self.at(rank).registered -= bytes as u64;
    }
}
