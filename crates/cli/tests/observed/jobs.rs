//! Options and ends of whole jobs, whoever starts them.

use crate::cases::{directory, launched, run};

/// Each way to start ranks: its name, and how the program ended.
fn every_way(name: &str, options: &[&str]) -> [(&'static str, crate::cases::Ended); 4] {
    let on = |fabric| launched(name, &[options, &["--fabric", fabric]].concat());
    [
        ("onesided run", run(options, name, directory().path())),
        ("processes", on("shm")),
        ("threads", on("threads")),
        ("virtual time", on("virt")),
    ]
}

pub(super) fn an_abort_is_said_once_and_decides_the_code() {
    for (program, given, code) in [("aborts-7", 7, 7), ("aborts-0", 1, 1), ("aborts-300", 300, 1)] {
        for (way, ended) in every_way(program, &[]) {
            assert_eq!(ended.code, Some(code), "{way}: {}", ended.err);
            let told = format!("error: rank 1 aborted the job with code {given}: on purpose");
            let lines: Vec<_> = ended.err.lines().filter(|line| line.contains("on purpose")).collect();
            assert_eq!(lines, [told], "{way}");
        }
    }
}
