//! The kill campaign: ranks, and launchers, killed at random moments of the suite's own cases.
//!
//! The case runs as it does in `cargo test`: its test is executed in a separate process, which
//! launches the ranks. One of them, or that process, is killed at a moment drawn from the time the
//! case takes. Afterwards nothing may hang, no process or file may be left over, and every other
//! rank must have ended with a correct result or with the loss of a rank.
//!
//! A seed determines cases, victims and delays. The activity of a victim when its delay expires
//! depends on the machine, so a failing run is likely, but not certain, to fail again.

mod processes;

use crate::{
    harness::{DIRECTORY, OUTCOME, Processes, TOOK, outcome_in},
    number,
};
use fabric_conformance::{CASES, Case, Harness, RankOutcome};
use fastrand::Rng;
use process_tests::table::publish;
use processes::{HANG, ORPHANS_END, ends, execute, running, shared_memory_files};
use rdma_fabric::{FabricError, Rank};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fmt, fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// The variable with the number of kills.
const KILLS: &str = "CONFORMANCE_KILLS";

/// The variable with the seed of the campaign.
const SEED: &str = "CONFORMANCE_SEED";

/// One job of a case: its number in the test, and its ranks.
#[derive(Clone, Copy, Debug)]
struct Target {
    case: &'static str,
    job: usize,
    ranks: usize,
}

/// Returns every job that has survivors when one rank is killed.
fn targets() -> Vec<Target> {
    let jobs = |case: &Case| {
        let (name, each) = (case.name, if case.is_losing() { <Processes>::LOSSES.len() } else { 1 });
        let all = case.sizes.iter().flat_map(move |&ranks| (0..each).map(move |_| ranks)).enumerate();
        all.map(move |(job, ranks)| Target { case: name, job, ranks }).collect::<Vec<_>>()
    };
    CASES.iter().filter(|case| !case.is_aborting()).flat_map(jobs).filter(|target| target.ranks > 1).collect()
}

#[derive(Clone, Copy, Debug)]
enum Victim {
    /// A rank, and its delay in microseconds.
    Rank(usize, u64),
    Launcher(u64),
}

/// The time of a case without a kill, in microseconds: the ranks of each job, and the whole case.
#[derive(Clone, Debug)]
struct Pace {
    jobs: BTreeMap<usize, u64>,
    all: u64,
}

#[derive(Debug, Default)]
struct Tally {
    seed: u64,
    ranks_killed: u32,
    launchers_killed: u32,
    /// Kills of either kind that came after the end of the case.
    too_late: u32,
    right: u32,
    lost: u32,
    stale: u32,
    hangs: Vec<String>,
    orphans: Vec<String>,
    leftovers: Vec<String>,
    wrong: Vec<String>,
    cases: BTreeSet<&'static str>,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { seed, ranks_killed, launchers_killed, too_late, right, lost, stale, .. } = self;
        let kills = ranks_killed + launchers_killed;
        writeln!(f, "| kills, seed {seed} | {kills} |\n|---|---|")?;
        writeln!(f, "| … of a rank | {ranks_killed} |")?;
        writeln!(f, "| … of the launcher | {launchers_killed} |")?;
        writeln!(f, "| … that came when the case was over | {too_late} |")?;
        writeln!(f, "| cases | {} of {} |", self.cases.len(), CASES.len())?;
        writeln!(f, "| survivors with a correct result | {right} |")?;
        writeln!(f, "| survivors with `PeerLost` | {lost} |")?;
        writeln!(f, "| survivors with `StaleRegion` of one that failed before its loss was told | {stale} |")?;
        writeln!(f, "| survivors with anything else | {} |", self.wrong.len())?;
        writeln!(f, "| hangs | {} |", self.hangs.len())?;
        writeln!(f, "| processes left over | {} |", self.orphans.len())?;
        writeln!(f, "| files left over in `/dev/shm` | {} |", self.leftovers.len())
    }
}

fn pace(case: &'static str, directory: &Path) -> Result<Pace, String> {
    let begun = Instant::now();
    let mut child = execute(case, directory, None);
    if !ends(&mut child, HANG) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(format!("{case} hangs without any kill"));
    }
    let all = begun.elapsed().as_micros() as u64;
    let mut jobs = BTreeMap::new();
    for job in 0.. {
        let place = directory.join(job.to_string());
        if !place.is_dir() {
            break;
        }
        let took = |rank: usize| fs::read_to_string(place.join(format!("{TOOK}{rank}"))).ok()?.parse::<u64>().ok();
        jobs.insert(job, (0..64).map_while(took).max().unwrap_or(1_000));
    }
    Ok(Pace { jobs, all })
}

/// An outcome that a survivor may have.
enum Judgement {
    Right,
    Lost,
    Stale,
}

fn judge(outcome: &RankOutcome) -> Option<Judgement> {
    match outcome {
        RankOutcome::Ended(_) => Some(Judgement::Right),
        // A case that expects an error other than the loss reports the error that it got instead.
        RankOutcome::Failed(text) if text.contains("was lost") || text.contains("PeerLost") => Some(Judgement::Lost),
        RankOutcome::Failed(text) if text.contains("was deregistered") || text.contains("StaleRegion") => {
            Some(Judgement::Stale)
        }
        RankOutcome::Failed(_) | RankOutcome::Panicked | RankOutcome::Silent => None,
    }
}

