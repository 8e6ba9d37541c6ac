//! What the ranks of a job under shuttle share: memory, what is under way, lives, time; and the network's part.
//!
//! One mutex protects all of it, so that every operation is one step. What shuttle draws is the order of the steps: those
//! of the ranks, and those of the network, a thread that delivers what is under way in an order drawn from shuttle's
//! own random numbers. The clock moves only when all ranks wait and nothing is under way, and now and then a little early.

use super::memory::{Memory, Place};
use rdma_fabric::{Deps, FabricError, Notice, Rank, RegionKey, RemoteAddr, Result};
use shuttle::{
    rand::Rng,
    sync::{Condvar, Mutex, MutexGuard},
};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fmt,
};

/// Operations that a rank can have under way.
pub(crate) const QUEUE: usize = 48;
/// Notices that a rank holds, those on their way included.
pub(crate) const NOTICES: usize = 12;
/// The longest put that is not split, in bytes.
pub(crate) const LONGEST: usize = 4096;
/// The clock may run ahead to an alarm this near, in picoseconds.
const NEAR: u64 = 10_000_000_000;

/// What the check of a check breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    None,
    /// A rank that is about to wait misses what happened since it looked.
    LostWakeUp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Running,
    Left,
    Lost,
}

/// What an operation does at its target.
pub(crate) enum Verb {
    Put {
        bytes: Vec<u8>,
        notice: Option<Notice>,
    },
    /// To the poster, or into its registered memory.
    Get {
        into: Option<Place>,
    },
    /// The new bits from the old ones.
    Atomic {
        new: Box<dyn Fn(u64) -> u64 + Send>,
    },
    Nop,
}

/// An operation that was posted and has not reached its target.
struct Flight {
    /// Grows with every post of the job.
    id: u64,
    from: usize,
    target: Place,
    verb: Verb,
    /// Parts of one put have the same; a notice goes with the last to arrive.
    group: u64,
}

pub(crate) struct RankState {
    pub(crate) life: Life,
    pub(crate) notices: VecDeque<Notice>,
    /// Notices on their way here.
    reserved: usize,
    /// Counts what may concern a wait of this rank.
    woken: u64,
    /// Waits, and nothing has happened since.
    parked: bool,
    /// Times at which to wake it, in picoseconds.
    alarms: BTreeSet<(u64, u64)>,
    /// Results of operations whose handles live: `None` while under way.
    results: BTreeMap<u64, Option<Result<Vec<u8>>>>,
    /// Operations under way.
    outstanding: usize,
    /// Those who wait for room in the own queue.
    line: VecDeque<u64>,
    /// Room was found for the first of them, who posts next.
    granted: bool,
    /// The first error of puts to a target since its last flush.
    errors: BTreeMap<usize, FabricError>,
}

pub(crate) struct State {
    /// Picoseconds since the start.
    pub(crate) now: u64,
    next: u64,
    pub(crate) ranks: Vec<RankState>,
    pub(crate) memory: Memory,
    flights: Vec<Flight>,
}

pub(crate) struct Job {
    pub(crate) mutation: Mutation,
    pub(crate) ranks: usize,
    state: Mutex<State>,
    bells: Vec<Condvar>,
    network: Condvar,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({} ranks)", self.ranks)
    }
}

impl State {
    pub(crate) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Why a place can't be accessed, if it can't.
    pub(crate) fn check(&self, place: &Place) -> Result<()> {
        let RemoteAddr { rank, region, .. } = place.addr;
        match self.ranks[rank.index()].life {
            Life::Lost => Err(FabricError::PeerLost { rank }),
            Life::Left | Life::Running => self.memory.live(rank, region),
        }
    }

    /// Nobody passes those who wait.
    pub(crate) fn has_own_room(&self, me: usize) -> bool {
        let rank = &self.ranks[me];
        rank.outstanding < QUEUE && (rank.granted || rank.line.is_empty())
    }

