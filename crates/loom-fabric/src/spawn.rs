//! Threads of loom with stacks that are deep enough for protocols' futures.

use loom::thread::{Builder, JoinHandle};
use std::cell::RefCell;

/// Loom takes it for words.
const STACK: usize = 1 << 17;

type Body = Box<dyn FnOnce()>;

thread_local! {
    /// Bodies of threads that have not begun. Threads of loom are coroutines of one thread; so nothing is sent, whatever it takes a builder for.
    static BODIES: RefCell<Vec<Option<Body>>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn spawn(body: impl FnOnce() + 'static) -> JoinHandle<()> {
    let place = BODIES.with_borrow_mut(|bodies| {
        let place = bodies.iter().position(Option::is_none).unwrap_or(bodies.len());
        if place == bodies.len() {
            bodies.push(None);
        }
        bodies[place] = Some(Box::new(body));
        place
    });
    let take = move || BODIES.with_borrow_mut(|bodies| bodies[place].take());
    let run = move || take().expect("each body is run once")();
    Builder::new().stack_size(STACK).spawn(run).expect("loom spawns")
}

pub(crate) fn join(thread: JoinHandle<()>) {
    thread.join().expect("loom reports a panic itself");
}
