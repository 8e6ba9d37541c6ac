//! The memory file of a node's part of a job: its creation, and its transfer to the other ranks of
//! the node without a launcher.
//!
//! The node's first rank creates the file and opens a socket in the abstract namespace. The other
//! ranks connect to it, prove that they run as the same user and know the job's secret, and receive
//! the file. Then the socket closes.

#![deny(clippy::arithmetic_side_effects)]

use super::PartPlan;
use crate::{
    admission,
    endpoint::Endpoint,
    job::{Control, Job, Plan, State, holder::Holder},
    memory::{Mapping, allocator::Pages, layout, mapping::MappedFile},
    part::internode::Internode,
    processes::{
        broker::{Broker, BrokerAddress, Connection},
        memory_file,
        start::monotonic_ns,
    },
    queues::config::QueueOptions,
};
use core::{sync::atomic::Ordering::Relaxed, time::Duration};
use rdma_fabric::{FabricError, Rank, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{os::fd::OwnedFd, sync::Arc, thread, time::Instant};

/// The name of the file.
const FILE_NAME: &str = "onesided-part";
/// Bytes of the private mapping that represents the segments of all other nodes: the line of
/// protocol words with the job's abort flag.
const ABSENT: usize = layout::CACHE_LINE;
const _: () = assert!(layout::LOST < ABSENT && layout::WATCH < ABSENT);
/// How long a rank tries to connect to the socket of its node's first rank.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long the first rank's socket stays open for the others, which may compute before they attach.
const HANDING_OUT: Duration = Duration::from_secs(600);

impl PartPlan {
    /// Returns the plan of the whole job.
    fn job(&self) -> Result<Plan> {
        let age = u64::try_from(self.age.as_nanos()).unwrap_or(u64::MAX);
        let start_ns = monotonic_ns().saturating_sub(age).max(1);
        let plan = Plan { ranks: self.ranks, ranks_per_node: self.ranks, heap_bytes: self.segment_bytes, start_ns };
        let wrong = |problem| Err(FabricError::setting("ranks of this node", problem));
        let ascending = self.local.windows(2).all(|two| two[0] < two[1]);
        if !ascending || !self.local.contains(&self.me) {
            return wrong("must be in order, and this one among them");
        }
        if self.local.last().is_none_or(|last| last.index() >= self.ranks) {
            return wrong("must be ranks of the job");
        }
        plan.checked()
    }

    /// Returns the offset in the file of this node's `index`-th segment or, for one past the last
    /// one, of the mirrors. The file's length must have been found to fit.
    fn segment_at(plan: &Plan, index: usize) -> usize {
        plan.part_bytes(index).unwrap_or(usize::MAX)
    }

    /// Returns the offset in the file of the mirrors of this node's `index`-th rank, likewise.
    fn mirrors_at(&self, plan: &Plan, index: usize) -> usize {
        let before = index.saturating_mul(layout::GATE_MIRRORS);
        Self::segment_at(plan, self.local.len()).saturating_add(before)
    }

    fn file_bytes(&self, plan: &Plan) -> Result<usize> {
        let most = isize::MAX as usize / 2;
        let mirrors = self.local.len().checked_mul(layout::GATE_MIRRORS);
        let bytes = plan.part_bytes(self.local.len()).zip(mirrors).and_then(|(all, mirrors)| all.checked_add(mirrors));
        let bytes = bytes.and_then(|bytes| bytes.checked_next_multiple_of(layout::PAGE)).filter(|bytes| *bytes <= most);
        bytes.ok_or_else(|| FabricError::setting("segment_bytes", "must not be so large that it can't be mapped"))
    }
}

/// Creates the file of a node's part of the job, and passes it to the node's other ranks under this
/// `number` and `secret`.
pub(super) fn lead(part: &PartPlan, number: u64, secret: u64) -> Result<Endpoint> {
    let plan = part.job()?;
    let (len, control_bytes) = (part.file_bytes(&plan)?, plan.control_bytes());
    admission::of_part(&plan, part.local.len(), len as u64)
        .map_err(|error| FabricError::setting("ranks of this node", error.to_string()))?;
    let file = memory_file::create(FILE_NAME, len, control_bytes)?;
    let no_pages = || FabricError::System { call: &"fallocate", errno: rustix::io::Errno::NOSPC.raw_os_error() };
    for index in 0..part.local.len() {
        let at = PartPlan::segment_at(&plan, index);
        memory_file::reserve(&file, at, layout::RESERVED).map_err(|error| error.unwrap_or_else(no_pages))?;
    }
    let mirrors = part.local.len().saturating_mul(layout::GATE_MIRRORS);
    memory_file::reserve(&file, part.mirrors_at(&plan, 0), mirrors).map_err(|error| error.unwrap_or_else(no_pages))?;
    let whole = MappedFile::new(&file, len)?;
    let control = Control::create(Mapping::of_file(&whole, 0, control_bytes, control_bytes), &plan);
    let set = |at, value: u64| control.word(at).store(value, Relaxed);
    set(layout::OVERSUBSCRIBED, part.oversubscribed.into());
    set(layout::QUEUE_OPTIONS, QueueOptions::default().to_bits()?);
    set(layout::JOB, number);
    for rank in (0..plan.ranks).filter(|rank| !part.local.contains(&Rank::new(*rank as u32))) {
        control.advance(rank, State::Running);
    }
    let file = Arc::new(file);
    if part.local.len() > 1 {
        hand_out(BrokerAddress::new(number, secret).listen()?, part, file.clone())?;
    }
    let file = file.try_clone().map_err(|error| refused_copy(&error))?;
    attach(part, plan, (control, &whole), file)
}

/// Fetches the file of a node's part of the job from the node's first rank, as long as `goes_on`
/// returns no error.
pub(super) fn join(part: &PartPlan, number: u64, secret: u64, goes_on: &dyn Fn() -> Result<()>) -> Result<Endpoint> {
    let plan = part.job()?;
    let first = part.local.first().copied().unwrap_or(part.me);
    let (file, _) = fetch(BrokerAddress::new(number, secret), part.me, first, goes_on)?;
    let len = part.file_bytes(&plan)?;
    memory_file::examine(&file, len).map_err(|what| FabricError::setting("memory file of the node", what))?;
    let whole = MappedFile::new(&file, len)?;
    let control_bytes = plan.control_bytes();
    let control = Mapping::of_file(&whole, 0, control_bytes, control_bytes);
    let (control, plan) = Control::open(control, plan.ranks, plan.heap_bytes)?;
    attach(part, plan, (control, &whole), file)
}

fn attach(
    part: &PartPlan,
    plan: Plan,
    (control, whole): (Control, &Arc<MappedFile>),
    file: OwnedFd,
) -> Result<Endpoint> {
    if !control.take(part.me.index(), Holder::Somebody) {
        return Err(FabricError::RankTaken { rank: part.me });
    }
    let at = |index: usize| PartPlan::segment_at(&plan, index);
    let absent = Mapping::in_process(ABSENT, ABSENT)?;
    let segment = |rank: usize| match part.local.iter().position(|local| local.index() == rank) {
        Some(index) => Mapping::of_file(whole, at(index), plan.segment_bytes(), layout::HEAP),
        None => absent.clone(),
    };
    let segments = (0..plan.ranks).map(segment).collect();
    let mirrors_of = |index: usize| {
        Mapping::of_file(whole, part.mirrors_at(&plan, index), layout::GATE_MIRRORS, layout::GATE_MIRRORS)
    };
    let mirrors = part.local.iter().enumerate().map(|(index, rank)| (*rank, mirrors_of(index))).collect();
    let age = Duration::from_nanos(monotonic_ns().saturating_sub(plan.start_ns));
    let start = Instant::now().checked_sub(age).unwrap_or_else(Instant::now);
    let index = part.local.iter().position(|local| *local == part.me).unwrap_or(0);
    let pages = Pages::File { file, heap_at: at(index).saturating_add(layout::HEAP) };
    let internode = Internode::new(plan.ranks, &part.local, mirrors);
    let job = Job::new(control, plan, segments, start).of_part(internode);
    Endpoint::new(Arc::new(job), part.me, pages)
}

/// Serves the file to the node's other ranks, on a separate thread, until each of them has it.
fn hand_out(mut broker: Broker, part: &PartPlan, file: Arc<OwnedFd>) -> Result<()> {
    let begun = Instant::now();
    let others = part.local.len().saturating_sub(1);
    broker.deposit(part.local[0], file.try_clone().map_err(|error| refused_copy(&error))?);
    let serve = move || {
        while broker.fetched() < others && begun.elapsed() < HANDING_OUT {
            let mut sources: Vec<PollFd<'_>> =
                broker.files().map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
            let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            if poll(&mut sources, Some(&timeout)).is_err() {
                continue;
            }
            let ready: Vec<bool> = sources.iter().map(|source| !source.revents().is_empty()).collect();
            drop(sources);
            broker.serve(ready);
        }
    };
    let spawned = thread::Builder::new().name("hands out memory".to_owned()).spawn(serve);
    let error = |error: std::io::Error| FabricError::System {
        call: &"pthread_create",
        errno: error.raw_os_error().unwrap_or(0),
    };
    spawned.map(drop).map_err(error)
}

/// Requests the file until it is available, or until `goes_on` returns an error.
fn fetch(address: BrokerAddress, me: Rank, first: Rank, goes_on: &dyn Fn() -> Result<()>) -> Result<(OwnedFd, u64)> {
    let begun = Instant::now();
    loop {
        goes_on()?;
        let fetched = address.connect(me).and_then(|connection: Connection| connection.fetch(first));
        match fetched {
            Ok(Some(found)) => return Ok(found),
            _ if begun.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(2)),
            Ok(None) => return Err(FabricError::PeerLost { rank: first }),
            Err(error) => return Err(error),
        }
    }
}

fn refused_copy(error: &std::io::Error) -> FabricError {
    FabricError::System { call: &"dup", errno: error.raw_os_error().unwrap_or(0) }
}
