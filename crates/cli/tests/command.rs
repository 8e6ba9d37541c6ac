//! The command as users see it.

use std::process::{Command, Output};

/// Runs the command. Returns the exit code, standard output and standard error.
fn told(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_onesided")).args(arguments).output();
    let Output { status, stdout, stderr } = output.expect("the binary was built");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn impossible_options_are_refused_with_the_reason() {
    for (arguments, reason) in [
        (&["--quick", "--full"][..], "cannot be used with"),
        (&["--paper", "prdma", "--trace", "/nonexistent/trace", "--trace-job", "99"], "have the numbers 1 to 13"),
        (&["--paper", "xmp", "--all", "--json", "/nonexistent/rows.json"], "/nonexistent/rows.json"),
        (&["--docs", "/nonexistent/page.md"], "/nonexistent/page.md can't be read"),
        (&["--docs", "page.md", "--quick"], "cannot be used with"),
    ] {
        let (code, out, err) = told(&[&["reproduce"], arguments].concat());
        assert!(code == Some(2) && err.contains(reason) && out.is_empty(), "{arguments:?}: {err}{out}");
    }
}

#[test]
fn figures_that_are_not_simulated_can_be_listed_with_the_others() {
    let (code, out, _) = told(LISTED);
    assert_eq!(code, Some(0));
    assert!(out.contains("R11") && out.contains("X4") && out.contains("not simulated"), "{out}");
}

#[test]
fn a_page_gets_the_results_and_is_compared_with_them() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let page = directory.path().join("page.md");
    let path = page.to_str().expect("a plain path");
    std::fs::write(&page, "a\n<!-- reproduce: acp -->\nold\n<!-- end -->\nb\n").expect("a file");
    let run = |check: &[&str]| told(&[&["reproduce", "--paper", "acp", "--docs", path][..], check].concat());
    let (code, _, err) = run(&["--check"]);
    assert!(code == Some(1) && err.contains("lacks: | A14 |"), "{err}");
    assert_eq!(run(&[]).0, Some(0));
    let written = std::fs::read_to_string(&page).expect("a file");
    assert!(written.starts_with("a\n<!-- reproduce: acp -->\n| figure |") && written.ends_with("<!-- end -->\nb\n"));
    assert!(written.contains("**Free in the model.**"), "{written}");
    let (code, _, err) = run(&["--check"]);
    assert_eq!(code, Some(0), "{err}");
}

/// The fastest run.
const LISTED: &[&str] = &["reproduce", "--paper", "prdma", "--quick", "--all"];

#[test]
fn listed_json_is_an_array_of_rows() {
    let (_, out, _) = told(&[LISTED, &["--json", "-"]].concat());
    let rows: serde_json::Value = serde_json::from_str(&out).expect("JSON and nothing else");
    let rows = rows.as_array().expect("an array");
    let of_xmp: Vec<_> = rows.iter().filter(|row| row["paper"] == "xmp").collect();
    assert!(of_xmp.len() == 14 && of_xmp.iter().all(|row| row["simulated"].is_null()));
}

#[test]
fn forms_of_exchange_are_shown_command_by_command() {
    let (code, out, _) = told(&["reproduce", "--trace-forms"]);
    assert_eq!(code, Some(0));
    for part in ["Fig. 5", "Fig. 8 (C)", "RTR", "EOD → 1", "SD/EOD", "NOP", "SELF, releases 8"] {
        assert!(out.contains(part), "{part} is missing:\n{out}");
    }
}

// `.ci/run` reproduces both papers, too.

