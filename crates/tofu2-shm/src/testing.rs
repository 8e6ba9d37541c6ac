//! Helpers for unit tests of shared memory: jobs of threads, repeatable randomness, and exploration
//! with loom.

use super::{
    endpoint::Endpoint,
    job::{Job, Plan},
    memory::allocator::Pages,
};
use rdma_fabric::{Fabric, Rank};
use std::sync::Arc;

/// Returns a job whose ranks are threads, each on a separate node.
pub(crate) fn job(ranks: u32, heap_bytes: usize) -> Arc<Job> {
    let plan = Plan { ranks: ranks as usize, ranks_per_node: 1, heap_bytes, start_ns: 0 };
    Job::of_threads(plan.checked().unwrap()).unwrap()
}

/// Returns the fabric of a rank of the job. To be called once for each rank.
pub(crate) fn fabric(job: &Arc<Job>, rank: u32) -> Fabric {
    Endpoint::new(job.clone(), Rank::new(rank), Pages::Private).unwrap().fabric()
}

/// Marsaglia's xorshift: its draws depend only on the seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// Takes the seed from `ONESIDED_GARBAGE_SEED`, or the clock, and prints it.
    pub(crate) fn seeded() -> Self {
        let given = std::env::var("ONESIDED_GARBAGE_SEED").ok().and_then(|text| text.parse().ok());
        let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |age| age.as_nanos() as u64 | 1);
        let seed = given.unwrap_or_else(now);
        println!("ONESIDED_GARBAGE_SEED={seed}");
        Chance(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        ((self.next() >> 16) % limit as u64) as usize
    }

    /// Returns one of `all`.
    pub(crate) fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Runs `rank` as each rank of `job` on a separate thread, with its fabric and its random numbers.
/// None may hang or panic.
pub(crate) fn all_end(job: &Arc<Job>, rank: impl Fn(u32, Fabric, Chance) + Clone + Send + 'static) {
    let guard = core::time::Duration::from_secs(if cfg!(miri) { 600 } else { 60 });
    let seed = Chance::seeded().0;
    let (ended, all) = std::sync::mpsc::channel();
    let ranks = job.plan.ranks as u32;
    for number in 0..ranks {
        let (fabric, ended, rank) = (fabric(job, number), ended.clone(), rank.clone());
        std::thread::spawn(move || {
            rank(number, fabric, Chance(seed.wrapping_add(u64::from(number) << 32) | 1));
            let _ = ended.send(());
        });
    }
    drop(ended);
    for _ in 0..ranks {
        // A panic closes the channel without a message.
        assert_eq!(all.recv_timeout(guard), Ok(()), "a rank hangs, or panicked");
    }
}

/// Runs `test` in every interleaving with at most `preemptions` preemptions, in executions of at
/// most `branches` branches. Returns and prints the number of executions.
#[cfg(not(miri))]
pub(crate) fn explore(preemptions: usize, branches: usize, test: impl Fn() + Sync + Send + 'static) -> usize {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let executions = Arc::new(AtomicUsize::new(0));
    let count = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = branches;
    builder.check(move || {
        count.fetch_add(1, SeqCst);
        test();
    });
    let executions = executions.load(SeqCst);
    println!("{executions} executions");
    executions
}

/// Tests of mutants: each must end with the panic given for it.
#[cfg(not(miri))]
macro_rules! found {
    ($($(#[$doc:meta])* $test:ident: $panic:literal, $run:expr;)*) => {$(
        $(#[$doc])*
        #[test]
        #[should_panic(expected = $panic)]
        fn $test() {
            $run;
        }
    )*};
}

#[cfg(not(miri))]
pub(crate) use found;
