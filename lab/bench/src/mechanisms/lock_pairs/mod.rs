//! The cost of a lock/unlock pair over shared memory, between threads.
//!
//! First a remote idle lock whose home is asleep outside the fabric: the fastest of many batches,
//! three million pairs in all. Then sixteen ranks that all lock exclusively, compared with the same
//! number of threads on a mutex of the standard library. All locks are measured in the same way.

mod pair;

use crate::{
    output::{Context, Output, Steps},
    sheet::{Entry, Sheet, ns},
};
use clap::Args;
use pair::{CONTENDED_PAIRS, CONTENDERS, Measured, PAIRS, Pair, by_policy, contended_mutex};
use rma_lock::{
    Policy,
    locks::{BackOffLock, FairLock, PackedLock, RpLock, WritersFirstLock},
};
use std::{
    error::Error,
    process::ExitCode,
    sync::{Arc, Barrier},
    time::Duration,
};
use tofu2_sim::shm::Threads;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A hundredth of the pairs: a smoke test.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let parts = if options.quick { 100 } else { 1 };
    options.output.sheets(Context::new("lock-pairs", "threads", options.quick), |steps| {
        let batches = 300 / parts;
        let contended = |steps: &mut Steps| contended(CONTENDED_PAIRS / parts, steps);
        Ok(vec![limits(batches)?, idle(batches, steps)?, policies(batches, steps)?, contended(steps)?])
    })
}

fn all() -> [Measured; 5] {
    [
        Measured::of::<RpLock>(),
        Measured::of::<PackedLock>(),
        Measured::of::<WritersFirstLock>(),
        Measured::of::<FairLock>(),
        Measured::of::<BackOffLock>(),
    ]
}

fn limits(batches: u32) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new("Limits of a pair", ["limit", "time"]);
    for pair in [Pair::Limit, Pair::LimitPublished] {
        sheet.row([format!("{pair:?}").into(), ns((all()[0].alone)(pair, batches)?)]);
    }
    Ok(sheet)
}

fn idle(batches: u32, steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let pairs = [Pair::Shared, Pair::Exclusive, Pair::Dropped, Pair::Put, Pair::Stored, Pair::Copied];
    let columns = ["lock".to_owned()].into_iter().chain(pairs.iter().map(|pair| format!("{pair:?}")));
    let mut sheet = Sheet::new(format!("A pair by one rank, fastest of {batches} batches of {PAIRS}"), columns);
    steps.expect(all().len());
    for lock in all() {
        steps.begin(lock.name);
        let mut row = vec![Entry::from(lock.name)];
        for pair in pairs {
            row.push(ns((lock.alone)(pair, batches)?));
        }
        sheet.row(row);
    }
    Ok(sheet)
}

fn policies(batches: u32, steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let mut sheet = Sheet::new("A pair of `RwLock` by one rank", ["policy", "Shared", "Exclusive"]);
    steps.expect(4);
    for policy in [Policy::ReaderPreference, Policy::Fair, Policy::WritersFirst, Policy::Recoverable] {
        steps.begin(format_args!("{policy:?}"));
        let mut row = vec![Entry::from(format!("{policy:?}"))];
        for pair in [Pair::Shared, Pair::Exclusive] {
            let asleep = Arc::new(Barrier::new(2));
            let program = async |fabric| by_policy(fabric, policy, pair, batches, asleep.clone()).await;
            row.push(ns(Threads::new(2).run(&program)?[0]));
        }
        sheet.row(row);
    }
    Ok(sheet)
}

fn contended(pairs: u32, steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let each = |time: Duration| ns(time.as_nanos() as f64 / (CONTENDERS as f64 * f64::from(pairs)));
    let title = format!("A pair of {CONTENDERS} ranks or threads, exclusive, in three rounds");
    let mut sheet = Sheet::new(title, ["lock", "first", "second", "third"]);
    let mut rows: Vec<Vec<Entry>> = all().iter().map(|lock| vec![lock.name.into()]).collect();
    let mut mutex = vec![Entry::from("mutex")];
    steps.expect(3);
    for round in 1..=3 {
        steps.begin(format_args!("{CONTENDERS} ranks, round {round}"));
        for (lock, row) in all().iter().zip(&mut rows) {
            row.push(each((lock.contended)(pairs)?));
        }
        mutex.push(each(contended_mutex(pairs)));
    }
    rows.into_iter().chain([mutex]).for_each(|row| sheet.row(row));
    Ok(sheet)
}