#[test]
#[ignore = "long: weekly"]
fn a_quick_reproduction_of_exchanges_passes_its_check() {
    let (code, out, err) = told(&["reproduce", "--paper", "prdma", "--quick", "--what-if", "--check"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("QUICK RUN") && out.contains("R4") && out.contains("without a published value"), "{out}");
}

#[test]
#[ignore = "long: weekly"]
fn a_quick_reproduction_of_messages_passes_its_check() {
    let (code, out, err) = told(&["reproduce", "--paper", "fmpl", "--quick", "--what-if", "--check"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("QUICK RUN") && out.contains("M8-data") && out.contains("COLLECTIVES"), "{out}");
}

#[test]
fn a_quick_reproduction_of_global_adds_passes_its_check() {
    let (code, out, err) = told(&["reproduce", "--paper", "acp", "--quick", "--what-if", "--check"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("QUICK RUN") && out.contains("A14") && out.contains("without a published value"), "{out}");
}

#[test]
fn only_published_figures_are_simulated_unless_more_is_requested() {
    let (code, out, err) = told(&["reproduce", "--paper", "acp", "--quick", "--hashes"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("A14") && !out.contains("without a published value"), "{out}");
    let jobs = err.lines().filter(|line| line.starts_with('[')).count();
    assert!(out.contains(&format!("{jobs} jobs, ")), "{out}");
    // A line of hashes has eleven.
    assert_eq!(out.lines().filter(|line| line.starts_with("  ") && line.len() == 2 + 11 * 9 - 1).count(), jobs / 11);
}

/// Arguments of a simulation that takes longer than the time limit of any test.
const LONG: [&str; 4] = ["reproduce", "--paper", "lock", "--shapes"];

#[test]
fn unwritable_files_are_refused_before_the_simulation() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let old = directory.path().join("old");
    std::fs::write(&old, "old").expect("a file");
    let (old, new) = (old.to_str().expect("a plain path"), directory.path().join("new"));
    let made = new.to_str().expect("a plain path");
    for (option, path) in [("--json", "/nonexistent/a"), ("--trace", "/nonexistent/a"), ("--report", "/dev/null/a")] {
        // The valid files first: checking them does not change them.
        let others = [("--json", old), ("--trace", made)].into_iter().filter(|(other, _)| *other != option);
        let others: Vec<&str> = others.flat_map(|(other, path)| [other, path]).collect();
        let (code, _, err) = told(&[&LONG[..], &["all"], &others, &[option, path]].concat());
        assert!(code == Some(2) && err.contains(path), "{option}: {err}");
        assert!(!err.contains("[1/"), "{option}: it was simulated: {err}");
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
    for arguments in [forms, &["--help"], &["reproduce", "--help"], &["--version"], &["info"], &["info", "--json"]] {
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
    // Progress on standard error, and misuse.
    for (arguments, code) in
        [(&["reproduce", "--paper", "prdma", "--quick"][..], 0), (&["run"], 2), (&["reproduce", "--paper", "mpi"], 2)]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
        let status =
            command.args(arguments).stdout(Stdio::null()).stderr(full()).status().expect("the binary was built");
        assert_eq!(status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn schedules_are_generated_converted_and_replayed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("a plain path").to_owned();
    let (binary, text, again) = (path("d.bin"), path("d.goal"), path("again.bin"));
    let (code, _, err) = told(&["goal", "--generate", "dissemination", "-n", "16", "-o", &binary]);
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(told(&["goal", &binary, "--text", &text]).0, Some(0));
    assert_eq!(told(&["goal", &text, "-o", &again]).0, Some(0));
    assert_eq!(std::fs::read(&binary).expect("a file"), std::fs::read(&again).expect("a file"));
    let (_, out, _) = told(&["goal", &text]);
    assert!(out.contains("rank 15 finishes at 22000 ns") && out.contains("192 events"), "{out}");
    let (_, out, _) = told(&["goal", &binary, "--loggps", "L=0.5,o=1", "--json", "-"]);
    let result: serde_json::Value = serde_json::from_str(&out).expect("JSON and nothing else");
    // The interface is ready for the next round after g.
    assert!(
        result["end_ns"] == 3002.5 && result["finish_ns"].as_array().is_some_and(|times| times.len() == 16),
        "{out}"
    );
    assert_eq!(result["loggps"], "L=0.5,o=1,g=1000,G=6,O=0,S=65535");
    std::fs::write(&text, "num_ranks 1\nrank 0 {\nrecv 1b from 0\n}\n").expect("a file");
    let (code, _, err) = told(&["goal", &text]);
    assert!(code == Some(2) && err.contains("1 operations never finish (1 posted receives"), "{err}");
    std::fs::write(&text, "num_ranks 1\nrank 0 {\nsend 1b from 0\n}\n").expect("a file");
    let (code, _, err) = told(&["goal", &text]);
    assert!(code == Some(2) && err.contains("d.goal: line 3: expected to, found `from`"), "{err}");
    for (arguments, reason) in [
        (&["goal"][..], "required"),
        (&["goal", "--generate", "ring"], "--ranks"),
        (&["goal", "--generate", "star", "-n", "2"], "known patterns: dissemination"),
        (&["goal", "a", "--generate", "ring", "-n", "2"], "cannot be used with"),
        (&["goal", "a", "--loggps", "L=x"], "`L=x` is not a parameter"),
        (&["goal", "/nonexistent/a"], "/nonexistent/a"),
    ] {
        let (code, out, err) = told(arguments);
        assert!(code == Some(2) && err.contains(reason) && out.is_empty(), "{arguments:?}: {err}{out}");
    }
}

#[test]
fn information_comes_as_json_too() {
    let (_, out, _) = told(&["info", "--json"]);
    let info: serde_json::Value = serde_json::from_str(&out).expect("JSON and nothing else");
    assert!(info["machine"]["page_bytes"].as_u64().is_some_and(|bytes| bytes >= 4096));
    assert_eq!(info["platforms"][0]["name"], "FX100");
}

#[cfg(unix)]
#[test]
fn run_passes_exit_codes_through() {
    let (code, _, err) = told(&["run", "-n", "2", "--", "/bin/sh", "-c", "exit 7"]);
    assert_eq!(code, Some(7), "{err}");
    let (code, _, err) = told(&["run", "-n", "2", "--", "/nonexistent/program"]);
    assert!(code != Some(0) && err.contains("error"), "it must say why: {err}");
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
    // Long enough to have started the ranks; an interrupt before that would end the command just as
    // well.
    sleep(Duration::from_millis(300));
    let interrupted = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert!(interrupted.elapsed() < Duration::from_secs(10), "the ranks slept on");
}

#[test]
fn every_shell_gets_completions_of_all_subcommands() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, out, err) = told(&["completions", shell]);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{shell}");
        for part in ["reproduce", "run", "info", "completions", "man", "segment-bytes"] {
            assert!(out.contains(part), "{shell} lacks {part}:\n{out}");
        }
    }
    let (code, out, err) = told(&["completions", "ksh"]);
    assert!(code == Some(2) && out.is_empty() && err.contains("bash, elvish, fish, powershell, zsh"), "{err}");
}

#[test]
fn bash_accepts_its_completions() {
    let (_, script, _) = told(&["completions", "bash"]);
    // Completes the word `ru` of the command, as the shell does on a tab.
    let asked = format!(
        "{script}\nCOMP_WORDS=(onesided ru); COMP_CWORD=1; _onesided onesided ru onesided; echo ${{COMPREPLY[@]}}"
    );
    match Command::new("bash").args(["--norc", "-c", &asked]).output() {
        Ok(output) => assert_eq!(String::from_utf8_lossy(&output.stdout), "run\n", "{output:?}"),
        Err(error) => println!("skipped: no bash: {error}"),
    }
}

#[test]
fn manual_pages_are_written_for_every_subcommand() {
    let (code, page, _) = told(&["man"]);
    assert_eq!(code, Some(0));
    assert!(page.contains(".TH onesided 1") && page.contains("onesided\\-run(1)"), "{page}");
    let directory = tempfile::tempdir().expect("a directory");
    let below = directory.path().join("man1");
    let (code, out, err) = told(&["man", below.to_str().expect("text")]);
    assert_eq!((code, out.as_str(), err.as_str()), (Some(0), "", ""));
    for name in
        ["onesided", "onesided-reproduce", "onesided-run", "onesided-info", "onesided-completions", "onesided-man"]
    {
        let page = std::fs::read_to_string(below.join(format!("{name}.1"))).expect(name);
        assert!(page.contains(".SH OPTIONS"), "{name}: {page}");
    }
    let (code, _, err) = told(&["man", "/dev/null/pages"]);
    assert!(code == Some(2) && err.contains("/dev/null/pages"), "{err}");
}
