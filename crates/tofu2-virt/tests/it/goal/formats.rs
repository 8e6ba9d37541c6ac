//! The text and the binary format: round trips and refusals.

use super::read;
use proptest::prelude::*;
use std::io::Cursor;
use tofu2_virt::goal::{BadSchedule, Operation, Pattern, Reason, Schedule, Work};

const TEXT: &str = "num_ranks 3 // a comment
/* another,
   of two lines */ rank 0 {
l1: send 8 b to 2 tag 5 cpu 1 nic 2
last : calc 100 cpu 3
last requires l1 /* here, too */
last irequires first
send 5000000000b to 1
first: calc 99999999999
}
rank 1 { // empty, but for this
recv 5000000000b from -1 tag -1
}
rank 2 {
recv 8b from 0 tag 5 }
";

fn binary(schedule: &Schedule) -> Vec<u8> {
    let mut bytes = Vec::new();
    schedule.write_binary(&mut bytes).expect("memory takes it");
    bytes
}

fn text(schedule: &Schedule) -> String {
    let mut bytes = Vec::new();
    schedule.write_text(&mut bytes).expect("memory takes it");
    String::from_utf8(bytes).expect("ASCII")
}

#[test]
fn all_that_the_formats_have_is_read_and_written() {
    let schedule = read(&TEXT.replace("tag 5 }", "tag 5\n}"));
    assert_eq!((schedule.ranks(), schedule.operations(), schedule.dependencies()), (3, 6, 2));
    let first: Vec<Operation> = schedule.operations_of(0).collect();
    assert_eq!(first[0], Operation { work: Work::Send { to: 2, bytes: 8, tag: 5 }, cpu: 1, nic: 2 });
    assert_eq!(first[1], Operation { work: Work::Calc { nanoseconds: 100 }, cpu: 3, nic: 0 });
    assert_eq!(first[2], Operation::send(1, 5_000_000_000, 0));
    let any: Vec<Operation> = schedule.operations_of(1).collect();
    assert_eq!(any, [Work::Recv { from: None, bytes: 5_000_000_000, tag: None }.into()]);
    for again in [read(&text(&schedule)), Schedule::read(Cursor::new(binary(&schedule))).expect("a schedule")] {
        assert_eq!(again, schedule);
    }
}

#[test]
fn patterns_survive_both_formats() {
    for pattern in Pattern::ALL {
        let schedule = pattern.schedule(13, 40).expect("a schedule");
        assert_eq!(pattern.name().parse(), Ok(pattern));
        assert_eq!(Schedule::read_binary(Cursor::new(binary(&schedule))).expect("a schedule"), schedule);
        assert_eq!(Schedule::read(Cursor::new(text(&schedule))).expect("a schedule"), schedule);
    }
    assert!("star".parse::<Pattern>().unwrap_err().contains("dissemination, binomial"));
}

/// The bytes that LogGOPSim's `txt2bin` writes for a schedule.
#[test]
fn the_binary_format_is_that_of_the_reference() {
    let schedule =
        read("num_ranks 1\nrank 0 {\na: send 3b to 0 tag 2 cpu 1\nb: recv 3b from -1 tag 2\nb requires a\n}");
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let mut expected = 4223u64.to_le_bytes().to_vec();
    expected.extend(numbers(&[1]));
    expected.extend([1, 0]);
    expected.extend([22u64, 22 + 8 + 4 + 2 * 39 + 4].iter().flat_map(|number| number.to_le_bytes()));
    expected.extend(numbers(&[2, 1, 0]));
    for (dependencies, kind, peer, cpu, edges) in [(0, 1, 0, 1, [1, 0, 0, 1]), (1, 2, u32::MAX, 0, [0, 1, 0, 1])] {
        expected.extend(numbers(&[dependencies]));
        expected.push(kind);
        expected.extend(numbers(&[peer]));
        expected.extend(3u64.to_le_bytes());
        expected.extend(numbers(&[2]));
        expected.extend([cpu, 0]);
        expected.extend(numbers(&edges));
    }
    expected.extend(numbers(&[1]));
    assert_eq!(binary(&schedule), expected);
}

