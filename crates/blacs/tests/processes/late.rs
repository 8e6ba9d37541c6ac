//! Broadcasts whose receivers are late, while the root waits for files, outside the fabric.

use crate::job::launch_with;
use blacs::{Blacs, Matrix, MatrixMut, Order, Scope, Topology};
use checks::killed::Outcome;
use rdma_fabric::{Fabric, ProgramResult};
use std::{
    fs,
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

const RANKS: usize = 4;
const MESSAGES: usize = 100;
/// The maximum wait for a file: a guard against hangs.
const LONG: Duration = Duration::from_secs(120);

fn message(n: usize) -> Vec<i64> {
    let elements = [1, 2500, 0, 90][n % 4];
    (0..elements).map(|at| (n * 10_000 + at) as i64).collect()
}

/// Waits for a file without calling the fabric.
fn wait_for(file: &Path) -> ProgramResult<()> {
    let begun = Instant::now();
    while !file.exists() {
        if begun.elapsed() > LONG {
            return Err(format!("{} did not come", file.display()).into());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Runs one rank's part.
pub(crate) async fn play(fabric: Fabric, directory: &Path) -> ProgramResult<String> {
    let mut blacs = Blacs::begin(&fabric).await?;
    let grid = blacs.grid(Order::RowMajor, 1, RANKS).await?.ok_or("no grid")?;
    let (sent, received) = (directory.join("sent"), |rank: usize| directory.join(format!("received-{rank}")));
    let topology = |n: usize| Topology::from_letter(b" idsm12tfh"[n % 10]).ok_or("no topology");
    let scope = |n: usize| if n.is_multiple_of(3) { Scope::Row } else { Scope::All };
    if grid.column() == 0 {
        for n in 0..MESSAGES {
            let memory = message(n);
            let a = Matrix::new(&memory, memory.len(), 1, memory.len())?;
            grid.broadcast_send(scope(n), topology(n)?, a).await?;
        }
        fs::write(&sent, "")?;
        for rank in 1..RANKS {
            wait_for(&received(rank))?;
        }
    } else {
        wait_for(&sent)?;
        for n in 0..MESSAGES {
            let rows = message(n).len();
            let mut into = vec![-1; rows];
            let a = MatrixMut::new(&mut into, rows, 1, rows)?;
            grid.broadcast_recv(scope(n), topology(n)?, a, (0, 0)).await?;
            assert!(into == message(n), "message {n}");
        }
        fs::write(received(grid.column()), "")?;
    }
    grid.exit().await?;
    blacs.exit().await?;
    Ok("all came".to_owned())
}

#[test]
fn receivers_need_no_call_of_a_root_that_waits_for_files() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("late-{}", process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let outcomes = launch_with(RANKS, &format!("late {}", directory.display()), 16 << 20);
    let _ = fs::remove_dir_all(&directory);
    assert_eq!(outcomes, vec![Outcome::Ended("all came".to_owned()); RANKS]);
}
