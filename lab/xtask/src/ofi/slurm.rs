//! A private Slurm: munged, slurmctld and one slurmd, with all their files in one folder.
//!
//! The only node is called `localhost`, a name that every machine can resolve: without PMI, ranks
//! reach the coordinator by it.

use super::{bounded::end, launcher::installed};
use std::{
    env,
    fmt::Write as _,
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
        for daemon in ["munged", "slurmctld", "slurmd"] {
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
        let (key, socket) = (folder.join("munge.key"), folder.join("munge.socket"));
        let mut bytes = [0; 1024];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        File::create(&key)?.write_all(&bytes)?;
        fs::set_permissions(&key, Permissions::from_mode(0o400))?;
        fs::write(&self.configuration, configuration(folder, &socket)?)?;
        fs::write(folder.join("cgroup.conf"), format!("CgroupPlugin={}\n", cgroup_plugin()))?;
        let file = |option: &str, name: &str| format!("--{option}={}", folder.join(name).display());
        // `--force`: munged rejects parent folders that others may write, such as that of temporary
        // files.
        let munged = [
            file("key-file", "munge.key"),
            file("socket", "munge.socket"),
            file("pid-file", "munged.pid"),
            file("log-file", "munged.log"),
            file("seed-file", "munge.seed"),
            "--foreground".to_owned(),
            "--force".to_owned(),
        ];
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
        if !self.kinds.split_whitespace().any(|kind| kind.trim_end_matches(',') == mpi) {
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

/// Returns the command of this name, which may be in a directory that only administrators search.
fn in_system_folders(name: &str) -> Command {
    let path = env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command.env("PATH", format!("{path}:/usr/local/sbin:/usr/sbin:/sbin"));
    command
}

/// Returns the plugin for control groups: no groups are created here, but versions before 23.02
/// require one anyway.
fn cgroup_plugin() -> &'static str {
    let told = in_system_folders("slurmd").arg("-V").output().map(|told| told.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&told).into_owned();
    let year = text.split_whitespace().nth(1).and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    if year.is_some_and(|year| year < 23) { "cgroup/v1" } else { "disabled" }
}

/// Returns a port that is not in use.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

fn configuration(folder: &Path, socket: &Path) -> io::Result<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname")?;
    let host = name.trim().split('.').next().unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    let (controller, node) = (free_port()?, free_port()?);
    let file = |name: &str| folder.join(name).display().to_string();
    let mut text = String::new();
    for (key, value) in [
        ("ClusterName", "here"),
        ("SlurmctldHost", &format!("{host}(127.0.0.1)")),
        ("SlurmctldPort", &controller.to_string()),
        ("SlurmUser", &user.to_string()),
        ("SlurmdUser", &user.to_string()),
        ("AuthType", "auth/munge"),
        ("AuthInfo", &format!("socket={}", socket.display())),
        ("CredType", "cred/munge"),
        ("StateSaveLocation", &file("state")),
        ("SlurmdSpoolDir", &file("spool")),
        ("SlurmctldPidFile", &file("slurmctld.pid")),
        ("SlurmdPidFile", &file("slurmd.pid")),
        ("SlurmctldLogFile", &file("slurmctld.log")),
        ("SlurmdLogFile", &file("slurmd.log")),
        ("ProctrackType", "proctrack/linuxproc"),
        ("TaskPlugin", "task/none"),
        ("SwitchType", "switch/none"),
        ("JobAcctGatherType", "jobacct_gather/none"),
        ("AccountingStorageType", "accounting_storage/none"),
        ("SelectType", "select/cons_tres"),
        ("SelectTypeParameters", "CR_Core"),
        ("MpiDefault", "none"),
        ("ReturnToService", "2"),
        ("SlurmdParameters", "config_overrides"),
        ("PropagateResourceLimits", "NONE"),
        ("NodeName", &format!("localhost NodeHostname={host} NodeAddr=127.0.0.1 Port={node} CPUs=8 State=UNKNOWN")),
        ("PartitionName", "all Nodes=localhost Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8"),
    ] {
        let _ = writeln!(text, "{key}={value}");
    }
    Ok(text)
}
