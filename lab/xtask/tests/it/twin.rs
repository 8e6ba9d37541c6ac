//! `twin` searches a job, in both ways, and reports the result.

use super::{json, text, xtask};

#[test]
fn a_job_is_exhausted_in_both_ways() {
    let out = xtask(&["twin", "--lock", "RpLock", "Packed", "--case", "R3W1x1", "--apart", "--json"]);
    let rows = json(&out);
    let rows = rows.as_array().expect("rows");
    // RpLock, PackedLock, Aggregated<RpLock>.
    assert_eq!(rows.len(), 6);
    for pair in rows.chunks(2) {
        assert_eq!((pair[0]["apart"].as_bool(), pair[1]["apart"].as_bool()), (Some(false), Some(true)));
        assert!(pair.iter().all(|row| row["verdict"] == "exhausted" && row["what"].is_null()), "{pair:?}");
        assert!(pair[0]["states"].as_u64() < pair[1]["states"].as_u64(), "{pair:?}");
    }
}

#[test]
fn a_bound_that_is_met_is_told() {
    let out = xtask(&["twin", "--lock", "FairLock", "--case", "R3W2x1", "--states", "1000"]);
    let text = text(&out.stdout);
    assert!(out.status.success() && text.contains("stopped there"), "{text}");
    let none = xtask(&["twin", "--lock", "no such lock"]);
    assert!(!none.status.success() && none.stdout.is_empty());
}
