//! The table of all locks in `docs/locks.md`: what each says of itself, what an idle pair costs, how it takes a death, and what speaks for it.
//!
//! Costs are those of a rank on another node than the home's, on the modelled FX100; they come out the same each time.

#[path = "it/page.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod page;
#[path = "../crates/rma-lock/tests/which/mod.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod which;

use page::Part;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{Aggregated, AggregatedOptions, Guard, Levels, Lock, RmaLock, RpLock};
use std::{path::Path, time::Duration};
use tofu2_sim::virt::{Job, OpCounts, Platform};
use which::{Which, with_lock};

use Listed::Plain;

const PART: Part = Part { page: "docs/locks.md", name: "table of locks" };
const COMMAND: &str = "CONFORMANCE_WRITE=1 cargo test --test lock_table";

const RANKS: usize = 4;
const HOME: Rank = Rank::new(0);
/// On the other node.
const MEASURES: usize = 2;
const BEGIN: Time = Time::from_picos(1_000_000_000);

/// A lock of the table.
#[derive(Clone, Copy, Debug)]
enum Listed {
    Plain(Which),
    /// [`Which::Nodes`], with more levels.
    Tree,
}

/// Which lock, and what is known of it besides what it says.
struct Known {
    lock: Listed,
    name: &'static str,
    /// When a member is lost that is not the home.
    loss: &'static str,
    /// Where it is explored, and what else.
    evidence: &'static [&'static str],
}

const WAITS_END: &str = "waits end with `PeerLost`";
const UNNOTICED: &str = "a lost holder is waited for until a deadline";

const QUEUED: &[&str] = &["tests/delivery/queued.rs", "tests/loom/queued.rs", "tests/threads.rs"];
const BACK_OFF: &[&str] = &["tests/delivery/back_off.rs", "tests/back_off.rs", "tests/threads.rs"];
const NODES: &[&str] = &["tests/delivery/nodes.rs", "tests/loom/nodes.rs", "tests/nodes.rs"];

const LOCKS: [Known; 10] = [
    Known {
        lock: Plain(Which::ReaderPreference),
        name: "`RpLock`",
        loss: WAITS_END,
        evidence: &["tests/delivery/queued.rs", "tests/delivery/mortal.rs", "tests/loom/rp.rs", "tests/threads.rs"],
    },
    Known { lock: Plain(Which::Packed), name: "`PackedLock`", loss: WAITS_END, evidence: QUEUED },
    Known { lock: Plain(Which::WritersFirst), name: "`WritersFirstLock`", loss: WAITS_END, evidence: QUEUED },
    Known { lock: Plain(Which::Fair), name: "`FairLock`", loss: WAITS_END, evidence: QUEUED },
    Known { lock: Plain(Which::BackOff), name: "`BackOffLock`", loss: UNNOTICED, evidence: BACK_OFF },
    Known { lock: Plain(Which::TwoLevels), name: "`WindowLock`", loss: UNNOTICED, evidence: BACK_OFF },
    Known { lock: Plain(Which::Nodes), name: "`Aggregated<RpLock>`", loss: WAITS_END, evidence: NODES },
    Known { lock: Listed::Tree, name: "the same in a tree", loss: WAITS_END, evidence: NODES },
    Known {
        lock: Plain(Which::Indicator),
        name: "`IndicatorLock<RpLock>`",
        loss: WAITS_END,
        evidence: &["tests/delivery/indicator.rs", "tests/loom/nodes.rs", "tests/threads.rs"],
    },
    Known {
        lock: Plain(Which::Recoverable),
        name: "`RecoverableLock`",
        loss: "goes on; `Torn` after a writer",
        evidence: &[
            "tests/delivery/recoverable.rs",
            "tests/delivery/recovery_steps.rs",
            "tests/recovery",
            "tests/killed",
        ],
    },
];

/// What a lock says of itself.
#[derive(Clone, Debug)]
struct Says {
    fairness: String,
    home_words: usize,
    bytes: usize,
    /// Picoseconds of all pairs.
    took: u64,
}

