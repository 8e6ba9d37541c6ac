//! When a resource is exhausted (registered memory, descriptors, address space, file size), the
//! result is an error that names it, and nothing is left behind. This program runs itself as a
//! process whose limits it lowers (`limited <scenario>`).

use crate::children::{end, open_files, start};
use process_tests::Case;
use rdma_fabric::{Fabric, FabricError, ProgramResult};
use rustix::{
    io::Errno,
    process::{Resource, Rlimit, WaitOptions, getrlimit, setrlimit, wait},
};
use std::{path::Path, process::ExitCode};
use tofu2_sim::{
    JobError,
    shm::{Launcher, Threads},
    virt::{Job, Platform},
};

/// Scenarios that run as a process whose limits are lowered.
const LIMITED: [(&str, fn()); 6] = [
    ("simulation", simulation),
    ("large_regions", large_regions),
    ("descriptors", descriptors),
    ("address_space", address_space),
    ("file_size", file_size),
    ("ranks", ranks),
];

/// Returns the cases that start such a process.
pub(crate) fn limited_cases() -> impl Iterator<Item = Case> {
    LIMITED.into_iter().map(|(name, _)| Case::new(format!("exhaustion::{name}"), move || in_child(name)))
}

fn in_child(scenario: &str) {
    let ended = end(start(&["limited", scenario], &[("MALLOC_ARENA_MAX", "1")]));
    print!("{}", ended.out);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}

/// Ranks that are processes: without a check they would take all of the machine's memory before
/// anything refuses.
pub(crate) fn processes_with_large_regions() {
    let own = std::env::current_exe().expect("own path");
    let launcher = Launcher::new(2).segment_bytes(2 << 40).command(own, ["large-rank"]);
    assert_eq!(launcher.run().expect("a job"), 17);
}

async fn nothing(fabric: Fabric) -> ProgramResult<usize> {
    Ok(fabric.ranks())
}

/// Runs as the process whose limits are lowered.
pub(crate) fn limited(scenario: &str) -> ExitCode {
    match LIMITED.iter().find(|(name, _)| *name == scenario) {
        Some((_, run)) => run(),
        None if scenario == "group" => group(),
        None => panic!("no scenario {scenario}"),
    }
    ExitCode::SUCCESS
}

fn lower(resource: Resource, to: u64) {
    setrlimit(resource, Rlimit { current: Some(to), ..getrlimit(resource) }).expect("a lower limit");
}

/// Returns the size of the address space in use, in bytes.
fn address_space_used() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("procfs");
    let pages: u64 = text.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    pages * rustix::param::page_size() as u64
}

pub(crate) fn no_children() {
    assert!(matches!(wait(WaitOptions::NOHANG), Err(Errno::CHILD)), "a process is left");
}

/// Returns the call that was refused, and the reason.
fn refused<T: std::fmt::Debug>(outcome: Result<T, JobError>) -> (&'static str, Errno) {
    match outcome {
        Err(JobError::Fabric(FabricError::System { call, errno })) => (call, Errno::from_raw_os_error(errno)),
        other => panic!("not refused by the system: {other:?}"),
    }
}

/// Returns the resource for lack of which a job was refused, and the limit.
fn too_many<T: std::fmt::Debug>(outcome: Result<T, JobError>) -> (&'static str, String) {
    match outcome {
        Err(JobError::TooManyRanks { what, needed, available, limit, .. }) => {
            assert!(needed > available, "{needed} of {available}");
            (what, limit.into_owned())
        }
        other => panic!("not too many ranks: {other:?}"),
    }
}

/// Allows one more descriptor each time, until there are enough: each step of starting a job hits
/// the limit once.
fn descriptors() {
    let launcher = Launcher::new(3).segment_bytes(1 << 16).command("true", [""; 0]);
    // The first job opens the files that stay open.
    assert_eq!(launcher.run().expect("a job"), 0);
    let most = getrlimit(Resource::Nofile);
    let before = open_files();
    let mut calls = Vec::new();
    for spare in 0.. {
        // Counting takes a descriptor itself.
        let limit = (before - 1 + spare) as u64;
        setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..most }).expect("a limit");
        let outcome = launcher.run();
        setrlimit(Resource::Nofile, most).expect("the old limit");
        assert_eq!(open_files(), before, "files left open, {spare} to spare: {outcome:?}");
        no_children();
        if let Ok(code) = outcome {
            // From some number on, the launcher has enough descriptors but the programs that it
            // starts do not.
            if code == 0 {
                break;
            }
            continue;
        }
        if let Err(JobError::TooManyRanks { what, .. }) = outcome {
            assert_eq!(what, "file descriptors of the launcher");
            calls.push(what);
            continue;
        }
        let (call, errno) = refused(outcome);
        assert_eq!(errno, Errno::MFILE, "{call}");
        calls.push(call);
        assert!(spare < 100, "never enough");
    }
    calls.dedup();
    println!("refused in turn: {calls:?}");
    assert_eq!(calls.first(), Some(&"file descriptors of the launcher"), "before anything is taken");
}

