//! A private Slurm on all machines, and programs that its `srun` starts.

use super::cases::{QUEUES, SEGMENT};
use crate::{
    hosts::bed::{Bed, Good, Outcome},
    installed::is_installed,
    ofi::launcher::random_digits,
    ofi::slurm::{
        DAEMONS,
        configuration::{Host, cgroup_configuration, configuration, munged},
        has_kind,
    },
};
use std::{
    error::Error,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The time that emulated machines may take until all nodes are idle.
const READY: Duration = Duration::from_secs(120);
/// The kinds of `--mpi`: without PMI, PMI-1, PMIx.
const KINDS: [&str; 3] = ["none", "pmi2", "pmix"];
/// Debian's packages of what is needed.
const PACKAGES: &str = "slurmctld, slurmd, slurm-client, munge";
/// Ranks of each machine.
const SLOTS: usize = 2;

/// The daemons on all machines, which are killed when this is dropped.
struct Daemons<'a> {
    bed: &'a Bed,
    folder: PathBuf,
}

/// Two ranks on each machine, started by each kind of `srun`.
pub(super) fn slurm(bed: &Bed, provider: &str, within: Duration) -> Outcome {
    if !DAEMONS.iter().chain(&["srun"]).all(|program| is_installed(program)) {
        return Ok(Good { note: format!("SKIPPED: packages are missing: {PACKAGES}"), ..Good::default() });
    }
    let daemons = Daemons::start(bed)?;
    let listed = daemons.run("srun --mpi=list 2>&1")?;
    let mut notes = Vec::new();
    for kind in KINDS {
        if has_kind(&listed, kind) {
            let begun = Instant::now();
            daemons.counter(kind, provider, within).map_err(|error| format!("srun --mpi={kind}: {error}"))?;
            notes.push(format!("--mpi={kind} {:.0} s", begun.elapsed().as_secs_f64()));
        } else {
            notes.push(format!("SKIPPED: --mpi={kind} is not among those of this Slurm"));
        }
    }
    Ok(Good { note: notes.join(", "), ..Good::default() })
}

impl<'a> Daemons<'a> {
    fn start(bed: &'a Bed) -> Result<Self> {
        let daemons = Self { bed, folder: bed.network.make_directory("slurm")? };
        let (network, folder) = (&bed.network, &daemons.folder);
        // Machines are new, and no other program of theirs listens.
        let hosts = |port: u16| {
            let host = move |host: usize| Host {
                name: network.name(host),
                host: network.name(host),
                address: format!("10.88.0.{}", host + 1),
                port,
            };
            (0..network.hosts()).map(host).collect::<Vec<_>>()
        };
        let (controllers, nodes) = (hosts(6817), hosts(6818));
        let (text, key) = (configuration(folder, 0, &controllers[0], &nodes), random_digits(64)?);
        for host in 0..network.hosts() {
            let write = |name: &str, text: &str| network.write(host, &folder.join(name), text);
            network.shell(host, &format!("cd '{}' && mkdir -p state spool", folder.display()))?;
            write("munge.key", &key)?;
            write("secret", &format!("{}\n", &key[..64]))?;
            write("slurm.conf", &text)?;
            write("cgroup.conf", &cgroup_configuration())?;
            daemons.shell(host, &format!("chmod 400 munge.key secret && munged '{}'", munged(folder).join("' '")))?;
        }
        daemons.shell(0, "slurmctld -f slurm.conf")?;
        for host in 0..network.hosts() {
            let name = network.name(host);
            daemons.shell(host, &format!("ulimit -l unlimited && slurmd -f \"$SLURM_CONF\" -N {name}"))?;
        }
        let begun = Instant::now();
        while daemons.run("sinfo --noheader --format=%t").unwrap_or_default().trim() != "idle" {
            if begun.elapsed() > READY {
                let last = daemons.shell(0, "tail -n 2 slurmctld.log slurmd.log").unwrap_or_default();
                return Err(format!("Slurm's nodes are not idle after {READY:?}: {last}").into());
            }
            thread::sleep(Duration::from_millis(500));
        }
        Ok(daemons)
    }

    /// Runs a line of a shell on a machine, in the daemons' folder.
    fn shell(&self, host: usize, line: &str) -> Result<String> {
        self.bed.network.shell(host, &in_folder(&self.folder, line))
    }

    /// Runs a line of a shell on the first machine.
    fn run(&self, line: &str) -> Result<String> {
        self.shell(0, line)
    }

    /// Runs `counter`, whose ranks all see the increments of all ranks.
    fn counter(&self, kind: &str, provider: &str, within: Duration) -> Result<()> {
        let (hosts, seconds) = (self.bed.network.hosts(), within.as_secs());
        let (ranks, program) = (hosts * SLOTS, self.bed.programs.join("counter").display().to_string());
        let secret = if kind == "none" { "ONESIDED_SECRET_FILE=\"$PWD\"/secret" } else { "" };
        let printed = self.run(&format!(
            "export {SEGMENT} {QUEUES} {secret}; timeout {seconds} srun --mpi={kind} -N {hosts} -n {ranks} \
             --ntasks-per-node {SLOTS} '{program}' --provider '{provider}' --interface eth0 2>&1 || {{ \
             echo \"code $?\"; tail -n 3 slurmd.log; }}"
        ))?;
        let saw = printed.lines().filter(|line| line.contains(&format!("sees {ranks}"))).count();
        if saw == ranks { Ok(()) } else { Err(format!("{saw} of {ranks} ranks see all ranks: {printed}").into()) }
    }
}

impl Drop for Daemons<'_> {
    fn drop(&mut self) {
        for host in (0..self.bed.network.hosts()).filter(|host| self.bed.network.works(*host)) {
            // A daemon that did not start has no such file.
            let _ = self.shell(host, "kill $(cat slurmd.pid slurmctld.pid munged.pid 2>/dev/null)");
        }
    }
}

fn in_folder(folder: &Path, line: &str) -> String {
    let folder = folder.display();
    format!("cd '{folder}' && export SLURM_CONF='{folder}/slurm.conf' PATH=$PATH:/usr/sbin:/sbin && {line}")
}
