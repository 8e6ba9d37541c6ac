//! Communicators of a grid's rows and columns, where the network multicasts to them.
//!
//! The three scopes of a process are independent, so each that broadcasts by hardware needs a
//! communicator of its own, even if its members are all of the grid's. They exist only on machines
//! with such hardware; without it, messages in a scope use the grid's communicator.

use crate::{GridMap, Result, Scope, grid::Family};
use fmpl::{Communicator, Fmpl};
use rdma_fabric::Multicasts;

/// The communicators of the caller's row and column, as far as they multicast.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    row: Option<Communicator>,
    column: Option<Communicator>,
}

impl Lines {
    /// Creates the lines of the caller's position in a map, if there is multicast hardware. Collective
    /// over the job.
    pub(crate) async fn of(fmpl: &mut Fmpl, map: &GridMap) -> Result<Self> {
        let world = fmpl.world();
        if world.fabric().caps().multicasts != Multicasts::Hardware {
            return Ok(Lines::default());
        }
        let place = map.coordinates(world.me());
        let row = place.filter(|_| map.columns() > 1).map(|(row, column)| Family::of_line(map, row, column));
        let column = place.filter(|_| map.rows() > 1).map(|(row, column)| Family::of_line(map, column, row));
        Ok(Lines { row: multicasting(fmpl, row).await?, column: multicasting(fmpl, column).await? })
    }

    /// Returns the communicator of a row or column that broadcasts by hardware.
    pub(crate) fn get(&self, scope: Scope) -> Option<&Communicator> {
        match scope {
            Scope::Row => self.row.as_ref(),
            Scope::Column => self.column.as_ref(),
            Scope::All => None,
        }
    }

    /// Frees them, once all their members have called this function.
    pub(crate) async fn finish(self) -> Result<()> {
        let mut finished = Ok(());
        for line in [self.row, self.column].into_iter().flatten() {
            finished = finished.and(line.finish().await.map_err(Into::into));
        }
        finished
    }
}

/// Creates a communicator; keeps it only if the network multicasts to its members.
async fn multicasting(fmpl: &mut Fmpl, family: Option<Family>) -> Result<Option<Communicator>> {
    let Family { colour, order } = family.unwrap_or(Family { colour: None, order: 0 });
    match fmpl.create(colour, order).await? {
        Some(line) if !line.multicasts() => {
            line.finish().await?;
            Ok(None)
        }
        line => Ok(line),
    }
}
