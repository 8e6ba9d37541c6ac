//! Runs explorations: their settings, the number of executions, and the message of a failing one.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

/// A boxed model, so that the explorer is compiled only once, in this crate.
type Model = Box<dyn Fn() + Send + Sync>;

fn explore(bound: Option<usize>, model: Model) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let counter = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = bound;
    builder.max_branches = 20_000;
    builder.check(move || {
        counter.fetch_add(1, Relaxed);
        model();
    });
    executions.load(Relaxed)
}

/// Explores all executions with at most `bound` preemptions (`None`: unbounded) and prints their
/// number.
///
/// # Panics
/// If an execution fails, or if there are fewer executions than `at_least`, the recorded number:
/// the check then covers less than it did when the number was recorded.
pub fn check(bound: Option<usize>, at_least: usize, model: impl Fn() + Send + Sync + 'static) {
    let start = Instant::now();
    let executions = explore(bound, Box::new(model));
    println!("{executions} executions, preemption bound {bound:?}, {:.2} s", start.elapsed().as_secs_f64());
    assert!(executions >= at_least, "{executions} executions explored where {at_least} were recorded");
}

/// Explores executions until one fails.
///
/// # Panics
/// If no execution fails, or if the failure's message contains none of the `expected` texts.
pub fn check_fails(bound: Option<usize>, expected: &[&str], model: impl Fn() + Send + Sync + 'static) {
    let start = Instant::now();
    let message = match catch_unwind(AssertUnwindSafe(|| explore(bound, Box::new(model)))) {
        Ok(executions) => panic!("a broken protocol passed all its {executions} executions"),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
        }
    };
    println!("caught in {:.2} s: {message}", start.elapsed().as_secs_f64());
    assert!(expected.iter().any(|part| message.contains(part)), "failed otherwise than by {expected:?}: {message}");
}
