//! The open contexts, and the system contexts that stand for the processes of a context.

use crate::{
    error::{CallError, Result},
    int::{Int, int},
    places::Places,
};
use blacs::Grid;

/// Grids by context. The number of a grid that has been exited is reused, the lowest first.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    grids: Places<Grid>,
    /// The contexts whose processes the system contexts from 1 on stand for.
    systems: Places<usize>,
}

/// The processes that a system context stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// All processes of the job.
    Job,
    /// The processes of the grid of a context.
    Grid(usize),
}

/// The system context of all processes.
pub(crate) const JOB: Int = 0;

impl Contexts {
    #[inline]
    pub(crate) fn grid(&self, context: Int) -> Option<&Grid> {
        self.grids.get(usize::try_from(context).ok()?)
    }

    #[inline]
    pub(crate) fn open(&self, context: Int) -> Result<&Grid> {
        self.grid(context).ok_or(CallError::NoContext(context))
    }

    pub(crate) fn open_mut(&mut self, context: Int) -> Result<&mut Grid> {
        let grid = usize::try_from(context).ok().and_then(|at| self.grids.get_mut(at));
        grid.ok_or(CallError::NoContext(context))
    }

    /// Returns the number of open contexts.
    pub(crate) fn count(&self) -> usize {
        self.grids.count()
    }

    pub(crate) fn add(&mut self, grid: Grid) -> Int {
        int(self.grids.keep(grid))
    }

    /// Removes a grid, and closes the system contexts that stand for its processes.
    pub(crate) fn take(&mut self, context: Int) -> Result<Grid> {
        let at = usize::try_from(context).map_err(|_| CallError::NoContext(context))?;
        let grid = self.grids.take(at).ok_or(CallError::NoContext(context))?;
        while let Some(system) = self.systems.number_of(&at) {
            self.systems.take(system);
        }
        Ok(grid)
    }

    /// Removes all grids.
    pub(crate) fn take_all(&mut self) -> Vec<Grid> {
        self.systems.take_all();
        self.grids.take_all()
    }

    /// Returns the system context that stands for the processes of a context.
    pub(crate) fn system_of(&mut self, context: Int) -> Result<Int> {
        self.open(context)?;
        let grid = usize::try_from(context).map_err(|_| CallError::NoContext(context))?;
        let known = self.systems.number_of(&grid);
        Ok(int(known.unwrap_or_else(|| self.systems.keep(grid)) + 1))
    }

    pub(crate) fn system(&self, system: Int) -> Result<System> {
        if system == JOB {
            return Ok(System::Job);
        }
        let grid = place(system).and_then(|at| self.systems.get(at).copied());
        grid.map(System::Grid).ok_or(CallError::NoSystemContext(system))
    }

    /// Returns the grid whose processes a system context stands for; `None` if that is the job.
    pub(crate) fn parent(&mut self, system: Int) -> Result<Option<&mut Grid>> {
        match self.system(system)? {
            System::Job => Ok(None),
            System::Grid(context) => self.open_mut(int(context)).map(Some),
        }
    }

    /// Frees a system context, except for that of the job, which is permanent. Returns whether it
    /// existed.
    pub(crate) fn free_system(&mut self, system: Int) -> bool {
        system == JOB || place(system).is_some_and(|at| self.systems.take(at).is_some())
    }
}

/// Returns the index of a system context other than the job's.
fn place(system: Int) -> Option<usize> {
    usize::try_from(system).ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_jobs_system_context_is_always_there() {
        let mut contexts = Contexts::default();
        assert!(matches!(contexts.system(JOB), Ok(System::Job)) && contexts.free_system(JOB));
        for number in [-1, 1, 2, Int::MAX, Int::MIN] {
            assert!(contexts.system(number).is_err() && !contexts.free_system(number), "{number}");
            assert!(contexts.system_of(number).is_err() && contexts.take(number).is_err(), "{number}");
        }
    }
}
