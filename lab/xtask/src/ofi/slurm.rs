//! A private Slurm: munged, slurmctld and one slurmd, with all their files in one folder.
//!
//! The only node is called `localhost`, a name that every machine can resolve: without PMI, ranks
//! reach the coordinator by it.

pub(crate) mod configuration;

use super::{bounded::end, launcher::installed};
use configuration::{Host, SOCKET, cgroup_configuration, configuration, munged};
use std::{
    env,
    fs::{self, File, Permissions},
    io::{self, Read, Write as _},
    net::TcpListener,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The time that the daemons may take to be ready.
const READY: Duration = Duration::from_secs(20);

/// The programs that must be installed.
pub(crate) const DAEMONS: [&str; 3] = ["munged", "slurmctld", "slurmd"];

/// The daemons. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Slurm {
    configuration: PathBuf,
    /// In the order in which they were started.
    daemons: Vec<Child>,
    /// The kinds of `--mpi` that it has.
    kinds: String,
}

impl Slurm {
    /// Starts the daemons, with their files in a new folder.
    ///
    /// # Errors
    /// The reason why it cannot be started here.
    pub(crate) fn start(folder: &Path) -> Result<Self, String> {
        installed("srun")?;
        for daemon in DAEMONS {
            let found = in_system_folders(daemon).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
            found.map_err(|error| format!("{daemon} can't be started: {error}"))?;
        }
        let mut slurm = Slurm { configuration: folder.join("slurm.conf"), daemons: Vec::new(), kinds: String::new() };
        slurm.begin(folder).map_err(|error| format!("Slurm can't be started: {error}"))?;
        if !slurm.is_ready() {
            let log = fs::read_to_string(folder.join("slurmd.log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or("its log is empty").to_owned();
            return Err(format!("Slurm's node was not ready within {READY:?}: {last}"));
        }
        let kinds = Command::new("srun").arg("--mpi=list").env("SLURM_CONF", &slurm.configuration).output();
        let kinds = kinds.map_err(|error| format!("srun: {error}"))?;
        slurm.kinds = [kinds.stdout, kinds.stderr].iter().map(|text| String::from_utf8_lossy(text)).collect();
        Ok(slurm)
    }

    fn begin(&mut self, folder: &Path) -> io::Result<()> {
        for part in ["", "state", "spool"] {
            fs::create_dir_all(folder.join(part))?;
        }
        let (key, socket) = (folder.join("munge.key"), folder.join(SOCKET));
        let mut bytes = [0; 1024];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        File::create(&key)?.write_all(&bytes)?;
        fs::set_permissions(&key, Permissions::from_mode(0o400))?;
        let name = fs::read_to_string("/proc/sys/kernel/hostname")?;
        let host = name.trim().split('.').next().unwrap_or_default();
        let here =
            |port| Host { name: "localhost".to_owned(), host: host.to_owned(), address: "127.0.0.1".to_owned(), port };
        let (controller, node) = (here(free_port()?), here(free_port()?));
        let user = rustix::process::geteuid().as_raw();
        fs::write(&self.configuration, configuration(folder, user, &controller, &[node]))?;
        fs::write(folder.join("cgroup.conf"), cgroup_configuration())?;
        let munged = [munged(folder), vec!["--foreground".to_owned()]].concat();
        self.daemon("munged", &munged, folder)?;
        let begun = Instant::now();
        while !socket.exists() && begun.elapsed() < READY {
            thread::sleep(Duration::from_millis(10));
        }
        let configured = ["-D".to_owned(), "-f".to_owned(), self.configuration.display().to_string()];
        self.daemon("slurmctld", &configured, folder)?;
        self.daemon("slurmd", &[&configured[..], &["-N".to_owned(), "localhost".to_owned()]].concat(), folder)
    }

    /// Starts a daemon that remains a child of this process, in a separate process group.
    fn daemon(&mut self, name: &str, words: &[String], folder: &Path) -> io::Result<()> {
        let said = File::create(folder.join(format!("{name}.said")))?;
        let mut command = in_system_folders(name);
        command.args(words).env("SLURM_CONF", &self.configuration).current_dir(folder).process_group(0);
        command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        self.daemons.push(command.spawn()?);
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < READY {
            let mut sinfo = Command::new("sinfo");
            sinfo.args(["--noheader", "--format=%t"]).env("SLURM_CONF", &self.configuration).stderr(Stdio::null());
            if sinfo.output().is_ok_and(|told| told.stdout.trim_ascii() == b"idle") {
                return true;
            }
            if self.daemons.iter_mut().any(|daemon| !matches!(daemon.try_wait(), Ok(None))) {
                return false;
            }
            thread::sleep(Duration::from_millis(50));
        }
        false
    }

    /// Returns the beginning of a command that starts ranks with this kind of `--mpi`.
    ///
    /// # Errors
    /// If this Slurm does not support this kind.
    pub(crate) fn srun(&self, mpi: &str) -> Result<Command, String> {
        if !has_kind(&self.kinds, mpi) {
            return Err(format!("this Slurm has no --mpi={mpi}"));
        }
        let mut command = Command::new("srun");
        command.arg(format!("--mpi={mpi}")).env("SLURM_CONF", &self.configuration);
        Ok(command)
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Job steps first: they are not children of the daemons.
        let mut cancel = Command::new("scancel");
        cancel.args(["--quiet", "--state=RUNNING", "--partition=all"]).env("SLURM_CONF", &self.configuration);
        let _ = cancel.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        for daemon in self.daemons.iter_mut().rev() {
            let _ = end(daemon);
        }
    }
}

/// Returns whether a kind of `--mpi` is among those that `srun --mpi=list` printed.
pub(crate) fn has_kind(listed: &str, mpi: &str) -> bool {
    listed.split_whitespace().any(|kind| kind.trim_end_matches(',') == mpi)
}

/// Returns the command of this name, which may be in a directory that only administrators search.
pub(crate) fn in_system_folders(name: &str) -> Command {
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
    command
}

/// Returns a port that is not in use.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
