//! Connects the ranks of a job, which are threads of this process, and reports their losses.

use core::time::Duration;
use fabric_ofi::{
    Domain, Wanted,
    cluster::{AtomicsBy, Council, Member},
    providers,
};
use rdma_fabric::{Program, Rank};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Condvar, LazyLock, Mutex, OnceLock, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};
use tofu2_shm::{
    JobError,
    part::{Part, PartPlan},
};

/// Number of bytes that a rank can register, as in the other test beds.
const SEGMENT: usize = 64 << 20;
/// A hang guard.
const LONGEST: Duration = Duration::from_secs(60);

/// Time limit for the operations that are in flight when the program of a rank has ended.
const QUIESCE: Duration = Duration::from_secs(10);

/// A job.
#[derive(Debug)]
pub(crate) struct ThreadJob {
    members: OnceLock<Vec<Member>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    epoch: u64,
    drained: BTreeSet<u32>,
    lost: BTreeSet<u32>,
    ended: usize,
    aborted: Option<(Rank, String, i32)>,
}

/// The network between nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Network {
    /// libfabric's provider.
    pub(crate) provider: String,
    pub(crate) atomics: AtomicsBy,
    /// Whether the provider chooses keys, and addresses are virtual.
    pub(crate) provider_keys: bool,
    /// Maximum number of bytes of data that a put delivers to its target: InfiniBand has 4.
    pub(crate) data_bytes: usize,
    /// Whether a put completes when its bytes are visible, not when they are acknowledged.
    pub(crate) delivery: bool,
    /// Whether loads and stores of words are gets and puts, even if the provider may tear them.
    pub(crate) words: bool,
}

/// A rank's handle of its job, which owns the rank.
#[derive(Debug)]
struct RankHandle {
    job: Weak<ThreadJob>,
    me: Rank,
}

impl Council for RankHandle {
    fn drained(&self, epoch: u64) {
        let Some(job) = self.job.upgrade() else { return };
        let mut state = job.state.lock().unwrap();
        if state.epoch == epoch {
            state.drained.insert(self.me.number());
            job.changed.notify_all();
        }
    }

    fn aborted(&self, text: &str, code: i32) {
        let Some(job) = self.job.upgrade() else { return };
        let mut state = job.state.lock().unwrap();
        let (rank, text, code) = state.aborted.get_or_insert((self.me, text.to_owned(), code)).clone();
        drop(state);
        for member in job.members.get().into_iter().flatten() {
            member.aborted(rank, &text, code);
        }
    }
}

fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u64::from(std::process::id()) << 32 | NEXT.fetch_add(1, Relaxed)
}

/// Returns a domain of a provider, over `lo` if there is such a domain. It is opened once and
/// shared by all jobs of the process, because opening all offers of a provider takes longer than
/// most jobs.
fn domain(network: &Network) -> Domain {
    domain_of(network).unwrap_or_else(|| panic!("no usable offer of {network:?}"))
}

/// Returns a domain as [`domain`] does; `None` if the provider can't be used here.
pub(crate) fn domain_of(network: &Network) -> Option<Domain> {
    static OPENED: LazyLock<Mutex<HashMap<Network, Option<Domain>>>> = LazyLock::new(Mutex::default);
    let mut opened = OPENED.lock().unwrap();
    opened.entry(network.clone()).or_insert_with(|| open(network)).clone()
}

fn open(Network { provider, atomics, provider_keys, data_bytes, delivery, words }: &Network) -> Option<Domain> {
    let wanted = match atomics {
        AtomicsBy::Cpu => Wanted::default().without_atomics(),
        AtomicsBy::Nic => Wanted::default(),
    };
    let wanted = wanted.provider(provider);
    let wanted = if *provider_keys { wanted.provider_keys() } else { wanted };
    let offers = |wanted: Wanted| providers(&wanted).unwrap_or_default();
    let over_lo = offers(wanted.clone().domain("lo")).into_iter().chain(offers(wanted));
    let usable = over_lo.into_iter().find(|offer| offer.provider == *provider && offer.is_usable());
    let mut usable = usable?;
    usable.data_bytes = usable.data_bytes.min(*data_bytes);
    usable.delivery &= delivery;
    usable.words |= words;
    assert!(!provider_keys || usable.provider_keys && usable.virtual_addresses, "{usable:?}");
    Some(Domain::open(&usable).unwrap())
}