/// The rank that measures takes the lock `pairs` times, when all others have nothing to do with it.
async fn idle(fabric: Fabric, lock: Listed, writes: bool, pairs: u32) -> ProgramResult<Says> {
    match lock {
        Plain(which) => with_lock!(which, measure(fabric, None, writes, pairs)),
        Listed::Tree => {
            let options = AggregatedOptions { levels: Levels::Tree { radix: 2 }, lock: () };
            measure::<Aggregated<RpLock>>(fabric, Some(options), writes, pairs).await
        }
    }
}

async fn measure<L: RmaLock>(
    fabric: Fabric,
    options: Option<L::Options>,
    writes: bool,
    pairs: u32,
) -> ProgramResult<Says> {
    let options = options.unwrap_or_default();
    let bytes = L::bytes(&options, RANKS);
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    fabric.sleep_until(BEGIN).await;
    let begun = fabric.now();
    for _ in 0..if fabric.rank().index() == MEASURES { pairs } else { 0 } {
        if writes {
            lock.write().await?.release().await?;
        } else {
            lock.read().await?.release().await?;
        }
    }
    let took = fabric.now().picos_since(begun);
    fabric.sleep_until(BEGIN + Duration::from_millis(10)).await;
    Ok(Says { fairness: format!("{:?}", <L as Lock>::FAIRNESS), home_words: L::HOME_WORDS, bytes, took })
}

/// Operations of an idle pair, in words, and its time.
fn pair(lock: Listed, writes: bool) -> (Says, String, f64) {
    const PAIRS: u32 = 10;
    let run = |pairs| {
        let job = Job::new(&Platform::fx100(), RANKS).ranks_per_node(2).count_ops(true);
        let run = job
            .run(&async |fabric| idle(fabric, lock, writes, pairs).await)
            .unwrap_or_else(|error| panic!("{lock:?}: {error}"));
        let ops = run.ops_by_rank.expect("they were asked for")[MEASURES];
        (run.outs[MEASURES].clone(), ops)
    };
    // The first pairs may set something up.
    let ((before, few), (after, many)) = (run(PAIRS), run(2 * PAIRS));
    let each = |count: fn(&OpCounts) -> u64, word: &str| {
        let (all, rest) =
            ((count(&many) - count(&few)) / u64::from(PAIRS), (count(&many) - count(&few)) % u64::from(PAIRS));
        assert_eq!(rest, 0, "{lock:?}: pairs differ");
        (all > 0).then(|| format!("{all} {word}{}", if all == 1 { "" } else { "s" }))
    };
    let ops = [each(|ops| ops.atomics, "atomic"), each(|ops| ops.puts, "put"), each(|ops| ops.gets, "get")];
    let micros = (after.took - before.took) as f64 * 1e-6 / f64::from(PAIRS);
    (before, ops.into_iter().flatten().collect::<Vec<_>>().join(", "), micros)
}

#[test]
fn the_page_has_all_locks() {
    let mut table = String::from(
        "| lock | fairness | words at home | bytes at each of 4 ranks | idle shared pair | µs | idle exclusive pair | µs | when another rank than the home is lost | evidence |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for Known { lock, name, loss, evidence } in LOCKS {
        let (says, shared, shared_micros) = pair(lock, false);
        let (_, exclusive, exclusive_micros) = pair(lock, true);
        for place in evidence {
            let there = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/rma-lock").join(place);
            assert!(there.exists(), "{name}: there is no {place}");
        }
        let evidence: Vec<_> = evidence.iter().map(|place| place.trim_start_matches("tests/")).collect();
        table += &format!(
            "| {name} | {} | {} | {} | {shared} | {shared_micros:.2} | {exclusive} | {exclusive_micros:.2} | {loss} | {} |\n",
            says.fairness,
            says.home_words,
            says.bytes,
            evidence.join(", "),
        );
    }
    PART.settle(&table, COMMAND);
}
