//! What is measured on both sides.

/// An operation of ours and the operations of other libraries that do the same work.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) what: &'static str,
    /// The case of `operations`.
    pub(super) case: &'static str,
    pub(super) bytes: usize,
    /// The names that programs in C print, of which the fastest counts.
    pub(super) others: &'static [&'static str],
    /// The part of ours that takes the time.
    pub(super) part: &'static str,
    /// Whether there are more ranks than cores.
    pub(super) shares_cores: bool,
}

const fn work(
    part: &'static str,
    what: &'static str,
    case: &'static str,
    bytes: usize,
    others: &'static [&'static str],
) -> Work {
    Work { what, case, bytes, others, part, shares_cores: false }
}

const RING: &[&str] = &["ring-sends", "ring-collective"];

pub(super) const WORKS: [Work; 20] = [
    work("fabric", "put 8 B + flush", "put", 8, &["put"]),
    work("fabric", "fetch-add", "fetch-add", 8, &["fetch-add"]),
    work("locks", "shared lock + unlock", "lock-shared", 0, &["lock-shared"]),
    work("locks", "exclusive lock + unlock", "lock-exclusive", 0, &["lock-exclusive"]),
    work("locks", "both exclusive", "lock-both-exclusive", 0, &["lock-both-exclusive"]),
    work("messages", "message 8 B, one way", "fmpl-8", 8, &["message"]),
    work("messages", "8 B behind 600 receives, one way", "fmpl-behind", 8, &["message-behind-600"]),
    work("messages", "64 outstanding, a message", "fmpl-64", 8, &["outstanding-64"]),
    work("exchanges", "persistent ring 0 B, form `Cpu`", "exchange-cpu", 0, RING),
    work("exchanges", "persistent ring 8 KiB, form `Cpu`", "exchange-cpu", 8 << 10, RING),
    work("exchanges", "persistent ring 64 KiB, form `Cpu`", "exchange-cpu", 64 << 10, RING),
    work("session queues", "persistent ring 0 B, form FAST", "exchange-fast", 0, RING),
    work("session queues", "persistent ring 8 KiB, form FAST", "exchange-fast", 8 << 10, RING),
    work("session queues", "persistent ring 64 KiB, form FAST", "exchange-fast", 64 << 10, RING),
    work("session queues", "persistent ring 0 B, form MRC", "exchange-mrc", 0, RING),
    work("session queues", "persistent ring 8 KiB, form MRC", "exchange-mrc", 8 << 10, RING),
    work("session queues", "persistent ring 64 KiB, form MRC", "exchange-mrc", 64 << 10, RING),
    Work { shares_cores: true, ..work("waits", "barrier of 4 on 2 cores", "fmpl-barrier-4", 0, &["barrier-4"]) },
    Work { shares_cores: true, ..work("waits", "sum of 8 B of 4 on 2 cores", "fmpl-sum-4", 0, &["sum-4"]) },
    Work {
        shares_cores: true,
        ..work("waits", "broadcast of 8 B to 3 on 2 cores", "fmpl-broadcast-4", 0, &["broadcast-4"])
    },
];

#[cfg(test)]
mod tests {
    use super::{super::libraries::OF_MPI, *};
    use crate::operations;

    #[test]
    fn all_cases_exist_and_the_program_has_all_names() {
        for work in &WORKS {
            assert!(operations::has_case(work.case), "{}", work.case);
            for name in work.others {
                assert!(OF_MPI.text.contains(&format!("\"{name}\"")), "{name}");
            }
        }
    }
}
