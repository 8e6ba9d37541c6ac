//! A farm that loses a worker. Rank 0 gives each worker a task, and another for each result, from any worker; one
//! worker is killed in the middle of its first task. Rank 0 acknowledges the loss, gives the task to another worker,
//! and completes the work.
//!
//! ```text
//! cargo example work_farm --release -- --ranks 4
//! cargo example work_farm --release -- --ranks 4 --fabric virt
//! ```
//!
//! Between processes the worker is killed as by `kill -9`; elsewhere its program panics. A job that has
//! lost a rank ends with that rank's exit code, so the launcher's is not 0.

use onesided::{
    Backend,
    fmpl::{Communicator, Fmpl, FmplError, Options},
    prelude::*,
};
use std::{collections::VecDeque, process::Command, time::Duration};

#[cfg(test)]
mod tests;

const TASKS: u64 = 40;
/// The indices of results, which are requests for more, and of tasks.
const RESULT: usize = 0;
const TASK: usize = 1;
/// In place of a task: none is left.
const NONE: u64 = u64::MAX;

async fn farm(fabric: Fabric, processes: bool) -> ProgramResult<()> {
    let fmpl = Fmpl::init_with(&fabric, Options::default().spool(4096, Duration::ZERO)).await?;
    let world = fmpl.world();
    match world.me() {
        0 => hand_out(world).await,
        me => work(world, me == 1, processes).await,
    }
    // The lost rank can't take part in `finalize`. Everything that was sent has been received by
    // now, so the library can be dropped.
}

/// Gives each worker one task at a time until all are done; returns when all surviving workers have
/// stopped.
async fn hand_out(world: &Communicator) -> ProgramResult<()> {
    let result = world.buffer::<[u64; 2]>(1)?;
    let mut left: VecDeque<u64> = (0..TASKS).collect();
    let mut given = vec![None; world.len()];
    let mut done = vec![None; TASKS as usize];
    let mut living = world.len() - 1;
    // Workers for which no task is left, while others may still be lost with theirs.
    let mut idle = Vec::new();
    for worker in 1..world.len() {
        give(world, worker, &mut left, &mut given, &mut idle).await?;
    }
    while done.contains(&None) {
        let worker = match world.recv_any(&result, RESULT).await {
            Ok(received) => received.from,
            Err(FmplError::Fabric(FabricError::PeerLost { .. })) => {
                let lost = world.acknowledge_losses()?;
                living = world.len() - 1 - lost.len();
                for (worker, task) in lost.iter().filter_map(|worker| Some((*worker, given[*worker].take()?))) {
                    println!("worker {worker} was lost with task {task}");
                    left.push_front(task);
                }
                idle.retain(|worker| !lost.contains(worker));
                match idle.pop() {
                    Some(worker) => worker,
                    None => continue,
                }
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(task) = given[worker].take() {
            let mut found = [[0; 2]];
            world.fabric().read(&result, &mut found)?;
            assert_eq!(found[0][0], task, "the result of worker {worker}");
            done[task as usize] = Some(found[0][1]);
        }
        give(world, worker, &mut left, &mut given, &mut idle).await?;
    }
    let done: Vec<u64> = done.into_iter().flatten().collect();
    assert!(done.iter().zip(0..).all(|(found, task)| *found == square(task)), "{done:?}");
    println!("{living} workers have done all {TASKS} tasks");
    stop(world).await
}

/// Gives `worker` the next task; without one, the worker is idle.
async fn give(
    world: &Communicator,
    worker: usize,
    left: &mut VecDeque<u64>,
    given: &mut [Option<u64>],
    idle: &mut Vec<usize>,
) -> ProgramResult<()> {
    match left.pop_front() {
        None => idle.push(worker),
        Some(task) => match world.send(&[task], worker, TASK).await {
            Ok(()) => given[worker] = Some(task),
            // Acknowledged when the next result is awaited.
            Err(FmplError::Fabric(FabricError::PeerLost { .. })) => left.push_front(task),
            Err(error) => return Err(error.into()),
        },
    }
    Ok(())
}

/// Stops the workers that are left, and waits until they know.
async fn stop(world: &Communicator) -> ProgramResult<()> {
    let lost = match world.acknowledge_losses() {
        Err(FmplError::NoneLeft { .. }) => return Ok(()),
        lost => lost?,
    };
    for worker in (1..world.len()).filter(|worker| !lost.contains(worker)) {
        world.send(&[NONE], worker, TASK).await?;
    }
    Ok(world.all_fetched().await?)
}

/// Works on tasks until none is left.
async fn work(world: &Communicator, dies: bool, processes: bool) -> ProgramResult<()> {
    let given = world.buffer::<u64>(1)?;
    let mut task = [0];
    loop {
        world.recv(&given, 0, TASK).await?;
        world.fabric().read(&given, &mut task)?;
        if task[0] == NONE {
            return Ok(());
        }
        if dies {
            die(processes);
        }
        world.send_any(&[[task[0], square(task[0])]], 0, RESULT).await?;
    }
}

/// The work.
fn square(task: u64) -> u64 {
    task * task
}

/// Ends this rank without notifying any other.
fn die(processes: bool) {
    if processes {
        let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
        loop {
            std::thread::park();
        }
    }
    panic!("this worker dies on purpose");
}

fn main() -> std::process::ExitCode {
    let of_processes = |backend| matches!(backend, Backend::Shm | Backend::Cluster);
    let processes = onesided::Launch::from_args().is_ok_and(|(launch, _)| of_processes(launch.backend));
    onesided::launch(async move |fabric| farm(fabric, processes).await)
}
