//! The launchers, and how each starts the ranks of an example.

use super::{combination::Combination, example::Example, slurm::Slurm};
use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tofu2_sim::shm::part::NO_HANDLERS;

/// A launcher of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// The program itself.
    Own,
    OpenMpi,
    Mpich,
    /// `srun` with this `--mpi`.
    Srun(&'static str),
}

pub(crate) const LAUNCHERS: [Launcher; 6] = [
    Launcher::Own,
    Launcher::OpenMpi,
    Launcher::Mpich,
    Launcher::Srun("none"),
    Launcher::Srun("pmi2"),
    Launcher::Srun("pmix"),
];

impl Launcher {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Launcher::Own => "onesided",
            Launcher::OpenMpi => "openmpi",
            Launcher::Mpich => "mpich",
            Launcher::Srun("pmi2") => "srun-pmi2",
            Launcher::Srun("pmix") => "srun-pmix",
            Launcher::Srun(_) => "srun",
        }
    }

    /// The variable by which a process knows its rank before it joins the job.
    fn rank_variable(self) -> &'static str {
        match self {
            Launcher::Own => "",
            Launcher::OpenMpi => "OMPI_COMM_WORLD_RANK",
            Launcher::Mpich => "PMI_RANK",
            Launcher::Srun(_) => "SLURM_PROCID",
        }
    }
}

/// The launchers of this machine.
#[derive(Debug)]
pub(crate) struct Site {
    folder: PathBuf,
    programs: PathBuf,
    secret: PathBuf,
    /// Started when it is first needed; or the reason why it can't be.
    slurm: Option<Result<Slurm, String>>,
}

impl Site {
    /// Takes the folder for files, and the one where the examples are.
    pub(crate) fn new(folder: &Path, programs: PathBuf) -> io::Result<Self> {
        let secret = folder.join("secret");
        let text = random_digits(32)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&secret)?;
        writeln!(file, "{text}")?;
        Ok(Site { folder: folder.to_owned(), programs, secret, slurm: None })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the command that runs an example.
    ///
    /// # Errors
    /// If its launcher can't be used here; the error names the reason.
    pub(crate) fn command(&mut self, combination: &Combination, example: &Example) -> Result<Command, String> {
        let mut command = self.start(combination, example)?;
        command.args(["--fabric", "cluster", "--provider", combination.provider.name]);
        if let Some(interface) = combination.provider.interface {
            command.args(["--interface", interface]);
        }
        command.args(example.words);
        // libfabric's provider for a network that is not here writes a file when a process aborts.
        command.envs(NO_HANDLERS.map(|name| (name, "1")));
        Ok(command)
    }

    /// Returns the beginning of a command, up to the program's name.
    fn start(&mut self, combination: &Combination, example: &Example) -> Result<Command, String> {
        let Combination { ranks_per_node, launcher, .. } = *combination;
        let (program, ranks) = (self.programs.join(example.name), example.ranks.to_string());
        let mut command = match launcher {
            Launcher::Own => {
                let mut command = Command::new(program);
                command.args(["--ranks", &ranks, "--ranks-per-node", &ranks_per_node.to_string()]);
                return Ok(command);
            }
            Launcher::OpenMpi => {
                let mut command = installed("mpirun.openmpi")?;
                command.args(["--oversubscribe", "-n", &ranks]);
                if rustix::process::geteuid().is_root() {
                    command.arg("--allow-run-as-root");
                }
                if example.loses_a_rank() {
                    command.arg("--enable-recovery");
                }
                command
            }
            Launcher::Mpich => {
                let mut command = installed("mpirun.mpich")?;
                command.args(["-n", &ranks]);
                command
            }
            Launcher::Srun(mpi) => {
                let slurm = self.slurm.get_or_insert_with(|| Slurm::start(&self.folder.join("slurm")));
                let slurm = slurm.as_ref().map_err(String::clone)?;
                let mut command = slurm.srun(mpi)?;
                command.args(["-n", &ranks]);
                if mpi == "none" {
                    command.env("ONESIDED_SECRET_FILE", &self.secret);
                }
                command
            }
        };
        // The number of ranks is not among the options: a program that does not find its launcher
        // is a job of one rank, which is visible in its output.
        let rank = launcher.rank_variable();
        let wrapped = format!("export ONESIDED_NODE=$(({rank} / {ranks_per_node})); exec \"$@\"");
        command.args(["sh", "-c", &wrapped, "sh"]).arg(program);
        Ok(command)
    }
}

/// Returns the hexadecimal digits of random bytes.
pub(crate) fn random_digits(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the command of this name.
///
/// # Errors
/// If there is none.
pub(crate) fn installed(name: &str) -> Result<Command, String> {
    let asked =
        Command::new(name).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match asked {
        Ok(_) => Ok(Command::new(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(format!("{name} is not installed")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}