impl ThreadJob {
    /// Runs `program` on `ranks` ranks, with `per_node` of them on each node.
    pub(crate) fn run<P: Program<Out = ()>>(
        network: &Network,
        ranks: usize,
        per_node: usize,
        program: &P,
        test: &str,
    ) -> Result<(), JobError> {
        let job = Arc::new(ThreadJob { members: OnceLock::new(), state: Mutex::default(), changed: Condvar::new() });
        let nodes: Arc<[u32]> = (0..ranks).map(|rank| (rank / per_node) as u32).collect();
        let numbers: Vec<u64> = (0..ranks).map(|_| number()).collect();
        let part = |rank: usize| {
            let first = rank / per_node * per_node;
            let local = (first..ranks.min(first + per_node)).map(|rank| Rank::new(rank as u32)).collect();
            let me = Rank::new(rank as u32);
            let age = Duration::from_millis(1);
            let plan = PartPlan { ranks, local, me, segment_bytes: SEGMENT, age, oversubscribed: true };
            let (number, secret) = (numbers[first], 7);
            if rank == first { Part::lead(&plan, number, secret) } else { Part::join(&plan, number, secret) }
        };
        let joined: Vec<(Member, Vec<u8>)> = (0..ranks)
            .map(|rank| {
                let handle = RankHandle { job: Arc::downgrade(&job), me: Rank::new(rank as u32) };
                let part = part(rank).unwrap();
                Member::join(part, domain(network), nodes.clone(), network.atomics, handle).unwrap()
            })
            .collect();
        let (members, contacts): (Vec<Member>, Vec<_>) = joined.into_iter().map(|(m, c)| (m, Some(c))).unzip();
        members.iter().for_each(|member| member.connect(&contacts).unwrap());
        job.members.set(members).unwrap();
        let members = job.members.get().unwrap();
        let ends: Vec<Result<(), JobError>> = thread::scope(|scope| {
            let threads: Vec<_> = members
                .iter()
                .map(|member| {
                    let (job, nodes) = (job.clone(), ranks);
                    scope.spawn(move || {
                        let with_shutdown = member.with_shutdown(program, QUIESCE);
                        let end = member.part().run(member.fabric(), &with_shutdown);
                        member.quiesce(QUIESCE);
                        let rank = member.fabric().rank();
                        match &end {
                            Ok(()) => job.left(rank, nodes),
                            Err(_) => job.lost(rank, nodes),
                        }
                        end
                    })
                })
                .collect();
            let begun = Instant::now();
            while job.state.lock().unwrap().ended < ranks {
                if begun.elapsed() > LONGEST {
                    eprintln!("{test}, {ranks} ranks: hangs: {:?}", job.state.lock().unwrap());
                    job.members.get().into_iter().flatten().for_each(|member| eprintln!("{member:?}"));
                    std::process::abort();
                }
                thread::sleep(Duration::from_millis(1));
            }
            threads.into_iter().map(|thread| thread.join().expect("panics are caught")).collect()
        });
        if let Some((rank, text, code)) = job.state.lock().unwrap().aborted.clone() {
            return Err(JobError::Aborted { rank, text, code });
        }
        let first = job.state.lock().unwrap().lost.first().copied();
        match first {
            None => ends.into_iter().collect(),
            Some(_) => Err(ends.into_iter().find_map(Result::err).expect("a lost rank has an error")),
        }
    }

    fn others(&self, rank: Rank) -> impl Iterator<Item = &Member> {
        self.members.get().into_iter().flatten().filter(move |member| member.fabric().rank() != rank)
    }

    fn left(&self, rank: Rank, _ranks: usize) {
        self.others(rank).for_each(|member| member.left(rank));
        self.state.lock().unwrap().ended += 1;
    }

    fn lost(&self, rank: Rank, ranks: usize) {
        let mut state = self.state.lock().unwrap();
        if state.aborted.is_some() {
            state.ended += 1;
            return;
        }
        state.lost.insert(rank.number());
        state.epoch += 1;
        state.drained.clear();
        let (epoch, lost) = (state.epoch, state.lost.clone());
        drop(state);
        let lost: Vec<Rank> = lost.into_iter().map(Rank::new).collect();
        let survives = |member: &&Member| !lost.contains(&member.fabric().rank());
        let survivors: Vec<&Member> = self.others(rank).filter(survives).collect();
        survivors.iter().for_each(|member| member.drain(epoch, &lost));
        let mut state = self.state.lock().unwrap();
        while state.epoch == epoch && state.drained.len() < survivors.len() {
            state = self.changed.wait_timeout(state, Duration::from_millis(100)).unwrap().0;
        }
        if state.epoch == epoch {
            drop(state);
            let mut contacts = vec![None; ranks];
            for member in &survivors {
                contacts[member.fabric().rank().index()] = Some(member.reopen().unwrap());
            }
            survivors.iter().for_each(|member| member.connect(&contacts).unwrap());
            survivors.iter().for_each(|member| member.resume(&lost));
            state = self.state.lock().unwrap();
        }
        state.ended += 1;
    }
}
