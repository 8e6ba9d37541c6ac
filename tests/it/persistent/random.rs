//! Random graphs with random blocks, compared with the oracle, in all forms, on threads and in
//! virtual time.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `PERSISTENT_SEED` | seed of all random choices; printed, on failure with the smallest failing case | from the clock |
//! | `PERSISTENT_CASES` | graphs for each fabric | 24 |

use super::{
    FORMS,
    areas::Cut,
    exchange::{Exchange, Sizes, Spec, all, busy, place},
    shapes::Shape,
};
use crate::number;
use checks::watchdog::watch_test;
use onesided::{
    ProgramResult,
    prdma::{Aggregation, EndOfData, Options},
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use rdma_fabric::Fabric;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tofu2_sim::{
    shm,
    virt::{Job, Platform},
};

/// A case that was drawn.
#[derive(Clone, Debug)]
struct Drawn {
    /// The destinations of each member.
    destinations: Vec<Vec<usize>>,
    form: usize,
    direct_blocks: u32,
    aggregation: Aggregation,
    end: EndOfData,
    shared: bool,
    iterations: u64,
    /// The seed of sizes, blocks and delays, and of the simulator.
    seed: u64,
}

impl Drawn {
    fn spec(&self) -> Spec {
        let form = FORMS[self.form];
        Spec {
            sizes: Sizes::Mixed(self.seed),
            sends: Cut::Drawn(self.seed ^ 1),
            receives: Cut::Drawn(self.seed ^ 2),
            options: Options {
                direct_blocks: self.direct_blocks,
                aggregation: self.aggregation,
                end: self.end,
                ..Options::form(form)
            },
            shared: self.shared,
            ..Spec::new(Shape::graph(&self.destinations), form)
        }
    }
}

async fn random(fabric: Fabric, drawn: Drawn) -> ProgramResult<()> {
    let (me, _) = place(&fabric);
    let spec = drawn.spec();
    let mut hood = all(&fabric, &spec.shape).await?;
    let mut exchange = Exchange::new(&mut hood, &spec).await?;
    for k in 0..drawn.iterations {
        let dice = super::areas::draw(drawn.seed, me, k as usize);
        busy(&fabric, Duration::from_micros(dice % 4 * (dice >> 8) % 20)).await;
        exchange.start().await?;
        busy(&fabric, Duration::from_micros((dice >> 16) % 4 * (dice >> 24) % 20)).await;
        exchange.wait().await?;
    }
    Ok(hood.group_mut().barrier().await?)
}

/// Draws how blocks travel by node: half of the cases do not; in the others some blocks travel
/// alone, and some gaps are not bridged.
fn aggregation() -> impl Strategy<Value = Aggregation> {
    let some = (prop_oneof![Just(60), Just(u64::MAX)], prop_oneof![Just(0), Just(100), Just(1024)]);
    prop_oneof![Just(Aggregation::None), some.prop_map(|(longest, gap)| Aggregation::ByNode { longest, gap })]
}

/// Draws one to six members, one to three of them on a node; loops, duplicates and members without
/// edges are as likely as anything else.
fn drawn() -> impl Strategy<Value = Drawn> {
    let graph = (1usize..=6).prop_flat_map(|members| {
        let some = prop::collection::vec(0..members, 0..5);
        prop::collection::vec(prop_oneof![1 => Just(vec![]), 4 => some], members)
    });
    let numbers =
        (0..FORMS.len(), prop_oneof![Just(1), Just(4), Just(12), Just(500)], any::<bool>(), 1u64..6, any::<u64>());
    let end = prop_oneof![Just(EndOfData::WithData), Just(EndOfData::Separate)];
    let drawn = (graph, numbers, aggregation(), end);
    drawn.prop_map(|(destinations, (form, direct_blocks, shared, iterations, seed), aggregation, end)| Drawn {
        destinations,
        form,
        direct_blocks,
        aggregation,
        end,
        shared,
        iterations,
        seed,
    })
}

fn all_of(run: impl Fn(&Drawn) -> Result<(), String>) {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
    let seed = number("PERSISTENT_SEED").unwrap_or_else(clock);
    println!("PERSISTENT_SEED={seed}");
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let cases = number("PERSISTENT_CASES").map_or(24, |cases| cases as u32);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let ended = runner.run(&drawn(), |drawn| {
        watch_test();
        run(&drawn).map_err(TestCaseError::fail)
    });
    ended.unwrap_or_else(|failure| panic!("PERSISTENT_SEED={seed}: {failure}"));
}

fn ends<T, E: ToString>(ended: Result<T, E>) -> Result<(), String> {
    ended.map(drop).map_err(|error| error.to_string())
}

#[test]
fn in_virtual_time() {
    all_of(|drawn| {
        let job = Job::new(&Platform::fx100(), drawn.destinations.len()).seed(drawn.seed);
        let job = job.jitter(Duration::from_micros(3)).shuffle_ties(true).ranks_per_node(1 + (drawn.seed % 3) as u32);
        ends(job.run(&async |fabric| random(fabric, drawn.clone()).await))
    });
}

#[test]
fn on_threads() {
    all_of(|drawn| {
        let threads = shm::Threads::new(drawn.destinations.len()).ranks_per_node(1 + (drawn.seed % 3) as usize);
        ends(threads.run(&async |fabric| random(fabric, drawn.clone()).await))
    });
}

/// Exchanges with an oracle that is wrong about one byte.
async fn mistaken(fabric: Fabric, drawn: Drawn) -> ProgramResult<()> {
    let spec = drawn.spec();
    let mut hood = all(&fabric, &spec.shape).await?;
    let mut exchange = Exchange::new(&mut hood, &spec).await?;
    exchange.data.mistake();
    exchange.steps(drawn.iterations).await
}

/// A single wrong byte is detected.
#[test]
fn the_oracle_notices() {
    let destinations = vec![vec![1, 1, 0], vec![0, 0, 1]];
    let drawn = Drawn {
        destinations,
        form: 0,
        direct_blocks: 12,
        aggregation: Aggregation::by_node(),
        end: EndOfData::WithData,
        shared: true,
        iterations: 2,
        seed: 4,
    };
    let told = ends(Job::new(&Platform::fx100(), 2).run(&async |fabric| mistaken(fabric, drawn.clone()).await))
        .expect_err("the oracle is wrong");
    assert!(told.contains("byte"), "{told}");
}
