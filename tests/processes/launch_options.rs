//! Options of launched programs: `program NAME options…`.

use super::started;
use onesided::{Deps, Group, Launch, ProgramResult, Rank};
use rdma_fabric::Fabric;
use std::process::ExitCode;

/// Rank 0 puts data and then a flag. Without a flush between the two, the flag may come first.
async fn flagged(fabric: Fabric, flushes: bool) -> ProgramResult<()> {
    let memory = fabric.alloc_symmetric(16).await?;
    let mut world = Group::world(&fabric).await?;
    let to = |offset| fabric.remote_word::<u64>(memory.at(Rank::new(1), offset));
    if fabric.rank() == Rank::new(0) {
        fabric.put_word(&to(0)?, 7).await?;
        if flushes {
            fabric.flush(Rank::new(1)).await?;
        }
        fabric.put_word(&to(8)?, 1).await?;
    } else {
        fabric.wait_until(&memory.word::<u64>(&fabric, 8)?, Deps::One(Rank::new(0)), |flag| flag == 1).await?;
        let data = fabric.load(&memory.word::<u64>(&fabric, 0)?)?;
        if data != 7 {
            return Err(format!("the flag is there, the data is {data}").into());
        }
    }
    Ok(world.barrier().await?)
}

/// Waits, on both ranks, for the other one.
async fn embrace(fabric: Fabric) -> ProgramResult<()> {
    let word = fabric.alloc_symmetric(8).await?;
    fabric.wait_until(&word.word::<u64>(&fabric, 0)?, Deps::All, |value| value == 1).await?;
    Ok(())
}

/// Runs the program of this name.
pub(super) fn program(name: &str) -> ExitCode {
    let nothing = |rest: Vec<_>| if rest.len() == 2 { Ok(()) } else { Err(format!("{rest:?}")) };
    match name {
        "unflushed" => {
            onesided::launch_with("", |rest| nothing(rest).map(|()| async move |fabric| flagged(fabric, false).await))
        }
        "flushed" => {
            onesided::launch_with("", |rest| nothing(rest).map(|()| async move |fabric| flagged(fabric, true).await))
        }
        _ => onesided::launch_with("", |rest| nothing(rest).map(|()| embrace)),
    }
}

