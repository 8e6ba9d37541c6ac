//! What all ranks of a job share, as one process sees it.

pub(crate) mod control;

use super::{
    memory::{
        adopted::Adopted,
        inside::{self, RegionId},
        layout,
        mapping::Mapping,
        regions,
    },
    queues::config::QueueOptions,
    waiting::doorbell,
};
use control::{Control, Plan, State};
use core::{
    sync::atomic::{
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    time::Duration,
};
use rdma_fabric::{Deps, Existing, FabricError, Rank, provider::Anchor};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

#[cfg(target_os = "linux")]
use super::processes::{cross_copy::CrossPlace, peer_memory::PeerMemories};
#[cfg(target_os = "linux")]
use rdma_fabric::{RegionKey, RemoteAddr};

/// The mapped segments and the control block.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) control: Control,
    pub(crate) plan: Plan,
    /// One per rank, in rank order.
    segments: Box<[Arc<Mapping>]>,
    /// What places in each segment keep, made when the first is resolved.
    anchors: Box<[OnceLock<Anchor>]>,
    /// The job's start.
    start: Instant,
    /// More ranks than CPUs.
    pub(crate) oversubscribed: bool,
    /// What its control queues are like.
    pub(crate) queues: QueueOptions,
    /// Buffers that existed before and that this process registered, by rank and place in the region table.
    adopted: Mutex<HashMap<(Rank, u32), Arc<Adopted>>>,
    /// How the ranks' processes reach each other's own memory; `None` where ranks are threads, and in a launcher.
    #[cfg(target_os = "linux")]
    peers: Option<PeerMemories>,
}

impl Job {
    /// Returns a job whose ranks are threads of this process.
    #[cfg(test)]
    pub(crate) fn of_threads(plan: Plan) -> Result<Arc<Self>, FabricError> {
        Self::of_threads_with(plan, QueueOptions::default())
    }

    /// Returns the same, with such control queues.
    pub(crate) fn of_threads_with(plan: Plan, queues: QueueOptions) -> Result<Arc<Self>, FabricError> {
        let bytes = plan.control_bytes();
        let control = Control::create(Mapping::in_process(bytes, bytes)?, &plan);
        control.word(layout::QUEUE_OPTIONS).store(queues.to_bits()?, Relaxed);
        let segments = (0..plan.ranks)
            .map(|_| Mapping::in_process(plan.segment_bytes(), layout::HEAP))
            .collect::<Result<Box<[_]>, _>>()?;
        Ok(Arc::new(Self::new(control, plan, segments, Instant::now())))
    }

    /// Returns a job over these mappings.
    pub(crate) fn new(control: Control, plan: Plan, segments: Box<[Arc<Mapping>]>, start: Instant) -> Self {
        if !doorbell::register_process() {
            control.word(layout::NO_HEAVY_BARRIER).store(1, Relaxed);
        }
        let oversubscribed = control.word(layout::OVERSUBSCRIBED).load(Relaxed) != 0;
        let queues = QueueOptions::from_bits(control.word(layout::QUEUE_OPTIONS).load(Relaxed));
        segments.iter().enumerate().for_each(|(rank, segment)| control.show_parked(rank, segment));
        let anchors = segments.iter().map(|_| OnceLock::new()).collect();
        Job {
            control,
            plan,
            segments,
            anchors,
            start,
            oversubscribed,
            queues,
            adopted: Mutex::default(),
            #[cfg(target_os = "linux")]
            peers: None,
        }
    }

