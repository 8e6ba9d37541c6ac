//! SIGKILL at a random moment: of a rank, or of the process that started the ranks.

use super::{
    environment::{Environment, Launch, RANKS, SYSTEMS},
    fault::{Fault, Outcome},
    run::{Ended, Run, panic_in, place, reports, shell_code, tail},
};
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeSet,
    error::Error,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// The time for which a job runs unless it is ended earlier. Kills come before that.
const TIME_MS: &str = "1500";
/// The latest time of a kill after the start of the launcher, in microseconds.
const EARLY: usize = 150_000;
/// The latest time of a kill after all ranks have begun, in microseconds.
const LATE: usize = 400_000;
/// The time that ranks may take to begin.
const BEGIN: Duration = Duration::from_secs(20);
/// Processes that use a lock by name.
const NAMED: u32 = 3;

/// The process that is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Rank(u32),
    Launcher,
    /// A process between the launcher and the ranks of a host.
    Agent,
}

impl Victim {
    fn name(self) -> String {
        match self {
            Victim::Rank(rank) => format!("rank {rank}"),
            Victim::Launcher => "the launcher".to_owned(),
            Victim::Agent => "an agent".to_owned(),
        }
    }
}

pub(super) fn case(environment: &Environment, mut random: Rng) -> Result<Outcome, Box<dyn Error>> {
    if random.usize(..SYSTEMS.len() + 1) == 0 {
        return named(environment, random);
    }
    let system = random.choice(SYSTEMS).expect("systems");
    let launch =
        random.choice([Launch::Shm, Launch::Shm, Launch::Run, Launch::Cluster, Launch::Hosts]).expect("launches");
    let victim = match random.usize(..8) {
        0 => Victim::Launcher,
        1 if launch == Launch::Hosts => Victim::Agent,
        // The lock that survives its ranks does not survive its home.
        _ if system == "recoverable" => Victim::Rank(1 + random.usize(..RANKS as usize - 1) as u32),
        _ => Victim::Rank(random.usize(..RANKS as usize) as u32),
    };
    let (is_early, early, late) = (random.usize(..3) == 0, random.usize(..EARLY) as u64, random.usize(..LATE) as u64);
    let moment = if is_early { format!("{early} us after the start") } else { format!("{late} us in") };
    let what = format!("{system} over {}: {} is killed {moment}", launch.name(), victim.name());
    if let Some(why) = environment.obstacle(launch) {
        return Ok(Outcome::skipped(what, why));
    }
    let place = place()?;
    let report = reports(&place).display().to_string();
    let command = environment.job(launch, RANKS, &[system, "--for", TIME_MS, "--report", &report]);
    let mut run = Run::start(command, place)?;
    if is_early {
        thread::sleep(Duration::from_micros(early));
    } else if run.wait_begun(RANKS, BEGIN) {
        thread::sleep(Duration::from_micros(late));
    }
    let killed = strike(&mut run, victim);
    let (at, bound) = (Instant::now(), launch.bound());
    let ended = run.end(RANKS, bound, bound)?;
    Ok(judged(Outcome::of(what), system, victim, killed, ended, at.elapsed()))
}

/// Kills the victim, if it exists.
fn strike(run: &mut Run, victim: Victim) -> bool {
    if run.has_ended() {
        return false;
    }
    let launcher = run.launcher();
    let process = match victim {
        Victim::Launcher => Some(launcher),
        Victim::Rank(rank) => run.rank(rank),
        Victim::Agent => {
            let others = run.processes().into_iter().filter(|other| other.pid != launcher && other.rank.is_none());
            others.map(|process| process.pid).max_by_key(|pid| pid.as_raw_nonzero())
        }
    };
    process.is_some_and(|process: Pid| kill_process(process, Signal::KILL).is_ok())
}

/// The phrases for a rank that no longer exists: it was lost, or it failed because of the victim
/// and has released its memory before its own loss is known.
const GONE: [&str; 4] = [" was lost", " was deregistered", " has no such region", " has left a collective"];

/// Returns the ranks that a message reports as lost or ended.
fn gone_in(message: &str) -> BTreeSet<u32> {
    let before = |mark| message.match_indices(mark).map(|(at, _)| &message[..at]).collect::<Vec<_>>();
    // Members of the torture's communicator have the numbers of their ranks.
    let rank = |part: &str| {
        let (named, number) = part.rsplit_once(' ')?;
        let is_rank = ["rank", "member"].iter().any(|word| named.ends_with(word));
        number.parse().ok().filter(|_| is_rank)
    };
    GONE.into_iter().flat_map(before).filter_map(rank).collect()
}

