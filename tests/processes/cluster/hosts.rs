//! With a file of hosts. A script replaces ssh, so that all of them are this machine.

use super::run::{MARK, expect_none_marked, job, run_with_input, start_waiting};
use crate::run_command;
use process_tests::child::{Child, expect_gone, this_program};
use rustix::process::Signal;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{self, Command, Stdio},
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
echo "a message from $2" >&2
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

pub(crate) fn ranks_synchronise_across_hosts() {
    let ended = run_command(Hosts::of(TWO).job("barrier", "--ranks 3 --stats"));
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    assert_eq!((ended.code(), &lines[..]), (Some(0), &["0 of 3", "1 of 3", "2 of 3"][..]), "{ended:?}");
    assert!(ended.err.contains("[far2] a message from far2\n"), "{ended:?}");
    assert!(!ended.err.contains("nothing of") && !ended.err.contains("no record"), "{ended:?}");
}

pub(crate) fn named_variables_reach_ranks() {
    let hosts = Hosts::of(TWO);
    for far in [true, false] {
        let options = "--ranks 3 --env GIVEN --env CHOSEN=two;words";
        let mut command = if far { hosts.job("variables", options) } else { job("variables", options) };
        command.env("GIVEN", "a 'quoted' value");
        if far {
            // ssh gives a host none of this machine's variables.
            command.env("ONESIDED_SSH", format!("/usr/bin/env -u GIVEN {}", hosts.0.join("ssh").display()));
        }
        let ended = run_command(command);
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        assert_eq!(ended.out.lines().filter(|line| *line == "a 'quoted' value, two;words").count(), 3, "{ended:?}");
    }
}

pub(crate) fn hosts_select_the_fabric() {
    let hosts = Hosts::of(TWO);
    for by_option in [true, false] {
        let mut command = this_program(["cluster-program", "barrier", "--ranks", "3"]);
        command.stderr(Stdio::piped()).env("ONESIDED_SSH", hosts.0.join("ssh")).env("ONESIDED_INTERFACE", "lo");
        match by_option {
            true => command.arg("--hosts").arg(hosts.0.join("hosts")),
            false => command.env("ONESIDED_HOSTS", hosts.0.join("hosts")),
        };
        let ended = run_command(command);
        assert!(ended.code() == Some(0) && ended.err.contains("[far2] a message from far2\n"), "{ended:?}");
    }
}

pub(crate) fn input_goes_to_rank_0_on_the_first_host() {
    // More than a pipe and a message of the launcher can hold.
    let input = "all of it\n".repeat(30_000);
    let ended = run_with_input(Hosts::of(TWO).job("echo", "--ranks 3"), &input);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.out == input, "{} bytes of {} were returned", ended.out.len(), input.len());
}

pub(crate) fn a_killed_rank_of_a_host_is_reported_as_the_first() {
    let ended = run_command(Hosts::of("far1\nfar2 slots=2\n").job("killed", "--ranks 3"));
    assert_eq!(ended.code(), Some(137), "{ended:?}");
    assert!(ended.err.contains("rank 1: killed by signal 9 (SIGKILL) (the first)\n"), "{ended:?}");
    assert!(ended.err.lines().any(|line| line.starts_with("[0] error: ") && line.contains("rank 1")), "{ended:?}");
}

pub(crate) fn an_abort_ends_ranks_on_all_hosts() {
    let ended = run_command(Hosts::of(TWO).job("abort", "--ranks 4"));
    assert_eq!(ended.code(), Some(42), "{ended:?}");
}

pub(crate) fn signals_to_the_launcher_end_ranks_on_all_hosts() {
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let hosts = Hosts::of(TWO);
        let (launcher, ranks) = start_waiting(hosts.job("wait", "--ranks 4"), 4);
        launcher.signal(signal);
        let ended = launcher.end();
        assert_eq!(ended.code(), code, "{ended:?}");
        ranks.into_iter().for_each(expect_gone);
    }
}

pub(crate) fn a_launcher_killed_while_hosts_start_leaves_no_processes() {
    let mark = format!("hosts-{}", process::id());
    let hosts = Hosts::of(TWO);
    for delay in 0..12 {
        let mut command = hosts.job("wait", "--ranks 4 --lease 1");
        command.env(MARK, &mark);
        let launcher = Child::start(command);
        thread::sleep(Duration::from_millis(6 * delay));
        // Kills it.
        drop(launcher);
    }
    expect_none_marked(&mark);
}

pub(crate) fn a_rank_that_ends_early_is_named_with_its_host() {
    let ended = run_command(Hosts::of(TWO).job("absent3", "--ranks 4"));
    let text = "rank 3 ended before all ranks had come: exited with 3 on host far2";
    assert!(ended.err.contains(text), "{ended:?}");
    assert_eq!(ended.code(), Some(3), "{ended:?}");
}

pub(crate) fn hosts_that_fail_are_named() {
    for (text, ranks, part) in [
        ("far1\ngone\n", 2, "error: host gone can't be reached: ssh: connect to host gone port 22: No route to host\n"),
        ("far1\nbare\n", 2, "error: host bare can't execute "),
        ("odd\n", 1, "error: the program on host odd ended with 3 before it started ranks: this is another program\n"),
        ("far1 slots=2\n", 3, "hosts has 2 slots for 3 ranks; a line is `HOST slots=N`\n"),
        ("far1\nfar2 slots=no\n", 2, "hosts, line 2: `slots=no` is not of the form `slots=N`, N at least 1\n"),
    ] {
        let ended = run_command(Hosts::of(text).job("barrier", &format!("--ranks {ranks}")));
        assert_eq!((ended.code(), &*ended.out), (Some(1), ""), "{ended:?}");
        assert!(ended.err.contains(part), "{part}: {ended:?}");
    }
    let ended = run_command(job("barrier", "--ranks 2 --hosts /nowhere/hosts"));
    assert!(ended.err.contains("error: --hosts: /nowhere/hosts: No such file or directory"), "{ended:?}");
    let hosts = Hosts::of(TWO);
    let both = hosts.job("barrier", "--ranks 2 --ranks-per-node 1");
    assert!(run_command(both).err.contains("error: --ranks-per-node: "));
}

pub(crate) fn this_machine_needs_no_ssh() {
    let hosts = Hosts::of("localhost slots=2\n127.0.0.1\n");
    let mut local = hosts.job("barrier", "--ranks 3");
    local.env("ONESIDED_SSH", "/nowhere/ssh");
    assert_eq!(run_command(local).code(), Some(0));
    let hosts = Hosts::of("far1\n");
    let mut far = hosts.job("barrier", "--ranks 1");
    far.env("ONESIDED_SSH", "/nowhere/ssh -v");
    let ended = run_command(far);
    assert!(ended.err.contains("error: /nowhere/ssh -v can't be executed: No such file"), "{ended:?}");
}
