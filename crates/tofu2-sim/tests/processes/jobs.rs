//! The work of a launcher: it starts its ranks, forwards their output, and ends them when one
//! fails. This program is the launcher (`launch <ranks> <scenario>`), which runs it as all ranks
//! (`rank <scenario>`).

use crate::children::{command, end, expect_all_gone, open_files, start, wait_for_ranks};
use process_tests::child::Child;
use rustix::process::Signal;
use std::{
    io::{Read, pipe},
    process::ExitCode,
    time::{Duration, Instant},
};
use tofu2_sim::shm::{JOB_VARIABLE, Launcher, part::NO_HANDLERS};

/// Runs as the launcher.
pub(crate) fn launch(ranks: usize, scenario: &str) -> ExitCode {
    let program = match scenario {
        "no-such-program" => "/nonexistent/program".into(),
        "echo" => "sh".into(),
        _ => std::env::current_exe().expect("own path").into_os_string(),
    };
    let args = match scenario {
        "echo" => ["-c", "cat"],
        _ => ["rank", scenario],
    };
    // Two jobs in a row leave as many files open as one. The first only warms up.
    let launcher = Launcher::new(ranks).segment_bytes(64 << 20).grace(Duration::from_millis(400));
    if scenario == "leftovers" {
        for _ in 0..2 {
            let before = open_files();
            assert_eq!(launcher.clone().command("true", [""; 0]).run().expect("a job"), 0);
            assert!(open_files() <= before + 2, "files left open");
        }
        let before = open_files();
        launcher.clone().command("false", [""; 0]).run().expect("a job");
        launcher.clone().command("/nonexistent", [""; 0]).run().unwrap_err();
        assert_eq!(open_files(), before, "files left open");
        return ExitCode::SUCCESS;
    }
    let bound = scenario.starts_with("stuck-").then_some(Duration::from_millis(200));
    match launcher.stuck_after(bound).command(program, args).run() {
        Ok(code) => ExitCode::from(code as u8),
        Err(error) => {
            eprintln!("launcher: {error}");
            ExitCode::from(99)
        }
    }
}

fn launched(ranks: &str, scenario: &str) -> Child {
    start(&["launch", ranks, scenario], &[])
}

pub(crate) fn all_work_together() {
    for ranks in ["1", "2", "4"] {
        let ended = end(launched(ranks, "work"));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
        assert_eq!(ended.out.matches("done").count().to_string(), ranks);
    }
}

pub(crate) fn more_ranks_than_cpus() {
    let ended = end(launched("16", "work"));
    assert_eq!((ended.code(), ended.out.matches("done").count()), (Some(0), 16), "{}", ended.err);
}

pub(crate) fn memory_is_reserved_and_freed() {
    let ended = end(launched("2", "memory"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}

pub(crate) fn existing_memory_outlives_its_users() {
    let ended = end(launched("2", "inside"));
    assert_eq!((ended.code(), ended.out.matches("taken").count()), (Some(137), 1), "{}", ended.err);
    for _ in 0..20 {
        let ended = end(launched("2", "dead-owner"));
        assert_eq!((ended.code(), ended.out.matches("was lost").count()), (Some(137), 1), "{}", ended.err);
        assert!(ended.err.ends_with("rank 0: killed by signal 9 (SIGKILL)\nrank 1: exited with 1\n"), "{}", ended.err);
    }
    for _ in 0..3 {
        let ended = end(launched("2", "stopped"));
        assert_eq!((ended.code(), ended.out.matches("whole").count()), (Some(0), 1), "{}", ended.err);
    }
}

pub(crate) fn stderr_lines_carry_their_rank() {
    let ended = end(launched("2", "stderr"));
    assert_eq!(ended.code(), Some(0));
    for rank in 0..2 {
        let lines: Vec<_> =
            ended.err.lines().filter_map(|line| line.strip_prefix(&format!("[rank {rank}] "))).collect();
        assert_eq!(lines, [&format!("first of {rank}"), "second", "", "last, without an end"]);
    }
    assert!(!ended.out.contains("[rank"));
}

pub(crate) fn stdin_goes_to_rank_0() {
    let mut child = launched("3", "echo");
    child.write("hello");
    let ended = end(child);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "hello"));
}

pub(crate) fn the_exit_code_is_that_of_the_first_failure() {
    for (scenario, code, seen, how) in [
        ("code", 7, 0, ["rank 1: exited with 7", "ranks 0 and 2: ended well"]),
        ("fail", 1, 2, ["rank 1: exited with 1", "ranks 0 and 2: exited with 5"]),
        ("panic", 1, 2, ["rank 0: exited with 1", "ranks 1 and 2: exited with 5"]),
        ("kill", 137, 2, ["rank 2: killed by signal 9 (SIGKILL)", "ranks 0 and 1: exited with 5"]),
        ("leave", 1, 2, ["rank 0: exited with 0 before its end", "ranks 1 and 2: ended well"]),
        ("absent", 1, 2, ["rank 0: exited with 0 before its end", "ranks 1 and 2: ended well"]),
    ] {
        let ended = end(launched("3", scenario));
        assert_eq!(ended.code(), Some(code), "{scenario}: {}", ended.err);
        assert_eq!(ended.out.matches("was lost").count(), seen, "{scenario}: {}", ended.out);
        assert!(ended.took < Duration::from_secs(5), "{scenario}: {:?}", ended.took);
        let summary: Vec<&str> = ended.err.lines().filter(|line| !line.starts_with('[')).collect();
        assert_eq!(summary, how, "{scenario}: {}", ended.err);
    }
}

