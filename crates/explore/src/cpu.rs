//! A rank's CPU in a scripted run: it polls the rank's program, the futures that the program has
//! detached, and its helpers, as specified by the script. Panics of explored programs are findings:
//! they are included once in the report, and not printed when they occur.

use crate::{
    act::{Act, Answer},
    cell::Cells,
    fabric::Explored,
    loss::Ranks,
    running::{Running, Task},
    session::{Frontier, Own, Session, Source},
};
use rdma_fabric::{Fabric, Rank, provider::JobFacts};
use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic::{self, AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{Arc, Once},
    task::Poll,
};

/// Makes a rank's program, any number of times.
pub(crate) type Start<'a> = dyn Fn(Fabric) -> Task + 'a;

/// The behaviour of a program after the last answer of its script.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The notifications that it emitted.
    pub(crate) reported: Vec<Act>,
    /// The question that it asked next; `None` if it waits as before.
    pub(crate) next: Option<Act>,
    /// Whether the answer let it continue.
    pub(crate) ready: bool,
    /// Its live tasks, by bits.
    pub(crate) tasks: u64,
    pub(crate) own: Own,
    /// A hash of everything that it did from the start, and the same hash from before the last
    /// answer.
    pub(crate) trail: u128,
    pub(crate) trail_before: u128,
}

/// The data that all runs of a job share.
pub(crate) struct JobConfig<'a> {
    pub(crate) facts: Arc<JobFacts>,
    pub(crate) start: &'a Start<'a>,
    pub(crate) cells: Rc<RefCell<Cells>>,
    /// Ranks that may die.
    pub(crate) mortal: Ranks,
    /// Whether regions that a program's end releases stay until the job ends.
    pub(crate) together: bool,
}

impl JobConfig<'_> {
    /// Runs `rank`'s program from its start, giving it the answers of `script`.
    pub(crate) fn run(&self, rank: Rank, script: Vec<Answer>) -> Outcome {
        let session = Session::new(rank, self.facts.clone(), self.cells.clone(), Source::Script(script));
        session.mortal.set(self.mortal);
        session.together.set(self.together);
        let mut tasks = Vec::new();
        let run = catch_unwind(AssertUnwindSafe(|| {
            while_exploring(|| {
                tasks.push(Some(Running::program((self.start)(Explored::fabric(&session)))));
                resume(&session, &mut tasks)
            })
        }));
        session.end();
        let next = match run {
            Ok(next) if session.caught_up() => next,
            Ok(_) => Some(Act::Failed("the program did something else than before, being told the same".into())),
            Err(payload) if payload.is::<Frontier>() => session.requested(),
            Err(payload) => Some(Act::Failed(panic_message(&*payload).into())),
        };
        let live = |(i, task): (usize, &Option<Running>)| u64::from(task.is_some()) << i;
        tasks.truncate(MOST_TASKS);
        Outcome {
            reported: session.reported_acts(),
            next,
            ready: session.last_ready.get(),
            tasks: tasks.iter().enumerate().map(live).sum(),
            own: session.own(),
            trail: session.trail(),
            trail_before: session.trail_before.get(),
        }
    }
}

/// The maximum number of tasks of one rank: each is a bit of a `u64`.
const MOST_TASKS: usize = 64;

/// Polls until the rank ends, fails or waits for the same condition as before (`None`).
fn resume(session: &Session, tasks: &mut Vec<Option<Running>>) -> Option<Act> {
    loop {
        for rest in session.begun() {
            match tasks.iter_mut().find(|task| task.is_none()) {
                Some(free) => *free = Some(rest),
                None => tasks.push(Some(rest)),
            }
        }
        if tasks.len() > MOST_TASKS {
            return Some(Act::Failed("more than 63 helpers and detached futures at a time can't be explored".into()));
        }
        let mut live = (0..tasks.len()).filter(|task| tasks[*task].is_some());
        let (first, alone) = (live.next(), live.next().is_none());
        let chosen = match first {
            None => return Some(Act::Done),
            Some(only) if alone => only,
            Some(_) => match session.request(Act::Choose) {
                Some(Answer::Task(task)) => task as usize,
                _ => return None,
            },
        };
        session.unready.set(false);
        session.moved.set(false);
        session.polls.borrow_mut().clear();
        session.alone.set(alone);
        let Some(task) = &mut tasks[chosen] else {
            return Some(Act::Failed("a task that is over was chosen".into()));
        };
        match task.poll(session) {
            Poll::Ready(Ok(())) => {
                tasks[chosen] = None;
                session.returned();
                session.continued();
            }
            Poll::Ready(Err(error)) => return Some(Act::Failed(error.into())),
            Poll::Pending if session.has_begun() => {}
            Poll::Pending if alone && session.polls.borrow().are_stale() => {}
            Poll::Pending if alone && session.unready.get() => return None,
            Poll::Pending if alone => {
                // No event in the world could end the program's wait.
                session.request(Act::Yield);
                session.continued();
            }
            Poll::Pending if session.moved.get() => {}
            Poll::Pending => return None,
        }
    }
}

thread_local! {
    static EXPLORING: Cell<bool> = const { Cell::new(false) };
    /// The source location of this thread's last panic.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs `f` without printing its panics.
pub(crate) fn while_exploring<T>(f: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if EXPLORING.get() {
                PLACE.set(info.location().map(ToString::to_string).unwrap_or_default());
            } else {
                before(info);
            }
        }));
    });
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            EXPLORING.set(self.0);
        }
    }
    let _reset = Reset(EXPLORING.replace(true));
    f()
}

/// Returns a panic's message and source location.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    match PLACE.take() {
        place if place.is_empty() => text.to_owned(),
        place => format!("{text} ({place})"),
    }
}
