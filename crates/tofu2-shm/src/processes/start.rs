//! Starting the ranks of a job.

use super::{
    super::job::Job,
    attach::JobVariable,
    broker::{Broker, BrokerAddress},
    inherit::{self, FILE_NAME},
    launcher::{JOB_VARIABLE, Launcher, NO_HANDLERS},
    memory_file::{self, refused},
    placement::{self, affinity},
    signals::Signals,
    stderr::Relay,
    supervise::{RankProcess, Supervisor},
};
use crate::{
    JobError, admission,
    job::{Control, Plan},
    memory::{Mapping, layout, mapping::MappedFile},
    queues::config::QueueOptions,
};
use core::sync::atomic::Ordering::Relaxed;
use rdma_fabric::FabricError;
use rustix::{
    fs::{Access, access},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
    rand::{GetRandomFlags, getrandom},
    time::{ClockId, clock_gettime},
};
use std::{
    env,
    ffi::OsStr,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Instant,
};

/// Returns the system's monotonic clock, which all processes share.
pub(crate) fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Runs the launcher's command as all ranks. Returns the exit code.
pub(crate) fn run(launcher: &Launcher) -> Result<i32, JobError> {
    let Some((program, args)) = &launcher.command else {
        let problem = "a launcher needs a command to run".to_owned();
        return Err(FabricError::setting("command", problem).into());
    };
    let options = &launcher.options;
    let plan = options.plan(monotonic_ns())?;
    look_up(program, launcher).map_err(|error| cannot_run(program, &error))?;
    admission::of_processes(&plan)?;
    let bound = placement::of_job(options.bind, plan.ranks)?;
    // Before any child exists, so that no signal leaves one behind.
    let signals = Signals::catch()?;
    let Created { job, file, broker } = create(plan, options.queues)?;
    let number = job.control.word(layout::JOB).load(Relaxed);
    let mut supervisor = Supervisor::new(job, broker, signals, launcher.grace, options.stuck_after);
    for rank in 0..plan.ranks {
        let variable = JobVariable {
            rank: rank as u32,
            ranks: plan.ranks,
            segment_bytes: plan.heap_bytes,
            memory: file.as_raw_fd(),
            job: number,
        };
        let mut command = Command::new(program);
        command.envs(NO_HANDLERS.iter().filter(|name| env::var_os(name).is_none()).map(|name| (name, "1")));
        let environment = launcher.environment.iter().map(|(name, value)| (name, value));
        command.args(args).envs(environment).env(JOB_VARIABLE, variable.to_string()).stderr(Stdio::piped());
        if launcher.discard_stdout {
            command.stdout(Stdio::null());
        }
        if rank > 0 {
            command.stdin(Stdio::null());
        }
        let cpus = bound.get(rank);
        inherit::pass_on(&mut command, file.clone(), cpus.map(|cpus| affinity::set_of(cpus)));
        let child = command.spawn().map_err(|error| match Errno::from_io_error(&error) {
            // This is not the command's fault.
            Some(errno @ (Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE)) => refused(&"spawn")(errno),
            _ => match cpus {
                None => cannot_run(program, &error),
                Some(cpus) => FabricError::setting(
                    "command",
                    format!("{} can't be run as rank {rank} on CPUs {cpus:?}: {error}", program.display()),
                ),
            },
        })?;
        supervisor.add(process(rank, child)?);
    }
    drop(file);
    supervisor.run()
}

/// Finds the program, so that a job that can't start takes no resources.
///
/// # Errors
/// That of the system: there is no such file, or it may not be executed.
fn look_up(program: &OsStr, launcher: &Launcher) -> io::Result<()> {
    let found = |path: &Path| -> io::Result<()> {
        if !path.metadata()?.is_file() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(access(path, Access::EXEC_OK)?)
    };
    if program.as_bytes().contains(&b'/') {
        return found(Path::new(program));
    }
    // The ranks' own variable applies, as it does when they are started.
    let of_ranks = launcher.environment.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.clone());
    let path = of_ranks.or_else(|| env::var_os("PATH")).unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut refused = io::Error::from(Errno::NOENT);
    for directory in env::split_paths(&path) {
        match found(&directory.join(program)) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => refused = error,
            Err(_) => {}
        }
    }
    Err(refused)
}

fn cannot_run(program: &OsStr, error: &io::Error) -> FabricError {
    FabricError::setting("command", format!("{} can't be run: {error}", program.display()))
}

/// Starts watching a child that was just started; kills it if that is impossible.
fn process(rank: usize, mut child: std::process::Child) -> Result<RankProcess, FabricError> {
    let watch = || {
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).map_err(refused(&"pidfd_open"))?;
        let relay = child.stderr.take().map(|pipe| Relay::new(rank, pipe)).transpose().map_err(refused(&"fcntl"))?;
        Ok((pidfd, relay))
    };
    let mut watch = watch;
    match watch() {
        Ok((pidfd, relay)) => Ok(RankProcess::new(rank, child, pidfd, relay)),
        Err(error) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

/// A job, the file that its ranks inherit, and the broker with which they deposit other files.
struct Created {
    job: Arc<Job>,
    file: Arc<OwnedFd>,
    broker: Broker,
}

fn create(plan: Plan, queues: QueueOptions) -> Result<Created, FabricError> {
    let LaidOut { block, whole, file } = lay_out(&plan, queues)?;
    let broker = BrokerAddress::of(&block).listen()?;
    let job = Arc::new(Job::new(block, plan, plan.segments_in(&whole), Instant::now()));
    Ok(Created { job, file: Arc::new(file), broker })
}

/// The memory file of a job to which no rank has attached.
pub(crate) struct LaidOut {
    pub(crate) block: Control,
    pub(crate) whole: Arc<MappedFile>,
    pub(crate) file: OwnedFd,
}

/// Makes the memory file of a job. The plan must have been checked.
pub(crate) fn lay_out(plan: &Plan, queues: QueueOptions) -> Result<LaidOut, FabricError> {
    let (control_bytes, len) = (plan.control_bytes(), plan.segment_at(plan.ranks));
    let file = memory_file::create(FILE_NAME, len, control_bytes)?;
    for rank in 0..plan.ranks {
        memory_file::reserve(&file, plan.segment_at(rank), layout::RESERVED)
            .map_err(|error| error.unwrap_or_else(|| refused(&"fallocate")(Errno::NOSPC)))?;
    }
    let whole = MappedFile::new(&file, len)?;
    let mut random = [0; 16];
    getrandom(&mut random, GetRandomFlags::empty()).map_err(refused(&"getrandom"))?;
    let block = Control::create(Mapping::of_file(&whole, 0, control_bytes, control_bytes), plan);
    for (at, bytes) in [layout::JOB, layout::SECRET].into_iter().zip(random.as_chunks().0) {
        block.word(at).store(u64::from_ne_bytes(*bytes), Relaxed);
    }
    block.word(layout::QUEUE_OPTIONS).store(queues.to_bits()?, Relaxed);
    Ok(LaidOut { block, whole, file })
}
