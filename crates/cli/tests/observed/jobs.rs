//! Options and ends of whole jobs, for every launcher.

use crate::cases::{directory, launched, run};
use process_tests::child::Ended;

/// Runs a program in each way to start ranks. Returns the names of the ways, and the ends of the program.
fn every_way(name: &str, options: &[&str]) -> [(&'static str, Ended); 4] {
    let on = |fabric| launched(name, &[options, &["--fabric", fabric]].concat());
    [
        ("onesided run", run(options, name, directory().path())),
        ("processes", on("shm")),
        ("threads", on("threads")),
        ("virtual time", on("virt")),
    ]
}

pub(super) fn an_abort_is_printed_once_and_determines_the_exit_code() {
    for (program, given, code) in [("aborts-7", 7, 7), ("aborts-0", 1, 1), ("aborts-300", 300, 1)] {
        for (way, ended) in every_way(program, &[]) {
            assert_eq!(ended.code(), Some(code), "{way}: {}", ended.err);
            let error = format!("error: rank 1 aborted the job with code {given}: on purpose");
            let lines: Vec<_> = ended.err.lines().filter(|line| line.contains("on purpose")).collect();
            assert_eq!(lines, [error], "{way}");
        }
    }
}

pub(super) fn options_of_queues_reach_the_ranks() {
    for options in [&[][..], &["--shared-address-space"], &["--progress-thread", "--shared-address-space"]] {
        for (way, ended) in every_way("queues", options) {
            assert_eq!(ended.code(), Some(0), "{way}: {}", ended.err);
            let has = |option| options.contains(&option);
            let threads = match (way, has("--progress-thread")) {
                ("virtual time", _) => 1,
                ("threads", false) => 1 + 2,
                ("threads", true) => 1 + 2 + 2,
                (_, progress) => 1 + usize::from(progress),
            };
            let line = format!("shared {}, {threads} threads", has("--shared-address-space"));
            assert_eq!(ended.out.lines().collect::<Vec<_>>(), [&line; 2], "{way} with {options:?}");
        }
    }
}
