//! The programs of this package, and the examples.

use crate::tools::{alone, compiled, compiled_by, job, says};
use process_tests::programs::Linkage;

/// Runs a program by itself.
fn alone_says(name: &str, text: &str) {
    let Some(program) = compiled(name, Linkage::Shared) else { return };
    says(&alone(&program, &[]), text);
}

/// Runs a program as these numbers of ranks.
fn ranks_say(name: &str, ranks: &[usize], text: &str) {
    let Some(program) = compiled(name, Linkage::Shared) else { return };
    ranks.iter().for_each(|&ranks| says(&job(ranks, &program, &[]), text));
}

pub(crate) fn every_function_has_its_results_and_codes() {
    alone_says("calls", "calls: all");
    alone_says("transfers", "transfers: all");
}

pub(crate) fn session_queues_start_commands_by_credit_alone() {
    alone_says("session", "session: all");
}

pub(crate) fn all_kinds_of_memory_are_registered() {
    ranks_say("memory", &[2], "memory: all");
}

pub(crate) fn processes_move_and_change_each_others_memory() {
    ranks_say("pairs", &[2, 3], "pairs: ");
}

pub(crate) fn the_examples_run() {
    ranks_say("utofu_pingpong", &[2], "pingpong: 1000 messages");
    ranks_say("utofu_ring", &[2, 3], "ring: ");
    ranks_say("utofu_halo", &[1, 2, 3], "halo: ");
    ranks_say("utofu_gates", &[2, 4], "gates: ");
    ranks_say("utofu_counter", &[2, 4], "counter: ");
}

pub(crate) fn the_static_library_behaves_alike() {
    let Some(program) = compiled("utofu_ring", Linkage::Static) else { return };
    says(&job(2, &program, &[]), "ring: 2 ranks");
}

/// The sanitizer sees the program's accesses to memory whose pages were replaced.
pub(crate) fn nothing_is_wrong_under_the_address_sanitizer() {
    let sanitized = |name| compiled_by("clang", &["-fsanitize=address"], name);
    let Some(transfers) = sanitized("transfers") else { return };
    says(&alone(&transfers, &[]), "transfers: all");
    for (name, text) in [("memory", "memory: all"), ("utofu_ring", "ring: 2"), ("utofu_halo", "halo: 2")] {
        let Some(program) = sanitized(name) else { return };
        says(&job(2, &program, &[]), text);
    }
}
