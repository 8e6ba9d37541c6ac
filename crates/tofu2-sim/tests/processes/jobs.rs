//! The work of a launcher: it starts its ranks, forwards their output, and ends them when one
//! fails. This program is the launcher (`launch <ranks> <scenario>`), which runs it as all ranks
//! (`rank <scenario>`).

use crate::harness::{Case, end, nobody_left, open_files, start, wait_for_ranks};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::Write,
    process::{Child, ExitCode},
    time::Duration,
};
use tofu2_sim::shm::{JOB_VARIABLE, Launcher};

pub(crate) const CASES: &[Case] = &[
    ("all_work_together", all_work_together),
    ("more_ranks_than_cpus", more_ranks_than_cpus),
    ("memory_is_reserved_and_freed", memory_is_reserved_and_freed),
    ("existing_memory_outlives_its_users", existing_memory_outlives_its_users),
    ("stderr_lines_carry_their_rank", stderr_lines_carry_their_rank),
    ("stdin_goes_to_rank_0", stdin_goes_to_rank_0),
    ("the_exit_code_is_that_of_the_first_failure", the_exit_code_is_that_of_the_first_failure),
    ("others_are_killed_after_a_grace_period", others_are_killed_after_a_grace_period),
    ("a_rank_that_ends_midway_with_code_0_has_failed", a_rank_that_ends_midway_with_code_0_has_failed),
    ("nobody_needs_to_read_stderr", nobody_needs_to_read_stderr),
    ("signals_to_the_launcher_end_all", signals_to_the_launcher_end_all),
    ("ranks_die_with_the_launcher", ranks_die_with_the_launcher),
    ("what_cannot_be_run_is_an_error", what_cannot_be_run_is_an_error),
    ("nothing_is_left_open", nothing_is_left_open),
    ("a_damaged_variable_is_no_job_of_one", a_damaged_variable_is_no_job_of_one),
];

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

