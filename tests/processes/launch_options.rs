//! Options of launched programs: `program NAME options…`.

use crate::run;
#[cfg(target_os = "linux")]
use crate::{limited, run_command};
use onesided::{Deps, Group, Launch, ProgramResult, Rank};
use process_tests::child::Ended;
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
            return Err(format!("the flag has arrived, the data is {data}").into());
        }
    }
    Ok(world.barrier().await?)
}

/// Each of the two ranks waits for the other one.
async fn deadlock(fabric: Fabric) -> ProgramResult<()> {
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
        _ => onesided::launch_with("", |rest| nothing(rest).map(|()| deadlock)),
    }
}

/// Runs a program with two ranks and these options.
fn run_pair(name: &str, options: &str) -> Ended {
    let words: Vec<_> = ["program", name, "--ranks", "2"].into_iter().chain(options.split_whitespace()).collect();
    run(&words)
}

const SEEDS: std::ops::RangeInclusive<u32> = 1..=12;

/// Returns the seeds with which a program fails because the flag came first.
fn failing(name: &str, options: &str) -> Vec<u32> {
    let fails = |seed: &u32| {
        let ended = run_pair(name, &format!("--fabric virt --seed {seed} {options}"));
        let fails = !ended.status.success();
        assert_eq!(fails, ended.err.contains("the flag has arrived, the data is 0"), "{ended:?}");
        fails
    };
    SEEDS.filter(fails).collect()
}

pub(super) fn jitter_finds_a_missing_flush_that_seeds_do_not_find() {
    assert_eq!(failing("unflushed", ""), Vec::<u32>::new(), "by ties alone");
    let found = failing("unflushed", "--jitter 2us");
    assert!(!found.is_empty(), "no seed of {SEEDS:?} finds a missing flush");
    assert_eq!(failing("flushed", "--jitter 2us"), Vec::<u32>::new(), "flushed data arrive before the flag");
}

pub(super) fn a_seed_and_a_jitter_determine_a_run() {
    let end = |options: &str| {
        let ended = run_pair("flushed", &format!("--fabric virt {options}"));
        ended.err.lines().last().unwrap_or_default().to_owned()
    };
    let first = end("--seed 3 --jitter 2us");
    assert!(first.contains("trace ") && first.ends_with("seed 3, jitter 2µs"), "{first}");
    assert_eq!(end("--seed 3 --jitter 2us"), first);
    let trace = |line: &str| line.split_once("trace ").map(|(_, rest)| rest[..16].to_owned());
    assert_ne!(trace(&end("--seed 4 --jitter 2us")), trace(&first), "another seed");
    assert_ne!(trace(&end("--seed 3 --jitter 1us")), trace(&first), "another jitter");
}

pub(super) fn wrong_options_are_refused() {
    for (options, part) in [
        ("--fabric virt --jitter 2", "setting --jitter: `2`: it is not a number with one of the units"),
        ("--fabric threads --jitter 2us", "setting --jitter: only `--fabric virt` has it"),
        ("--fabric threads --stuck-after soon", "setting --stuck-after: `soon`: it is neither"),
        ("--fabric threads --seed 0", "setting --seed: only `--fabric virt` has it"),
        ("--fabric threads --provider shm", "setting --provider: only `--fabric cluster` has it"),
        ("--fabric=shm --lease=1", "setting --lease: only `--fabric cluster` has it"),
        ("--fabric shm --env HOME", "setting --env: only `--fabric cluster` has it"),
        ("--env ONESIDED_NOWHERE", "setting --env: `ONESIDED_NOWHERE`: variables that begin with ONESIDED_"),
        ("--env NOWHERE_SET", "setting --env: `NOWHERE_SET` is not set here; give NOWHERE_SET=VALUE"),
        ("--env =1", "setting --env: `=1` is not of the form NAME or NAME=VALUE"),
        ("--platform k", "setting --platform: only `--fabric virt` has it"),
        ("--fabric virt --platform cray", "setting --platform: `cray` is not one of fx100, fx10, k, sr8000"),
        ("--bind all", "setting --bind: `all`: it is not one of none, core, numa"),
        ("word", "error: [\"program\", \"flushed\", \"word\"]"),
    ] {
        let words: Vec<_> = ["program", "flushed", "--ranks", "2"].into_iter().chain(options.split(' ')).collect();
        let ended = run(&words);
        assert_eq!(ended.code(), Some(2), "{options}: {ended:?}");
        let printed = ended.printed();
        assert!(printed.contains(part) && printed.contains("\nusage: "), "{options}: {ended:?}");
    }
    assert!(Launch::HELP.contains("--jitter AMOUNT") && Launch::HELP.contains("--stuck-after S"));
}