fn judged(mut outcome: Outcome, system: &str, victim: Victim, killed: bool, ended: Ended, after: Duration) -> Outcome {
    outcome.took_ms = Some(after.as_millis() as u64);
    let Ended { status, err, faults, reports, .. } = ended;
    outcome.faults = faults;
    outcome.faults.extend(panic_in(&err));
    let Some(status) = status else { return outcome };
    let code = shell_code(status);
    let is_well = |text: &str| text.starts_with("ok ");
    let all_well = reports.iter().all(|(_, report)| report.ended.as_deref().is_some_and(is_well));
    let victim_ended = |rank: u32| reports[rank as usize].1.ended.is_some();
    let expected: &[i32] = match victim {
        _ if !killed => &[0],
        Victim::Launcher => &[137],
        // It may have ended before the kill.
        Victim::Rank(rank) if victim_ended(rank) => &[137, 0],
        Victim::Rank(_) => &[137],
        Victim::Agent if all_well => &[0, 1, 137],
        Victim::Agent => &[1, 137],
    };
    if !expected.contains(&code) {
        outcome.faults.push(Fault::Code(format!("{code} instead of {expected:?}: {}", tail(&err))));
    }
    if let Victim::Rank(rank) = victim
        && killed
        && code != 0
        && !names(&err, rank)
    {
        outcome.faults.push(Fault::Nameless(format!("rank {rank} and SIGKILL are not named: {}", tail(&err))));
    }
    // Ranks that ended with an error are lost to the others in turn.
    let failed: BTreeSet<u32> = reports
        .iter()
        .filter(|(_, report)| !report.ended.as_deref().is_some_and(is_well))
        .map(|(rank, _)| *rank)
        .collect();
    let have_all_begun = reports.iter().all(|(_, report)| report.has_begun);
    for (rank, report) in &reports {
        let is_victim = victim == Victim::Rank(*rank) || victim == Victim::Launcher;
        match report.ended.as_deref() {
            _ if is_victim && killed => {}
            Some(text) if is_well(text) => outcome.survivors += 1,
            Some(text) if system == "recoverable" && have_all_begun && victim != Victim::Agent => {
                outcome.faults.push(Fault::Wrong(format!("rank {rank} did not survive: {text}")));
            }
            Some(text) => {
                let lost = gone_in(text);
                if !killed || lost.is_empty() {
                    outcome.faults.push(Fault::Wrong(format!("rank {rank} ended with {text}")));
                } else if !lost.is_subset(&failed) {
                    outcome.faults.push(Fault::Wrong(format!("rank {rank} lost a rank that lives: {text}")));
                } else {
                    outcome.survivors += 1;
                }
            }
            None if report.has_begun && victim != Victim::Agent => {
                outcome.faults.push(Fault::Wrong(format!("rank {rank} disappeared: {}", tail(&err))));
            }
            None if victim == Victim::Agent || err.contains(&format!("rank {rank}")) || err.contains("ranks ") => {}
            None => outcome.faults.push(Fault::Nameless(format!("no word of rank {rank}: {}", tail(&err)))),
        }
    }
    outcome
}

/// Returns whether a text states that a rank was killed by SIGKILL.
fn names(text: &str, rank: u32) -> bool {
    let of_rank = |line: &&str| line.contains(&format!("rank {rank}:"));
    text.lines().filter(of_rank).any(|line| line.contains("SIGKILL"))
}