    /// Who has ended takes no notices, and loses none.
    pub(crate) fn has_notice_room(&self, target: usize) -> bool {
        let rank = &self.ranks[target];
        rank.life != Life::Running || rank.notices.len() + rank.reserved < NOTICES
    }

    fn is_deliverable(&self, flight: &Flight) -> bool {
        let Verb::Put { notice: Some(_), .. } = flight.verb else { return true };
        // After its own bytes, and after the notices that were posted before.
        !self.flights.iter().any(|other| {
            let same = other.from == flight.from && other.target.addr.rank == flight.target.addr.rank;
            let notifies = matches!(other.verb, Verb::Put { notice: Some(_), .. });
            same && other.id < flight.id && (other.group == flight.group || notifies)
        })
    }

    /// Whether a wait of `me` can still end well.
    pub(crate) fn outlook(&self, me: usize, deps: &Deps<'_>) -> Result<()> {
        let members: Vec<Rank> = match *deps {
            Deps::All => (0..self.ranks.len() as u32).map(Rank::new).filter(|rank| rank.index() != me).collect(),
            Deps::One(rank) => vec![rank],
            Deps::Ranks(ranks) => ranks.to_vec(),
            Deps::Step { writer, group } => {
                self.outlook(me, &group.map_or(Deps::All, Deps::Ranks)).or_else(|error| match error {
                    FabricError::PeersLeft => Ok(()),
                    error => Err(error),
                })?;
                vec![writer]
            }
        };
        let mut gone = !self.flights.iter().any(|flight| flight.from == me);
        for rank in &members {
            match self.ranks[rank.index()].life {
                Life::Lost => return Err(FabricError::PeerLost { rank: *rank }),
                Life::Running => gone = false,
                Life::Left => gone &= !self.flights.iter().any(|flight| flight.from == rank.index()),
            }
        }
        if gone { Err(FabricError::PeersLeft) } else { Ok(()) }
    }

    /// Where a flush stands: `None` while puts are under way.
    pub(crate) fn flushed(&mut self, me: usize, target: Option<Rank>) -> Option<Result<()>> {
        if let Some(rank) = target.filter(|rank| self.ranks[rank.index()].life == Life::Lost) {
            return Some(Err(FabricError::PeerLost { rank }));
        }
        let concerns = |rank: Rank| target.is_none_or(|target| target == rank);
        let puts = |flight: &&Flight| flight.from == me && matches!(flight.verb, Verb::Put { .. });
        if self.flights.iter().filter(puts).any(|flight| concerns(flight.target.addr.rank)) {
            return None;
        }
        let errors = &mut self.ranks[me].errors;
        let first = errors.keys().copied().find(|&rank| concerns(Rank::new(rank as u32)));
        let error = first.and_then(|rank| errors.remove(&rank));
        if target.is_none() {
            errors.clear();
        }
        Some(error.map_or(Ok(()), Err))
    }

    /// The result of an operation, when it is there.
    pub(crate) fn take_result(&mut self, me: usize, id: u64) -> Option<Result<Vec<u8>>> {
        let results = &mut self.ranks[me].results;
        let result = results.get_mut(&id)?.take()?;
        results.remove(&id);
        Some(result)
    }

    pub(crate) fn is_done(&self, me: usize, id: u64) -> bool {
        self.ranks[me].results.get(&id).is_none_or(Option::is_some)
    }

    pub(crate) fn forget(&mut self, me: usize, id: u64) {
        self.ranks[me].results.remove(&id);
    }

    pub(crate) fn set_alarm(&mut self, me: usize, at: u64) -> u64 {
        let id = self.number();
        self.ranks[me].alarms.insert((at, id));
        id
    }

    pub(crate) fn drop_alarm(&mut self, me: usize, at: u64, id: u64) {
        self.ranks[me].alarms.remove(&(at, id));
    }

