//! The watchdog names a test that hangs, and ends its process.

use fabric_conformance::watchdog::{LIMIT_VARIABLE, watch, watch_test};
use rdma_fabric::{Fabric, ProgramResult};
use std::{
    env,
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};
use tofu2_shm::Threads;

/// The environment variable that is set for a child; without it, the child's tests do nothing.
const CHILD: &str = "WATCHDOG_CHILD";

/// Runs tests of this binary as a child, under a limit of `seconds`.
fn run(tests: &[&str], seconds: &str) -> Output {
    let mut command = Command::new(env::current_exe().expect("the running test has a path"));
    command.arg("--exact").args(tests).env(CHILD, "").env(LIMIT_VARIABLE, seconds);
    command.output().expect("to run myself")
}

fn is_child() -> bool {
    env::var_os(CHILD).is_some()
}

/// Waits until the watchdog ends the process.
fn hang() -> ! {
    loop {
        thread::park();
    }
}

/// For [`a_job_that_hangs_is_named`].
#[test]
fn one_rank_polls() {
    if !is_child() {
        return;
    }
    watch_test();
    let _ = Threads::new(2).run(&async |fabric: Fabric| match fabric.rank().number() {
        0 => Ok(()),
        _ => hang(),
    });
}

/// For [`a_watched_name_is_reported`].
#[test]
fn hangs_under_a_name() {
    if !is_child() {
        return;
    }
    let _watched = watch("suite::case");
    hang();
}

/// For [`a_test_that_ends_is_not_watched`].
#[test]
fn ends() {
    if !is_child() {
        return;
    }
    watch_test();
    Threads::new(2).run(&async |_: Fabric| -> ProgramResult<()> { Ok(()) }).expect("two ranks that end");
    drop(watch("one that ends"));
}

/// For [`a_test_that_ends_is_not_watched`].
#[test]
fn takes_longer_than_the_limit_unwatched() {
    if !is_child() {
        return;
    }
    thread::sleep(Duration::from_millis(1500));
}

/// For [`each_job_has_the_whole_limit`].
#[test]
fn several_jobs() {
    if !is_child() {
        return;
    }
    for _ in 0..4 {
        watch_test();
        thread::sleep(Duration::from_secs(1));
    }
}

#[track_caller]
fn expires(test: &str, named: &str) {
    let start = Instant::now();
    let Output { status, stderr, .. } = run(&[test], "1");
    let (took, stderr) = (start.elapsed(), String::from_utf8_lossy(&stderr));
    assert!(!status.success(), "{stderr}");
    let said = stderr.lines().find(|line| line.starts_with("watchdog: ")).unwrap_or_else(|| panic!("{stderr}"));
    assert!(said.contains(named) && said.contains("has not ended after 1s"), "{said}");
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(60), "{took:?}");
}

#[test]
fn a_job_that_hangs_is_named() {
    expires("one_rank_polls", "test one_rank_polls (started at crates/fabric-conformance/tests/watchdog.rs:");
}

#[test]
fn a_watched_name_is_reported() {
    expires("hangs_under_a_name", "test suite::case has");
}

#[test]
fn a_test_that_ends_is_not_watched() {
    let ended = run(&["ends", "takes_longer_than_the_limit_unwatched"], "1");
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn each_job_has_the_whole_limit() {
    let ended = run(&["several_jobs"], "3");
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
fn a_limit_that_is_no_number_is_refused() {
    let ended = run(&["ends"], "soon");
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(!ended.status.success() && out.contains("TEST_WATCHDOG_SECONDS is \"soon\""), "{ended:?}");
}