/// Processes that share only a lock by name, one of which is killed.
fn named(environment: &Environment, mut random: Rng) -> Result<Outcome, Box<dyn Error>> {
    let (victim, is_early) = (random.usize(..NAMED as usize) as u32, random.usize(..3) == 0);
    let delay = Duration::from_micros(random.usize(..if is_early { 30_000 } else { LATE }) as u64);
    let moment = if is_early { "after the start" } else { "in" };
    let mut outcome =
        Outcome::of(format!("named-lock: process {victim} of {NAMED} is killed {} us {moment}", delay.as_micros()));
    let place = place()?;
    let mut command = Command::new("sh");
    let line = "for number in 0 1 2; do \"$0\" named-lock --for 600 --number $number & done; wait";
    command.args(["-c", line]).arg(&environment.program);
    let mut run = Run::start(command, place)?;
    if !is_early {
        run.wait_begun(NAMED, BEGIN);
    }
    thread::sleep(delay);
    let launcher = run.launcher();
    let mut processes: Vec<_> = run.processes().into_iter().map(|process| process.pid).collect();
    processes.retain(|process| *process != launcher);
    processes.sort_by_key(|process| process.as_raw_nonzero());
    let killed = processes.get(victim as usize).is_some_and(|process| kill_process(*process, Signal::KILL).is_ok());
    let at = Instant::now();
    // Longer than its time-out for a lock.
    let ended = run.end(NAMED, Duration::from_secs(30), Duration::from_secs(5))?;
    outcome.took_ms = Some(at.elapsed().as_millis() as u64);
    outcome.faults = ended.faults;
    outcome.faults.extend(panic_in(&ended.err));
    for (number, report) in &ended.reports {
        match report.ended.as_deref() {
            Some(text) if text.starts_with("ok ") => outcome.survivors += 1,
            Some(text) => outcome.faults.push(Fault::Wrong(format!("process {number} ended with {text}"))),
            None => {}
        }
    }
    let expected = NAMED as usize - usize::from(killed);
    if outcome.survivors < expected && outcome.faults.is_empty() {
        let what = format!("{} of {expected} survivors ended well: {}", outcome.survivors, tail(&ended.err));
        outcome.faults.push(Fault::Wrong(what));
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::torture::run::Report;
    use std::os::unix::process::ExitStatusExt;

    fn ended(code: i32, err: &str, reports: [Option<&str>; 4]) -> Ended {
        let report = |ended: Option<&str>| Report { has_begun: true, ended: ended.map(str::to_owned) };
        let reports = (0..).zip(reports.map(report)).collect();
        let status = Some(std::process::ExitStatus::from_raw(code << 8));
        Ended { status, out: String::new(), err: err.into(), faults: Vec::new(), reports }
    }

    fn faults(system: &str, victim: Victim, ended: Ended) -> Vec<Fault> {
        judged(Outcome::of(String::new()), system, victim, true, ended, Duration::ZERO).faults
    }

    #[test]
    fn survivors_must_name_a_rank_that_is_lost() {
        let (dead, lost) = ("rank 2: killed by signal 9 (SIGKILL)", Some("error rank 2 was lost"));
        let victim = Victim::Rank(2);
        assert_eq!(faults("words", victim, ended(137, dead, [lost, Some("ok 3"), None, lost])), []);
        // Rank 0 failed because of rank 2, and rank 1 because of rank 0.
        let next = Some("error the lock failed: rank 0 was lost");
        assert_eq!(faults("words", victim, ended(137, dead, [lost, next, None, lost])), []);
        let left = Some("error member 0 has left a collective before its end");
        assert_eq!(faults("fmpl", victim, ended(137, dead, [lost, left, None, lost])), []);
        let lives = Some("error rank 1 was lost");
        for (code, err, reports) in [
            (1, dead, [lost, lost, None, lost]),
            (137, "", [lost, lost, None, lost]),
            (137, dead, [lost, Some("error deadlock"), None, lost]),
            (137, dead, [lives, Some("ok 1"), None, lost]),
            (137, dead, [None, lost, None, lost]),
        ] {
            assert_eq!(faults("words", victim, ended(code, err, reports)).len(), 1, "{code} {err} {reports:?}");
        }
        let well = Some("ok 1");
        assert_eq!(faults("recoverable", victim, ended(137, dead, [well, well, None, well])), []);
        assert_eq!(faults("recoverable", victim, ended(137, dead, [lost, well, None, well])).len(), 1);
    }

    #[test]
    fn ranks_that_are_gone_are_read_from_messages() {
        for (message, rank) in [
            ("error a lock: rank 12 was lost", 12),
            ("error region 1024.1 of rank 0 was deregistered", 0),
            ("error byte 65168 of region 2 of rank 0: rank 3 has no such region", 3),
        ] {
            assert_eq!(gone_in(message), BTreeSet::from([rank]));
        }
        assert_eq!(gone_in("error the job was lost"), BTreeSet::new());
    }
}
