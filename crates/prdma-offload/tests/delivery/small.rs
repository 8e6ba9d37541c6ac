//! Small jobs to the last state.

use super::{cases::CASES, exchange};

#[test]
fn small_jobs_in_every_order() {
    for case in CASES.iter().filter(|case| case.quick) {
        let report = exchange::explorer(case).run(exchange::job(*case));
        println!("{}: {report}", case.name);
        report.expect_exhausted();
        assert!(report.states >= case.at_least, "{}: {} states", case.name, report.states);
    }
}
