//! Receivers that start late, while their sender waits for files: outside the fabric.

use crate::job::launch_with;
use checks::killed::Outcome;
use fmpl::{Fmpl, Options};
use rdma_fabric::{Fabric, ProgramResult};
use std::{
    fs,
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

const RANKS: usize = 3;
const MESSAGES: usize = 100;
/// The limit of a wait for a file: a guard against hangs.
const LONG: Duration = Duration::from_secs(120);

fn message(n: usize, to: usize) -> Vec<u8> {
    let bytes = [8, 20_000, 0, 700][n % 4];
    (0..bytes).map(|at| (n * 7 + to * 3 + at) as u8).collect()
}

/// Waits for a file without a call of the fabric.
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

/// Plays one rank's part.
pub(crate) async fn play(fabric: Fabric, directory: &Path) -> ProgramResult<String> {
    let options = Options::default().spool(0, Duration::ZERO).growing(Duration::ZERO);
    let fmpl = Fmpl::init_with(&fabric, options).await?;
    let world = fmpl.world();
    let (sent, received) = (directory.join("sent"), |rank: usize| directory.join(format!("received-{rank}")));
    if world.me() == 0 {
        for n in 0..MESSAGES {
            for to in 1..RANKS {
                world.send(&message(n, to), to, n % 2).await?;
            }
        }
        fs::write(&sent, "")?;
        for rank in 1..RANKS {
            wait_for(&received(rank))?;
        }
    } else {
        wait_for(&sent)?;
        let mut into = vec![0; 20_000];
        for n in 0..MESSAGES {
            let bytes = world.recv_into(&mut &mut into[..], 0, n % 2).await?.bytes;
            assert!(into[..bytes] == message(n, world.me()), "message {n}");
        }
        fs::write(received(world.me()), "")?;
    }
    fmpl.finalize().await?;
    Ok("all came".to_owned())
}

#[test]
fn receivers_need_no_call_of_a_sender_that_waits_for_files() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("late-{}", process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let outcomes = launch_with(RANKS, &format!("late {}", directory.display()), 16 << 20);
    let _ = fs::remove_dir_all(&directory);
    assert_eq!(outcomes, vec![Outcome::Ended("all came".to_owned()); RANKS]);
}