/// `ld.so PROGRAM --ranks 2`: the loader is the program that the system executes.
#[cfg(target_os = "linux")]
pub(super) fn ranks_start_through_the_dynamic_loader() {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("own mappings");
    let is_loader = |file: &&str| file.rsplit('/').next().is_some_and(|name| name.starts_with("ld"));
    let Some(loader) = maps.lines().filter_map(|line| line.split_ascii_whitespace().nth(5)).find(is_loader) else {
        println!("SKIPPED: ranks of a program that a loader starts (this test is linked statically)");
        return;
    };
    let own = std::env::current_exe().expect("own path");
    let own = own.to_str().expect("a path of text");
    for fabric in ["shm", "cluster", "threads"] {
        let words = ["--inhibit-cache", own, "program", "flushed", "--ranks", "2", "--fabric", fabric];
        let ended = run_command(process_tests::child::program(loader, words));
        assert!(ended.status.success(), "{fabric}: {ended:?}");
    }
}

/// Before any is started. There are few descriptors, so that a launcher without that check starts few ranks.
#[cfg(target_os = "linux")]
pub(super) fn too_many_ranks_are_refused() {
    for fabric in ["shm", "cluster", "threads"] {
        let words = ["program", "flushed", "--ranks", "3000000", "--fabric", fabric];
        let ended = run_command(limited("-n 64", &process_tests::child::this_program(words)));
        let parts = ["3000000 ranks need ", " leaves ", "--fabric virt"];
        assert!(ended.code() == Some(1) && parts.iter().all(|part| ended.err.contains(part)), "{fabric}: {ended:?}");
        assert_eq!(ended.err.lines().count(), 1, "{fabric}: {ended:?}");
    }
}

pub(super) fn each_form_of_the_number_of_ranks_is_accepted() {
    for ranks in ["--ranks=2", "--ranks 2", "-n 2", "-n=2"] {
        let words: Vec<_> = ["program", "flushed", "--fabric=threads"].into_iter().chain(ranks.split(' ')).collect();
        let ended = run(&words);
        assert!(ended.status.success(), "{ranks}: {ended:?}");
    }
    let ended = run(&["program", "flushed", "--version"]);
    let version = concat!("onesided ", env!("CARGO_PKG_VERSION"), "\n");
    assert!(ended.status.success() && ended.printed() == version, "{ended:?}");
}

pub(super) fn a_deadlock_is_reported_on_every_fabric() {
    let fabrics: &[&str] = if cfg!(target_os = "linux") { &["shm", "threads", "virt"] } else { &["threads", "virt"] };
    for fabric in fabrics {
        let ended = run_pair("deadlock", &format!("--fabric {fabric} --stuck-after 0.2"));
        assert!(!ended.status.success(), "{fabric}: {ended:?}");
        for rank in 0..2 {
            let waits = format!("  rank {rank} waits for ");
            let is_named = |line: &str| line.starts_with(&waits) && line.contains("the word at byte 0 of its region ");
            assert!(ended.err.lines().any(is_named), "{fabric}: {ended:?}");
        }
    }
}