fn one_kill(tally: &mut Tally, number: u32, target: Target, victim: Victim, directory: &Path) {
    let what = format!("kill {number} of seed {}: {target:?}, {victim:?}", tally.seed);
    let Target { case, job, ranks } = target;
    tally.cases.insert(case);
    let kill = match victim {
        Victim::Rank(rank, micros) => Some(format!("{job} {rank} {micros}")),
        Victim::Launcher(_) => None,
    };
    let mut child = execute(case, directory, kill);
    if let Victim::Launcher(micros) = victim {
        thread::sleep(Duration::from_micros(micros));
        tally.launchers_killed += 1;
        if child.try_wait().expect("a child").is_some() {
            tally.too_late += 1;
        }
        let _ = child.kill();
    } else {
        tally.ranks_killed += 1;
    }
    if !ends(&mut child, HANG) {
        tally.hangs.push(what.clone());
        let _ = child.kill();
    }
    let _ = child.wait();
    let deadline = Instant::now() + ORPHANS_END;
    let mut left = running(directory);
    while !left.is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
        left = running(directory);
    }
    if !left.is_empty() {
        tally.orphans.push(format!("{what}: processes {left:?}"));
    }
    let Victim::Rank(victim, _) = victim else { return };
    let place = directory.join(job.to_string());
    if !place.is_dir() {
        tally.wrong.push(format!("{what}: an earlier job of the test failed, with nobody killed"));
        return;
    }
    for rank in 0..ranks {
        let outcome = outcome_in(&place.join(format!("{OUTCOME}{rank}")));
        if rank == victim {
            tally.too_late += u32::from(outcome != RankOutcome::Silent);
            continue;
        }
        match judge(&outcome) {
            Some(Judgement::Right) => tally.right += 1,
            Some(Judgement::Lost) => tally.lost += 1,
            Some(Judgement::Stale) => tally.stale += 1,
            // Lost on purpose, in a case about losses.
            None if rank + 1 == ranks && CASES.iter().any(|listed| listed.name == case && listed.is_losing()) => {}
            // It did not end within the launcher's grace period.
            None if outcome == RankOutcome::Silent => tally.hangs.push(format!("{what}: rank {rank}")),
            None => tally.wrong.push(format!("{what}: rank {rank} {outcome}")),
        }
    }
}

fn campaign(kills: u32, seed: u64) -> Tally {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kill-{}", std::process::id()));
    let (mut random, targets) = (Rng::with_seed(seed), targets());
    let mut paces: BTreeMap<&str, Pace> = BTreeMap::new();
    let mut tally = Tally { seed, ..Tally::default() };
    let before = shared_memory_files();
    let place = |name: String| -> PathBuf { scratch.join(name) };
    for number in 0..kills {
        let target = targets[random.usize(..targets.len())];
        let pace = match paces.get(target.case) {
            Some(pace) => pace.clone(),
            None => match pace(target.case, &place(format!("pace-{}", target.case))) {
                Ok(pace) => paces.entry(target.case).or_insert(pace).clone(),
                Err(hang) => {
                    tally.hangs.push(hang);
                    continue;
                }
            },
        };
        let (who, when) = (random.usize(..8 * target.ranks), random.u64(..));
        let victim = match who / 8 {
            // One victim in eight is the launcher.
            _ if who % 8 == 7 => Victim::Launcher(when % pace.all.max(1)),
            rank => Victim::Rank(rank, when % pace.jobs.get(&target.job).copied().unwrap_or(1_000).max(1)),
        };
        let directory = place(number.to_string());
        one_kill(&mut tally, number, target, victim, &directory);
        let _ = fs::remove_dir_all(&directory);
    }
    let _ = fs::remove_dir_all(&scratch);
    // Other processes use the file system too, and remove their own files.
    for _ in 0..20 {
        tally.leftovers = shared_memory_files().difference(&before).cloned().collect();
        if tally.leftovers.is_empty() {
            break;
        }
        thread::sleep(Duration::from_millis(100));
    }
    tally
}

#[test]
fn forbidden_outcomes_are_found() {
    assert!(judge(&RankOutcome::Ended(String::new())).is_some());
    assert!(judge(&RankOutcome::Failed(FabricError::PeerLost { rank: Rank::new(3) }.to_string())).is_some());
    for wrong in [FabricError::PeersLeft, FabricError::Corrupt { rank: Rank::new(0), what: &"a slot" }] {
        assert!(judge(&RankOutcome::Failed(wrong.to_string())).is_none(), "{wrong}");
    }
    assert!(judge(&RankOutcome::Silent).is_none() && judge(&RankOutcome::Panicked).is_none());
    let directory = PathBuf::from(format!("/nowhere/{}", std::process::id()));
    let mut left = Command::new("sleep").arg("60").env(DIRECTORY, &directory).spawn().expect("to run sleep");
    let deadline = Instant::now() + ORPHANS_END;
    while running(&directory).is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(1));
    }
    let found = running(&directory);
    left.kill().and_then(|()| left.wait()).expect("a child");
    assert_eq!(found, [left.id().to_string()]);
    assert_eq!(running(&directory), Vec::<String>::new());
}

#[test]
fn a_kill_leaves_losses_and_nothing_else() {
    let kills = number(KILLS).map_or(10, |kills| kills as u32);
    let seed = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let tally = campaign(kills, seed);
    publish(&tally.to_string());
    let bad = [&tally.hangs, &tally.orphans, &tally.leftovers, &tally.wrong];
    bad.into_iter().flatten().for_each(|line| println!("{line}"));
    assert!(bad.iter().all(|list| list.is_empty()), "seed {seed}:\n{tally}{bad:#?}");
}
