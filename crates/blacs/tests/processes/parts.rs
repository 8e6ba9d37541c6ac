//! The parts of the ranks of a job, which run until one of them is killed.

use blacs::{Blacs, BlacsError, Grid, Matrix, MatrixMut, Order, Scope, Topology};
use checks::killed::die_after;
use fmpl::FmplError;
use rdma_fabric::{Fabric, FabricError, Group, ProgramResult, Rank};
use std::time::Duration;

/// Runs one rank's part.
pub(crate) async fn play(fabric: Fabric, words: &[String]) -> ProgramResult<String> {
    let [scene, victim, micros] = words else { return Err(format!("no such part: {words:?}").into()) };
    let (victim, micros) = (Rank::new(victim.parse()?), micros.parse()?);
    let is_victim = fabric.rank() == victim;
    let mut blacs = Blacs::begin(&fabric).await?;
    // A single row, so that a row contains all processes.
    let grid = blacs.grid(Order::RowMajor, 1, fabric.ranks()).await?.ok_or("no grid")?;
    let mut world = Group::world(&fabric).await?;
    let survivors = world.split((!is_victim).then_some(0), 0).await?;
    let begun = world.barrier().await;
    let Some(mut survivors) = survivors else {
        begun?;
        die_after(Duration::from_micros(micros));
        let mut n = 0;
        while !matches!(scene.as_str(), "free-buffers" | "exit") {
            round(&grid, scene, victim.index(), n).await?;
            n += 1;
        }
        return std::future::pending().await;
    };
    // The victim may die as soon as it has left the barrier, while other ranks are still in it.
    let mut done = begun.map_err(|error| BlacsError::Fmpl(FmplError::from(error)));
    for n in 0.. {
        if done.is_err() || scene == "exit" {
            break;
        }
        done = round(&grid, scene, victim.index(), n).await;
    }
    if scene == "exit" && done.is_ok() {
        done = grid.exit().await;
    }
    survivors.barrier().await?;
    match done {
        Err(BlacsError::Fmpl(FmplError::Fabric(FabricError::PeerLost { rank }))) if rank == victim => {
            Ok("told".to_owned())
        }
        other => Err(format!("not told: {other:?}").into()),
    }
}

/// Makes one round of calls in which every process depends on the victim, sooner or later.
async fn round(grid: &Grid, scene: &str, victim: usize, n: usize) -> blacs::Result<()> {
    let (me, columns) = (grid.column(), grid.columns());
    // Short and long messages in turn.
    let rows = [1, 100, 3000][n % 3];
    let mut memory = vec![(me + n) as f64; 2 * rows];
    let a = MatrixMut::new(&mut memory, rows, 2, rows)?;
    let all = (columns * (columns - 1) / 2 + columns * n) as f64;
    match scene {
        "recv" if me == victim => {
            for to in (0..columns).filter(|to| *to != me) {
                grid.send(Matrix::new(&vec![n as f64; 2 * rows], rows, 2, rows)?, (0, to)).await?;
            }
            // Otherwise its memory would soon be full.
            return grid.free_buffers(true).await;
        }
        "recv" => {
            grid.recv(a, (0, victim)).await?;
            assert_eq!(memory[0], n as f64);
        }
        "free-buffers" => {
            grid.send(Matrix::new(&memory, rows, 2, rows)?, (0, victim)).await?;
            grid.free_buffers(true).await?;
        }
        "broadcast" | "broadcast-ring" => {
            let (root, topology) =
                (n % columns, if scene == "broadcast" { Topology::Default } else { Topology::SplitRing });
            if me == root {
                grid.broadcast_send(Scope::Row, topology, Matrix::new(&memory, rows, 2, rows)?).await?;
            } else {
                grid.broadcast_recv(Scope::Row, topology, a, (0, root)).await?;
                assert_eq!(memory[2 * rows - 1], (root + n) as f64);
            }
        }
        "sum" | "exchange" => {
            let topology = if scene == "sum" { Topology::Default } else { Topology::Hypercube };
            grid.sum(Scope::All, topology, a, None).await?;
            assert_eq!(memory[2 * rows - 1], all);
        }
        "amax-ring" => {
            grid.amax(Scope::Row, Topology::IncreasingRing, a, None, None).await?;
            assert_eq!(memory[0], (columns - 1 + n) as f64);
        }
        "barrier-all" => grid.barrier(Scope::All).await?,
        "barrier-row" => grid.barrier(Scope::Row).await?,
        _ => panic!("no such scene: {scene}"),
    }
    Ok(())
}
