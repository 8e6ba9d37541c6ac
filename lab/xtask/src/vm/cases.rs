//! The runs that only machines have: what libfabric offers over their NICs, the test programs of the
//! provider, and losses of NICs and machines.

use crate::{
    hosts::{
        bed::{Bed, Good, Outcome},
        job::Job,
        losses::{LONG, SLOTS, all_told, now, processes, ranks, went_on},
    },
    ofi::{self, EXAMPLES, Ended, Example, Outcome as Judged, QUICK, built},
};
use std::{
    error::Error,
    path::PathBuf,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

/// Arguments with which examples take seconds on emulated CPUs, instead of minutes.
const SHORTER: [(&str, &[&str]); 5] = [
    ("ping_pong", &["--posted", "20", "--rounds", "20"]),
    ("matmul_summa", &["--size", "60", "--panel", "16"]),
    ("halo_1d", &["--steps", "50"]),
    ("heat_2d", &["--side", "32", "--steps", "20"]),
    ("life", &["--side", "32", "--steps", "10"]),
];

/// The variable of programs that are not started by a launcher: queues of libfabric fit the device.
pub(super) const QUEUES: &str = "FI_UNIVERSE_SIZE=64";
/// The time in which the ranks of a job end after its launcher.
const GRACE: Duration = Duration::from_secs(20);
/// Bytes that a rank can register: machines have little memory, and `existing_memory` needs 32 MiB.
pub(super) const SEGMENT: &str = "ONESIDED_SEGMENT_BYTES=67108864";

/// Programs, built with libfabric.
pub(super) struct Programs {
    /// The directory of the examples.
    pub(super) examples: PathBuf,
    offers: PathBuf,
    /// The test programs of the provider, unless the run is quick.
    tests: Option<[PathBuf; 2]>,
    /// The program that measures, unless the run is quick.
    pub(super) bare: Option<PathBuf>,
}

impl Programs {
    pub(super) fn build(quick: bool) -> Result<Self, Box<dyn Error>> {
        let mut names: Vec<&str> = examples(quick).map(|example| example.name).collect();
        if !quick {
            names.push("loss_delay");
        }
        // Emulated CPUs run a program without optimisation in minutes.
        let examples = ofi::build::for_release("onesided-examples", "onesided/ofi", &names)?;
        let one = |kind, name| {
            let programs = built("fabric-ofi", "fabric-ofi/ofi", kind, &[name], &[])?;
            programs.into_iter().next().ok_or_else(|| Box::<dyn Error>::from("cargo names no program"))
        };
        let tests = match quick {
            true => None,
            false => Some([one("--test", "conformance")?, one("--test", "processes")?]),
        };
        let bare = match quick {
            true => None,
            false => Some(ofi::build::for_release("fabric-ofi", "ofi", &["bare"])?.join("bare")),
        };
        Ok(Self { examples, offers: one("--example", "providers")?, tests, bare })
    }
}

/// Returns the examples that are run.
pub(super) fn examples(quick: bool) -> impl Iterator<Item = Example> {
    EXAMPLES.into_iter().filter(move |example| !quick || example.name == "counter" || example.name == QUICK)
}

/// Runs an example on as many machines as its ranks fill, two on each.
pub(super) fn example(bed: &Bed, example: &Example, within: Duration) -> Outcome {
    let slots = example.ranks.div_ceil(2);
    let hosts = bed.network.hosts_file(slots)?.display().to_string();
    let (ranks, lease) = (example.ranks.to_string(), bed.lease.as_secs().to_string());
    let mut words = vec!["--ranks", &ranks, "--hosts", &hosts, "--interface", "eth0", "--lease", &lease];
    words.extend(bed.options.iter().map(|word| &**word));
    words.extend(example.words);
    words.extend(SHORTER.iter().filter(|(name, _)| *name == example.name).flat_map(|(_, words)| *words));
    let begun = Instant::now();
    let mut job = Job::run(bed, example.name, &words)?;
    let status = job.status(within);
    let (lines, took) = (job.lines(), begun.elapsed());
    drop(job);
    let left = kill_left(bed, example.name)?;
    let ended = Ended { status: Some(status?), out: lines.clone(), err: lines, took, left };
    match example.judge(&ended, within) {
        (Judged::Ran, _) => Ok(Good::default()),
        (_, why) => {
            let lines: Vec<&str> = ended.out.lines().collect();
            Err(format!("{why}: {}", lines[lines.len().saturating_sub(12)..].join(" | ")).into())
        }
    }
}

/// Kills the processes of an example that remain on machines after its launcher, so that they do not
/// disturb later runs; returns their number.
fn kill_left(bed: &Bed, name: &str) -> Result<usize, Box<dyn Error>> {
    let program = bed.programs.join(name);
    let until = Instant::now() + GRACE;
    while bed.network.runs(&program) {
        if Instant::now() > until {
            let line = format!(
                "for process in $(ls -l /proc/[0-9]*/exe 2>/dev/null | sed -n 's|.*/proc/\\([0-9]*\\)/exe -> {}$|\\1|p'); do \
                 kill -KILL $process && echo killed; done; true",
                program.display()
            );
            let hosts = (0..bed.network.hosts()).filter(|host| bed.network.works(*host));
            return hosts.map(|host| Ok(bed.network.shell(host, &line)?.lines().count())).sum();
        }
        thread::sleep(Duration::from_millis(300));
    }
    Ok(0)
}

/// A machine's libfabric has a usable offer of the provider.
pub(super) fn offers(bed: &Bed, programs: &Programs, provider: &str) -> Outcome {
    let listed = bed.network.shell(0, &format!("{QUEUES} '{}' '{provider}'", programs.offers.display()))?;
    let row = listed.lines().find(|line| line.contains(provider) && line.trim_end().ends_with("| usable |"));
    match row {
        Some(row) => Ok(Good { note: row.split_whitespace().collect::<Vec<_>>().join(" "), ..Good::default() }),
        None => Err(format!("no usable offer of {provider}: {listed}").into()),
    }
}

/// A rank on each machine, started with the variables of torchrun.
pub(super) fn torchrun(bed: &Bed, provider: &str, within: Duration) -> Outcome {
    let count = bed.network.hosts();
    let secret = bed.network.directory().join("secret").display().to_string();
    let program = bed.programs.join("counter").display().to_string();
    let mut started = Vec::new();
    for host in 0..count {
        bed.network.shell(host, &format!("(umask 077; printf '%064d\n' 7 >'{secret}')"))?;
        let line = format!(
            "{SEGMENT} {QUEUES} ONESIDED_SECRET_FILE='{secret}' RANK={host} WORLD_SIZE={count} MASTER_ADDR=10.88.0.1 MASTER_PORT=29500 \
             timeout {} '{program}' --provider '{provider}' --interface eth0",
            within.as_secs()
        );
        let mut command = bed.network.on(host, &["sh", "-c", &line]);
        started.push(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
    }
    let mut saw = 0;
    for (host, child) in started.into_iter().enumerate() {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " | ");
            return Err(format!("rank {host}: {}: {said}", output.status).into());
        }
        saw += usize::from(String::from_utf8_lossy(&output.stdout).contains(&format!("sees {count}")));
    }
    if saw < count { Err(format!("{saw} of {count} ranks see all ranks").into()) } else { Ok(Good::default()) }
}

