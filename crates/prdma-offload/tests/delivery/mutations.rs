//! What is done wrong is found.

use super::{exchange, spoiled::MISTAKES};

#[test]
fn every_wrong_step_is_found() {
    for mistaken in MISTAKES {
        let report = exchange::explorer(&mistaken.case).run(mistaken.job());
        let found = report.violation().unwrap_or_else(|| panic!("{} is not noticed: {report}", mistaken.name()));
        println!("{}: {} moves, {}", mistaken.name(), found.moves, found.what);
        assert!(found.what.starts_with(mistaken.found), "{}: {found}", mistaken.name());
    }
}
