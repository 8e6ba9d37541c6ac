//! With a file of hosts. A script replaces ssh, so that all of them are this machine.

use super::run::{MARK, end, job, processes, run, wait_gone, wait_none_marked};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{self, Command},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::Duration,
};

/// Called as ssh is: options, `--`, the host and a line for its shell.
const SCRIPT: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do shift; done
case $2 in
  gone) echo "ssh: connect to host gone port 22: No route to host" >&2; exit 255 ;;
  bare) echo "env: $0: No such file or directory" >&2; exit 127 ;;
  odd) echo "this is another program" >&2; exit 3 ;;
esac
echo "Welcome to $2"
echo "a word of $2" >&2
cd /
exec /bin/sh -c "$3"
"#;

/// A directory with the script and a file of hosts.
struct Hosts(PathBuf);

impl Hosts {
    fn of(text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("onesided-hosts-{}-{}", process::id(), NEXT.fetch_add(1, Relaxed));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).expect("a new directory");
        fs::write(directory.join("hosts"), text).expect("a file");
        fs::write(directory.join("ssh"), SCRIPT).expect("a file");
        fs::set_permissions(directory.join("ssh"), fs::Permissions::from_mode(0o755)).expect("it is ours");
        Hosts(directory)
    }

    fn job(&self, program: &str, options: &str) -> Command {
        let mut command = job(program, options);
        command.env("ONESIDED_SSH", self.0.join("ssh")).arg("--hosts").arg(self.0.join("hosts"));
        command.args(["--interface", "lo"]);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TWO: &str = "far1 slots=2 # the first\n\nfar2 slots=2\n";

pub(crate) fn ranks_of_hosts_meet() {
    let ended = run(Hosts::of(TWO).job("meet", "--ranks 3 --stats"), b"");
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((ended.code, &lines[..]), (Some(0), &["0 of 3", "1 of 3", "2 of 3"][..]), "{ended:?}");
    assert!(ended.err.contains("[far2] a word of far2\n"), "{ended:?}");
    assert!(!ended.err.contains("nothing of") && !ended.err.contains("no record"), "{ended:?}");
}

pub(crate) fn input_goes_to_the_first_of_the_first_host() {
    // More than a pipe and a piece hold.
    let input = b"all of it\n".repeat(30_000);
    let ended = run(Hosts::of(TWO).job("echo", "--ranks 3"), &input);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.as_bytes() == input, "{} bytes came back of {}", ended.out.len(), input.len());
}

pub(crate) fn a_killed_rank_of_a_host_is_the_first() {
    let ended = run(Hosts::of("far1\nfar2 slots=2\n").job("killed", "--ranks 3"), b"");
    assert_eq!(ended.code, Some(137), "{ended:?}");
    assert!(ended.err.contains("rank 1: killed by signal 9 (SIGKILL) (the first)\n"), "{ended:?}");
    assert!(ended.err.lines().any(|line| line.starts_with("[0] error: ") && line.contains("rank 1")), "{ended:?}");
}

pub(crate) fn an_abort_ends_all_hosts() {
    let ended = run(Hosts::of(TWO).job("abort", "--ranks 4"), b"");
    assert_eq!(ended.code, Some(42), "{ended:?}");
}

pub(crate) fn ends_of_the_launcher_reach_all_hosts() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let hosts = Hosts::of(TWO);
        let mut child = hosts.job("wait", "--ranks 4").spawn().expect("the launcher starts");
        let ranks = processes(&mut child, 4);
        kill_process(Pid::from_child(&child), signal).expect("it runs");
        let ended = end(child);
        assert_eq!(ended.code, code, "{ended:?}");
        wait_gone(&ranks);
    }
}

pub(crate) fn a_launcher_killed_while_hosts_start_leaves_nobody() {
    let mark = format!("hosts-{}", process::id());
    let hosts = Hosts::of(TWO);
    for delay in 0..12 {
        let mut command = hosts.job("wait", "--ranks 4 --lease 1");
        let mut child = command.env(MARK, &mark).spawn().expect("the launcher starts");
        thread::sleep(Duration::from_millis(6 * delay));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
    wait_none_marked(&mark);
}

pub(crate) fn a_rank_that_does_not_come_is_named_with_its_host() {
    let ended = run(Hosts::of(TWO).job("absent3", "--ranks 4"), b"");
    let text = "rank 3 ended before all ranks had come: exited with 3 on host far2";
    assert!(ended.err.contains(text), "{ended:?}");
    assert_eq!(ended.code, Some(3), "{ended:?}");
}

pub(crate) fn hosts_that_fail_are_named() {
    for (text, ranks, part) in [
        ("far1\ngone\n", 2, "error: host gone can't be reached: ssh: connect to host gone port 22: No route to host\n"),
        ("far1\nbare\n", 2, "error: host bare can't execute "),
        ("odd\n", 1, "error: the program on host odd ended with 3 before it started ranks: this is another program\n"),
        ("far1 slots=2\n", 3, "hosts has 2 slots for 3 ranks; a line is `HOST slots=N`\n"),
        ("far1\nfar2 slots=no\n", 2, "hosts, line 2: `slots=no` is not of the form `slots=N`, N at least 1\n"),
    ] {
        let ended = run(Hosts::of(text).job("meet", &format!("--ranks {ranks}")), b"");
        assert_eq!((ended.code, &*ended.out), (Some(1), ""), "{ended:?}");
        assert!(ended.err.contains(part), "{part}: {ended:?}");
    }
    let ended = run(job("meet", "--ranks 2 --hosts /nowhere/hosts"), b"");
    assert!(ended.err.contains("error: --hosts: /nowhere/hosts: No such file or directory"), "{ended:?}");
    let hosts = Hosts::of(TWO);
    let both = hosts.job("meet", "--ranks 2 --ranks-per-node 1");
    assert!(run(both, b"").err.contains("error: --ranks-per-node: "));
}

pub(crate) fn this_machine_needs_no_ssh() {
    let hosts = Hosts::of("localhost slots=2\n127.0.0.1\n");
    let mut local = hosts.job("meet", "--ranks 3");
    local.env("ONESIDED_SSH", "/nowhere/ssh");
    assert_eq!(run(local, b"").code, Some(0));
    let hosts = Hosts::of("far1\n");
    let mut far = hosts.job("meet", "--ranks 1");
    far.env("ONESIDED_SSH", "/nowhere/ssh -v");
    let ended = run(far, b"");
    assert!(ended.err.contains("error: /nowhere/ssh -v can't be executed: No such file"), "{ended:?}");
}
