//! Limits of the system, in steps from "nothing works" to "everything works". Each run succeeds or
//! ends with an error that names the resource.

use super::{
    cgroup::Groups,
    environment::{Environment, Launch, SYSTEMS},
    fault::{Fault, Outcome},
    limits::Limits,
    run::{Run, panic_in, place, reports, shell_code, tail},
};
use fastrand::Rng;
use rustix::process::geteuid;
use std::{
    error::Error,
    fs,
    os::unix::{fs::PermissionsExt, process::ExitStatusExt},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// The scarce resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scarce {
    /// Memory that each rank can register, in KiB.
    Segment,
    Descriptors,
    /// In MiB.
    AddressSpace,
    Processes,
    /// Of the file system that the program writes to, in KiB.
    Disk,
    /// Of all processes of the job, in MiB.
    Memory,
}

struct Sweep {
    scarce: Scarce,
    steps: &'static [u64],
    ways: &'static [Launch],
    /// One of these, in lower case, names the resource.
    names: &'static [&'static str],
}

const SWEEPS: [Sweep; 6] = [
    Sweep {
        scarce: Scarce::Segment,
        steps: &[4, 16, 64, 256, 1024, 16384],
        ways: &[Launch::Run, Launch::Cluster],
        names: &["segment", "memory", "bytes", "heap"],
    },
    Sweep {
        scarce: Scarce::Descriptors,
        steps: &[3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64],
        ways: &[Launch::Shm, Launch::Run, Launch::Cluster],
        names: &["descriptor", "open files", "emfile"],
    },
    Sweep {
        scarce: Scarce::AddressSpace,
        steps: &[32, 64, 128, 256, 512, 1024, 2048, 4096],
        ways: &[Launch::Shm, Launch::Run, Launch::Cluster],
        names: &["memory", "address space", "enomem", "mmap", "out of"],
    },
    Sweep {
        scarce: Scarce::Processes,
        steps: &[1, 2, 3, 4, 6, 8, 12, 16, 32],
        ways: &[Launch::Shm, Launch::Run, Launch::Cluster],
        names: &["process", "thread", "fork", "eagain", "resource temporarily unavailable", "spawn"],
    },
    Sweep {
        scarce: Scarce::Disk,
        steps: &[4, 8, 16, 64, 256, 1024, 4096],
        // The program uses a lock by name in this case; `onesided run` writes a trace.
        ways: &[Launch::Shm, Launch::Run],
        names: &["space", "enospc", "disk", "full"],
    },
    Sweep {
        scarce: Scarce::Memory,
        steps: &[16, 32, 64, 128, 256],
        ways: &[Launch::Shm, Launch::Run, Launch::Cluster],
        names: &["memory", "enomem", "oom"],
    },
];

/// The time limit of a run, as a safeguard.
const BOUND: Duration = Duration::from_secs(40);
/// Ranks of each job.
const RANKS: u32 = 4;
/// An unprivileged user without processes.
const USER: &str = "61184";
/// Processes of a job in a control group, as a safeguard.
const MOST: u64 = 200;

pub(super) fn all() -> usize {
    SWEEPS.iter().map(|sweep| sweep.steps.len() * sweep.ways.len()).sum()
}

pub(super) fn case(environment: &Environment, mut number: usize, mut random: Rng) -> Result<Outcome, Box<dyn Error>> {
    let mut sweeps = SWEEPS.iter();
    let sweep = loop {
        let sweep = sweeps.next().ok_or("there is no such case")?;
        let cases = sweep.steps.len() * sweep.ways.len();
        match number.checked_sub(cases) {
            Some(rest) => number = rest,
            None => break sweep,
        }
    };
    let (launch, step) = (sweep.ways[number % sweep.ways.len()], sweep.steps[number / sweep.ways.len()]);
    let system = if sweep.scarce == Scarce::Disk { "named-lock" } else { random.choice(SYSTEMS).expect("systems") };
    let what = format!("{:?} of {step}: {system} over {}", sweep.scarce, launch.name());
    if let Some(why) = environment.obstacle(launch) {
        return Ok(Outcome::skipped(what, why));
    }
    let (place, mut limits, mut groups) = (place()?, Limits::default(), None);
    let report = reports(&place).display().to_string();
    let words = [system, "--for", "0", "--report", &report];
    let mut command = environment.job(launch, RANKS, &words);
    let mut ranks = RANKS;
    match sweep.scarce {
        Scarce::Segment => {
            command.env("ONESIDED_SEGMENT_BYTES", format!("{step}K"));
            if launch == Launch::Run {
                command = Command::new(&environment.onesided);
                command.args(["run", "--ranks", &RANKS.to_string(), "--segment-bytes", &format!("{step}K"), "--"]);
                command.arg(&environment.program).args(words);
            }
        }
        Scarce::Descriptors => limits.descriptors = Some(step),
        Scarce::AddressSpace => limits.address_space = Some(step << 20),
        Scarce::Processes => match as_user(environment, launch, &words)? {
            Ok(other) => {
                command = other;
                limits.processes = Some(step);
            }
            Err(why) => return Ok(Outcome::skipped(what, why)),
        },
        Scarce::Disk => {
            if let Some(why) = no_mounts() {
                return Ok(Outcome::skipped(what, why));
            }
            command = full(environment, launch, step);
            ranks = 0;
        }
        Scarce::Memory => match Groups::new(step << 20, MOST) {
            Ok(made) => {
                limits.groups = made.paths().to_vec();
                groups = Some(made);
            }
            Err(why) => return Ok(Outcome::skipped(what, why)),
        },
    }
    let command = limits.around(&environment.xtask, &command);
    let (run, at) = (Run::start(command, place)?, Instant::now());
    let ended = run.end(ranks, BOUND, Duration::from_secs(15))?;
    drop(groups);
    let mut outcome = Outcome::of(what);
    outcome.took_ms = Some(at.elapsed().as_millis() as u64);
    outcome.faults = ended.faults;
    outcome.faults.extend(panic_in(&ended.err));
    let Some(status) = ended.status else { return Ok(outcome) };
    let (code, said) = (shell_code(status), tail(&ended.err));
    let lower = ended.err.to_lowercase();
    // A process that the kernel killed for its memory cannot report an error.
    let is_gone = sweep.scarce == Scarce::Memory && status.signal() == Some(9);
    if code == 0 || is_gone || could_not_begin(&lower) {
        return Ok(outcome);
    }
    let expected: &[i32] = if sweep.scarce == Scarce::Memory { &[1, 2, 137] } else { &[1, 2] };
    if !expected.contains(&code) {
        outcome.faults.push(Fault::Code(format!("{code} instead of 0 or {expected:?}: {said}")));
    }
    if !sweep.names.iter().any(|name| lower.contains(name)) {
        outcome.faults.push(Fault::Nameless(format!("no word of the resource: {said:?}")));
    }
    Ok(outcome)
}

