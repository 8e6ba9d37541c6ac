//! Signals to launchers and ranks, at work and while ranks start; readers that close their end.

use super::{
    environment::{Environment, Launch, RANKS},
    fault::{Fault, Outcome},
    run::{Run, panic_in, place, reports, shell_code, tail},
};
use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    error::Error,
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

const SIGNALS: [(Signal, &str); 6] = [
    (Signal::INT, "SIGINT"),
    (Signal::TERM, "SIGTERM"),
    (Signal::HUP, "SIGHUP"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::USR1, "SIGUSR1"),
    (Signal::STOP, "SIGSTOP, then SIGCONT"),
];
const WAYS: [Launch; 4] = [Launch::Shm, Launch::Run, Launch::Cluster, Launch::Hosts];
/// Commands whose reader closes its end, by a line of the shell: `$0` is `onesided`, `$1`
/// `torture_rank`.
const CLOSED: [(&str, &str, &[i32]); 5] = [
    ("help to a closed pipe", "\"$1\" --help", &[0, 141]),
    ("info to a closed pipe", "\"$0\" info", &[0, 141]),
    ("ranks that write to a closed pipe", "\"$0\" run -n 2 -- yes", &[0, 1, 141]),
    ("messages to a closed pipe", "\"$1\" words --for 0 --ranks nonsense", &[1, 2]),
    ("a rank's death, told to a closed pipe", "\"$0\" run -n 2 -- sh -c 'kill -9 $$'", &[137]),
];
/// The latest early signal to a launcher, in microseconds.
const EARLY: usize = 60_000;

pub(super) fn all() -> usize {
    SIGNALS.len() * WAYS.len() * 4 + CLOSED.len()
}

pub(super) fn case(environment: &Environment, number: usize, mut random: Rng) -> Result<Outcome, Box<dyn Error>> {
    let Some(number) = number.checked_sub(CLOSED.len()) else { return closed(environment, number) };
    let (signal, name) = SIGNALS[number % SIGNALS.len()];
    let rest = number / SIGNALS.len();
    let (launch, to_rank, is_early) = (WAYS[rest % WAYS.len()], rest / WAYS.len() % 2 == 1, rest / WAYS.len() / 2 == 1);
    let victim = to_rank.then(|| random.usize(..RANKS as usize) as u32);
    let target = victim.map_or("the launcher".to_owned(), |rank| format!("rank {rank}"));
    let moment = if is_early { "while ranks start" } else { "at work" };
    let what = format!("{name} to {target} over {}, {moment}", launch.name());
    if let Some(why) = environment.obstacle(launch) {
        return Ok(Outcome::skipped(what, why));
    }
    if is_ignored(signal) {
        return Ok(Outcome::skipped(what, format!("{name} is ignored by what started this command")));
    }
    let stops = signal == Signal::STOP;
    let place = place()?;
    let report = reports(&place).display().to_string();
    let time = if stops { "600" } else { "5000" };
    let mut run = Run::start(environment.job(launch, RANKS, &["words", "--for", time, "--report", &report]), place)?;
    let process = match victim {
        Some(rank) if is_early => appeared(&mut run, rank),
        Some(rank) => run.wait_begun(RANKS, launch.bound()).then(|| run.rank(rank)).flatten(),
        None if is_early => {
            thread::sleep(Duration::from_micros(random.usize(..EARLY) as u64));
            Some(run.launcher())
        }
        None => run.wait_begun(RANKS, launch.bound()).then(|| run.launcher()),
    };
    thread::sleep(Duration::from_millis(if is_early { 0 } else { random.usize(..100) as u64 }));
    let struck = process.is_some_and(|process| kill_process(process, signal).is_ok());
    if let Some(process) = process
        && stops
    {
        thread::sleep(Duration::from_millis(300));
        let _ = kill_process(process, Signal::CONT);
    }
    let at = Instant::now();
    let ended = run.end(RANKS, launch.bound(), launch.bound())?;
    let mut outcome = Outcome::of(what);
    outcome.took_ms = Some(at.elapsed().as_millis() as u64);
    outcome.faults = ended.faults;
    outcome.faults.extend(panic_in(&ended.err));
    let Some(status) = ended.status else { return Ok(outcome) };
    let (code, expected) = (shell_code(status), if stops || !struck { 0 } else { 128 + signal.as_raw() });
    if code != expected {
        outcome.faults.push(Fault::Code(format!("{code} instead of {expected}: {}", tail(&ended.err))));
    }
    let is_named = match victim {
        _ if stops || !struck => true,
        Some(rank) => ended.err.lines().any(|line| line.contains(&format!("rank {rank}:")) && line.contains(name)),
        // Before its handlers are installed, a signal ends it like any process.
        None => is_early || ended.err.contains("SIG"),
    };
    if !is_named {
        outcome.faults.push(Fault::Nameless(format!("neither {target} nor {name}: {:?}", tail(&ended.err))));
    }
    Ok(outcome)
}

/// Waits for the process of a rank.
fn appeared(run: &mut Run, rank: u32) -> Option<Pid> {
    let until = Instant::now() + Duration::from_secs(10);
    while !run.has_ended() && Instant::now() < until {
        if let Some(process) = run.rank(rank) {
            return Some(process);
        }
    }
    None
}

/// Returns whether this process ignores the signal, as those that it starts then do.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal.as_raw() - 1) != 0)
}

fn closed(environment: &Environment, number: usize) -> Result<Outcome, Box<dyn Error>> {
    let (what, line, codes) = CLOSED[number];
    let mut command = Command::new("sh");
    // The reader ends immediately; the status of the writer is written to a file.
    let line = format!("{{ sleep 0.1; {line} 2>&1; echo $? >code; }} | true; cat code >&2");
    command.args(["-c", &line]).args([&environment.onesided, &environment.program]);
    let ended = Run::start(command, place()?)?.end(0, Duration::from_secs(15), Duration::from_secs(5))?;
    let mut outcome = Outcome::of(what.to_owned());
    outcome.faults = ended.faults;
    outcome.faults.extend(panic_in(&ended.err));
    match ended.err.trim().parse::<i32>() {
        Ok(code) if codes.contains(&code) => {}
        _ => outcome.faults.push(Fault::Code(format!("{:?} instead of {codes:?}", ended.err.trim()))),
    }
    Ok(outcome)
}
