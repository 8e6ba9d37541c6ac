//! The test cases: commands, and their expected results.

use crate::jobs;
use serde_json::{Value, json};
use std::{
    path::Path,
    process::{Command, ExitCode, Output, Stdio},
    time::{Duration, Instant},
};

/// Far more than ten times the time of the slowest job.
const HANG: Duration = Duration::from_secs(20);

pub(super) fn main(filters: &[String]) -> ExitCode {
    let cases: [(&str, fn()); 15] = [
        ("the_command_line_is_read_to_its_end", the_command_line_is_read_to_its_end),
        ("counts_are_exact", counts_are_exact),
        ("a_table_is_printed_for_people", a_table_is_printed_for_people),
        ("traces_hold_every_operation", traces_hold_every_operation),
        ("virtual_time_is_not_changed", virtual_time_is_not_changed),
        ("the_dead_are_missing_and_nothing_is_left", the_dead_are_missing_and_nothing_is_left),
        ("who_fails_is_counted", who_fails_is_counted),
        ("what_cannot_be_observed_is_told", what_cannot_be_observed_is_told),
        ("ranks_run_where_they_are_bound", ranks_run_where_they_are_bound),
        ("how_each_rank_ended_is_said_in_every_mode", how_each_rank_ended_is_said_in_every_mode),
        ("a_full_device_is_told", a_full_device_is_told),
        ("empty_settings_are_named", empty_settings_are_named),
        ("faults_that_fit_no_job_are_refused", faults_that_fit_no_job_are_refused),
        ("an_abort_is_said_once_and_decides_the_code", jobs::an_abort_is_said_once_and_decides_the_code),
        ("options_of_queues_reach_the_ranks", jobs::options_of_queues_reach_the_ranks),
    ];
    let filters: Vec<&String> = filters.iter().filter(|filter| !filter.starts_with('-')).collect();
    for (name, case) in cases {
        if filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())) {
            case();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

fn own() -> String {
    std::env::current_exe().expect("own path").to_str().expect("a plain path").to_owned()
}

/// Runs `onesided run <options> -n 2 -- <this program> program <name>`.
pub(super) fn run(options: &[&str], name: &str, directory: &Path) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.arg("run").args(options).args(["-n", "2", "--", &own(), "program", name]);
    end(command.env("TMPDIR", directory))
}

/// Runs this program, which launches its ranks itself.
pub(super) fn launched(name: &str, options: &[&str]) -> Ended {
    end(Command::new(own()).args(["program", name, "--ranks", "2"]).args(options))
}