fn address_space() {
    let before = open_files();
    // Leaves room in the heap for allocations of threads as they start: if these are refused, the C
    // library ends the process.
    let pieces: Vec<Box<[u8]>> = (0..4096).map(|_| vec![0; 1024].into_boxed_slice()).collect();
    let _keeps_them_in_the_heap = Box::new([0_u8; 1024]);
    drop(std::hint::black_box(pieces));
    lower(Resource::As, address_space_used() + (256 << 20));
    let no_room = ("bytes of address space", "RLIMIT_AS".to_owned());
    assert_eq!(too_many(Launcher::new(2).segment_bytes(1 << 30).command("true", [""; 0]).run()), no_room);
    assert_eq!(open_files(), before);
    no_children();
    assert_eq!(too_many(Threads::new(2).segment_bytes(1 << 30).run(&nothing)), no_room);
    // Segments fit, but stacks don't.
    assert_eq!(too_many(Threads::new(400).segment_bytes(4096).run(&nothing)), no_room);
    assert_eq!(Threads::new(2).segment_bytes(4096).run(&nothing).expect("enough again"), [2, 2]);
}

/// Writes a word in each 64 KiB of a region of `bytes` bytes: simulated memory is stored where it is
/// written.
async fn fill(fabric: Fabric, bytes: usize) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(bytes).await?;
    for at in (0..bytes).step_by(64 << 10) {
        fabric.store(&region.word::<u64>(&fabric, at)?, 1)?;
    }
    Ok(())
}

