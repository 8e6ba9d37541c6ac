//! The options, variables and command lines that are tried.

/// The kind of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number, or a number with a unit: any other text is an error.
    Number,
    /// One of a few names.
    Name,
    /// A file that must exist.
    File,
    /// Any text: a file that is created, or the name of something that may exist.
    Text,
}

const CLUSTER: &[&str] = &["--fabric", "cluster", "--ranks", "2"];

/// Options of every program, including `torture_rank`, with the other options that they require.
pub(super) const LAUNCH: [(&str, Kind, &[&str]); 19] = [
    ("--ranks", Kind::Number, &[]),
    ("--fabric", Kind::Name, &[]),
    ("--bind", Kind::Name, &[]),
    ("--stuck-after", Kind::Number, &[]),
    ("--ranks-per-node", Kind::Number, &["--fabric", "virt"]),
    ("--lease", Kind::Number, CLUSTER),
    ("--on-node", Kind::Name, CLUSTER),
    ("--atomics", Kind::Name, CLUSTER),
    ("--hosts", Kind::File, CLUSTER),
    ("--provider", Kind::Text, CLUSTER),
    ("--domain", Kind::Text, CLUSTER),
    ("--interface", Kind::Text, CLUSTER),
    ("--env", Kind::Text, CLUSTER),
    ("--platform", Kind::Name, &["--fabric", "virt"]),
    ("--faults", Kind::File, &["--fabric", "virt"]),
    ("--seed", Kind::Number, &["--fabric", "virt"]),
    ("--jitter", Kind::Number, &["--fabric", "virt"]),
    ("--trace", Kind::Text, &[]),
    ("--timeline", Kind::Text, &["--fabric", "virt"]),
];

/// Environment variables of programs, and the option that they correspond to.
pub(super) const VARIABLES: [(&str, Kind); 6] = [
    ("ONESIDED_RANKS", Kind::Number),
    ("ONESIDED_FABRIC", Kind::Name),
    ("ONESIDED_BIND", Kind::Name),
    ("ONESIDED_STUCK_AFTER", Kind::Number),
    ("ONESIDED_ATOMICS", Kind::Name),
    ("ONESIDED_SEGMENT_BYTES", Kind::Number),
];

/// Options of the subcommands of `onesided`.
pub(super) const SUBCOMMANDS: [(&str, &str, Kind); 13] = [
    ("run", "--ranks", Kind::Number),
    ("run", "--segment-bytes", Kind::Number),
    ("run", "--ranks-per-node", Kind::Number),
    ("run", "--bind", Kind::Name),
    ("run", "--stuck-after", Kind::Number),
    ("run", "--json", Kind::Text),
    ("run", "--trace", Kind::Text),
    ("info", "--ranks", Kind::Number),
    ("reproduce", "--paper", Kind::Name),
    ("reproduce", "--shapes", Kind::Name),
    ("reproduce", "--trace-job", Kind::Number),
    ("reproduce", "--seed", Kind::Number),
    ("no-such-command", "--ranks", Kind::Number),
];

/// The wrong values that replace a right one.
pub(super) const VALUES: [(&str, Option<&[u8]>); 6] = [
    ("no value", None),
    ("an empty value", Some(b"")),
    ("a wrong value", Some(b"nonsense")),
    ("a negative value", Some(b"-1")),
    ("a huge value", Some(b"99999999999999999999999999")),
    ("a value that is not UTF-8", Some(b"\xff\xfe")),
];

/// Whole command lines: by `onesided` (`$0`), `torture_rank` (`$1`), with the codes that they may end
/// with, and a word of the message.
pub(super) const LINES: [(&str, &[i32], &str); 21] = [
    ("\"$0\"", &[2], "Usage"),
    ("\"$0\" --version", &[0], ""),
    ("\"$0\" run", &[2], "--ranks"),
    ("\"$0\" run -n 2", &[2], "PROGRAM"),
    ("\"$0\" run -n 2 --", &[2], "PROGRAM"),
    ("\"$0\" run -n 0 -- true", &[2], "rank"),
    ("\"$0\" run -n 2 -- /no/such/program", &[1, 2, 127], "/no/such/program"),
    ("\"$0\" run -n 2 -- /", &[1, 2, 126], "/"),
    ("\"$0\" run -n 2 -- /etc/passwd", &[1, 2, 126], "/etc/passwd"),
    ("\"$0\" run -n 2 --json /no/such/file -- true", &[1, 2], "/no/such/file"),
    ("\"$0\" run -n 2 --trace /no/such/file -- true", &[1, 2], "/no/such/file"),
    ("\"$1\"", &[2], ""),
    ("\"$1\" words --no-such-option", &[2], "--no-such-option"),
    ("\"$1\" words --for 0 --ranks=2", &[0], ""),
    ("\"$1\" words --for 0 -n 2", &[0], ""),
    ("\"$1\" --version", &[0], ""),
    ("\"$1\" --help", &[0], ""),
    ("\"$1\" words --for 0 --ranks 1 --fabric cluster", &[0, 1], ""),
    ("\"$1\" words --for 0 --ranks 2 --seed 1", &[2], "--seed"),
    ("\"$1\" words --for 0 --ranks 2 --jitter 1us", &[2], "--jitter"),
    ("\"$1\" words --for 0 --ranks 2 --trace /no/such/file", &[1, 2], "/no/such/file"),
];

/// Commands with more ranks than any machine has room for: only in a control group.
pub(super) const HUGE: [(&str, &str); 7] = [
    ("\"$0\" run -n 3000000 -- true", "ranks"),
    ("\"$0\" run -n 4294967296 -- true", "rank"),
    ("\"$0\" run -n 4 --segment-bytes 1000000G -- \"$1\" words --for 0", "segment"),
    ("\"$1\" words --for 0 --ranks 100000", "ranks"),
    ("\"$1\" words --for 0 --ranks 100000 --fabric threads", "ranks"),
    ("\"$1\" words --for 0 --ranks 100000 --fabric cluster", "ranks"),
    ("\"$1\" words --for 0 --ranks 999999999999 --fabric virt", "ranks"),
];

/// The memory, in bytes, and the processes of every case.
pub(super) const ROOM: (u64, u64) = (512 << 20, 100);

/// Commands with closed descriptors, and the codes that they may end with.
pub(super) const CLOSED: [(&str, &[i32]); 6] = [
    ("\"$1\" words --for 0 --ranks 2", &[0]),
    ("\"$0\" run -n 2 -- \"$1\" words --for 0", &[0]),
    ("\"$1\" named-lock --for 0", &[0]),
    ("\"$1\" words --for 0 --ranks 2 --fabric cluster --ranks-per-node 1 --interface lo", &[0]),
    ("\"$0\" --version", &[0, 1, 2]),
    ("\"$0\" info", &[0, 1, 2]),
];

/// The descriptors to close.
pub(super) const DESCRIPTORS: [&str; 4] = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"];
