//! The test cases: commands, and their expected results.

use process_tests::child::{Child, Ended, program, this_program};
use serde_json::{Value, json};
use std::{
    env,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// The time that a job may take: a guard against hangs, far more than ten times that of the slowest one.
const HANG: Duration = Duration::from_secs(20);

/// Runs `onesided run <options> -n 2 -- <this program> program <name>`.
pub(super) fn run(options: &[&str], name: &str, directory: &Path) -> Ended {
    let mut command = program(env!("CARGO_BIN_EXE_onesided"), ["run"]);
    command.args(options).args(["-n", "2", "--"]).arg(env::current_exe().expect("own path")).args(["program", name]);
    command.env("TMPDIR", directory);
    end(command)
}

/// Runs this program, which launches its ranks itself.
pub(super) fn launched(name: &str, options: &[&str]) -> Ended {
    let mut command = this_program(["program", name, "--ranks", "2"]);
    command.args(options);
    end(command)
}

/// Runs a command without input.
fn end(mut command: Command) -> Ended {
    command.stderr(Stdio::piped());
    Child::start(command).end_within(HANG)
}

/// Returns the JSON that a program printed before it succeeded.
fn json_of(ended: &Ended) -> Value {
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    json_of_failure(ended)
}

fn json_of_failure(ended: &Ended) -> Value {
    serde_json::from_str(&ended.out).expect("JSON and nothing else")
}

pub(super) fn help_is_printed_and_unknown_arguments_are_refused() {
    let help = launched("known", &["--help"]);
    assert!(help.code() == Some(0) && help.err.is_empty(), "{help:?}");
    assert!(help.out.starts_with("A program for observers.\n\nRanks") && help.out.contains("--seed N"), "{help:?}");
    // A wrong option must not silently do something else.
    let wrong = launched("known", &["--rank", "4"]);
    assert!(wrong.code() == Some(2) && wrong.out.is_empty(), "{wrong:?}");
    assert!(wrong.err.starts_with("error: unknown arguments [\"--rank\", \"4\"]\nusage: "), "{wrong:?}");
    let wrong = launched("without-options", &["-x"]);
    assert_eq!(wrong.code(), Some(2), "{wrong:?}");
    let error = "error: setting arguments: there is no `program`; --help says what there is\nusage: ";
    assert!(wrong.err.starts_with(error), "{wrong:?}");
}

/// Makes a new directory for temporary files.
pub(super) fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).expect("a directory").next().is_none()
}

pub(super) fn counts_are_exact() {
    let directory = directory();
    let counts = json_of(&run(&["--json", "-"], "known", directory.path()));
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
        // The flush of all is also counted.
        assert_eq!((&mine["total"]["flushes"], &mine["nops"], &mine["word_waits"]), (&json!(4), &json!(1), &json!(1)));
    }
    assert!(is_empty(directory.path()), "the records are removed");
}

pub(super) fn stats_are_printed_as_a_table() {
    let ended = run(&["--stats"], "known", directory().path());
    assert!(ended.code() == Some(0) && ended.out.is_empty(), "{ended:?}");
    let table = &ended.err;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let all = rows.iter().find(|row| row.first() == Some(&"all")).unwrap_or_else(|| panic!("no sum in {table}"));
    assert_eq!(all[1..5], ["18", "192", "4", "32"], "{table}");
    let plain = run(&[], "known", directory().path());
    assert!(plain.code() == Some(0) && plain.err.is_empty() && plain.out.is_empty());
}

fn slices(trace: &Value, rank: u32, name: &str) -> usize {
    let events = trace["traceEvents"].as_array().expect("an array");
    events.iter().filter(|event| event["ph"] == "X" && event["pid"] == rank && event["name"] == name).count()
}

