//! The time from a holder's death until a waiting survivor is inside.
//!
//! No other survivor's CPU is needed: the home sleeps, one rank is stopped (SIGSTOP), one computes
//! without calling the fabric.

use crate::{
    checked::{Protected, Tally},
    job::{asked_number, launch},
};
use checks::killed::{Outcome, die};
use process_tests::table::publish;
use rdma_fabric::{Deps, Fabric, Group, ProgramResult, Rank};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::time::{Duration, Instant};

/// The number of deaths of each kind of holder.
const DEATHS: &str = "KILLED_DEATHS";
const WAITS: Rank = Rank::new(1);
const STOPPED: Rank = Rank::new(2);
const COMPUTES: Rank = Rank::new(3);
const HOLDS: Rank = Rank::new(4);
const RANKS: usize = 5;
/// The time to wait until the other ranks have reached their positions.
const SETTLED: Duration = Duration::from_millis(20);
const BUSY: Duration = Duration::from_millis(150);
/// The limit for the test; the goal for the median is 100 ms.
const SOON: Duration = Duration::from_secs(1);

/// Plays one rank's part; the waiting rank returns its waiting time in nanoseconds.
pub(crate) async fn play(fabric: Fabric, held: &str) -> ProgramResult<String> {
    let mut world = Group::world(&fabric).await?;
    let it = Protected::new(&fabric, &[HOLDS]).await?;
    let holds = fabric.rank() == HOLDS;
    let reader = if holds && held == "reader" { it.read().await? } else { None };
    let writer = if holds && held == "writer" { Some(it.write(&mut Tally::default()).await?) } else { None };
    if fabric.rank() == STOPPED {
        fabric.put_word(&it.message(WAITS, 1)?, getpid().as_raw_pid() as u64).await?;
        fabric.flush(WAITS).await?;
    }
    it.begin(&mut world, &[HOLDS]).await?;
    match fabric.rank() {
        WAITS => {
            let mut tally = Tally::default();
            let guard = it.write(&mut tally).await?;
            let now = fabric.now().as_picos();
            it.change().await?;
            it.writer_leaves(guard).await?;
            let stopped = Pid::from_raw(fabric.load(&it.told(1)?)? as i32).ok_or("no process")?;
            fabric.put_word(&it.message(STOPPED, 2)?, 1).await?;
            fabric.flush(STOPPED).await?;
            kill_process(stopped, Signal::CONT)?;
            let died = fabric.load(&it.told(0)?)?;
            return Ok(format!("{} {}", now.saturating_sub(died) / 1000, tally.torn));
        }
        STOPPED => {
            kill_process(getpid(), Signal::STOP)?;
            // All of its threads stop soon, but not immediately.
            fabric.wait_until(&it.told(2)?, Deps::One(WAITS), |told| told == 1).await?;
        }
        COMPUTES => {
            let begun = Instant::now();
            while begun.elapsed() < BUSY {
                std::hint::spin_loop();
            }
        }
        HOLDS => {
            fabric.sleep(SETTLED).await;
            let now = fabric.now().as_picos();
            fabric.put_word(&it.message(WAITS, 0)?, now).await?;
            fabric.flush(WAITS).await?;
            let _held = (reader, writer);
            die();
        }
        // The home's memory is needed; its CPU is not.
        _ => drop(fabric.wait_until(&it.told(2)?, Deps::Ranks(&[WAITS, STOPPED, COMPUTES]), |told| told == 1).await),
    }
    Ok(String::new())
}

fn measure(held: &str, deaths: u64) -> Vec<u64> {
    let mut times: Vec<u64> = (0..deaths)
        .map(|_| {
            let report = launch(RANKS, &format!("delay {held}"));
            let others = [0, STOPPED.index(), COMPUTES.index()].map(|rank| &report.outcomes[rank]);
            let Outcome::Ended(told) = &report.outcomes[WAITS.index()] else { panic!("{held}: {report:?}") };
            assert!(others.iter().all(|outcome| **outcome == Outcome::Ended(String::new())), "{held}: {report:?}");
            let (nanos, torn) = told.split_once(' ').expect("two numbers");
            assert_eq!(torn == "1", held == "writer", "{held}: torn {torn}");
            nanos.parse().expect("a number")
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn a_survivor_is_inside_soon() {
    let deaths = asked_number(DEATHS).unwrap_or(3);
    let mut table = "| who dies | deaths | median, ms | p99, ms | longest, ms |\n|---|---|---|---|---|\n".to_owned();
    let mut medians = Vec::new();
    for held in ["writer", "reader"] {
        let times = measure(held, deaths);
        let millis = |nanos: u64| nanos as f64 / 1e6;
        let (median, last) = (times[times.len() / 2], times[times.len() - 1]);
        let p99 = times[(times.len() * 99).div_ceil(100) - 1];
        table += &format!(
            "| a {held} inside | {deaths} | {:.2} | {:.2} | {:.2} |\n",
            millis(median),
            millis(p99),
            millis(last)
        );
        medians.push(Duration::from_nanos(median));
    }
    publish(&table);
    assert!(medians.iter().all(|median| *median <= SOON), "{medians:?}");
}
