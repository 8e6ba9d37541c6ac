//! Operation counts as an oracle for the locks with queues: what each path posts, by kind, at the home and at peers.
//!
//! [`scenes`] names each operation by its step in `docs/rp-lock.md` or `docs/queued-locks.md`, beside what the algorithm posts as printed; the counters of an
//! observed fabric must say exactly the same, in virtual time for all paths and over threads for those in which nobody waits. The
//! pages' tables are written by `CONFORMANCE_WRITE=1 cargo test --test lock_counts`. That the counts tell something is shown by [`broken`].

mod broken;
#[path = "../../crates/rma-lock/tests/mutant/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with tests that need more of it")]
mod mutant;
#[path = "../it/page.rs"]
mod page;
mod play;
mod scene;
mod scenes;
mod table;
mod tally;

use broken::Fault;

#[test]
fn each_path_posts_what_its_steps_say_in_virtual_time() {
    let found: String = scenes::scenes()
        .iter()
        .map(|scene| match play::simulate(scene, Fault::None) {
            Ok(played) => played.differences(),
            Err(error) => format!("{:?}, {}: {error}\n", scene.lock, scene.name),
        })
        .collect();
    assert!(found.is_empty(), "\n{found}");
}

#[test]
fn paths_without_a_wait_post_the_same_over_threads_but_no_flush() {
    let (scenes, mut calm) = (scenes::scenes(), 0);
    for scene in scenes.iter().filter(|scene| scene.calm) {
        let found = play::spawn(scene).unwrap_or_else(|error| panic!("{}: {error}", scene.name)).differences();
        assert!(found.is_empty(), "\n{found}");
        calm += 1;
    }
    assert!(calm > 0);
}
