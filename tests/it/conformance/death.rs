//! Measures the time until the other ranks know that one was killed.

use crate::{harness::Processes, number};
use fabric_conformance::{CaseProgram, Harness, Loss, RankOutcome};
use process_tests::table::publish;
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use std::{env, fs, time::Duration};

const TEST: &str = "conformance::death::the_others_know_soon";
/// The variable with the number of deaths for each kind of wait and number of ranks.
const SAMPLES: &str = "CONFORMANCE_SAMPLES";
/// The variable that names a file for the result, as JSON.
const REPORT: &str = "CONFORMANCE_REPORT";
/// The longest median allowed, ten times the expected maximum.
const SOON: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug)]
enum Wait {
    Word,
    Notice,
    Barrier,
}

impl Wait {
    const ALL: [Wait; 3] = [Wait::Word, Wait::Notice, Wait::Barrier];

    fn name(self) -> &'static str {
        match self {
            Wait::Word => "wait_until",
            Wait::Notice => "next_notice",
            Wait::Barrier => "barrier",
        }
    }
}

/// Kills the last rank. Each of the others returns the nanoseconds from the kill to its error.
async fn dying(fabric: Fabric, wait: Wait) -> ProgramResult<String> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(16).await?;
    let (me, last) = (fabric.rank(), Rank::new(fabric.ranks() as u32 - 1));
    let others = world.split((me != last).then_some(0), 0).await?;
    world.barrier().await?;
    if me == last {
        // The others are parked by then.
        fabric.sleep(Duration::from_millis(20)).await;
        let told = (0..last.number()).map(|rank| fabric.remote_word::<u64>(region.at(Rank::new(rank), 0)));
        let told = told.collect::<Result<Vec<_>, _>>()?;
        let now = fabric.now().as_picos();
        for word in &told {
            fabric.put_word(word, now).await?;
        }
        return Loss::Kill.happen();
    }
    let end = match wait {
        Wait::Word => fabric.wait_until(&region.word::<u64>(&fabric, 8)?, Deps::All, |v| v == 1).await.map(drop),
        Wait::Notice => fabric.next_notice(Deps::All).await.map(drop),
        Wait::Barrier => world.barrier().await,
    };
    let now = fabric.now().as_picos();
    if end != Err(FabricError::PeerLost { rank: last }) {
        return Err(format!("{wait:?} ended with {end:?}").into());
    }
    // No rank drops its memory while others are still inside the barrier.
    others.ok_or("the lost rank is here")?.barrier().await?;
    let died = fabric.load(&region.word::<u64>(&fabric, 0)?)?;
    Ok((now.saturating_sub(died) / 1000).to_string())
}

/// The measurements of one kind of wait with one number of ranks.
struct Row {
    wait: Wait,
    ranks: usize,
    /// In nanoseconds, ascending.
    times: Vec<u64>,
}

impl Row {
    fn median(&self) -> u64 {
        self.times[self.times.len() / 2]
    }

    fn most(&self) -> u64 {
        self.times[self.times.len() - 1]
    }
}

fn measure(wait: Wait, ranks: usize, deaths: u64) -> Row {
    let program = CaseProgram::new(async move |fabric| dying(fabric, wait).await);
    let mut times = Vec::new();
    for death in 0..deaths {
        // Not this process's job: a rank skips the deaths before its own.
        let Some(report) = <Processes>::run(&program, ranks, TEST, death) else {
            continue;
        };
        for outcome in &report.outcomes[..ranks - 1] {
            let RankOutcome::Ended(nanos) = outcome else { panic!("{wait:?}, {ranks} ranks: {report:?}") };
            times.push(nanos.parse().unwrap_or_else(|_| panic!("{nanos} is no time")));
        }
    }
    times.sort_unstable();
    Row { wait, ranks, times }
}

#[test]
fn the_others_know_soon() {
    let deaths = number(SAMPLES).unwrap_or(2);
    let mut rows = Vec::new();
    for ranks in [2, 4, 16] {
        for wait in Wait::ALL {
            rows.push(measure(wait, ranks, deaths));
        }
    }
    let millis = |nanos: u64| nanos as f64 / 1e6;
    let mut table = "| wait | ranks | deaths | median, ms | longest, ms |\n|---|---|---|---|---|\n".to_owned();
    let mut json = Vec::new();
    for row in &rows {
        let (name, ranks, median, most) = (row.wait.name(), row.ranks, row.median(), row.most());
        table += &format!("| `{name}` | {ranks} | {deaths} | {:.2} | {:.2} |\n", millis(median), millis(most));
        json.push(format!(
            "{{\"wait\":\"{name}\",\"ranks\":{ranks},\"deaths\":{deaths},\"median_ns\":{median},\"max_ns\":{most}}}"
        ));
    }
    publish(&table);
    if let Some(file) = env::var_os(REPORT) {
        fs::write(&file, format!("[{}]\n", json.join(",\n "))).unwrap_or_else(|error| panic!("{REPORT}: {error}"));
    }
    for row in &rows {
        let median = Duration::from_nanos(row.median());
        assert!(median <= SOON, "{:?}, {} ranks: {median:?}", row.wait, row.ranks);
    }
}
