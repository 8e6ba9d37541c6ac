//! The cost of a border exchange: start and wait, with no computation in between (persistent
//! neighbourhood paper, section 5.2).

use super::{RankFuture, Together};
use prdma_offload::{Buffer, Cartesian, EndOfData, Form, Neighbourhood, Options, Request};
use rdma_fabric::{Fabric, Group, ProgramResult};

/// The lifetime of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kept {
    /// The request is created once, and started and waited for in each iteration.
    Persistent,
    /// The request is created for each iteration and dropped after it, as in an exchange that is
    /// not persistent.
    Anew,
}

/// An exchange between neighbours in a grid of all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Extents of the grid; it has as many members as there are ranks.
    pub grid: Vec<usize>,
    /// Whether the ends of each dimension are neighbours.
    pub periodic: bool,
    /// Whether members that touch only at a corner or edge are also neighbours.
    pub corners: bool,
    /// The component that executes it.
    pub form: Form,
    /// How blocks end.
    pub end: EndOfData,
    /// The lifetime of the request.
    pub kept: Kept,
    /// Bytes to and from each neighbour; one measurement for each size.
    pub sizes: Vec<usize>,
    /// Iterations before a measurement.
    pub warm_up: u32,
    /// Iterations of a measurement.
    pub iterations: u32,
}

/// Every rank exchanges with its neighbours, for each size in turn. A rank's result is its elapsed
/// time for all iterations of each size, in picoseconds.
///
/// # Panics
/// If the grid does not consist of all ranks.
pub fn exchanges(fabric: Fabric, exchange: Exchange, together: Together) -> RankFuture<Vec<u64>> {
    Box::pin(measured(fabric, exchange, together))
}

async fn measured(fabric: Fabric, exchange: Exchange, together: Together) -> ProgramResult<Vec<u64>> {
    let Exchange { grid, periodic, corners, form, end, kept, sizes, warm_up, iterations } = exchange;
    let grid = Cartesian::new(&grid, &vec![periodic; grid.len()])?;
    let group = Group::world(&fabric).await?;
    let me = group.me();
    let topology = if corners { grid.moore(me) } else { grid.topology(me) };
    let bytes = topology.sources().len() * sizes.iter().copied().max().unwrap_or(0);
    let (send, receive) = (Buffer::<u8>::new(&fabric, bytes)?, Buffer::<u8>::new(&fabric, bytes)?);
    let mut neighbours = Neighbourhood::new(group, topology).await?;
    let options = Options { end, ..Options::form(form) };
    let inside = together.enter(&fabric).await?;
    let mut took = Vec::with_capacity(sizes.len());
    for size in sizes {
        let mut begun = fabric.now();
        match kept {
            Kept::Persistent => {
                let mut request = neighbours.alltoall_init(&send, &receive, size, &options).await?;
                neighbours.group_mut().barrier().await?;
                for iteration in 0..warm_up + iterations {
                    if iteration == warm_up {
                        begun = fabric.now();
                    }
                    once(&mut request).await?;
                }
                took.push(fabric.now().picos_since(begun));
                neighbours.group_mut().barrier().await?;
            }
            Kept::Anew => {
                for iteration in 0..warm_up + iterations {
                    if iteration == warm_up {
                        begun = fabric.now();
                    }
                    once(&mut neighbours.alltoall_init(&send, &receive, size, &options).await?).await?;
                    // A request may be dropped once its neighbours have also waited.
                    neighbours.group_mut().barrier().await?;
                }
                took.push(fabric.now().picos_since(begun));
            }
        }
    }
    inside.stay().await?;
    Ok(took)
}

async fn once(request: &mut Request) -> ProgramResult<()> {
    request.start().await?;
    Ok(request.wait().await?)
}