/// Returns whether a program of two ranks succeeds with these options, and its standard error.
fn run(name: &str, options: &str) -> (bool, String) {
    let words: Vec<_> = ["program", name, "--ranks", "2"].into_iter().chain(options.split_whitespace()).collect();
    let (output, _) = started(&words);
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const SEEDS: std::ops::RangeInclusive<u32> = 1..=12;

/// Returns the seeds with which a program fails because the flag came first.
fn failing(name: &str, options: &str) -> Vec<u32> {
    let fails = |seed: &u32| {
        let (well, told) = run(name, &format!("--fabric virt --seed {seed} {options}"));
        assert_eq!(well, !told.contains("the flag is there, the data is 0"), "{told}");
        !well
    };
    SEEDS.filter(fails).collect()
}

pub(super) fn jitter_shows_what_seeds_alone_do_not() {
    assert_eq!(failing("unflushed", ""), Vec::<u32>::new(), "by ties alone");
    let shown = failing("unflushed", "--jitter 2us");
    assert!(!shown.is_empty(), "no seed of {SEEDS:?} shows a missing flush");
    assert_eq!(failing("flushed", "--jitter 2us"), Vec::<u32>::new(), "what is flushed comes first");
}

pub(super) fn a_seed_and_a_jitter_are_a_run() {
    let end = |options: &str| {
        let (_, told) = run("flushed", &format!("--fabric virt {options}"));
        told.lines().last().unwrap_or_default().to_owned()
    };
    let first = end("--seed 3 --jitter 2us");
    assert!(first.contains("trace ") && first.ends_with("seed 3, jitter 2µs"), "{first}");
    assert_eq!(end("--seed 3 --jitter 2us"), first);
    let trace = |line: &str| line.split_once("trace ").map(|(_, rest)| rest[..16].to_owned());
    assert_ne!(trace(&end("--seed 4 --jitter 2us")), trace(&first), "another seed");
    assert_ne!(trace(&end("--seed 3 --jitter 1us")), trace(&first), "another jitter");
}

pub(super) fn wrong_amounts_are_refused() {
    for (options, part) in [
        ("--fabric virt --jitter 2", "setting --jitter: `2`: it is not a number with one of the units"),
        ("--fabric threads --jitter 2us", "setting --jitter: only `--fabric virt` has it"),
        ("--fabric threads --stuck-after soon", "setting --stuck-after: `soon`: it is neither"),
        ("--fabric threads --seed 0", "setting --seed: only `--fabric virt` has it"),
        ("--platform k", "setting --platform: only `--fabric virt` has it"),
        ("--fabric virt --platform cray", "setting --platform: `cray` is not one of fx100, fx10, k, sr8000"),
        ("--bind all", "setting --bind: `all`: it is not one of none, core, numa"),
        ("there", "error: [\"program\", \"flushed\", \"there\"]"),
    ] {
        let words: Vec<_> = ["program", "flushed", "--ranks", "2"].into_iter().chain(options.split(' ')).collect();
        let (output, told) = started(&words);
        assert_eq!(output.status.code(), Some(2), "{options}: {told}");
        assert!(told.contains(part) && told.contains("\nusage: "), "{options}: {told}");
    }
    assert!(Launch::HELP.contains("--jitter AMOUNT") && Launch::HELP.contains("--stuck-after S"));
}

/// `ld.so PROGRAM --ranks 2`, with which programs are run in place of the system's loader.
#[cfg(target_os = "linux")]
pub(super) fn ranks_start_through_a_loader() {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("own mappings");
    let is_loader = |file: &&str| file.rsplit('/').next().is_some_and(|name| name.starts_with("ld"));
    let Some(loader) = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5)).find(is_loader) else {
        println!("skipped: this test is linked statically");
        return;
    };
    let own = std::env::current_exe().expect("own path");
    let own = own.to_str().expect("a path of text");
    for fabric in ["shm", "cluster", "threads"] {
        let mut command = std::process::Command::new(loader);
        command.args(["--inhibit-cache", own, "program", "flushed", "--ranks", "2", "--fabric", fabric]);
        let output = command.env_remove("ONESIDED_JOB").output().expect("the loader is there");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{fabric}: {told}");
    }
}

/// Before any is started. Few descriptors, so that a launcher that does not look starts few of them.
#[cfg(target_os = "linux")]
pub(super) fn more_ranks_than_there_is_room_for_are_refused() {
    for fabric in ["shm", "cluster", "threads"] {
        let mut limited = std::process::Command::new("sh");
        limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(std::env::current_exe().expect("own path"));
        limited.args(["program", "flushed", "--ranks", "3000000", "--fabric", fabric]).env_remove("ONESIDED_JOB");
        let output = limited.output().expect("there is a shell");
        let told = String::from_utf8_lossy(&output.stderr);
        let parts = ["3000000 ranks need ", " leaves ", "--fabric virt"];
        assert!(output.status.code() == Some(1) && parts.iter().all(|part| told.contains(part)), "{fabric}: {told}");
        assert_eq!(told.lines().count(), 1, "{fabric}: {told}");
    }
}

pub(super) fn ranks_are_given_as_everywhere() {
    for ranks in ["--ranks=2", "--ranks 2", "-n 2", "-n=2"] {
        let words: Vec<_> = ["program", "flushed", "--fabric=threads"].into_iter().chain(ranks.split(' ')).collect();
        let (output, told) = started(&words);
        assert!(output.status.success(), "{ranks}: {told}");
    }
    let (output, told) = started(&["program", "flushed", "--version"]);
    let version = concat!("onesided ", env!("CARGO_PKG_VERSION"), "\n");
    assert!(output.status.success() && told == version, "{told}");
}

pub(super) fn a_deadlock_is_told_on_every_fabric() {
    let fabrics: &[&str] = if cfg!(target_os = "linux") { &["shm", "threads", "virt"] } else { &["threads", "virt"] };
    for fabric in fabrics {
        let (well, told) = run("embrace", &format!("--fabric {fabric} --stuck-after 0.2"));
        assert!(!well, "{fabric}: {told}");
        for rank in 0..2 {
            let waits = format!("  rank {rank} waits for ");
            let is_named = |line: &str| line.starts_with(&waits) && line.contains("the word at byte 0 of its region ");
            assert!(told.lines().any(is_named), "{fabric}: {told}");
        }
    }
}