fn all_work_together() {
    for ranks in ["1", "2", "4"] {
        let ended = end(launched(ranks, "work"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out.matches("done").count().to_string(), ranks);
    }
}

fn more_ranks_than_cpus() {
    let ended = end(launched("16", "work"));
    assert_eq!((ended.code, ended.out.matches("done").count()), (Some(0), 16), "{}", ended.err);
}

fn memory_is_reserved_and_freed() {
    let ended = end(launched("2", "memory"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

fn existing_memory_outlives_its_users() {
    let ended = end(launched("2", "inside"));
    assert_eq!((ended.code, ended.out.matches("taken").count()), (Some(137), 1), "{}", ended.err);
    for _ in 0..20 {
        let ended = end(launched("2", "dead-owner"));
        assert_eq!((ended.code, ended.out.matches("was lost").count()), (Some(137), 1), "{}", ended.err);
        assert!(ended.err.ends_with("rank 0: killed by signal 9 (SIGKILL)\nrank 1: exited with 1\n"), "{}", ended.err);
    }
    for _ in 0..3 {
        let ended = end(launched("2", "stopped"));
        assert_eq!((ended.code, ended.out.matches("whole").count()), (Some(0), 1), "{}", ended.err);
    }
}

fn stderr_lines_carry_their_rank() {
    let ended = end(launched("2", "stderr"));
    assert_eq!(ended.code, Some(0));
    for rank in 0..2 {
        let lines: Vec<_> =
            ended.err.lines().filter_map(|line| line.strip_prefix(&format!("[rank {rank}] "))).collect();
        assert_eq!(lines, [&format!("first of {rank}"), "second", "", "last, without an end"]);
    }
    assert!(!ended.out.contains("[rank"));
}

fn stdin_goes_to_rank_0() {
    let mut child = launched("3", "echo");
    child.stdin.as_mut().expect("a pipe").write_all(b"hello").expect("a pipe");
    let ended = end(child);
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), "hello"));
}

fn the_exit_code_is_that_of_the_first_failure() {
    for (scenario, code, seen, how) in [
        ("code", 7, 0, ["rank 1: exited with 7", "ranks 0 and 2: ended well"]),
        ("fail", 1, 2, ["rank 1: exited with 1", "ranks 0 and 2: exited with 5"]),
        ("panic", 1, 2, ["rank 0: exited with 1", "ranks 1 and 2: exited with 5"]),
        ("kill", 137, 2, ["rank 2: killed by signal 9 (SIGKILL)", "ranks 0 and 1: exited with 5"]),
        ("leave", 1, 2, ["rank 0: exited with 0 before its end", "ranks 1 and 2: ended well"]),
        ("absent", 1, 2, ["rank 0: exited with 0 before its end", "ranks 1 and 2: ended well"]),
    ] {
        let ended = end(launched("3", scenario));
        assert_eq!(ended.code, Some(code), "{scenario}: {}", ended.err);
        assert_eq!(ended.out.matches("was lost").count(), seen, "{scenario}: {}", ended.out);
        assert!(ended.took < Duration::from_secs(5), "{scenario}: {:?}", ended.took);
        let said: Vec<&str> = ended.err.lines().filter(|line| !line.starts_with('[')).collect();
        assert_eq!(said, how, "{scenario}: {}", ended.err);
    }
}

fn others_are_killed_after_a_grace_period() {
    let ended = end(launched("2", "stubborn"));
    assert_eq!(ended.code, Some(3));
    let killed = "rank 0: exited with 3\nrank 1: killed by signal 9 (SIGKILL), which the launcher sent\n";
    assert!(ended.err.ends_with(killed), "{}", ended.err);
    assert!(ended.took > Duration::from_millis(300) && ended.took < Duration::from_secs(5), "{:?}", ended.took);
}

fn a_rank_that_ends_midway_with_code_0_has_failed() {
    let ended = end(launched("2", "midway"));
    assert_eq!(ended.code, Some(1));
    assert!(ended.took > Duration::from_millis(300) && ended.took < Duration::from_secs(5), "{:?}", ended.took);
}

/// A full pipe does not keep a job from ending: `end` reads nothing before the launcher has ended.
fn nobody_needs_to_read_stderr() {
    let ended = end(launched("2", "flood"));
    assert_eq!(ended.code, Some(7));
    assert!(ended.err.len() > 32 << 10 && ended.took < Duration::from_secs(5), "{:?}", ended.took);
    let mut child = launched("2", "flood-on");
    let out = wait_for_ranks(&mut child, 2);
    std::thread::sleep(Duration::from_millis(200));
    kill_process(Pid::from_child(&child), Signal::TERM).expect("a child");
    let ended = end(child);
    assert_eq!(ended.code, Some(143));
    assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
    nobody_left(&out);
}

fn signals_to_the_launcher_end_all() {
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
        {
            let mut child = launched("3", scenario);
            let out = wait_for_ranks(&mut child, 3);
            kill_process(Pid::from_child(&child), signal).expect("a child");
            let ended = end(child);
            assert_eq!(ended.code, Some(128 + signal.as_raw()), "{scenario}, {signal:?}: {}", ended.err);
            let told = format!("the launcher received signal {} (SIG", signal.as_raw());
            assert!(ended.err.contains(&told), "{scenario}: {}", ended.err);
            // Not ended at once by SIGKILL.
            let how = "ranks 0 to 2: killed by signal 15 (SIGTERM), which the launcher sent";
            assert!(ended.err.contains(how), "{scenario}, {signal:?}: {}", ended.err);
            assert!(ended.took < Duration::from_secs(3), "{:?}", ended.took);
            nobody_left(&out);
        }
    }
}

fn ranks_die_with_the_launcher() {
    let mut child = launched("3", "deaf");
    let out = wait_for_ranks(&mut child, 3);
    child.kill().expect("a child");
    child.wait().expect("a child");
    nobody_left(&out);
}

fn what_cannot_be_run_is_an_error() {
    let ended = end(launched("2", "no-such-program"));
    assert_eq!(ended.code, Some(99));
    assert!(ended.err.contains("/nonexistent/program can't be run: No such file"), "{}", ended.err);
    assert_eq!(end(launched("0", "work")).code, Some(99));
}

fn nothing_is_left_open() {
    let ended = end(launched("2", "leftovers"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

fn a_damaged_variable_is_no_job_of_one() {
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
        assert_eq!(ended.code, Some(88), "{variable:?}");
        assert!(ended.out.contains("refused: setting ONESIDED_JOB: "), "{variable:?}: {}", ended.out);
    }
}