/// The contract's cases between nodes of one rank, which are threads of one machine.
pub(super) fn conformance(bed: &Bed, programs: &Programs, provider: &str) -> Outcome {
    let Some([program, _]) = &programs.tests else { return Ok(Good::default()) };
    let line = format!(
        "cd /run && {QUEUES} ONESIDED_TEST_PROVIDER='{provider}' timeout 3600 '{}' far:: --test-threads 1",
        program.display()
    );
    tests(bed, &line, provider)
}

/// Pairs of processes of one machine.
pub(super) fn pairs(bed: &Bed, programs: &Programs, provider: &str) -> Outcome {
    let Some([_, program]) = &programs.tests else { return Ok(Good::default()) };
    let line = format!("cd /run && {QUEUES} timeout 3600 '{}' 'over {provider}' --test-threads 1", program.display());
    tests(bed, &line, provider)
}

/// Runs a test program on the first machine; notes the line that counts its cases, and what it skipped. Prints
/// its output if a case fails.
fn tests(bed: &Bed, line: &str, provider: &str) -> Outcome {
    let output = bed.network.on(0, &["sh", "-c", line]).stdin(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let counted = text.lines().rev().find(|line| line.starts_with("test result:")).unwrap_or_default().to_owned();
    let failed: Vec<&str> = text.lines().filter(|line| line.ends_with("FAILED") && line.starts_with("test ")).collect();
    if !output.status.success() || counted.contains(" 0 passed") {
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("{text}\n{said}");
        let last = said.lines().last().unwrap_or_default();
        return Err(format!("{}: {counted} {} {last}", output.status, failed.join("; ")).into());
    }
    let skipped: Vec<&str> = text.lines().filter(|line| line.contains("SKIPPED") && line.contains(provider)).collect();
    let skipped = if skipped.is_empty() { String::new() } else { format!("; {}", skipped.join("; ")) };
    Ok(Good { note: format!("{}{skipped}", counted.trim_start_matches("test result: ok. ")), ..Good::default() })
}

/// The last machine's interface goes down, and with it its NIC: the ranks of the others are notified of
/// the loss, and continue.
pub(super) fn nic_down(bed: &Bed) -> Outcome {
    let last = bed.network.hosts() - 1;
    let gone = lost(bed, || bed.network.shell(last, "ip link set eth0 down").map(drop));
    let back = bed.network.shell(last, "ip link set eth0 up");
    let good = gone?;
    back?;
    Ok(good)
}

/// The last machine is killed.
pub(super) fn killed(bed: &Bed) -> Outcome {
    lost(bed, || bed.network.kill_host(bed.network.hosts() - 1))
}

/// Loses the ranks of the last machine by `lose`, and waits until the others have continued.
fn lost(bed: &Bed, lose: impl Fn() -> Result<(), Box<dyn Error>>) -> Outcome {
    let mut job = Job::start(bed, SLOTS, "loss_delay", &["--victims", &SLOTS.to_string()])?;
    processes(&mut job, bed)?;
    let (at, survivors) = (now(), ranks(bed) - SLOTS);
    lose()?;
    let told_after = all_told(&mut job, survivors, at, bed)?;
    job.end(1, LONG)?;
    went_on(&job, survivors)?;
    if told_after > bed.lease * 3 / 2 {
        return Err(format!("the loss was reported after {told_after:?}, more than 1.5 leases").into());
    }
    Ok(Good { told_after: Some(told_after), note: format!("{survivors} ranks continue") })
}
