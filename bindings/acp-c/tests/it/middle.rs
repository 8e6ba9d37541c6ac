//! The middle layer: the program in `tests/own/middle`, and the examples of the book.

use crate::tools::{alone, compiled, job};
use process_tests::programs::Linkage;
use std::{collections::BTreeSet, fs, path::Path};

const SOURCES: [&str; 12] = [
    "channels.c",
    "deques.c",
    "heaps.c",
    "lists.c",
    "main.c",
    "maps.c",
    "multisets.c",
    "segments.c",
    "sets.c",
    "spaces.c",
    "vectors.c",
    "wrong.c",
];

/// The size of heaps, as words of the command line.
const HEAP: [&str; 2] = ["--acp-size-smem-dl", "1048576"];

fn sources() -> Vec<String> {
    SOURCES.iter().map(|source| format!("tests/own/middle/{source}")).collect()
}

pub(crate) fn channels_and_containers_work_between_processes() {
    let sources = sources();
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let Some(program) = compiled(&sources, Linkage::Shared) else { return };
    for ranks in [2, 3] {
        let ended = job(ranks, &program, &HEAP);
        assert!(ended.code() == Some(0) && ended.out == format!("middle: {ranks} ranks\n"), "{ended}");
    }
}

/// Every function that the header declares is called by the program.
pub(crate) fn every_function_is_called() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(package.join(path)).expect("a file of this package");
    let called: String = sources().iter().map(|source| read(source)).collect();
    let called = words(&called);
    let headers = ["include/acp_middle.h", "include/acp_containers.h"].map(read);
    // Only declarations: neither comments nor macros.
    let code = headers.iter().flat_map(|header| header.split("/*"));
    let code = code.filter_map(|part| part.split_once("*/")).flat_map(|(_, code)| code.lines());
    let declared: String = code.filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    let functions: BTreeSet<&str> = declared
        .split('(')
        .filter_map(|before| before.rsplit(|letter: char| !is_of_name(letter)).next())
        .filter(|name| name.starts_with("acp_"))
        .collect();
    assert_eq!(functions.len(), 178, "{functions:?}");
    let missing: Vec<_> = functions.difference(&called).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !is_of_name(letter)).collect()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

pub(crate) fn the_examples_echo_and_count() {
    if let Some(echo) = compiled(&["../../examples/c/acp_echo.c"], Linkage::Shared) {
        let ended = job(3, &echo, &[]);
        let expected = "rank 1 has echoed 9 messages\nrank 2 has echoed 9 messages\n";
        assert!(ended.code() == Some(0) && ended.out == expected, "{ended}");
    }
    if let Some(count) = compiled(&["../../examples/c/acp_words.c"], Linkage::Shared) {
        let ended = job(3, &count, &HEAP);
        let counts = ["   5 a\n", "   4 rank\n", "   4 the\n", "   2 word\n", "   1 slot\n"];
        assert!(ended.code() == Some(0) && counts.iter().all(|count| ended.out.contains(count)), "{ended}");
        // The same counts by one process, and nothing without room.
        assert_eq!(alone(&count, &HEAP).out, ended.out);
        let full = job(2, &count, &["--acp-size-smem-dl", "1024"]);
        assert!(full.code() != Some(0) && full.err.contains("--acp-size-smem-dl"), "{full}");
    }
}

pub(crate) fn a_lost_rank_is_a_failure() {
    let Some(lost) = compiled(&["tests/own/middle_lost.c"], Linkage::Shared) else { return };
    let ended = job(2, &lost, &HEAP);
    assert!(ended.code() != Some(0) && ended.out == "middle_lost: well\n", "{ended}");
    assert!(ended.err.contains("acp_clear_vector") && !ended.err.contains("FAIL"), "{ended}");
}

pub(crate) fn containers_on_other_memory_return() {
    let Some(stray) = compiled(&["tests/own/middle_stray.c"], Linkage::Shared) else { return };
    for seed in ["1", "2"] {
        let ended = job(2, &stray, &[seed, "--acp-size-smem-dl", "65536"]);
        assert!(ended.code() == Some(0) && ended.out.matches("middle_stray: well").count() == 2, "{ended}");
    }
}