/// Returns whether the process did not reach the program's own code.
fn could_not_begin(err: &str) -> bool {
    ["error while loading shared libraries", "cannot open shared object", "setpriv: failed", "error: /"]
        .iter()
        .any(|mark| err.contains(mark))
}

/// Returns the job as run by an unprivileged user, or the reason why that is not possible.
fn as_user(
    environment: &Environment,
    launch: Launch,
    words: &[&str],
) -> Result<Result<Command, String>, Box<dyn Error>> {
    if !geteuid().is_root() {
        return Ok(Err("the limit of processes is tried as root, by another user".to_owned()));
    }
    if !Command::new("setpriv").arg("--version").stdout(Stdio::null()).status().is_ok_and(|ended| ended.success()) {
        return Ok(Err("there is no setpriv".to_owned()));
    }
    // Other users may not be able to read the build directory.
    let copies = Environment::copied(environment)?;
    let job = copies.job(launch, RANKS, words);
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]);
    command.arg(job.get_program()).args(job.get_args());
    command.env("HOME", "/");
    for (name, value) in job.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        command.env(name, value);
    }
    Ok(Ok(command))
}

/// Returns the reason why nothing can be mounted here, if so.
fn no_mounts() -> Option<String> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", "mount -t tmpfs -o size=4k none /mnt"]);
    let tried = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    (!tried.is_ok_and(|ended| ended.success())).then(|| "no file system can be mounted here".to_owned())
}

/// Returns a command that writes to a file system of `kib` KiB: a lock by name, or counters and
/// traces of ranks.
fn full(environment: &Environment, launch: Launch, kib: u64) -> Command {
    let mut command = Command::new("unshare");
    let mount = format!("mount -t tmpfs -o size={kib}k,mode=1777 none \"$PWD\" && cd \"$PWD\" && exec \"$@\"");
    command.args(["--mount", "sh", "-c", &mount, "sh"]);
    if launch == Launch::Shm {
        command.arg(&environment.program).args(["named-lock", "--for", "0"]);
    } else {
        command.arg(&environment.onesided).args([
            "run",
            "--ranks",
            "2",
            "--trace",
            "trace.json",
            "--json",
            "counters.json",
            "--",
        ]);
        command.arg(&environment.program).args(["words", "--for", "50", "--report", "."]);
    }
    command
}

impl Environment {
    /// Returns copies of the programs that every user can execute.
    fn copied(&self) -> Result<Copies<'_>, Box<dyn Error>> {
        for (from, name) in [(&self.program, "torture_rank"), (&self.onesided, "onesided")] {
            let to = self.folder().join(name);
            if !to.exists() {
                let part = self.folder().join(format!(".{name}-{:?}", std::thread::current().id()));
                fs::copy(from, &part)?;
                fs::set_permissions(&part, fs::Permissions::from_mode(0o755))?;
                fs::rename(part, to)?;
            }
        }
        Ok(Copies(self))
    }
}

struct Copies<'a>(&'a Environment);

impl Copies<'_> {
    fn job(&self, launch: Launch, ranks: u32, words: &[&str]) -> Command {
        let job = self.0.job(launch, ranks, words);
        let place = |word: &std::ffi::OsStr| match word {
            word if word == self.0.program.as_os_str() => self.0.folder().join("torture_rank").into_os_string(),
            word if word == self.0.onesided.as_os_str() => self.0.folder().join("onesided").into_os_string(),
            word => word.to_owned(),
        };
        let mut command = Command::new(place(job.get_program()));
        command.args(job.get_args().map(place));
        for (name, value) in job.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            command.env(name, value);
        }
        command
    }
}