fn the_command_line_is_read_to_its_end() {
    let help = launched("known", &["--help"]);
    assert!(help.code == Some(0) && help.err.is_empty(), "{help:?}");
    assert!(help.out.starts_with("What observers see.\n\nRanks") && help.out.contains("--seed N"), "{help:?}");
    // A wrong option must not silently do something else.
    let wrong = launched("known", &["--rank", "4"]);
    assert!(wrong.code == Some(2) && wrong.out.is_empty(), "{wrong:?}");
    assert!(wrong.err.starts_with("error: and [\"--rank\", \"4\"]?\nusage: "), "{wrong:?}");
    let wrong = launched("alone", &["-x"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let said = "error: setting arguments: there is no `program`; --help says what there is\nusage: ";
    assert!(wrong.err.starts_with(said), "{wrong:?}");
}

/// The exit code and the output of a program.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ended {
    fn json(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.json_of_failure()
    }

    fn json_of_failure(&self) -> Value {
        serde_json::from_str(&self.out).expect("JSON and nothing else")
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// Runs a command that writes less than a pipe holds. Panics if it hangs.
fn end(command: &mut Command) -> Ended {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary was built");
    let started = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if started.elapsed() > HANG {
            child.kill().expect("to end it");
            panic!("hangs: {:?}", child.wait_with_output());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    child.wait_with_output().expect("a child").into()
}

/// Makes a new directory for temporary files.
pub(super) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("a directory").next().is_none()
}

fn counts_are_exact() {
    let directory = directory();
    let counts = run(&["--json", "-"], "known", directory.path()).json();
    assert_eq!((&counts["ranks"], &counts["missing"]), (&json!(2), &json!([])));
    for rank in [0, 1] {
        let mine = &counts["by_rank"][rank];
        let peers = mine["peers"].as_array().expect("an array");
        assert_eq!((peers.len(), &peers[0]["peer"]), (1, &json!(1 - rank)), "{mine}");
        let expected = json!({
            "puts": 9, "put_bytes": 3 * 16 + 5 * 8 + 8, "gets": 2, "get_bytes": 16,
            "atomics": { "add": 4, "swap": 1, "compare_swap": 2, "or": 1, "and": 1, "xor": 1 },
            "notices_sent": 5, "notices_taken": 5, "flushes": 3, "full": 0,
        });
        for (name, value) in expected.as_object().expect("an object") {
            assert_eq!(&peers[0][name], value, "{name} of rank {rank}");
        }
        // The flush of all is counted, too.
        assert_eq!((&mine["total"]["flushes"], &mine["nops"], &mine["word_waits"]), (&json!(4), &json!(1), &json!(1)));
    }
    assert!(is_empty(directory.path()), "the records are removed");
}

fn a_table_is_printed_for_people() {
    let Ended { code, out, err: table } = run(&["--stats"], "known", directory().path());
    assert!(code == Some(0) && out.is_empty(), "{out}{table}");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let all = rows.iter().find(|row| row.first() == Some(&"all")).unwrap_or_else(|| panic!("no sum in {table}"));
    assert_eq!(all[1..5], ["18", "192", "4", "32"], "{table}");
    let plain = run(&[], "known", directory().path());
    assert!(plain.code == Some(0) && plain.err.is_empty() && plain.out.is_empty());
}

fn slices(trace: &Value, rank: u32, name: &str) -> usize {
    let events = trace["traceEvents"].as_array().expect("an array");
    events.iter().filter(|event| event["ph"] == "X" && event["pid"] == rank && event["name"] == name).count()
}

fn traces_hold_every_operation() {
    let directory = directory();
    let file = directory.path().join("trace.json");
    let path = file.to_str().expect("a plain path");
    let temporary = self::directory();
    let starts: [&dyn Fn() -> Ended; 4] = [
        &|| run(&["--trace", path], "known", temporary.path()),
        &|| launched("known", &["--trace", path]),
        &|| launched("known", &["--trace", path, "--fabric", "threads"]),
        &|| launched("known", &["--trace", path, "--fabric", "virt"]),
    ];
    for (start, name) in starts.iter().zip(["run", "processes", "threads", "virt"]) {
        let ended = start();
        assert!(ended.code == Some(0) && ended.err.contains("trace: "), "{name}: {ended:?}");
        let written = std::fs::read(&file).expect("the trace");
        std::fs::remove_file(&file).expect("it can be removed");
        let trace: Value = serde_json::from_slice(&written).expect("JSON");
        for rank in [0, 1] {
            let kinds = [
                "put",
                "put with notice",
                "get",
                "fetch-add",
                "compare-swap",
                "notice",
                "flush",
                "nop",
                "wait for word",
            ];
            let counted = kinds.map(|kind| slices(&trace, rank, kind));
            assert_eq!(counted, [4, 5, 2, 4, 2, 5, 4, 1, 1], "{name}, rank {rank}");
        }
        let events = trace["traceEvents"].as_array().expect("an array");
        let of_phase = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
        assert_eq!((of_phase("s"), of_phase("f")), (10, 10), "{name}: an arrow for each notice");
        let get = events.iter().find(|event| event["name"] == "get").expect("a get");
        assert_eq!((&get["args"]["bytes"], &get["args"]["offset"]), (&json!(8), &json!(32)), "{name}: {get}");
        assert!(get["ts"].is_f64() && get["dur"].is_f64() && get["args"]["peer"].is_u64(), "{name}: {get}");
        assert_eq!(trace["otherData"], json!({ "ranks": 2, "missing": [], "dropped": 0 }), "{name}");
    }
    assert!(is_empty(temporary.path()), "the records are removed");
}

fn virtual_time_is_not_changed() {
    let told = |options: &[&str]| {
        let ended = launched("known", &[&["--fabric", "virt"], options].concat());
        ended.err.lines().find(|line| line.starts_with("virtual time")).expect("the hash of the run").to_owned()
    };
    assert_eq!(told(&[]), told(&["--stats"]));
}

fn the_dead_are_missing_and_nothing_is_left() {
    let directory = directory();
    let ended = run(&["--stats", "--json", "-"], "dying", directory.path());
    assert_eq!(ended.code, Some(128 + 6), "{ended:?}");
    assert!(ended.err.contains("no record of rank 1: killed"), "{ended:?}");
    let counts = ended.json_of_failure();
    assert_eq!(counts["missing"], json!([1]));
    assert_eq!((&counts["by_rank"][0]["rank"], &counts["by_rank"][0]["word_waits"]), (&json!(0), &json!(1)));
    assert!(is_empty(directory.path()), "the records are removed");
}

fn who_fails_is_counted() {
    let ended = run(&["--json", "-"], "failing", directory().path());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let counts = ended.json_of_failure();
    assert_eq!((&counts["missing"], &counts["total"]["atomics"]["add"]), (&json!([]), &json!(2)));
}

fn what_cannot_be_observed_is_told() {
    for (ended, code, parts) in [
        (run(&["--stats"], "shared", directory().path()), 0, &["not observed", "no rank left a record"][..]),
        (launched("shared", &["--stats", "--fabric", "threads"]), 0, &["not observed"]),
        (run(&["--trace", "/nonexistent/trace.json"], "known", directory().path()), 2, &["/nonexistent/trace.json"]),
    ] {
        assert!(ended.code == Some(code) && parts.iter().all(|part| ended.err.contains(part)), "{ended:?}");
    }
}

/// Returns the output of `place`, by rank.
fn places(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    lines.iter().map(|line| line.split_once(' ').expect("rank and CPUs").1.to_owned()).collect()
}

fn ranks_run_where_they_are_bound() {
    let info = end(Command::new(env!("CARGO_BIN_EXE_onesided")).args(["info", "--json", "--ranks", "2"])).json();
    let placement = &info["placement"];
    let announced: Vec<String> =
        placement["bind_core"].as_array().expect("an array").iter().map(Value::to_string).collect();
    assert_eq!(announced.len(), 2, "{placement}");
    assert_eq!(places(&run(&["--bind", "core"], "where", directory().path())), announced);
    assert_eq!(places(&launched("where", &["--bind", "core"])), announced);
    assert_eq!(places(&launched("where", &["--bind", "core", "--fabric", "threads"])), announced);

    let unbound = places(&run(&[], "where", directory().path()));
    let numa = run(&["--bind", "numa"], "where", directory().path());
    match placement["bind_numa"].as_array() {
        Some(ranks) => {
            let nodes = placement["cpus"].as_array().expect("an array").iter().map(|cpu| cpu["numa"].as_u64());
            let nodes: std::collections::BTreeSet<_> = nodes.collect();
            let places = places(&numa);
            assert_eq!(places.len(), ranks.len());
            // All CPUs are in one node on most machines.
            assert!(nodes.len() > 1 || places == unbound, "{places:?} and not {unbound:?}");
        }
        None => {
            println!("skipped: the system tells no NUMA nodes, so ranks can't be bound to them");
            assert!(numa.err.contains("NUMA"), "{}", numa.err);
        }
    }
}

fn how_each_rank_ended_is_said_in_every_mode() {
    let said = |ended: &Ended| -> Vec<String> {
        let lines = ended.err.lines().filter(|line| line.starts_with("rank ") || line.starts_with("error"));
        lines.map(str::to_owned).collect()
    };
    let killed = ["rank 1: killed by signal 6 (SIGABRT)", "rank 0: exited with 1"];
    for ended in [run(&[], "dying", directory().path()), launched("dying", &[])] {
        assert_eq!((ended.code, said(&ended)), (Some(134), killed.map(str::to_owned).into()));
    }
    for (name, how) in [("one", "failed"), ("panics", "panicked")] {
        for provider in ["threads", "virt"] {
            let ended = launched(name, &["--fabric", provider]);
            let other = if provider == "virt" { "failed later" } else { "failed: rank 1 was lost" };
            let expected = [
                format!("rank 1: {how}: on purpose"),
                format!("rank 0: {other}"),
                format!("error: rank 1 {how}: on purpose"),
            ];
            assert_eq!((ended.code, said(&ended)), (Some(1), expected.into()), "{name} {provider}");
        }
        let ended = launched(name, &[]);
        assert!(ended.code == Some(1) && ended.err.ends_with("ranks 0 and 1: exited with 1\n"), "{ended:?}");
    }
    assert!(launched("where", &[]).err.is_empty() && launched("where", &["--fabric", "threads"]).err.is_empty());
}

/// Runs `command` with one of its streams connected to a device that takes nothing.
fn full(command: &mut Command, stdout: bool) -> Ended {
    let device = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    let command = command.stdin(Stdio::null());
    let command = if stdout { command.stdout(device) } else { command.stderr(device) };
    command.output().expect("the binary was built").into()
}

fn a_full_device_is_told() {
    let temporary = directory();
    let unwritten = |ended: &Ended, what: &str| {
        assert!(ended.code == Some(1) && ended.err.contains(&format!("error: {what} can't be written")), "{ended:?}");
    };
    for option in ["--json", "--trace"] {
        unwritten(&run(&[option, "/dev/full"], "known", temporary.path()), "/dev/full");
    }
    unwritten(&launched("known", &["--fabric", "virt", "--timeline", "/dev/full"]), "/dev/full");
    unwritten(&full(Command::new(own()).args(["program", "known", "--help"]), true), "standard output");
    let mut stats = Command::new(own());
    let ended = full(stats.args(["program", "known", "--ranks", "2", "--fabric", "threads", "--stats"]), false);
    assert_eq!(ended.code, Some(0), "nobody listens to standard error");
    // Checking whether a file can be written does not destroy its contents.
    let kept = temporary.path().join("kept");
    std::fs::write(&kept, "old").expect("a file");
    let path = kept.to_str().expect("a plain path");
    let ended = run(&["--json", path, "--trace", "/nonexistent/trace"], "known", temporary.path());
    assert_eq!((ended.code, std::fs::read_to_string(&kept).ok().as_deref()), (Some(2), Some("old")));
    let ended = launched("endless", &["--fabric", "virt"]);
    assert!(ended.err.contains("error: rank 0 failed: virtual time ends at"), "{ended:?}");
}

fn empty_settings_are_named() {
    for name in ["RANKS", "FABRIC", "STATS", "TRACE", "BIND"] {
        let variable = format!("ONESIDED_{name}");
        let ended = end(Command::new(own()).args(["program", "known"]).env(&variable, ""));
        let said = format!("error: setting {variable}: it is empty; give it a value or leave it away\nusage: ");
        assert!(ended.code == Some(2) && ended.err.starts_with(&said), "{ended:?}");
    }
    let ended = launched("known", &["--trace", ""]);
    let said = "error: setting --trace: it is empty; give it a value or leave it away\nusage: ";
    assert!(ended.code == Some(2) && ended.err.starts_with(said), "{ended:?}");
    // An option wins over its variable.
    let options = ["program", "known", "--ranks", "2", "--fabric", "threads"];
    assert_eq!(end(Command::new(own()).args(options).env("ONESIDED_FABRIC", "")).code, Some(0));
}

fn faults_that_fit_no_job_are_refused() {
    let directory = directory();
    let file = directory.path().join("faults");
    let path = file.to_str().expect("a plain path");
    let said = |path: &str, code: i32| {
        let ended = launched("known", &["--fabric", "virt", "--faults", path]);
        assert_eq!(ended.code, Some(code), "{}", ended.err);
        ended.err
    };
    std::fs::write(&file, "# one\n2 node-stop node=7\n").expect("a file");
    assert_eq!(
        said(path, 1),
        "error: line 2: `2.000 node-stop node=7` is not a fault: there is no node 7, only 0 to 1\n"
    );
    std::fs::write(&file, "2 fire\n").expect("a file");
    let expected =
        format!("error: setting --faults: {path}: line 1: `2 fire` is not a fault: there is no `fire`\nusage: ");
    assert!(said(path, 2).starts_with(&expected));
    assert!(said("/dev/zero", 2).contains("/dev/zero: it has no end, or more than 16777216 bytes"));
}