#[test]
fn what_is_no_schedule_is_refused_with_its_line() {
    for (text, line, reason) in [
        ("", 1, "expected `num_ranks`, found the end of the text"),
        ("num_ranks 0", 1, "expected at least one rank, found none"),
        ("num_ranks 4294967295", 1, "the number of ranks 4294967295 is more than 4294967294"),
        ("rank 0 {\n}", 1, "expected `num_ranks` first, found `rank`"),
        ("num_ranks 2\n\nrank 1 {", 3, "rank 1 instead of rank 0"),
        ("num_ranks 1\nrank 0 {\n}\nrank 1 {", 4, "rank 1 is more than 0"),
        ("num_ranks 1\nrank 0 {\n", 3, "expected `}`, found the end of the text"),
        ("num_ranks 2\nrank 0 {\n}\n", 4, "1 of 2 ranks are given"),
        ("num_ranks 1\n/* rank 0 {\n}\n", 4, "expected `*/`"),
        ("num_ranks 1\nrank 0 {\nsend 1b to 1", 3, "rank 1 does not exist: there are 1"),
        ("num_ranks 1\nrank 0 {\nsend 1b to -1", 3, "expected a number, found `-1`"),
        ("num_ranks 1\nrank 0 {\nsend 1b to 0 tag -1", 3, "only a receive may have any tag"),
        ("num_ranks 1\nrank 0 {\nsend 1b to 0 tag 4294967295", 3, "tag 4294967295 is more than 4294967294"),
        ("num_ranks 1\nrank 0 {\nsend 1 to 0", 3, "expected b, found `to`"),
        ("num_ranks 1\nrank 0 {\nrecv 1b to 0", 3, "expected from, found `to`"),
        ("num_ranks 1\nrank 0 {\ncalc 1 nic 1", 3, "expected `cpu` or the end of the line, found `nic`"),
        ("num_ranks 1\nrank 0 {\ncalc 1 cpu 256", 3, "CPU 256 is more than 255"),
        ("num_ranks 1\nrank 0 {\ncalc 18446744073709551616", 3, "a number of 64 bits"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2", 4, "label a is used twice"),
        ("num_ranks 1\nrank 0 {\na: calc 1\nb requires a\n}", 5, "operation b does not exist"),
        ("num_ranks 1\nrank 0 {\na: calc 1 b: calc 2", 3, "expected `cpu` or the end of the line, found `b`"),
        ("num_ranks 1\nrank 0 {\na needs b", 3, "expected `:`, `requires` or `irequires`, found `needs`"),
        ("num_ranks 1\nrank 0 {\n\u{e4}: calc 1", 3, "expected an operation, a label or `}`"),
    ] {
        match Schedule::read_text(text.as_bytes()).expect_err(text) {
            BadSchedule::Line { line: found, reason: said } => {
                assert!(found == line && said.to_string().contains(reason), "{text}: line {found}: {said}");
            }
            other => panic!("{text}: {other}"),
        }
    }
}

#[test]
fn broken_files_are_refused_with_the_offset() {
    let good = binary(&read("num_ranks 2\nrank 0 {\na: calc 1\nb: calc 2\nb requires a\n}\nrank 1 {\ncalc 3\n}"));
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        match Schedule::read_binary(Cursor::new(bytes)).expect_err("it is broken") {
            BadSchedule::Byte { offset, reason } => (offset, reason),
            other => panic!("{other}"),
        }
    };
    // The part of rank 0 is at 46; its operations at 58 and 97, its edge at 136.
    assert!(matches!(refused(&|bytes| bytes[0] = 0), (8, Reason::NoSchedule(_))));
    assert!(matches!(refused(&|bytes| bytes[..2].copy_from_slice(&2342u16.to_le_bytes())), (8, Reason::NoSchedule(_))));
    assert!(matches!(refused(&|bytes| bytes.truncate(13)), (0, Reason::Truncated { end: 14, available: 13, .. })));
    assert!(matches!(refused(&|bytes| bytes[8] = 200), (14, Reason::Truncated { end: 3214, .. })));
    assert!(matches!(refused(&|bytes| bytes[14] = 0xff), (_, Reason::Truncated { what: "a rank's part", .. })));
    assert!(matches!(refused(&|bytes| bytes[46] = 3), (54, Reason::Truncated { what: "a rank's operations", .. })));
    assert!(matches!(
        refused(&|bytes| bytes[50] = 0),
        (
            _,
            Reason::Expected { .. }
                | Reason::Truncated { .. }
                | Reason::Inconsistent { .. }
                | Reason::NoSuchRank { .. }
        )
    ));
    assert!(matches!(refused(&|bytes| bytes[58] = 1), (58, Reason::Inconsistent { what: "dependencies", .. })));
    assert!(matches!(refused(&|bytes| bytes[62] = 4), (62, Reason::Expected { .. })));
    assert!(matches!(refused(&|bytes| bytes[81] = 2), (_, Reason::Inconsistent { what: "edges", .. })));
    assert!(matches!(refused(&|bytes| bytes[136] = 2), (140, Reason::NoSuchOperation(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Changed files are read or refused, and a schedule that is read can be replayed or not, without a panic.
    #[test]
    fn changed_files_do_no_harm(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), as_text: bool) {
        let schedule = read(&TEXT.replace("tag 5 }", "tag 5\n}"));
        let mut bytes = if as_text { text(&schedule).into_bytes() } else { binary(&schedule) };
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(schedule) = Schedule::read(Cursor::new(bytes)) {
            let _ = schedule.replay(&"S=100".parse().expect("parameters"));
        }
    }
}
