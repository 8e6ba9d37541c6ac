//! Runs each example between processes, between threads and in virtual time.

use process_tests::child::{Child, Ended, program};
use std::{env, path::PathBuf, process::Stdio};

/// Returns the path of an example, which `cargo test -p onesided-examples` has built next to this test.
fn built(example: &str) -> PathBuf {
    let test = env::current_exe().expect("the path of this test");
    let profile = test.parent().and_then(|deps| deps.parent()).expect("target/<profile>/deps");
    profile.join("examples").join(example)
}

/// Runs an example with these words.
fn run(example: &str, words: &[&str]) -> Ended {
    let mut command = program(built(example), words);
    command.current_dir(env!("CARGO_TARGET_TMPDIR")).stderr(Stdio::piped());
    Child::start(command).end()
}

/// Runs an example, and checks that it succeeds and prints each of these lines or parts of lines.
fn succeeds(example: &str, words: &str, prints: &[&str]) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let ended = run(example, &words);
    let printed = ended.printed();
    assert_eq!(ended.code(), Some(0), "`{example} {}` printed\n{printed}", words.join(" "));
    for part in prints {
        assert!(printed.contains(part), "`{example} {}` did not print {part:?}:\n{printed}", words.join(" "));
    }
}

/// Runs a program of a page often, because each rank may be early or late.
fn everywhere(example: &str, words: &str, prints: &[&str]) {
    for _ in 0..8 {
        succeeds(example, &format!("--ranks 4 {words}"), prints);
        succeeds(example, &format!("--ranks 4 --fabric threads {words}"), prints);
    }
    for seed in 0..4 {
        succeeds(example, &format!("--ranks 4 --fabric virt --seed {seed} {words}"), prints);
    }
}

macro_rules! pages {
    ($($example:ident($words:literal) $prints:expr;)*) => {
        /// Programs that README, the book and the facade's documentation show.
        mod of_pages {
            $(#[test]
            fn $example() {
                super::everywhere(stringify!($example), $words, &$prints);
            })*
        }
    };
}

pages! {
    counter("") ["rank 0 sees 4", "rank 1 sees 4", "rank 2 sees 4", "rank 3 sees 4"];
    hello("") ["rank 0 got 3", "rank 1 got 0", "rank 2 got 1", "rank 3 got 2"];
    histogram("") [];
    window("") ["4 ranks took part"];
    halo("") [];
    count("10") [];
}

macro_rules! examples {
    ($($(#[$attribute:meta])* $name:ident: $example:ident $words:literal $prints:expr;)*) => {
        $(#[test]
        $(#[$attribute])*
        fn $name() {
            succeeds(stringify!($example), $words, &$prints);
        })*
    };
}

examples! {
    own_runtime_between_processes: own_runtime "--ranks 4" [];
    own_runtime_between_threads: own_runtime "--ranks 4 --fabric threads" [];
    window_lock_between_processes: window_lock "--ranks 4" ["none torn"];
    window_lock_in_virtual_time: window_lock "--ranks 4 --fabric virt" ["none torn", "trace"];
    hash_table_between_processes: distributed_hashtable "--ranks 4" [];
    hash_table_in_virtual_time: distributed_hashtable "--ranks 4 --fabric virt" [];
    shared_counter_between_processes: shared_counter "--ranks 4" [];
    stencil_between_processes: stencil_rma "--ranks 4" ["right after 200 steps"];
    stencil_in_virtual_time: stencil_rma "--ranks 4 --fabric virt" ["right after 200 steps"];
    chain_between_processes: session_chain "--ranks 6" ["over 5 hops"];
    chain_in_virtual_time: session_chain "--ranks 6 --fabric virt" ["over 5 hops"];
    sum_between_processes: overlapped_sum "--ranks 4" ["3.14159265358979"];
    halo_1d_between_processes: halo_1d "--ranks 4" ["1000 steps right"];
    halo_1d_in_virtual_time: halo_1d "--ranks 4 --fabric virt --form mrc" ["1000 steps right"];
    heat_between_processes: heat_2d "--ranks 4" ["the same as one loop bit by bit"];
    heat_in_virtual_time: heat_2d "--ranks 6 --fabric virt" ["the same as one loop bit by bit"];
    life_between_processes: life "--ranks 4" ["the same as in one loop"];
    life_in_virtual_time: life "--ranks 4 --fabric virt" ["the same as in one loop"];
    dynamics_between_processes: scale_dynamics "--ranks 4 --explain --grid 12x12x8 --steps 6" ["the same as one loop, bit by bit"];
    dynamics_in_virtual_time: scale_dynamics "--ranks 4 --fabric virt --grid 12x12x8 --steps 6" ["the same as one loop, bit by bit"];
    #[ignore = "long: weekly"]
    dynamics_of_its_usual_grid_between_processes: scale_dynamics "--ranks 4 --explain" ["the same as one loop, bit by bit"];
    #[ignore = "long: weekly"]
    dynamics_of_its_usual_grid_in_virtual_time: scale_dynamics "--ranks 4 --fabric virt" ["the same as one loop, bit by bit"];
    broadcast_between_processes: ga_broadcast "--ranks 4" [];
    broadcast_in_virtual_time: ga_broadcast "--ranks 8 --fabric virt --timeline ga_broadcast.json" ["timeline: "];
    broadcast_by_command_queue: ga_broadcast "--ranks 8 --fabric virt --mode command-queue" [];
    server_between_processes: server_any "--ranks 4" [];
    server_in_virtual_time: server_any "--ranks 6 --fabric virt" [];
    ping_pong_between_processes: ping_pong "--ranks 2 --posted 600 --plot ping_pong.svg" [];
    ping_pong_in_virtual_time: ping_pong "--ranks 2 --posted 600 --fabric virt --platform sr8000 --plot ping_pong_virtual.svg" [];
    jacobi_between_processes: jacobi "--ranks 4" ["the same as one loop"];
    jacobi_in_virtual_time: jacobi "--ranks 6 --fabric virt --steps 20" ["the same as one loop", "trace"];
    matrices_between_processes: matmul_summa "--ranks 4" [];
    matrices_in_virtual_time: matmul_summa "--ranks 6 --fabric virt" [];
    words_between_processes: word_count "--ranks 4" [];
    words_in_virtual_time: word_count "--ranks 4 --fabric virt" [];
    tokio_between_processes: tokio_current_thread "--ranks 2" [];
}

/// The job ends with the code of the rank that dies in it.
fn survivors_continue(fabric: &str) {
    let ended = run("crash_recovery", &["--ranks", "4", "--fabric", fabric]);
    assert_ne!(ended.code(), Some(0), "{ended:?}");
    assert!(ended.printed().contains("3 survivors went on"), "{ended:?}");
}

#[test]
fn survivors_continue_between_processes() {
    survivors_continue("shm");
}

#[test]
fn survivors_continue_in_virtual_time() {
    survivors_continue("virt");
}
