//! `explore` finds no violation in the lock, detects a mutant, and reports both.

use super::{json, text, xtask};

#[test]
fn a_case_is_exhausted_and_a_mutant_caught() {
    let out = xtask(&["explore", "--quick", "--only", "RpLock: R1W1x1", "RpLock: NoSecondLook", "--json"]);
    let rows = json(&out);
    let [right, wrong] = [&rows[0], &rows[1]];
    assert_eq!((right["name"].as_str(), right["verdict"].as_str()), (Some("RpLock: R1W1x1"), Some("exhausted")));
    assert_eq!((wrong["mutant"].as_bool(), wrong["verdict"].as_str()), (Some(true), Some("violated")));
    assert!(right["states"].as_u64() > Some(100) && right["what"].is_null(), "{right}");
    assert!(wrong["what"].as_str().is_some_and(|what| what.starts_with("deadlock")), "{wrong}");
    assert!(wrong["timeline"].as_array().is_some_and(|lines| lines.len() > 10), "{wrong}");
}

#[test]
fn a_bound_that_is_met_is_told() {
    let out = xtask(&["explore", "--quick", "--only", "PackedLock: R2W1x1", "--states", "200"]);
    let text = text(&out.stdout);
    assert!(out.status.success() && text.contains("stopped there"), "{text}");
    let none = xtask(&["explore", "--only", "no such case"]);
    assert!(!none.status.success() && none.stdout.is_empty());
}
