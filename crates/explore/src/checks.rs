//! What must hold, and what must be possible.

use crate::{cell::Cells, quiet, state::State, view::View};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

type Check<'a> = Box<dyn Fn(&View<'_>) -> bool + 'a>;

struct Named<'a> {
    name: String,
    check: Check<'a>,
    /// Whether it has held.
    seen: Cell<bool>,
}

#[derive(Default)]
pub(crate) struct Checks<'a> {
    always: Vec<Named<'a>>,
    at_end: Vec<Named<'a>>,
    possible: Vec<Named<'a>>,
}

fn named<'a>(name: &str, check: impl Fn(&View<'_>) -> bool + 'a) -> Named<'a> {
    Named { name: name.to_owned(), check: Box::new(check), seen: Cell::new(false) }
}

impl<'a> Checks<'a> {
    pub(crate) fn add_always(&mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) {
        self.always.push(named(name, check));
    }

    pub(crate) fn add_at_end(&mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) {
        self.at_end.push(named(name, check));
    }

    pub(crate) fn add_possible(&mut self, name: &str, check: impl Fn(&View<'_>) -> bool + 'a) {
        self.possible.push(named(name, check));
    }

    /// In every state.
    pub(crate) fn always(&self, state: &State, cells: &Cells) -> Result<(), String> {
        if self.always.is_empty() && self.possible.is_empty() {
            return Ok(());
        }
        let view = View::new(state, cells);
        for possible in self.possible.iter().filter(|possible| !possible.seen.get()) {
            possible.seen.set((possible.check)(&view));
        }
        all(&self.always, &view)
    }

    /// In every state in which all is over.
    pub(crate) fn at_end(&self, state: &State, cells: &Cells) -> Result<(), String> {
        all(&self.at_end, &View::new(state, cells))
    }

    pub(crate) fn seen(&self) -> Vec<(String, bool)> {
        self.possible.iter().map(|possible| (possible.name.clone(), possible.seen.get())).collect()
    }
}

fn all(checks: &[Named<'_>], view: &View<'_>) -> Result<(), String> {
    for Named { name, check, .. } in checks {
        match catch_unwind(AssertUnwindSafe(|| quiet::while_exploring(|| check(view)))) {
            Ok(true) => {}
            Ok(false) => return Err(format!("{name}: does not hold")),
            Err(panic) => return Err(format!("{name}: {}", quiet::message(&*panic))),
        }
    }
    Ok(())
}