pub(crate) fn others_are_killed_after_a_grace_period() {
    let ended = end(launched("2", "stubborn"));
    assert_eq!(ended.code(), Some(3));
    let killed = "rank 0: exited with 3\nrank 1: killed by signal 9 (SIGKILL), which the launcher sent\n";
    assert!(ended.err.ends_with(killed), "{}", ended.err);
    assert!(ended.took > Duration::from_millis(300) && ended.took < Duration::from_secs(5), "{:?}", ended.took);
}

pub(crate) fn a_rank_that_ends_midway_with_code_0_has_failed() {
    let ended = end(launched("2", "midway"));
    assert_eq!(ended.code(), Some(1));
    assert!(ended.took > Duration::from_millis(300) && ended.took < Duration::from_secs(5), "{:?}", ended.took);
}

/// A full pipe does not keep a job from ending: its end of this process is read after the launcher has
/// ended.
pub(crate) fn unread_stderr_does_not_block_a_job() {
    let launched = |scenario: &str| {
        let mut command = command(&["launch", "2", scenario]);
        let (unread, errors) = pipe().expect("a pipe");
        command.stderr(errors);
        (Child::start(command), unread)
    };
    let (child, mut unread) = launched("flood");
    let ended = end(child);
    assert_eq!(ended.code(), Some(7));
    let mut text = Vec::new();
    unread.read_to_end(&mut text).expect("a pipe");
    assert!(text.len() > 32 << 10 && ended.took < Duration::from_secs(5), "{:?}", ended.took);
    let (mut child, _unread) = launched("flood-on");
    let ranks = wait_for_ranks(&mut child, 2);
    std::thread::sleep(Duration::from_millis(200));
    let signalled = Instant::now();
    child.signal(Signal::TERM);
    let ended = end(child);
    assert_eq!(ended.code(), Some(143));
    assert!(signalled.elapsed() < Duration::from_secs(5), "{:?}", signalled.elapsed());
    expect_all_gone(ranks);
}

pub(crate) fn signals_to_the_launcher_end_all() {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask").trim();
    let ignored = u64::from_str_radix(ignored, 16).expect("a mask");
    let always = [Signal::INT, Signal::TERM, Signal::QUIT];
    let unless_ignored = [Signal::HUP, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::VTALARM, Signal::XCPU];
    for (signal, scenario) in always.into_iter().chain(unless_ignored).flat_map(|s| [(s, "sleep"), (s, "deaf")]) {
        if unless_ignored.contains(&signal) && ignored & 1 << (signal.as_raw() - 1) != 0 {
            println!("SKIPPED: {signal:?} to the launcher (this process ignores it)");
            continue;
        }
        let mut child = launched("3", scenario);
        let ranks = wait_for_ranks(&mut child, 3);
        let signalled = Instant::now();
        child.signal(signal);
        let ended = end(child);
        let took = signalled.elapsed();
        assert_eq!(ended.code(), Some(128 + signal.as_raw()), "{scenario}, {signal:?}: {}", ended.err);
        let message = format!("the launcher received signal {} (SIG", signal.as_raw());
        assert!(ended.err.contains(&message), "{scenario}: {}", ended.err);
        // Not ended at once by SIGKILL.
        let how = "ranks 0 to 2: killed by signal 15 (SIGTERM), which the launcher sent";
        assert!(ended.err.contains(how), "{scenario}, {signal:?}: {}", ended.err);
        assert!(took < Duration::from_secs(3), "{took:?}");
        expect_all_gone(ranks);
    }
}

pub(crate) fn ranks_die_with_the_launcher() {
    let mut child = launched("3", "deaf");
    let ranks = wait_for_ranks(&mut child, 3);
    child.kill();
    assert_eq!(end(child).code(), None);
    expect_all_gone(ranks);
}

pub(crate) fn a_job_that_cannot_start_is_an_error() {
    let ended = end(launched("2", "no-such-program"));
    assert_eq!(ended.code(), Some(99));
    assert!(ended.err.contains("/nonexistent/program can't be run: No such file"), "{}", ended.err);
    assert_eq!(end(launched("0", "work")).code(), Some(99));
}

pub(crate) fn no_file_is_left_open() {
    let ended = end(launched("2", "leftovers"));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
}

pub(crate) fn a_damaged_variable_is_refused() {
    let ended = end(start(&["rank", "work"], &[]));
    assert!(ended.out.contains("no job"));
    let wrong = [
        "",
        "3",
        "nonsense",
        "3 rank=0 ranks=1 segment_bytes=65536 memory=33 job=1",
        "3 rank=0 ranks=1 segment_bytes=65536 memory=0 job=1",
        "3 rank=1 ranks=1 segment_bytes=65536 memory=33 job=1",
    ];
    for variable in wrong {
        let ended = end(start(&["rank", "work"], &[(JOB_VARIABLE, variable)]));
        assert_eq!(ended.code(), Some(88), "{variable:?}");
        assert!(ended.out.contains("refused: setting ONESIDED_JOB: "), "{variable:?}: {}", ended.out);
    }
}

/// Those of libraries that libfabric loads; a variable that is set for the ranks stays.
pub(crate) fn ranks_have_variables_against_signal_handlers() {
    let [first, second] = NO_HANDLERS;
    let launcher = Launcher::new(1).segment_bytes(1 << 20);
    let code = |launcher: Launcher, values: &str| {
        let script = format!("test \"${first} ${second}\" = '{values}'");
        launcher.command("sh", ["-c", &script]).run().expect("a job")
    };
    assert_eq!(code(launcher.clone(), "1 1"), 0);
    assert_eq!(code(launcher.env(first, "0"), "0 1"), 0);
}