    /// Whether it is this ticket's turn for room in the own queue.
    pub(crate) fn may_post(&mut self, me: usize, ticket: &mut Option<u64>) -> bool {
        let free = self.ranks[me].outstanding < QUEUE;
        let line = &mut self.ranks[me].line;
        let first = line.front().copied();
        if free && (first.is_none() || first == *ticket) {
            if ticket.take().is_some() {
                line.pop_front();
            }
            self.ranks[me].granted = true;
            if !self.ranks[me].line.is_empty() {
                // Whoever is next may find room as well.
                self.ranks[me].woken += 1;
            }
            return true;
        }
        if ticket.is_none() {
            let number = self.number();
            *ticket = Some(number);
            self.ranks[me].line.push_back(number);
        }
        false
    }

    pub(crate) fn leave_line(&mut self, me: usize, ticket: u64) {
        self.ranks[me].line.retain(|other| *other != ticket);
    }
}

impl Job {
    pub(crate) fn new(ranks: usize, mutation: Mutation) -> Self {
        let rank = || RankState {
            life: Life::Running,
            notices: VecDeque::new(),
            reserved: 0,
            woken: 0,
            parked: false,
            alarms: BTreeSet::new(),
            results: BTreeMap::new(),
            outstanding: 0,
            line: VecDeque::new(),
            granted: false,
            errors: BTreeMap::new(),
        };
        let states = (0..ranks).map(|_| rank()).collect();
        let state = State { now: 0, next: 0, ranks: states, memory: Memory::new(ranks), flights: Vec::new() };
        let bells = (0..ranks).map(|_| Condvar::new()).collect();
        Job { mutation, ranks, state: Mutex::new(state), bells, network: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Something happened that a wait of `rank` may be for.
    pub(crate) fn wake(&self, state: &mut State, rank: usize) {
        state.ranks[rank].woken += 1;
        if std::mem::take(&mut state.ranks[rank].parked) {
            self.bells[rank].notify_one();
        }
    }

    pub(crate) fn wake_all(&self, state: &mut State) {
        (0..self.ranks).for_each(|rank| self.wake(state, rank));
    }

    /// What [`Job::park`] compares with: to be asked before looking at what is waited for.
    pub(crate) fn woken(&self, me: usize) -> u64 {
        self.lock().ranks[me].woken
    }

    /// Block until something has happened since `seen`.
    pub(crate) fn park(&self, me: usize, seen: u64) {
        let mut state = self.lock();
        let seen = if self.mutation == Mutation::LostWakeUp { state.ranks[me].woken } else { seen };
        while state.ranks[me].woken == seen {
            state.ranks[me].parked = true;
            self.network.notify_one();
            state = self.bells[me].wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.ranks[me].parked = false;
    }

    /// Give an operation to the network. `wanted` says whether somebody wants its result.
    pub(crate) fn post(
        &self,
        state: &mut State,
        me: usize,
        target: Place,
        verb: Verb,
        group: u64,
        wanted: bool,
    ) -> u64 {
        let id = state.number();
        if let Verb::Put { notice: Some(_), .. } = verb {
            state.ranks[target.addr.rank.index()].reserved += 1;
        }
        if wanted {
            state.ranks[me].results.insert(id, None);
        }
        state.ranks[me].outstanding += 1;
        state.ranks[me].granted = false;
        state.flights.push(Flight { id, from: me, target, verb, group });
        self.network.notify_one();
        id
    }

    /// The rank's program is over.
    pub(crate) fn end(&self, rank: usize, life: Life) {
        let mut state = self.lock();
        state.ranks[rank].life = life;
        self.wake_all(&mut state);
        self.network.notify_one();
    }

    fn arrive(&self, state: &mut State, flight: Flight) {
        let Flight { id, from, target, verb, .. } = flight;
        let rank = target.addr.rank;
        let reached = match &verb {
            // Nothing of a rank that is known to be lost takes effect any more (E4).
            _ if state.ranks[from].life == Life::Lost => Err(FabricError::PeerLost { rank: Rank::new(from as u32) }),
            Verb::Nop => Ok(()),
            _ => state.check(&target),
        };
        let result = match (reached, verb) {
            (Err(error), Verb::Put { notice, .. }) => {
                state.ranks[rank.index()].reserved -= usize::from(notice.is_some());
                state.ranks[from].errors.entry(rank.index()).or_insert(error.clone());
                self.wake_all(state);
                Err(error)
            }
            (Err(error), _) => Err(error),
            (Ok(()), Verb::Put { bytes, notice }) => {
                state.memory.bytes_mut(&target).copy_from_slice(&bytes);
                if let Some(notice) = notice {
                    let there = &mut state.ranks[rank.index()];
                    there.reserved -= 1;
                    there.notices.push_back(notice);
                }
                Ok(Vec::new())
            }
            (Ok(()), Verb::Get { into }) => {
                let bytes = state.memory.bytes(&target).to_vec();
                match into {
                    None => Ok(bytes),
                    Some(place) => state.check(&place).map(|()| {
                        state.memory.bytes_mut(&place).copy_from_slice(&bytes);
                        Vec::new()
                    }),
                }
            }
            (Ok(()), Verb::Atomic { new }) => {
                let old = state.memory.word(&target);
                state.memory.set_word(&target, new(old));
                Ok(old.to_ne_bytes().to_vec())
            }
            (Ok(()), Verb::Nop) => Ok(Vec::new()),
        };
        let poster = &mut state.ranks[from];
        poster.outstanding -= 1;
        if let Some(slot) = poster.results.get_mut(&id) {
            *slot = Some(result);
        }
        self.wake(state, rank.index());
        if state.ranks[rank.index()].life != Life::Running {
            // Somebody may wait for the end of the last operation of one that has left.
            self.wake_all(state);
        }
        let done = state.ranks[from].life != Life::Running;
        if done { self.wake_all(state) } else { self.wake(state, from) }
    }

    /// The network's thread: until all ranks have ended and nothing is under way.
    ///
    /// # Panics
    /// If the ranks wait and nothing can end that.
    pub(crate) fn carry(&self) {
        loop {
            let mut state = self.lock();
            let deliverable: Vec<usize> =
                (0..state.flights.len()).filter(|&at| state.is_deliverable(&state.flights[at])).collect();
            let running = state.ranks.iter().filter(|rank| rank.life == Life::Running).count();
            let idle = state.ranks.iter().all(|rank| rank.life != Life::Running || rank.parked);
            let alarm = state.ranks.iter().filter_map(|rank| rank.alarms.first()).map(|(at, _)| *at).min();
            let near = alarm.is_some_and(|at| at <= state.now.saturating_add(NEAR));
            if near && shuttle::rand::thread_rng().gen_range(0..16u32) == 0 {
                self.move_clock(&mut state, alarm);
            } else if !deliverable.is_empty() {
                let at = deliverable[shuttle::rand::thread_rng().gen_range(0..deliverable.len())];
                let flight = state.flights.remove(at);
                self.arrive(&mut state, flight);
            } else if running == 0 {
                return;
            } else if idle {
                assert!(
                    alarm.is_some(),
                    "deadlock: {running} ranks wait, nothing is under way and no time is waited for"
                );
                self.move_clock(&mut state, alarm);
            } else {
                drop(self.network.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner));
            }
        }
    }

    fn move_clock(&self, state: &mut State, alarm: Option<u64>) {
        let Some(at) = alarm else { return };
        state.now = state.now.max(at);
        for rank in 0..self.ranks {
            let due: Vec<_> = state.ranks[rank].alarms.range(..=(state.now, u64::MAX)).copied().collect();
            if !due.is_empty() {
                state.ranks[rank].alarms.retain(|alarm| !due.contains(alarm));
                self.wake(state, rank);
            }
        }
    }

    pub(crate) fn drop_region(&self, rank: Rank, key: RegionKey) {
        self.lock().memory.free(rank, key);
    }
}
