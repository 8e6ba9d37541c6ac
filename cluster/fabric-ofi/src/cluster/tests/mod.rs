//! Members in one process: races between their threads, and injected faults that must be detected.

mod commands;
mod confirm;
mod drain;
mod gates;
mod memory;
mod nic;
mod notices;
mod pinned;
mod split;
mod words;
mod written;

use super::{
    AtomicsBy, Council, Member,
    core::State,
    flight::{Flight, Job},
};
use crate::{Domain, Offer, Wanted, providers};
use core::time::Duration;
use rdma_fabric::{FabricError, Rank, Region};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};
use tofu2_shm::{
    block_on,
    part::{Part, PartPlan},
};

const SEGMENT: usize = 4 << 20;
/// A hang guard.
const LONG: Duration = Duration::from_secs(20);
/// An event that does not happen within this time is assumed never to happen.
const SHORT: Duration = Duration::from_millis(150);

/// The epochs for which a rank has reported its drain.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<Vec<u64>>>);

impl Council for Told {
    fn drained(&self, epoch: u64) {
        self.0.lock().unwrap().push(epoch);
    }

    fn aborted(&self, _: &str, _: i32) {}
}

impl Told {
    fn all(&self) -> Vec<u64> {
        self.0.lock().unwrap().clone()
    }
}

/// Ranks on different nodes.
struct Ranks {
    members: Vec<Arc<Member>>,
    told: Vec<Told>,
}

fn domain() -> Domain {
    domain_of(Wanted::default().without_atomics())
}

fn domain_of(wanted: Wanted) -> Domain {
    Domain::open(&offer(wanted)).unwrap()
}

fn offer(wanted: Wanted) -> Offer {
    let offers = providers(&wanted.provider("tcp;ofi_rxm").domain("lo")).unwrap();
    offers.into_iter().find(Offer::is_usable).expect("tcp;ofi_rxm over lo")
}

/// Returns a domain whose puts deliver at most this number of bytes of data to their targets.
fn domain_with_data(bytes: usize) -> Domain {
    let mut offer = offer(Wanted::default().without_atomics());
    offer.data_bytes = bytes;
    Domain::open(&offer).unwrap()
}

impl Ranks {
    fn new(ranks: usize) -> Self {
        Self::over(ranks, domain)
    }

    fn over(ranks: usize, domain: impl Fn() -> Domain) -> Self {
        Self::try_over(ranks, domain, AtomicsBy::Cpu).unwrap()
    }

    fn try_over(ranks: usize, domain: impl Fn() -> Domain, atomics: AtomicsBy) -> crate::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let nodes: Arc<[u32]> = (0..ranks as u32).collect();
        let join = |rank: u32| -> crate::Result<(Arc<Member>, Told, Option<Vec<u8>>)> {
            let me = Rank::new(rank);
            let age = Duration::from_millis(1);
            let plan = PartPlan { ranks, local: vec![me], me, segment_bytes: SEGMENT, age, oversubscribed: true };
            let number = u64::from(std::process::id()) << 32 | 1 << 31 | NEXT.fetch_add(1, Relaxed);
            let (part, told) = (Part::lead(&plan, number, 3).unwrap(), Told::default());
            let (member, contact) = Member::join(part, domain(), nodes.clone(), atomics, told.clone())?;
            Ok((Arc::new(member), told, Some(contact)))
        };
        let mut all = Ranks { members: Vec::new(), told: Vec::new() };
        let mut contacts = Vec::new();
        for joined in (0..ranks as u32).map(join) {
            let (member, told, contact) = joined?;
            all.members.push(member);
            all.told.push(told);
            contacts.push(contact);
        }
        all.members.iter().for_each(|member| member.connect(&contacts).unwrap());
        Ok(all)
    }

    fn with<T>(&self, rank: usize, work: impl FnOnce(&mut State) -> T) -> T {
        self.members[rank].net.with(work)
    }

    /// Allocates a region on one rank, and lets all others look it up.
    fn region(&self, rank: usize, bytes: usize) -> Region {
        let region = self.members[rank].fabric().alloc(bytes).unwrap();
        let others = self.members.iter().enumerate().filter(|(other, _)| *other != rank);
        others.for_each(|(_, member)| _ = member.fabric().remote_span::<u8>(self.at(rank, &region), bytes).unwrap());
        region
    }

    /// Ends the waits of a rank that the others consider lost, because no rank will answer it.
    fn kill(&self, rank: usize) {
        self.members[rank].aborted(Rank::new(rank as u32), "it is lost", 1);
    }

    fn at(&self, rank: usize, region: &Region) -> rdma_fabric::RemoteAddr {
        region.at(Rank::new(rank as u32), 0)
    }

    /// Starts an operation of one rank in a region of another rank, with a local region as the
    /// local memory. It completes in [`Ranks::over_now`]. Returns its id.
    fn in_flight(&self, rank: usize, to: (usize, &Region), own: Option<&Region>) -> u64 {
        let net = &self.members[rank].net;
        let (remote, _) = net.region(Rank::new(to.0 as u32), to.1.key()).unwrap();
        self.with(rank, |state| {
            let core = &mut state.core;
            let own = own.map(Region::key);
            let mut flight = Flight::new(to.0 as u32, Job::Put);
            (flight.remote, flight.own, flight.posted) = (Some(remote.clone()), own, true);
            let id = core.flights.add(flight);
            core.directory.enter(&remote, own);
            id
        })
    }

    fn over_now(&self, rank: usize, id: u64) {
        self.with(rank, |state| state.core.complete(id, Ok(crate::Brought::Nothing)));
    }
}

/// Waits until a condition holds; returns whether it did within [`LONG`].
fn becomes(so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while !so() {
        if begun.elapsed() > LONG {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Runs work that may block, on a separate thread; returns whether it finished within `time`, and
/// the handle to join later.
fn done_within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> (bool, thread::JoinHandle<T>) {
    let thread = thread::spawn(work);
    let begun = Instant::now();
    while !thread.is_finished() && begun.elapsed() < time {
        thread::sleep(Duration::from_millis(1));
    }
    (thread.is_finished(), thread)
}

fn network_error() -> FabricError {
    FabricError::System { call: &"libfabric", errno: 5 }
}
