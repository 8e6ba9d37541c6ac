//! Runs of the model.

use super::{LEASE, Mutant, RunMutant, World};
use crate::{Succession, coordinator::job::Phase};
use std::time::Duration;

/// Random numbers determined by a seed: the seeds that find mutants depend on this stream.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_in(&mut self, chance: usize) -> bool {
        self.below(chance) == 0
    }
}

const STEP: Duration = Duration::from_millis(LEASE.as_millis() as u64 / 16);

/// The outcome of a run.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// Ranks continue with the first coordinator.
    AsBefore,
    /// Ranks continue with another coordinator.
    Elsewhere,
    Nobody,
}

/// Runs a job determined by `seed`: it is partitioned, reconnected and partitioned again, and
/// processes are killed, while some messages are delayed.
fn run(seed: u64, mutant: Option<RunMutant>) -> Result<Ended, String> {
    let mut dice = Dice(seed);
    let hosts = 2 + dice.below(4);
    let mut nodes: Vec<u32> = (0..hosts as u32).collect();
    nodes.extend((0..dice.below(3)).map(|_| dice.below(hosts) as u32));
    nodes[1..].sort_unstable();
    let host = dice.below(hosts + 1) as u32;
    let succession = [Succession::AfterSilence, Succession::AfterAnyEnd][dice.below(2)];
    let mut world = World::new(&nodes, host, succession, mutant);
    let (mut cuts, mut kills, late) = (1 + dice.below(3), dice.below(3), 1 + dice.below(30));
    for _ in 0..16 * 12 {
        if cuts > 0 && dice.one_in(24) {
            cuts -= 1;
            let parts = 1 + dice.below(3);
            world.parts.iter_mut().for_each(|part| *part = dice.below(parts) as u32);
        }
        if kills > 0 && dice.one_in(48) {
            kills -= 1;
            match dice.below(nodes.len() + 1) {
                0 => world.shut(0),
                rank => world.kill(rank as u32 - 1),
            }
        }
        deliver_some(&mut world, &mut dice, late);
        world.pass(STEP);
        if let Some(problem) = world.contradiction() {
            return Err(problem);
        }
    }
    // From here on no message is delayed, and the run finishes.
    for _ in 0..16 * 6 {
        deliver_some(&mut world, &mut dice, usize::MAX);
        world.pass(STEP);
    }
    settle(&world)
}

/// Delivers messages in any order; one in `late` is delayed.
fn deliver_some(world: &mut World, dice: &mut Dice, late: usize) {
    loop {
        let all = world.deliverable();
        if all.is_empty() || (late < usize::MAX && dice.one_in(late)) {
            return;
        }
        let (token, up) = all[dice.below(all.len())];
        world.deliver(token, up);
    }
}

fn settle(world: &World) -> Result<Ended, String> {
    if let Some(problem) = world.contradiction() {
        return Err(problem);
    }
    let going_on = world.going_on();
    if going_on.len() > 1 {
        return Err(format!("{going_on:?} go on"));
    }
    for (rank, this) in world.ranks.iter().enumerate().filter(|(_, this)| this.runs()) {
        let place = this.is_member_over().and_then(|token| world.links.get(&token)).map(|link| link.place);
        let is_well = place.is_some_and(|place| {
            let job = &world.places[place].job;
            going_on.contains(&place) && job.phase == Phase::Running && job.members[rank].line.is_some()
        });
        if !is_well {
            return Err(format!("rank {rank} neither goes on nor has ended"));
        }
    }
    Ok(match going_on[..] {
        [] => Ended::Nobody,
        [0] => Ended::AsBefore,
        _ => Ended::Elsewhere,
    })
}

/// Runs the first seeds; each way in which a job ends must be that of more than a tenth of them.
fn cut_jobs(seeds: u64) {
    let mut count = [0; 3];
    for seed in 0..seeds {
        match run(seed, None) {
            Ok(ended) => count[ended as usize] += 1,
            Err(problem) => panic!("seed {seed}: {problem}"),
        }
    }
    println!("{count:?}: as before, elsewhere, nobody");
    assert!(count.iter().all(|count| *count > seeds / 10), "{count:?}");
}

#[test]
fn of_a_cut_job_one_part_goes_on_at_most() {
    cut_jobs(400);
}

#[test]
#[ignore = "long: weekly"]
fn of_many_cut_jobs_one_part_goes_on_at_most() {
    cut_jobs(40_000);
}

/// Asserts that a run detects the mutant. `from` was the first such seed when this test was
/// written.
fn is_found(mutant: RunMutant, from: u64) {
    let found = (from..from + 100_000).find_map(|seed| run(seed, Some(mutant)).err().map(|problem| (seed, problem)));
    println!("{mutant:?}: {found:?}");
    assert!(found.is_some(), "{mutant:?} was not found");
}

#[test]
fn half_of_the_hosts_is_too_little() {
    is_found(RunMutant::Job(Mutant::AnyHalf), 3);
}

#[test]
fn hosts_count_as_a_whole() {
    is_found(RunMutant::Job(Mutant::HostsByHalves), 13_488);
}

#[test]
fn deserters_are_not_dead() {
    is_found(RunMutant::Job(Mutant::DesertersDead), 4_244);
}

#[test]
fn deserters_do_not_answer() {
    is_found(RunMutant::AnswersBoth, 19_924);
}

#[test]
fn connections_stay_open() {
    is_found(RunMutant::EndsConnections, 4_244);
}

/// The coordinator, which does not receive messages from the last two of five hosts, reports their
/// loss. Immediately afterwards the third host is cut off together with them, before it has
/// received the report.
fn cut_off_with_the_lost(mutant: Option<RunMutant>) -> Result<Ended, String> {
    let mut world = World::new(&[0, 1, 2, 3, 4], 0, Succession::AfterSilence, mutant);
    let is_late = |token: u64, up: bool| up && token > 3;
    while world.resumed.is_empty() {
        world.pass(STEP);
        loop {
            let next = world.deliverable().into_iter().find(|(token, up)| !is_late(*token, *up));
            let Some((token, up)) = next.filter(|_| world.resumed.is_empty()) else { break };
            world.deliver(token, up);
        }
    }
    world.parts = vec![0, 0, 1, 1, 1];
    for _ in 0..16 * 6 {
        deliver_some(&mut world, &mut Dice(1), usize::MAX);
        world.pass(STEP);
    }
    settle(&world)
}

#[test]
fn epochs_that_may_have_been_resumed_count() {
    assert_eq!(cut_off_with_the_lost(None), Ok(Ended::AsBefore));
    let found = cut_off_with_the_lost(Some(RunMutant::Job(Mutant::PendingForgotten)));
    assert!(found.is_err(), "{found:?}");
}
