//! Each measurement produces its rows on any machine, regardless of its load. No figure is judged
//! here.

#![cfg(target_os = "linux")]

use serde_json::Value;
use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
    sync::{Mutex, PoisonError},
};

/// All runs bind their ranks to the same two cores, so only one may run at a time.
static CORES: Mutex<()> = Mutex::new(());

fn measure(args: &[&str]) -> Output {
    let _alone = CORES.lock().unwrap_or_else(PoisonError::into_inner);
    Command::new(env!("CARGO_BIN_EXE_onesided-bench")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the output of a successful run, which must be nothing but JSON.
#[track_caller]
fn json(out: &Output) -> Value {
    assert!(out.status.success(), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("nothing but JSON on standard output")
}

fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the names of all cases.
fn names() -> Vec<String> {
    let listed = measure(&["operations", "--list"]);
    assert!(listed.status.success());
    text(&listed.stdout).lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

fn every_case_has_its_rows(provider: &str) {
    let out = measure(&["operations", "--quick", "--fabric", provider, "--json", "-"]);
    let report = json(&out);
    assert_eq!(report["run"]["fabric"], provider);
    let rows = report["rows"].as_array().expect("rows");
    for name in names() {
        let of_case: Vec<_> = rows.iter().filter(|row| row["name"] == name.as_str()).collect();
        assert!(!of_case.is_empty(), "{name} has no row");
        for row in of_case {
            let whole = is_positive(&row["figure"]["min_ns"])
                && row["figure"]["median_ns"].as_f64() >= row["figure"]["min_ns"].as_f64()
                && is_positive(&row["figure"]["samples"])
                && is_positive(&row["ping_pong_ns"]);
            assert!(whole, "{row}");
            // A goal must have been judged, unless too few samples were clean.
            let excused = row["limit"].is_null() || row["class"] == "any";
            assert!(row["goal"].is_null() || row["met"].is_boolean() || excused, "{row}");
            assert!(row["limit"].is_null() || is_positive(&row["limit"]["figure"]["min_ns"]), "{row}");
        }
    }
}

#[test]
fn every_case_has_its_rows_between_processes() {
    every_case_has_its_rows("shm");
}

#[test]
#[ignore = "long: weekly"]
fn every_case_has_its_rows_between_threads() {
    every_case_has_its_rows("threads");
}

#[test]
fn a_page_and_a_file_are_written_and_compared() {
    let (page, json) = (scratch("page.md"), scratch("run.json"));
    fs::write(&page, "above\n<!-- begin bench -->\nold\n<!-- end bench -->\nbelow\n").expect("a scratch file");
    let (page_name, json_name) = (page.to_str().expect("UTF-8"), json.to_str().expect("UTF-8"));
    let out =
        measure(&["operations", "--quick", "--only", "get", "lock-*", "--markdown", page_name, "--json", json_name]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let written = fs::read_to_string(&page).expect("the page");
    for part in ["above\n<!-- begin bench -->\n", "| `get` ", "| `lock-exclusive` ", "<!-- end bench -->\nbelow\n"] {
        assert!(written.contains(part), "{part:?} is missing:\n{written}");
    }
    assert!(!written.contains("old\n") && !written.contains("`fetch-add`"), "{written}");

    let out = measure(&["operations", "--compare", json_name, json_name]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let compared = text(&out.stdout);
    assert!(compared.contains("lock-shared") && compared.contains("×1.00"), "{compared}");
    assert!(!compared.contains("In one of the runs only"), "{compared}");
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_measured() {
    let unmarked = scratch("unmarked.md");
    fs::write(&unmarked, "<!-- end bench -->\n").expect("a scratch file");
    let wrong: [(&[&str], &str); 5] = [
        (&["--only", "nonsense"], "no case is named nonsense"),
        (&["--markdown", unmarked.to_str().expect("UTF-8")], "do not enclose a part"),
        (&["--cores", "0,0"], "two different cores"),
        (&["--cores", "0,100000"], "core 100000"),
        (&["--compare", "/nonexistent", "/nonexistent"], "/nonexistent"),
    ];
    for (args, problem) in wrong {
        let out = measure(&[&["operations", "--quick"], args].concat());
        assert!(!out.status.success() && text(&out.stderr).contains(problem), "{args:?}: {}", text(&out.stderr));
    }
    let out = measure(&["rank", "operations", "{}"]);
    assert!(!out.status.success(), "a rank without a job");
}

fn rows(out: &Output) -> Vec<Value> {
    json(out)["rows"].as_array().expect("rows").clone()
}

#[test]
fn processes_contend_for_every_lock_and_the_mutex() {
    let few = ["locks", "--quick", "--ranks", "2,5", "--workloads", "lb,dht", "--writers", "25"];
    let rows = rows(&measure(&[&few[..], &["--json", "-"]].concat()));
    let locks: std::collections::BTreeSet<_> = rows.iter().filter_map(|row| row["lock"].as_str()).collect();
    assert!(locks.contains("futex-mutex") && locks.len() >= 4, "{locks:?}");
    assert_eq!(rows.len(), 2 * 2 * locks.len());
    for row in &rows {
        let whole = is_positive(&row["throughput"]["median"])
            && is_positive(&row["fairness"]["jain"])
            && is_positive(&row["waits"]["pair"]["mean_ns"])
            && is_positive(&row["ping_pong_ns"]);
        assert!(whole && row["cut"] == false, "{row}");
    }
}

#[test]
fn contention_in_virtual_time_is_the_same_each_time_and_goes_to_its_page() {
    let page = scratch("locks.md");
    fs::write(&page, "above\n<!-- begin locks-virt -->\n<!-- end locks-virt -->\n").expect("a page");
    let place = page.to_string_lossy().into_owned();
    let few = ["locks", "--virt", "--quick", "--ranks", "16", "--writers", "5", "--seed", "9", "--workloads", "dht"];
    let once = rows(&measure(&[&few[..], &["--json", "-", "--markdown", &place]].concat()));
    assert_eq!(once, rows(&measure(&[&few[..], &["--json", "-"]].concat())));
    assert!(once.iter().all(|row| is_positive(&row["simulation"]["atomics_per_acquisition"])));
    let written = fs::read_to_string(&page).expect("the page");
    assert!(written.contains("| DHT") && written.contains("joint trace hash"), "{written}");

    let refused = measure(&["locks", "--virt", "--locks", "futex-mutex"]);
    assert!(!refused.status.success() && text(&refused.stderr).contains("no mutex in virtual time"));
}

/// Every measurement that is a list of tables has rows with a value in each column, and they go to a page.
#[test]
fn tables_of_figures_have_rows() {
    let page = scratch("tables.md");
    let _ = fs::remove_file(&page);
    let place = page.to_string_lossy().into_owned();
    let subjects: [&[&str]; 9] = [
        &["collectives"],
        &["delegation"],
        &["exchanges", "--alone"],
        &["exchanges-by-node"],
        &["lock-waves"],
        &["queues"],
        &["queues", "--fabric", "threads"],
        &["simulator"],
        &["stencil"],
    ];
    for subject in subjects {
        let out = measure(&[subject, &["--quick", "--json", "-", "--markdown", &place]].concat());
        let sheets = rows(&out);
        assert!(!sheets.is_empty(), "{subject:?}");
        for sheet in sheets {
            let rows = sheet["rows"].as_array().expect("rows");
            let whole =
                |row: &Value| row.as_object().is_some_and(|row| row.len() >= 2 && !row.values().any(Value::is_null));
            assert!(!rows.is_empty() && rows.iter().all(whole), "{subject:?}: {sheet}");
        }
        let written = fs::read_to_string(&page).expect("the page");
        assert!(written.contains(&format!("<!-- begin {} -->", subject[0])), "{written}");
    }
}