/// Simulated ranks, and simulated memory, for which this process has no room.
fn simulation() {
    lower(Resource::As, address_space_used() + (512 << 20));
    let job = |ranks| Job::new(&Platform::fx100(), ranks);
    match job((1 << 24) - 1).run(&nothing).map(|run| run.outs.len()) {
        Err(JobError::TooLittleMemory { what, needed, available, .. }) => {
            println!("{what}: {needed} of {available}");
            assert!(what.starts_with("16777215 simulated ranks of ") && needed > available, "{what}");
            // The estimate is realistic: a rank takes a few hundred bytes.
            assert!((1 << 30..16 << 30).contains(&needed), "{needed}");
        }
        other => panic!("{other:?}"),
    }
    // There is room for half of the region, by pages, and then not for the whole one.
    match job(2).run(&async |fabric| fill(fabric, 768 << 20).await).map(|run| run.outs.len()) {
        Err(JobError::TooLittleMemory { needed, available, .. }) => {
            assert!(needed == 768 << 20 && available <= 512 << 20, "{needed} of {available}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(job(1000).run(&nothing).expect("enough again").outs, [1000; 1000]);
}

/// Regions larger than any machine's memory, in segments that are large enough for them.
fn large_regions() {
    let asked = 1 << 40;
    let refused = |outcome: Result<Vec<()>, JobError>| match outcome {
        Err(JobError::RankFailed { error, .. }) => error.to_string(),
        // So much memory can't even be promised, or mapped.
        Err(error @ JobError::Fabric(FabricError::System { call: &"alloc", .. })) => error.to_string(),
        Err(error @ JobError::TooManyRanks { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    println!("{}", refused(Threads::new(2).segment_bytes(2 << 40).run(&async |fabric| fill(fabric, asked).await)));
    let error = refused(Threads::new(2).run(&async |fabric| fill(fabric, asked).await));
    assert!(error.contains("cannot register 1099511627776 bytes"), "{error}");
    let outcome = Job::new(&Platform::fx100(), 2).run(&async |fabric| fill(fabric, asked).await).map(|run| run.outs);
    let error = refused(outcome);
    assert!(error.contains("cannot register 1099511627776 bytes: 34359738368 of"), "{error}");
}

/// Runs as a rank of the case `processes_with_large_regions`.
pub(crate) fn large_rank() -> ExitCode {
    let endpoint = tofu2_sim::shm::from_env().expect("a rank").expect("a rank");
    match tofu2_sim::shm::run_rank(endpoint, &async |fabric| fill(fabric, 1 << 40).await) {
        Err(JobError::RankFailed { error, .. }) => {
            println!("{error}");
            let text = error.to_string();
            let limit = text.split_once("2 ranks ask for as much on this machine, and ").map(|(_, rest)| rest);
            let is_named = limit.is_some_and(|rest| rest.contains(" leaves ") && !rest.starts_with(" leaves"));
            ExitCode::from(if is_named { 17 } else { 1 })
        }
        _ => ExitCode::FAILURE,
    }
}

/// Ranks for which this machine has no room, with and without a program. The address space is
/// lowered, so that a launcher without the check could not take the resources it needs.
fn ranks() {
    let before = open_files();
    lower(Resource::As, address_space_used() + (256 << 20));
    let launcher = Launcher::new(3_000_000);
    match launcher.clone().command("no-such-program-in-any-directory", [""; 0]).run() {
        Err(JobError::Fabric(FabricError::Setting(wrong))) => {
            assert!(wrong.problem.contains("can't be run: No such file"), "{wrong}");
        }
        other => panic!("{other:?}"),
    }
    let error = launcher.command("true", [""; 0]).run().unwrap_err().to_string();
    println!("{error}");
    assert!(error.starts_with("3000000 ranks need ") && error.ends_with("`--fabric virt`)"), "{error}");
    let error = Threads::new(3_000_000).run(&nothing).unwrap_err().to_string();
    assert!(error.starts_with("3000000 ranks need ") && error.ends_with("`--fabric virt`)"), "{error}");
    assert_eq!(open_files(), before);
    no_children();
}

/// Runs a child in a memory control group of 256 MiB (version 1 or 2), if this process may make one.
pub(crate) fn group_of_256_mib() {
    let (first, second) = (Path::new("/sys/fs/cgroup/memory"), Path::new("/sys/fs/cgroup"));
    let name = format!("onesided-test-{}", std::process::id());
    let made = [(first, "memory.limit_in_bytes"), (second, "memory.max")].into_iter().find_map(|(at, limit)| {
        let group = at.join(&name);
        std::fs::create_dir(&group).ok()?;
        let limited = std::fs::write(group.join(limit), (256 << 20).to_string());
        if limited.is_err() {
            let _ = std::fs::remove_dir(&group);
        }
        limited.ok().map(|()| group)
    });
    let Some(group) = made else {
        println!("SKIPPED: a job in a memory control group (none can be made here)");
        return;
    };
    let ended = std::panic::catch_unwind(|| {
        let join = group.join("cgroup.procs");
        let ended = end(start(&["limited", "group"], &[("ONESIDED_TEST_GROUP", join.to_str().expect("a path"))]));
        print!("{}", ended.out);
        assert_eq!(ended.code(), Some(0), "{}", ended.printed());
    });
    let removed = std::fs::remove_dir(&group);
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    removed.expect("an empty group");
}

/// Runs as a process in a group of 256 MiB: allocations that fit succeed, others are refused, and
/// no process is killed.
fn group() {
    let join = std::env::var("ONESIDED_TEST_GROUP").expect("a group");
    std::fs::write(join, std::process::id().to_string()).expect("to join it");
    let error = Launcher::new(1000).segment_bytes(1 << 20).command("true", [""; 0]).run().unwrap_err().to_string();
    println!("{error}");
    assert!(error.starts_with("1000 ranks need ") && error.contains("of the control group /onesided-test-"), "{error}");
    let own = std::env::current_exe().expect("own path");
    for part in ["one", "many", "together"] {
        let launcher = Launcher::new(2).segment_bytes(1 << 30).command(&own, ["group-rank", part]);
        assert_eq!(launcher.run().expect("a job"), 17, "{part}");
    }
    let error = Threads::new(2).segment_bytes(1 << 30).run(&async |fabric| fill_up(fabric, "many").await).unwrap_err();
    assert!(error.to_string().contains("cannot register"), "{error}");
    match Job::new(&Platform::fx100(), 2).run(&async |fabric| fill(fabric, 300 << 20).await).map(|run| run.outs) {
        Err(JobError::TooLittleMemory { limit, .. }) => assert!(limit.contains("control group"), "{limit}"),
        other => panic!("{other:?}"),
    }
}

/// Registers and writes more than the group has: in one region, in many, or symmetrically.
async fn fill_up(fabric: Fabric, part: &str) -> ProgramResult<()> {
    let mut all = Vec::new();
    let bytes = if part == "many" { 700 << 10 } else { 300 << 20 };
    loop {
        let region = if part == "together" { fabric.alloc_symmetric(bytes).await? } else { fabric.alloc(bytes)? };
        for at in (0..bytes).step_by(4096) {
            fabric.store(&region.word::<u64>(&fabric, at)?, 1)?;
        }
        all.push(region);
    }
}

/// Runs as a rank of the case `group_of_256_mib`.
pub(crate) fn group_rank(part: &str) -> ExitCode {
    let endpoint = tofu2_sim::shm::from_env().expect("a rank").expect("a rank");
    match tofu2_sim::shm::run_rank(endpoint, &async |fabric| fill_up(fabric, part).await) {
        Err(JobError::RankFailed { error, .. }) => {
            println!("{error}");
            ExitCode::from(if error.to_string().contains("cannot register") { 17 } else { 1 })
        }
        _ => ExitCode::FAILURE,
    }
}

fn file_size() {
    let before = open_files();
    lower(Resource::Fsize, 1 << 20);
    // Otherwise the system would end the process by a signal.
    let no_room = ("bytes of shared memory in one file", "RLIMIT_FSIZE".to_owned());
    assert_eq!(too_many(Launcher::new(2).command("true", [""; 0]).run()), no_room);
    assert_eq!(open_files(), before);
    no_children();
}