    /// Returns the same job, whose ranks are processes.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_processes(self, peers: PeerMemories) -> Self {
        Job { peers: Some(peers), ..self }
    }

    /// Returns what places in a rank's segment keep.
    pub(crate) fn anchor(&self, rank: Rank) -> Result<&Anchor, FabricError> {
        let segment = self.segment(rank)?;
        let missing = FabricError::NoSuchRank { rank, ranks: self.plan.ranks };
        Ok(self.anchors.get(rank.index()).ok_or(missing)?.get_or_init(|| Anchor::new(segment.clone())))
    }

    /// Returns the best way to reach memory that existed before it was registered.
    pub(crate) fn existing(&self) -> Existing {
        #[cfg(target_os = "linux")]
        if let Some(peers) = &self.peers {
            return if peers.is_possible() { Existing::CrossCopy } else { Existing::Staged };
        }
        Existing::Direct
    }

    /// Returns the buffers that this process registered; by rank and place in the region table.
    pub(crate) fn adopted(&self) -> MutexGuard<'_, HashMap<(Rank, u32), Arc<Adopted>>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the other processes where in this one the memory is that is about to be registered as `key`.
    #[cfg(target_os = "linux")]
    pub(crate) fn offer(&self, key: RegionKey, address: u64, len: usize) -> Result<(), FabricError> {
        let unsupported = FabricError::Unsupported { feature: &"cross-memory copies" };
        self.peers.as_ref().ok_or(unsupported)?.offer(key, address, len)
    }

    /// Resolves bytes of another process's own memory.
    #[cfg(target_os = "linux")]
    pub(crate) fn cross(
        &self,
        addr: RemoteAddr,
        len: usize,
        align: usize,
        region_len: usize,
    ) -> Result<CrossPlace, FabricError> {
        let unsupported = FabricError::Unsupported { feature: &"cross-memory copies" };
        let peers = self.peers.as_ref().ok_or(unsupported)?;
        let resolved = peers.resolve(self.segment(addr.rank)?, addr, len, align, region_len);
        resolved.inspect_err(|error| self.notice_loss(error))
    }

    /// If `error`, which an access to another process's own memory ended with, is the first that anybody sees of that process's death,
    /// write down whose it is. What this rank fails with, and when its process ends, is a consequence.
    #[cold]
    pub(crate) fn notice_loss(&self, error: &FabricError) {
        if let FabricError::PeerLost { rank } = error
            && rank.index() < self.plan.ranks
        {
            self.control.found_gone(rank.index());
        }
    }

    /// Returns whether an operation of any rank is announced inside the region; those of ranks that have ended don't count.
    pub(crate) fn is_inside(&self, id: RegionId) -> bool {
        let inside = |(rank, segment): (usize, &Arc<Mapping>)| {
            inside::names(segment.announcements(), id) && !self.control.has_ended(rank)
        };
        self.segments.iter().enumerate().any(inside)
    }

    pub(crate) fn segment(&self, rank: Rank) -> Result<&Arc<Mapping>, FabricError> {
        self.segments.get(rank.index()).ok_or(FabricError::NoSuchRank { rank, ranks: self.plan.ranks })
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Returns the longest time a rank stays parked without looking.
    pub(crate) fn longest_park(&self) -> Duration {
        let heavy_barrier = self.control.heavy_barrier();
        let longest = doorbell::longest_park(heavy_barrier);
        if !heavy_barrier {
            return longest;
        }
        // A bound that nothing depends on must not make a thousand idle ranks busy: five thousand looks a second, by all.
        longest.max(Duration::from_micros(200).saturating_mul(self.plan.ranks as u32)).min(Duration::from_millis(500))
    }

    /// Returns the longest time a task of a foreign executor stays asleep without looking. Looks cost more there, and the bound
    /// matters only where there is no heavy barrier.
    pub(crate) fn longest_sleep(&self) -> Duration {
        if self.control.heavy_barrier() { Duration::from_millis(500) } else { self.longest_park() }
    }

    /// Tells everybody what became of `rank`, and wake who waits for it.
    pub(crate) fn publish(&self, rank: Rank, state: State) {
        let Some(segment) = self.segments.get(rank.index()) else { return };
        if state == State::Lost {
            self.control.found_gone(rank.index());
            // Before the state: whoever sees the rank lost is refused by its memory too.
            segment.word(layout::LOST).store(1, SeqCst);
            regions::condemn(segment);
        }
        // Nobody waits for a rank to run.
        if self.control.advance(rank.index(), state) && state > State::Running {
            self.wake_all();
        }
    }

    /// Tells that the command that was started as `rank` has ended, which makes the rank lost if it had not left. `well` says
    /// that its exit code was 0. If a process that the command started is the rank and may run still, [`Job::gone`] is for
    /// later (`gone` is false).
    ///
    /// A process that never attached and ended well may know nothing of this library; it is lost only to ranks that did
    /// attach, before or after.
    #[cfg(target_os = "linux")]
    pub(crate) fn ended(&self, rank: Rank, well: bool, gone: bool) {
        let index = rank.index();
        // Before anybody is told that no code of it runs.
        self.control.close(index);
        if gone {
            self.control.set_ended(index);
        }
        let lost = match self.control.state(index) {
            State::Starting => !well || self.is_attached(),
            State::Running => true,
            State::Left | State::Lost => !well,
        };
        if lost {
            self.publish(rank, State::Lost);
        }
        self.rouse(index);
    }

    /// Tells that no code of a rank runs any more whose command ended before.
    #[cfg(target_os = "linux")]
    pub(crate) fn gone(&self, rank: Rank) {
        self.control.set_ended(rank.index());
        self.rouse(rank.index());
    }

    /// Wakes everybody, even if nothing has changed: the rank `ended` may have ended between changing its state and telling,
    /// between writing and waking, or with a claim in some notice ring.
    #[cfg(target_os = "linux")]
    fn rouse(&self, ended: usize) {
        self.control.complete_advance(ended);
        fence(SeqCst);
        self.who_may_wait().for_each(|segment| segment.rouse());
    }

    /// Returns the segments of ranks of which somebody may be parked. Who parks later looks at what was written before the fence that
    /// comes before this.
    fn who_may_wait(&self) -> impl Iterator<Item = &Arc<Mapping>> {
        let may = |&(rank, _): &(usize, _)| {
            self.control.card(rank, layout::CARD_PARKED).load(SeqCst) != 0 && !self.control.has_ended(rank)
        };
        self.segments.iter().enumerate().filter(may).map(|(_, segment)| segment)
    }

    /// Gives up for lost whoever ended before it attached; to be called by a rank that is running now.
    ///
    /// The rank has published that it runs and looks who ended; the launcher publishes who ended and looks who runs. All
    /// four are SeqCst, so one of them sees the other.
    #[cfg(target_os = "linux")]
    pub(crate) fn attached(&self) {
        let ended = |&rank: &usize| self.control.has_ended(rank) && self.control.state(rank) == State::Starting;
        (0..self.plan.ranks).filter(ended).for_each(|rank| self.publish(Rank::new(rank as u32), State::Lost));
    }

    /// Returns whether any rank has ever attached.
    #[cfg(target_os = "linux")]
    fn is_attached(&self) -> bool {
        // Lost ranks count only if they ran: one that was killed before it attached concerns nobody who did not either.
        (0..self.plan.ranks).any(|rank| matches!(self.control.state(rank), State::Running | State::Left))
    }

    /// Rings every doorbell, after what was written before.
    pub(crate) fn wake_all(&self) {
        // Rare enough for a barrier of its own, so that even a missing heavy barrier loses nothing.
        fence(SeqCst);
        self.who_may_wait().for_each(|segment| segment.ring());
    }

    /// Ends the waits of all ranks, `waiting` of which wait for what nobody will do.
    pub(crate) fn give_up(&self, waiting: usize) {
        self.control.set_stuck(waiting);
        self.wake_all();
    }

    /// Returns whether `rank` is lost.
    pub(crate) fn is_lost(&self, rank: Rank) -> bool {
        self.segments.get(rank.index()).is_none_or(|segment| segment.word(layout::LOST).load(Relaxed) != 0)
    }

    /// Returns whether a wait of `me` for `deps` can still end well.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`], [`FabricError::PeerLost`], [`FabricError::PeersLeft`], [`FabricError::Deadlock`].
    pub(crate) fn outlook(&self, me: Rank, deps: &Deps<'_>) -> Result<(), FabricError> {
        self.control.can_go_on()?;
        let (mut lost, mut all_left) = (None, true);
        let mut look = |rank: Rank| {
            match self.control.state(rank.index()) {
                State::Lost => lost = lost.or(Some(rank)),
                State::Starting | State::Running => all_left = false,
                State::Left => {}
            };
        };
        match *deps {
            Deps::All => (0..self.plan.ranks as u32).map(Rank::new).filter(|&rank| rank != me).for_each(&mut look),
            Deps::One(rank) => {
                self.segment(rank)?;
                look(rank);
            }
            Deps::Ranks(ranks) => {
                for &rank in ranks {
                    self.segment(rank)?;
                    look(rank);
                }
            }
            Deps::Step { writer, group } => {
                self.segment(writer)?;
                self.outlook(me, &group.map_or(Deps::All, Deps::Ranks)).or_else(|error| match error {
                    FabricError::PeersLeft => Ok(()),
                    error => Err(error),
                })?;
                look(writer);
            }
        }
        match lost {
            Some(rank) => Err(FabricError::PeerLost { rank }),
            None if all_left => Err(FabricError::PeersLeft),
            None => Ok(()),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::shm::waiting::block_on;

    const DEAD: Rank = Rank::new(1);

    fn job() -> Arc<Job> {
        let plan = Plan { ranks: 3, ranks_per_node: 3, heap_bytes: layout::PAGE, start_ns: 0 };
        let job = Job::of_threads(plan).unwrap();
        (0..3).for_each(|rank| job.publish(Rank::new(rank), State::Running));
        job
    }

    /// What the others must find after the reaper has come.
    fn assert_told(job: &Job, changes: u64) {
        assert!(job.is_lost(DEAD));
        assert_eq!(job.control.state(1), State::Lost);
        assert!(job.control.has_ended(1));
        assert!(job.control.changes() > changes, "nobody would look again");
        assert_eq!(job.control.first_lost(), Some(1));
        assert_eq!(job.outlook(Rank::new(0), &Deps::All), Err(FabricError::PeerLost { rank: DEAD }));
    }

    /// A rank that publishes its own loss may be killed after each of the stores that takes.
    #[test]
    fn a_loss_half_told_is_told_by_the_reaper() {
        let steps: [&dyn Fn(&Job); 4] = [
            &|_| (),
            &|job| job.segments[1].word(layout::LOST).store(1, SeqCst),
            &|job| _ = job.control.card(1, layout::CARD_STATE).fetch_max(State::Lost as u64, SeqCst),
            &|job| _ = job.control.word(layout::FIRST_LOST).compare_exchange(0, 2, SeqCst, Relaxed),
        ];
        for done in 1..=steps.len() {
            let job = job();
            let changes = job.control.changes();
            steps[..done].iter().for_each(|step| step(&job));
            job.ended(DEAD, false, true);
            assert_told(&job, changes);
        }
    }

    /// A rank that says it has left may be killed before anybody was told, or right afterwards.
    #[test]
    fn who_is_killed_while_leaving_is_lost() {
        for told in [false, true] {
            let job = job();
            let changes = job.control.changes();
            if told {
                job.publish(DEAD, State::Left);
            } else {
                job.control.card(1, layout::CARD_STATE).fetch_max(State::Left as u64, SeqCst);
            }
            job.ended(DEAD, false, true);
            assert_told(&job, changes);
        }
    }

    #[test]
    fn who_ends_well_after_leaving_is_not_lost() {
        let job = job();
        job.publish(DEAD, State::Left);
        job.ended(DEAD, true, true);
        assert!(!job.is_lost(DEAD));
        assert_eq!(job.outlook(Rank::new(0), &Deps::One(DEAD)), Err(FabricError::PeersLeft));
    }

    #[test]
    fn who_started_the_job_says_whether_it_is_crowded() {
        let cpus = block_on::cpus();
        for (ranks, oversubscribed) in [(1, false), (cpus, false), (cpus + 1, true)] {
            let plan = Plan { ranks, ranks_per_node: ranks, heap_bytes: 1 << 16, start_ns: 0 };
            let job = Job::of_threads(plan).unwrap();
            assert_eq!(job.oversubscribed, oversubscribed, "{ranks} ranks on {cpus} CPUs");
            // What a rank finds that is bound, and so sees fewer CPUs: not its own count decides.
            job.control.word(layout::OVERSUBSCRIBED).store(u64::from(!oversubscribed), Relaxed);
            let found = Job::new(job.control.clone(), plan, Box::default(), Instant::now());
            assert_eq!(found.oversubscribed, !oversubscribed);
        }
    }
}
