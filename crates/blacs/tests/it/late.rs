//! Broadcasts and sends whose receivers are late, while the root waits outside the fabric.
//!
//! Once a send has completed, no receiver may depend on another call of the sender.

use crate::harness::{SCOPES, topologies};
use blacs::{Blacs, Grid, Matrix, MatrixMut, Order, Scope, Topology};
use checks::watchdog::watch_test;
use rdma_fabric::{Fabric, ProgramResult};
use std::{sync::Barrier, time::Duration};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Six times the number of offers per scope for which the receivers' memory has room.
const MESSAGES: usize = 100;

/// Returns the number of rows and columns of message `n`: one element, a long column, columns with
/// gaps, none.
fn extent(n: usize) -> (usize, usize) {
    [(1, 1), (4000, 1), (7, 3), (0, 4), (60, 50)][n % 5]
}

fn element(n: usize, i: usize, j: usize) -> f64 {
    (n * 10_000 + j * 100 + i) as f64
}

/// Returns message `n`, whose leading dimension exceeds the number of rows by two.
fn matrix(n: usize) -> (Vec<f64>, usize) {
    let (rows, columns) = extent(n);
    let leading = rows + 2;
    let mut memory = vec![-1.0; leading * columns];
    for j in 0..columns {
        (0..rows).for_each(|i| memory[j * leading + i] = element(n, i, j));
    }
    (memory, leading)
}

/// The messages that the root sends before the receivers call.
#[derive(Clone, Copy, Debug)]
enum Way {
    Broadcast(Scope, Topology),
    /// To each other process.
    Pairs,
}

impl Way {
    fn all() -> Vec<Way> {
        let broadcasts = SCOPES.into_iter().flat_map(|scope| topologies().into_iter().map(move |top| (scope, top)));
        broadcasts.map(|(scope, topology)| Way::Broadcast(scope, topology)).chain([Way::Pairs]).collect()
    }

    /// Sends message `n` from (0, 0).
    async fn send(self, grid: &Grid, n: usize) -> ProgramResult<()> {
        let ((memory, leading), (rows, columns)) = (matrix(n), extent(n));
        let a = || Matrix::new(&memory, rows, columns, leading);
        match self {
            Way::Broadcast(scope, topology) => grid.broadcast_send(scope, topology, a()?).await?,
            Way::Pairs => {
                for number in 1..grid.rows() * grid.columns() {
                    grid.send(a()?, (number / grid.columns(), number % grid.columns())).await?;
                }
            }
        }
        Ok(())
    }

    /// Receives message `n` if the caller participates.
    async fn receive(self, grid: &Grid, n: usize) -> ProgramResult<()> {
        let takes_part = match self {
            Way::Broadcast(Scope::Row, _) => grid.row() == 0,
            Way::Broadcast(Scope::Column, _) => grid.column() == 0,
            _ => true,
        };
        if !takes_part {
            return Ok(());
        }
        let (rows, columns) = extent(n);
        // Another leading dimension than the sender's.
        let leading = rows + 1;
        let mut memory = vec![-1.0; leading * columns];
        let a = MatrixMut::new(&mut memory, rows, columns, leading)?;
        match self {
            Way::Broadcast(scope, topology) => grid.broadcast_recv(scope, topology, a, (0, 0)).await?,
            Way::Pairs => grid.recv(a, (0, 0)).await?,
        }
        for (at, found) in memory.into_iter().enumerate() {
            let (i, j) = (at % leading, at / leading);
            let expected = if i < rows { element(n, i, j) } else { -1.0 };
            assert!(found == expected, "{self:?}: element ({i}, {j}) of message {n} is {found}, not {expected}");
        }
        Ok(())
    }
}

/// Creates two grids of all processes: messages pending in one must not depend on calls of the other
/// either.
async fn begin(fabric: &Fabric, (rows, columns): (usize, usize)) -> ProgramResult<(Blacs, [Grid; 2])> {
    let mut blacs = Blacs::begin(fabric).await?;
    let first = blacs.grid(Order::RowMajor, rows, columns).await?.ok_or("no grid")?;
    let second = blacs.grid(Order::RowMajor, rows, columns).await?.ok_or("no grid")?;
    Ok((blacs, [first, second]))
}

async fn end(blacs: Blacs, grids: [Grid; 2]) -> ProgramResult<()> {
    for grid in grids {
        grid.exit().await?;
    }
    Ok(blacs.exit().await?)
}

fn root_waits_outside(extents: (usize, usize), way: Way) {
    let ranks = extents.0 * extents.1;
    let (sent, received) = (Barrier::new(ranks), Barrier::new(ranks));
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let (blacs, grids) = begin(&fabric, extents).await?;
        if grids[0].me() == (0, 0) {
            for n in 0..MESSAGES {
                way.send(&grids[n % 2], n).await?;
            }
            sent.wait();
            received.wait();
        } else {
            sent.wait();
            for n in 0..MESSAGES {
                way.receive(&grids[n % 2], n).await?;
            }
            received.wait();
        }
        end(blacs, grids).await
    };
    Threads::new(ranks).run(&program).unwrap_or_else(|error| panic!("{way:?}: {error}"));
}

#[test]
fn receivers_need_no_call_of_a_root_that_waits_outside() {
    for way in Way::all() {
        watch_test();
        root_waits_outside((2, 2), way);
    }
}

#[test]
fn neither_do_those_of_a_larger_grid() {
    for topology in topologies() {
        watch_test();
        root_waits_outside((2, 4), Way::Broadcast(Scope::All, topology));
    }
}

/// The root sleeps for as long as the receivers take.
#[test]
fn receivers_need_no_call_of_a_root_that_sleeps() {
    const ASLEEP: Duration = Duration::from_secs(10);
    for way in Way::all() {
        watch_test();
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let (blacs, grids) = begin(&fabric, (2, 2)).await?;
            let begun = fabric.now();
            if grids[0].me() == (0, 0) {
                for n in 0..MESSAGES {
                    way.send(&grids[n % 2], n).await?;
                }
                fabric.sleep(ASLEEP).await;
            } else {
                // In the meantime, the root's sends to each of them have timed out waiting and
                // returned.
                fabric.sleep(ASLEEP / 10).await;
                for n in 0..MESSAGES {
                    way.receive(&grids[n % 2], n).await?;
                }
                assert!(fabric.now() - begun < ASLEEP, "{way:?}: a receiver waited for the root");
            }
            end(blacs, grids).await
        };
        let job = Job::new(&Platform::fx100(), 4).jitter(Duration::from_micros(30)).shuffle_ties(true);
        job.run(&program).unwrap_or_else(|error| panic!("{way:?}: {error}"));
    }
}
