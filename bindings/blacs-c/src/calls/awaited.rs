//! Descriptions of the event that a call waits for, for the message of a deadlock.

use crate::error::{CallError, Result};
use blacs::{Grid, Scope};
use rdma_fabric::FabricError;

/// Results of calls that may wait.
pub(crate) trait WaitingFor<T> {
    /// Adds a description of the awaited event to the error of a deadlock.
    fn waiting_for(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<CallError>> WaitingFor<T> for Result<T, E> {
    #[inline]
    fn waiting_for(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| with_awaited(error.into(), what))
    }
}

#[cold]
fn with_awaited(error: CallError, what: impl FnOnce() -> String) -> CallError {
    match error.of_fabric() {
        Some(&FabricError::Deadlock { waiting }) => CallError::Deadlock { waiting, awaited: what() },
        _ => error,
    }
}

/// Describes the process at these coordinates, with its rank.
pub(super) fn process(grid: &Grid, (row, column): (usize, usize)) -> String {
    let rank = grid.rank(row, column).map_or_else(String::new, |rank| format!(", {rank}"));
    format!("process {{{row},{column}}}{rank}")
}

/// Describes the other processes of the caller's scope.
pub(super) fn others(grid: &Grid, scope: Scope) -> String {
    match scope {
        Scope::Row => format!("the other processes of row {}", grid.row()),
        Scope::Column => format!("the other processes of column {}", grid.column()),
        Scope::All => format!("the other processes of the {} x {} grid", grid.rows(), grid.columns()),
    }
}