pub(super) fn traces_contain_every_operation() {
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
        assert!(ended.code() == Some(0) && ended.err.contains("trace: "), "{name}: {ended:?}");
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

pub(super) fn observation_does_not_change_virtual_time() {
    let hash = |options: &[&str]| {
        let ended = launched("known", &[&["--fabric", "virt"], options].concat());
        ended.err.lines().find(|line| line.starts_with("virtual time")).expect("the hash of the run").to_owned()
    };
    assert_eq!(hash(&[]), hash(&["--stats"]));
}

pub(super) fn killed_ranks_are_missing_and_no_records_are_left() {
    let directory = directory();
    let ended = run(&["--stats", "--json", "-"], "dying", directory.path());
    assert_eq!(ended.code(), Some(128 + 6), "{ended:?}");
    assert!(ended.err.contains("no record of rank 1: killed"), "{ended:?}");
    let counts = json_of_failure(&ended);
    assert_eq!(counts["missing"], json!([1]));
    assert_eq!((&counts["by_rank"][0]["rank"], &counts["by_rank"][0]["word_waits"]), (&json!(0), &json!(1)));
    assert!(is_empty(directory.path()), "the records are removed");
}

pub(super) fn operations_of_failed_ranks_are_counted() {
    let ended = run(&["--json", "-"], "both-fail", directory().path());
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let counts = json_of_failure(&ended);
    assert_eq!((&counts["missing"], &counts["total"]["atomics"]["add"]), (&json!([]), &json!(2)));
}

pub(super) fn missing_observations_are_reported() {
    for (ended, code, parts) in [
        (run(&["--stats"], "shared", directory().path()), 0, &["not observed", "no rank left a record"][..]),
        (launched("shared", &["--stats", "--fabric", "threads"]), 0, &["not observed"]),
        (run(&["--trace", "/nonexistent/trace.json"], "known", directory().path()), 2, &["/nonexistent/trace.json"]),
    ] {
        assert!(ended.code() == Some(code) && parts.iter().all(|part| ended.err.contains(part)), "{ended:?}");
    }
}

/// Returns the output of `place`, by rank.
fn places(ended: &Ended) -> Vec<String> {
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let mut lines: Vec<&str> = ended.out.lines().collect();
    lines.sort_unstable();
    lines.iter().map(|line| line.split_once(' ').expect("rank and CPUs").1.to_owned()).collect()
}

pub(super) fn ranks_run_on_the_cpus_that_they_are_bound_to() {
    let info = json_of(&end(program(env!("CARGO_BIN_EXE_onesided"), ["info", "--json", "--ranks", "2"])));
    let placement = &info["placement"];
    let announced: Vec<String> =
        placement["bind_core"].as_array().expect("an array").iter().map(Value::to_string).collect();
    assert_eq!(announced.len(), 2, "{placement}");
    assert_eq!(places(&run(&["--bind", "core"], "place", directory().path())), announced);
    assert_eq!(places(&launched("place", &["--bind", "core"])), announced);
    assert_eq!(places(&launched("place", &["--bind", "core", "--fabric", "threads"])), announced);

    let unbound = places(&run(&[], "place", directory().path()));
    let numa = run(&["--bind", "numa"], "place", directory().path());
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
            println!("SKIPPED: ranks that are bound to NUMA nodes (the system reports none)");
            assert!(numa.err.contains("NUMA"), "{}", numa.err);
        }
    }
}

pub(super) fn the_end_of_each_rank_is_printed_in_every_mode() {
    let printed = |ended: &Ended| -> Vec<String> {
        let lines = ended.err.lines().filter(|line| line.starts_with("rank ") || line.starts_with("error"));
        lines.map(str::to_owned).collect()
    };
    let killed = ["rank 1: killed by signal 6 (SIGABRT)", "rank 0: exited with 1"];
    for ended in [run(&[], "dying", directory().path()), launched("dying", &[])] {
        assert_eq!((ended.code(), printed(&ended)), (Some(134), killed.map(str::to_owned).into()));
    }
    for (name, how) in [("fails", "failed"), ("panics", "panicked")] {
        for provider in ["threads", "virt"] {
            let ended = launched(name, &["--fabric", provider]);
            let other = if provider == "virt" { "failed later" } else { "failed: rank 1 was lost" };
            let expected = [
                format!("rank 1: {how}: on purpose"),
                format!("rank 0: {other}"),
                format!("error: rank 1 {how}: on purpose"),
            ];
            assert_eq!((ended.code(), printed(&ended)), (Some(1), expected.into()), "{name} {provider}");
        }
        let ended = launched(name, &[]);
        assert!(ended.code() == Some(1) && ended.err.ends_with("ranks 0 and 1: exited with 1\n"), "{ended:?}");
    }
    assert!(launched("place", &[]).err.is_empty() && launched("place", &["--fabric", "threads"]).err.is_empty());
}

