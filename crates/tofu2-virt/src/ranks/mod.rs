//! The ranks: their status, the ranks to be polled, the state of their CPUs, their operations in
//! flight, and their ends.

mod flush;
mod helpers;
mod in_flight;
mod room;
mod watches;

pub(super) use flush::FlushState;
pub(super) use watches::{QueueReport, Watched};

use super::{huge_pages::in_huge_pages, prefetch::Near, waits::EndOfTime};
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
    /// Its program has succeeded.
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
    /// The first rank that was lost.
    first_lost: Option<u32>,
    /// Whether waiting ranks still have to be woken because of a loss.
    loss_unknown: bool,
    /// The number of ranks that have departed.
    departed: u32,
    next_ticket: u64,
    /// A rank that tries to compute past the end of time, until it is ended.
    out_of_time: Option<(u32, EndOfTime)>,
}

/// The state that every rank has.
#[derive(Debug, Default)]
struct RankState {
    /// When the rank's CPU becomes idle, in picoseconds.
    cpu_until: u64,
    /// Bytes of registered memory.
    registered: u64,
    /// The number of operations posted and not complete, and of control-queue commands in flight.
    outstanding: u32,
    /// The number of symmetric allocations so far.
    symmetric: u32,
    /// The number of registered waits.
    watching: u32,
    /// The addresses of its fabric and of the argument of its last atomic.
    near: [Near; 2],
    /// Whether it is in the queue of ranks to poll.
    queued: bool,
    status: Status,
    /// Whether it has ended and no longer has operations in flight.
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
    /// Tickets of the waiters for room in the rank's TOQ.
    room_line: VecDeque<u64>,
    receive_queue: ReceiveQueue,
    /// Open control queues.
    queues: Vec<u32>,
    /// Commands of control queues in flight; also counted in `outstanding`.
    commands: u32,
    /// Wakers of combinators that need to know which of their parts to poll.
    wakers: Vec<Waker>,
}

impl RankState {
    /// Returns the rarely needed state; creates it if necessary.
    fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// Returns the rarely needed state, if there is any.
    #[inline]
    fn existing(&mut self) -> Option<&mut Extra> {
        self.extra.as_deref_mut()
    }
}

impl Ranks {
    /// The bytes that [`Ranks::new`] takes for each rank.
    pub(super) const BYTES_PER_RANK: usize = Self::STATE_BYTES + size_of::<u32>();
    pub(super) const STATE_BYTES: usize = size_of::<RankState>();

    pub(super) fn new(ranks: u32) -> Self {
        let mut states = Vec::with_capacity(ranks as usize);
        in_huge_pages(&mut states);
        states.extend((0..ranks).map(|_| RankState { queued: true, ..RankState::default() }));
        Ranks { states, ranks, ready: (0..ranks).collect(), ..Ranks::default() }
    }

    #[inline]
    fn at(&mut self, rank: u32) -> &mut RankState {
        &mut self.states[rank as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.ranks as usize
    }

    /// Returns whether there is a lane of this number, of a program or a helper.
    pub(super) fn has_lane(&self, lane: u32) -> bool {
        (lane as usize) < self.states.len()
    }

    /// Returns the status of a rank; `None` if there is no such rank.
    pub(super) fn status_of(&self, rank: u32) -> Option<Status> {
        if rank < self.ranks { self.states.get(rank as usize).map(|state| state.status) } else { None }
    }

    /// Returns whether a rank's program has not ended.
    pub(super) fn is_running(&self, rank: u32) -> bool {
        self.status_of(rank) == Some(Status::Running)
    }

    /// Returns the first rank that was lost, if any was.
    pub(super) fn first_lost(&self) -> Option<u32> {
        self.first_lost
    }

    #[inline]
    pub(super) fn is_lost(&self, rank: u32) -> bool {
        self.first_lost.is_some() && self.states[rank as usize].status == Status::Lost
    }

    // ----- polling ---------------------------------------------------------------------------

    /// Queues a rank's task to be polled.
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

    /// Takes the next rank to poll.
    #[inline]
    pub(super) fn next_ready(&mut self) -> Option<u32> {
        let rank = self.ready.pop_front()?;
        self.at(rank).queued = false;
        Some(rank)
    }

    /// Wakes every waiting rank if ranks were lost since the last call.
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

    /// Keeps a waker until the rank is resumed. Returns it if an equal one is already kept.
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

    /// Records the addresses of a rank's fabric and of the argument of its last atomic.
    #[inline]
    pub(super) fn note_near(&mut self, rank: u32, near: [Near; 2]) {
        self.at(rank).near = near;
    }

    #[inline]
    pub(super) fn near(&self, rank: u32) -> [Near; 2] {
        self.states[rank as usize].near
    }

    /// Prefetches a rank's state.
    #[inline]
    pub(super) fn prefetch(&self, rank: u32) {
        super::prefetch::prefetch(&self.states[rank as usize]);
    }

    // ----- CPU and memory --------------------------------------------------------------------

    /// Returns the time at which the rank's CPU becomes idle, in picoseconds.
    #[inline]
    pub(super) fn cpu_until(&self, rank: u32) -> u64 {
        self.states[rank as usize].cpu_until
    }

    /// Keeps the rank's CPU busy for `picos` picoseconds more. Returns the time at which it becomes
    /// idle.
    #[inline]
    pub(super) fn occupy_cpu(&mut self, rank: u32, now: u64, picos: u64) -> u64 {
        let until = &mut self.at(rank).cpu_until;
        *until = now.max(*until).saturating_add(picos);
        *until
    }

    /// Records that the rank tries to compute past the end of time.
    pub(super) fn set_out_of_time(&mut self, rank: u32, end: EndOfTime) {
        self.out_of_time = Some((rank, end));
    }

    #[inline]
    pub(super) fn take_out_of_time(&mut self, rank: u32) -> Option<EndOfTime> {
        self.out_of_time.take_if(|(who, _)| *who == rank).map(|(_, end)| end)
    }

    /// Returns the sequence number of the symmetric allocation that the rank is about to make.
    pub(super) fn next_symmetric(&mut self, rank: u32) -> u32 {
        let number = &mut self.at(rank).symmetric;
        *number += 1;
        *number - 1
    }

    /// Counts memory that a rank is about to register against its `limit`.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::OutOfMemory`].
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
