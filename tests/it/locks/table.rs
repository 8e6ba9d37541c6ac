//! The table of all locks in `docs/evidence/lock-table.md`: the properties that each reports, the
//! cost of an idle pair, the effect of a death, and the evidence for it.
//!
//! Costs are those of a rank on a node other than the home's, on the modelled FX100, and are
//! deterministic.

use crate::page::Part;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{Lock, RwLock, locks::LockKind, with_lock};
use std::{path::Path, time::Duration};
use tofu2_sim::virt::{Job, OpCounts, Platform};

const PART: Part = Part { page: "docs/evidence/lock-table.md", name: "table of locks" };
const COMMAND: &str = "CONFORMANCE_WRITE=1 cargo test --test it locks";

const RANKS: usize = 4;
const HOME: Rank = Rank::new(0);
/// The rank that measures, on the other node.
const MEASURES: usize = 2;
const BEGIN: Time = Time::from_picos(1_000_000_000);

const WAITS_END: &str = "waits end with `PeerLost`";
const UNNOTICED: &str = "a lost holder is waited for until a deadline";

/// Files under `crates` and `lab` that explore and otherwise test the lock.
const QUEUED: &[&str] =
    &["checks/src/lock/queued.rs", "rma-lock/tests/models/loom/jobs.rs", "rma-lock/tests/it/threads.rs"];
const BACK_OFF: &[&str] =
    &["checks/src/lock/back_off.rs", "rma-lock/tests/it/back_off.rs", "rma-lock/tests/it/threads.rs"];
const NODES: &[&str] =
    &["checks/src/lock/nodes.rs", "rma-lock/tests/models/loom/nodes.rs", "rma-lock/tests/it/nodes.rs"];

/// Each lock, the effect on it when a member other than the home is lost, and the files that
/// explore and otherwise test it.
const LOCKS: [(LockKind, &str, &[&str]); 11] = [
    (
        LockKind::ReaderPreference,
        WAITS_END,
        &[
            "checks/src/lock/queued.rs",
            "checks/src/lock/crashes.rs",
            "rma-lock/tests/models/loom/jobs.rs",
            "rma-lock/tests/it/threads.rs",
        ],
    ),
    (LockKind::Packed, WAITS_END, QUEUED),
    (LockKind::Barging, WAITS_END, QUEUED),
    (LockKind::WritersFirst, WAITS_END, QUEUED),
    (LockKind::Fair, WAITS_END, QUEUED),
    (LockKind::BackOff, UNNOTICED, BACK_OFF),
    (LockKind::TwoLevels, UNNOTICED, BACK_OFF),
    (LockKind::ByNode, WAITS_END, NODES),
    (LockKind::Tree { radix: 2 }, WAITS_END, NODES),
    (
        LockKind::Indicator,
        WAITS_END,
        &["checks/src/lock/indicator.rs", "rma-lock/tests/models/loom/nodes.rs", "rma-lock/tests/it/threads.rs"],
    ),
    (
        LockKind::Recoverable,
        "goes on; `Torn` after a writer",
        &[
            "checks/src/lock/recoverable.rs",
            "checks/src/lock/recovery_mutants.rs",
            "rma-lock/tests/it/recovery",
            "rma-lock/tests/processes",
        ],
    ),
];

/// The properties that a lock reports, and its time.
#[derive(Clone, Debug)]
struct Says {
    fairness: String,
    home_words: usize,
    bytes: usize,
    /// The picoseconds of all pairs.
    took: u64,
}

/// Acquires the lock `pairs` times on the rank that measures, while no other rank uses it.
async fn idle(fabric: Fabric, kind: LockKind, writes: bool, pairs: u32) -> ProgramResult<Says> {
    let bytes = RwLock::bytes(&kind.into(), RANKS);
    let home_words = with_lock!(kind, L => <L as Lock>::HOME_WORDS);
    let lock = RwLock::symmetric_with(&fabric, HOME, kind.into()).await?;
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
    Ok(Says { fairness: format!("{:?}", kind.fairness()), home_words, bytes, took })
}

/// Returns the lock's properties, and the operations, in words, and microseconds of an idle pair.
fn pair(lock: LockKind, writes: bool) -> (Says, String, f64) {
    const PAIRS: u32 = 10;
    let run = |pairs| {
        let job = Job::new(&Platform::fx100(), RANKS).ranks_per_node(2).count_ops(true);
        let run = job
            .run(&async |fabric| idle(fabric, lock, writes, pairs).await)
            .unwrap_or_else(|error| panic!("{lock}: {error}"));
        let ops = run.ops_by_rank.expect("they were asked for")[MEASURES];
        (run.outs[MEASURES].clone(), ops)
    };
    // The first pairs may include one-time set-up.
    let ((before, few), (after, many)) = (run(PAIRS), run(2 * PAIRS));
    let each = |count: fn(&OpCounts) -> u64, word: &str| {
        let (all, rest) =
            ((count(&many) - count(&few)) / u64::from(PAIRS), (count(&many) - count(&few)) % u64::from(PAIRS));
        assert_eq!(rest, 0, "{lock}: pairs differ");
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
    for (lock, loss, evidence) in LOCKS {
        let name =
            format!("`{}`{}", lock.type_name(), if matches!(lock, LockKind::Tree { .. }) { " in a tree" } else { "" });
        let (says, shared, shared_micros) = pair(lock, false);
        let (_, exclusive, exclusive_micros) = pair(lock, true);
        for file in evidence {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let exists = ["crates", "lab"].iter().any(|folder| root.join(folder).join(file).exists());
            assert!(exists, "{name}: there is no {file}");
        }
        let short =
            |file: &&str| file.replace("rma-lock/tests/", "").replace("it/", "").replace("checks/src/lock/", "checks/");
        let evidence: Vec<_> = evidence.iter().map(short).collect();
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