/// Returns a device to which nothing can be written.
fn full_device() -> Stdio {
    std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device").into()
}

pub(super) fn a_full_device_is_an_error() {
    let temporary = directory();
    let unwritten = |ended: &Ended, file: &str| {
        assert!(ended.code() == Some(1) && ended.err.contains(&format!("error: {file} can't be written")), "{ended:?}");
    };
    for option in ["--json", "--trace"] {
        unwritten(&run(&[option, "/dev/full"], "known", temporary.path()), "/dev/full");
    }
    unwritten(&launched("known", &["--fabric", "virt", "--timeline", "/dev/full"]), "/dev/full");
    let mut help = this_program(["program", "known", "--help"]);
    help.stdout(full_device());
    unwritten(&end(help), "standard output");
    let mut stats = this_program(["program", "known", "--ranks", "2", "--fabric", "threads", "--stats"]);
    stats.stderr(full_device());
    let ended = Child::start(stats).end_within(HANG);
    assert_eq!(ended.code(), Some(0), "messages to standard error need no reader: {ended:?}");
    // Checking whether a file can be written does not destroy its contents.
    let kept = temporary.path().join("kept");
    std::fs::write(&kept, "old").expect("a file");
    let path = kept.to_str().expect("a plain path");
    let ended = run(&["--json", path, "--trace", "/nonexistent/trace"], "known", temporary.path());
    assert_eq!((ended.code(), std::fs::read_to_string(&kept).ok().as_deref()), (Some(2), Some("old")));
    let ended = launched("endless", &["--fabric", "virt"]);
    assert!(ended.err.contains("error: rank 0 failed: virtual time ends at"), "{ended:?}");
}

pub(super) fn empty_settings_are_refused() {
    for name in ["RANKS", "FABRIC", "STATS", "TRACE", "BIND"] {
        let variable = format!("ONESIDED_{name}");
        let mut command = this_program(["program", "known"]);
        command.env(&variable, "");
        let ended = end(command);
        let error = format!("error: setting {variable}: it is empty; give it a value or leave it away\nusage: ");
        assert!(ended.code() == Some(2) && ended.err.starts_with(&error), "{ended:?}");
    }
    let ended = launched("known", &["--trace", ""]);
    let error = "error: setting --trace: it is empty; give it a value or leave it away\nusage: ";
    assert!(ended.code() == Some(2) && ended.err.starts_with(error), "{ended:?}");
    // An option wins over its variable.
    let mut command = this_program(["program", "known", "--ranks", "2", "--fabric", "threads"]);
    command.env("ONESIDED_FABRIC", "");
    assert_eq!(end(command).code(), Some(0));
}

pub(super) fn invalid_faults_are_refused() {
    let directory = directory();
    let file = directory.path().join("faults");
    let path = file.to_str().expect("a plain path");
    let error = |path: &str, code: i32| {
        let ended = launched("known", &["--fabric", "virt", "--faults", path]);
        assert_eq!(ended.code(), Some(code), "{}", ended.err);
        ended.err
    };
    std::fs::write(&file, "# one\n2 node-stop node=7\n").expect("a file");
    assert_eq!(
        error(path, 1),
        "error: line 2: `2.000 node-stop node=7` is not a fault: there is no node 7, only 0 to 1\n"
    );
    std::fs::write(&file, "2 fire\n").expect("a file");
    let expected =
        format!("error: setting --faults: {path}: line 1: `2 fire` is not a fault: there is no `fire`\nusage: ");
    assert!(error(path, 2).starts_with(&expected));
    assert!(error("/dev/zero", 2).contains("/dev/zero: it has no end, or more than 16777216 bytes"));
}
