//! Processes that are stopped, as if their hosts were unreachable.

use crate::job::{Start, run, run_apart};
use bootstrap::Succession;
use rustix::process::Signal;
use std::{thread::sleep, time::Duration};

const LEASE: Duration = Duration::from_millis(800);

pub(crate) fn a_stopped_process_is_lost_after_the_lease() {
    let (_coordinator, mut parts) =
        run(&Start { lease: LEASE, nodes: &["a", "a", "a"], hold: &[], succession: Succession::Never });
    assert!(parts[0].is_quiet_for(2 * LEASE), "no rank is lost without a reason");
    parts[1].signal(Signal::STOP);
    for index in [0, 2] {
        parts[index].expect_line("drain 1 [1]");
        let resume = parts[index].after("resume 1");
        assert!(resume.contains("no message from it for 800ms"), "{resume}");
    }
    parts[1].signal(Signal::CONT);
    let dismissed = parts[1].after("dismissed");
    assert!(dismissed.contains("no message from it"), "{dismissed}");
}

pub(crate) fn the_smaller_side_of_a_cut_job_is_aborted() {
    let (coordinator, mut parts) =
        run(&Start { lease: LEASE, nodes: &["a", "b", "c", "c", "d"], hold: &[], succession: Succession::Never });
    // A host of two ranks, one of which still runs, is not a silent host, and one silent host of
    // four would not be the larger side.
    parts[3].signal(Signal::STOP);
    for index in [0, 1, 2, 4] {
        parts[index].after("resume");
    }
    [1, 2, 4].into_iter().for_each(|index| parts[index].signal(Signal::STOP));
    let aborted = parts[0].after("aborted");
    assert!(aborted.contains("the job is cut: "), "{aborted}");
    assert!(coordinator.wait(Duration::from_secs(8)).expect("an outcome").abort.is_some());
}

pub(crate) fn the_side_of_rank_0_continues_if_both_are_equal() {
    let start = Start { lease: LEASE, nodes: &["a", "b"], hold: &[], succession: Succession::Never };
    let (_coordinator, mut parts) = run(&start);
    parts[1].signal(Signal::STOP);
    assert!(parts[0].after("resume").contains("(1, "));
    let (_coordinator, mut parts) = run(&start);
    parts[0].signal(Signal::STOP);
    assert!(parts[1].after("aborted").contains("the job is cut: 1 of its hosts became silent, 1 are left"));
}

pub(crate) fn a_coordinator_that_was_stopped_loses_no_rank() {
    let lease = 4 * LEASE;
    let (coordinator, mut parts) =
        run_apart(&Start { lease, nodes: &["a", "b", "c"], hold: &[], succession: Succession::Never });
    coordinator.signal(Signal::STOP);
    sleep(lease * 3 / 4);
    coordinator.signal(Signal::CONT);
    assert!(parts[0].is_quiet_for(lease / 2));
    parts[1].kill();
    parts[2].after("resume 1");
}
