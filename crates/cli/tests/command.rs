//! The command as people meet it.

use std::process::{Command, Output};

fn onesided(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_onesided")).args(arguments).output().expect("the binary was built")
}

#[test]
fn other_papers_come_later_and_the_message_says_so() {
    let output = onesided(&["reproduce", "--paper", "xmp"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("recorded but not simulated yet"), "{text}");
    assert!(output.stdout.is_empty());
}

#[test]
fn recorded_figures_can_be_listed_without_simulating() {
    let output = onesided(&["reproduce", "--paper", "fmpl", "--all"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    assert!(text.contains("M4") && text.contains("not simulated yet") && !text.contains("Predictions:"), "{text}");
}

#[test]
fn listed_json_is_an_array_of_rows() {
    let output = onesided(&["reproduce", "--paper", "acp", "--all", "--json", "-"]);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let rows = rows.as_array().expect("an array");
    assert!(rows.len() > 20 && rows.iter().all(|row| row["paper"] == "acp" && row["simulated"].is_null()));
}

#[test]
fn forms_of_exchange_are_shown_command_by_command() {
    let output = onesided(&["reproduce", "--trace-forms"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for part in ["Fig. 5", "Fig. 8 (C)", "RTR", "SD/EOD", "NOP", "SELF, releases 8"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

#[test]
fn a_quick_reproduction_of_exchanges_passes_its_check() {
    let output = onesided(&["reproduce", "--paper", "prdma", "--quick", "--check"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.starts_with("QUICK RUN") && text.contains("R4") && text.contains("nobody has published"), "{text}");
}

#[test]
fn a_timeline_is_of_a_job_that_there_is() {
    let output = onesided(&["reproduce", "--paper", "prdma", "--trace", "/nonexistent/trace", "--trace-job", "99"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("have the numbers 1 to 17"), "{text}");
}

#[test]
fn a_result_that_cannot_be_written_is_an_error_with_its_path() {
    let output = onesided(&["reproduce", "--paper", "acp", "--all", "--json", "/nonexistent/rows.json"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(text.contains("/nonexistent/rows.json"), "{text}");
}

/// A simulation of this takes longer than any test may.
const LONG: [&str; 4] = ["reproduce", "--paper", "lock", "--shapes"];

#[test]
fn what_cannot_be_written_is_known_before_the_simulation() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let old = directory.path().join("old");
    std::fs::write(&old, "old").expect("a file");
    let (old, new) = (old.to_str().expect("a plain path"), directory.path().join("new"));
    let made = new.to_str().expect("a plain path");
    for (option, path) in [("--json", "/nonexistent/a"), ("--trace", "/nonexistent/a"), ("--report", "/dev/null/a")] {
        // The good ones first: a look at them changes nothing.
        let others = [("--json", old), ("--trace", made)].into_iter().filter(|(other, _)| *other != option);
        let others: Vec<&str> = others.flat_map(|(other, path)| [other, path]).collect();
        let output = onesided(&[&LONG[..], &["all"], &others, &[option, path]].concat());
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(path), "{option}: {text}");
        assert!(!text.contains("[1/"), "{option}: it was simulated: {text}");
        assert!(!new.exists() && std::fs::read_to_string(old).expect("a file") == "old", "{option}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn full_and_closed_streams_are_survived() {
    use std::process::Stdio;
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        writer
    };
    let forms: &[&str] = &["reproduce", "--trace-forms"];
    let listed: &[&str] = &["reproduce", "--paper", "acp", "--all"];
    for arguments in
        [forms, listed, &["--help"], &["reproduce", "--help"], &["--version"], &["info"], &["info", "--json"]]
    {
        let start = |stdout: Stdio, stderr: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
            command.args(arguments).stdin(Stdio::null()).stdout(stdout).stderr(stderr);
            let output = command.output().expect("the binary was built");
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        assert_eq!(start(closed().into(), Stdio::piped()), (Some(0), String::new()), "{arguments:?}");
        let (code, said) = start(full().into(), Stdio::piped());
        assert!(
            code == Some(2) && said.starts_with("error: standard output can't be written: "),
            "{arguments:?}: {said}"
        );
        assert_eq!(start(full().into(), full().into()).0, Some(2), "{arguments:?}");
        assert_eq!(start(Stdio::null(), closed().into()).0, Some(0), "{arguments:?}");
    }
    // What it says on standard error meanwhile, and misuse.
    for (arguments, code) in
        [(&["reproduce", "--paper", "prdma", "--quick"][..], 0), (&["run"], 2), (&["reproduce", "--paper", "xmp"], 2)]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
        let status =
            command.args(arguments).stdout(Stdio::null()).stderr(full()).status().expect("the binary was built");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn information_comes_as_json_too() {
    let output = onesided(&["info", "--json"]);
    let info: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert!(info["machine"]["page_bytes"].as_u64().is_some_and(|bytes| bytes >= 4096));
    assert_eq!(info["platforms"][0]["name"], "FX100");
}

#[cfg(unix)]
#[test]
fn run_passes_exit_codes_through() {
    let output = onesided(&["run", "-n", "2", "--", "/bin/sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
    let output = onesided(&["run", "-n", "2", "--", "/nonexistent/program"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("error"), "it must say why");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_all_ranks() {
    use std::{
        process::Stdio,
        thread::sleep,
        time::{Duration, Instant},
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_onesided"))
        .args(["run", "-n", "2", "--", "/bin/sleep", "60"])
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary was built");
    // Long enough to have started the ranks; an interrupt before that would end the command just as well.
    sleep(Duration::from_millis(300));
    let interrupted = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(interrupted.elapsed() < Duration::from_secs(10), "the ranks slept on");
}
