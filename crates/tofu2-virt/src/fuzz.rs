//! The entry points for fuzzing: a machine, faults and a program, all derived from bytes; a schedule.
//! They are public only with `--cfg fuzzing`, for the targets in `fuzz/`, whose seeds a test replays.

use crate::{
    Faults, Job, JobError, NetworkModel, Platform, Run,
    goal::{ReplayError, Schedule},
};
use core::time::Duration;
use rdma_fabric::{Amo, Deps, Fabric, Group, ProgramResult, Rank, Region, Time, op};
use std::io::Cursor;

/// The maximum number of changes of a machine, of faults, and of steps of a program.
const CHANGES: usize = 4;
const FAULTS: usize = 8;
const STEPS: usize = 24;
/// Bytes that each rank registers.
const BYTES: usize = 512;
/// The maximum number of events of a run: a step takes some dozens of them if each of its bytes is
/// a separate packet.
const EVENTS: u64 = 1_000_000;

/// Runs a program on a machine. The bytes encode the machine and the job (three bytes), the number
/// of changed constants followed by an index and a value for each (nine bytes), the number of steps
/// followed by the steps (two bytes each), and the text of the faults.
///
/// # Panics
/// If an invariant does not hold.
pub fn simulation(bytes: &[u8]) {
    let Some(([machine, job, count], rest)) = bytes.split_first_chunk() else { return };
    let (changes, rest) = records::<9>(rest, usize::from(*count) % (CHANGES + 1));
    let Some((steps, rest)) = rest.split_first() else { return };
    let (steps, text) = records::<2>(rest, usize::from(*steps) % (STEPS + 1));
    let platforms = [Platform::fx100, Platform::fx10, Platform::k, Platform::tofud, Platform::sr8000];
    let mut platform = platforms[usize::from(*machine) % platforms.len()]();
    for [index, value @ ..] in changes {
        let name = platform.constants()[usize::from(*index) % platform.constants().len()].name;
        platform = platform.with(name, u64::from_le_bytes(*value)).expect("a constant of the machine");
    }
    let network = if job & 1 == 0 { NetworkModel::Latency } else { NetworkModel::Router };
    let jitter = Duration::from_nanos(if job & 2 == 0 { 0 } else { 300 });
    let job = Job::new(&platform, 2 + usize::from(job >> 2) % 3)
        .ranks_per_node(1 + u32::from(job >> 4 & 1))
        .network(network)
        .jitter(jitter)
        .shuffle_ties(job & 0x20 != 0)
        .seed(u64::from(*machine))
        .timeline(10_000, Time::ZERO)
        .progress(EVENTS, |events, at| panic!("{events} events until {at}"));
    let job = match faults(&String::from_utf8_lossy(text)) {
        Some(faults) => job.faults(faults),
        None => job,
    };
    match job.run_through(&async |fabric: Fabric| program(fabric, steps).await) {
        Ok((run, failure)) => check(&run, failure.as_ref()),
        Err(error) => check_error(&error),
    }
}

/// Returns up to `count` records of `N` bytes, and what follows them.
fn records<const N: usize>(bytes: &[u8], count: usize) -> (&[[u8; N]], &[u8]) {
    let (records, rest) = bytes.split_at(bytes.len().min(N * count) / N * N);
    (records.as_chunks().0, rest)
}

/// Parses faults, and checks that they survive a round trip through text.
fn faults(text: &str) -> Option<Faults> {
    let faults: Faults = text.parse().ok()?;
    assert_eq!(faults.to_string().parse().as_ref(), Ok(&faults));
    Some(Faults::new(faults.as_slice().iter().take(FAULTS).copied().collect()))
}

fn check(run: &Run<Option<()>>, failure: Option<&JobError>) {
    if let Some(failure) = failure {
        check_error(failure);
    }
    let mut text = Vec::new();
    run.timeline.as_ref().expect("it was asked for").write(&mut text).expect("memory takes it");
    serde_json::from_slice::<serde_json::Value>(&text).expect("JSON");
}

fn check_error(error: &JobError) {
    assert!(!matches!(error, JobError::RankPanicked { .. }), "{error}");
    assert!(!error.to_string().is_empty());
}

/// Executes the steps: each rank executes those whose first byte selects it or all ranks.
async fn program(fabric: Fabric, steps: &[[u8; 2]]) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(BYTES).await?;
    for &[what, with] in steps {
        let is_mine = what & 0x80 == 0 || usize::from(what >> 5) % 4 == fabric.rank().index();
        if is_mine {
            step(&fabric, &mut world, &region, what & 0x1f, with).await?;
        }
    }
    fabric.flush_all().await?;
    Ok(world.barrier().await?)
}

async fn step(fabric: &Fabric, world: &mut Group, region: &Region, what: u8, with: u8) -> ProgramResult<()> {
    let peer = Rank::new(u32::from(with & 3) % fabric.ranks() as u32);
    let words = 1 + usize::from(with >> 2) % (BYTES / 16);
    let span = || region.span_of::<u64>(fabric, peer, 0, words);
    let soon = fabric.now() + Duration::from_micros(10);
    match what % 12 {
        0 => drop(fabric.put(&span()?, vec![1u64; words]).await?),
        1 => drop(fabric.put_notify(&span()?, vec![2u64; words], u64::from(with & 15)).await?),
        2 => drop(fabric.get(&span()?, vec![0u64; words]).await?),
        3 => drop(fabric.atomic(&region.word_of::<u64>(fabric, peer, 8 * (words - 1))?, Amo::Add(3)).await?),
        4 => world.barrier().await?,
        5 => drop(fabric.before(soon, fabric.next_notice(Deps::All)).await.transpose()?),
        6 => fabric.compute(Duration::from_nanos(1 << (with % 24))).await,
        7 => fabric.flush(peer).await?,
        8 => drop(fabric.try_post(op::Put { to: &span()?, from: vec![4u64; words], notice: None })),
        9 => drop(fabric.room(Some(peer)).await),
        10 => drop(world.allgather(u64::from(with)).await?),
        _ => {
            let word = region.word::<u64>(fabric, 0)?;
            let _ = fabric.before(soon, fabric.wait_until(&word, Deps::All, |value| value > 2)).await.transpose()?;
        }
    }
    Ok(())
}

/// Reads a schedule, text or binary, writes it in both formats, and replays it.
///
/// # Panics
/// If an invariant does not hold.
pub fn schedule(bytes: &[u8]) {
    let Ok(schedule) = Schedule::read(Cursor::new(bytes)) else { return };
    let (mut text, mut binary) = (Vec::new(), Vec::new());
    schedule.write_text(&mut text).expect("memory takes it");
    schedule.write_binary(&mut binary).expect("memory takes it");
    assert_eq!(Schedule::read_binary(Cursor::new(binary)).expect("a schedule"), schedule);
    let operations = schedule.operations();
    // Text does not have the interface of a calculation.
    let again = Schedule::read_text(&text[..]).expect("a schedule");
    assert_eq!(again.operations(), operations);
    match again.replay(&"S=100".parse().expect("parameters")) {
        Ok(replay) => assert_eq!(replay.events, operations as u64 + replay.messages),
        Err(ReplayError::Unfinished { unfinished, .. }) => assert!(unfinished <= operations),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_conformance::seeds::replay;

    #[test]
    fn seeds_of_fuzz_targets_are_withstood() {
        replay(env!("CARGO_MANIFEST_DIR"), "simulation", simulation);
        replay(env!("CARGO_MANIFEST_DIR"), "schedule", schedule);
    }
}
