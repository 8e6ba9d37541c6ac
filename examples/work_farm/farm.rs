//! The farm: rank 0 hands out tasks, the others work.

use onesided::{
    fmpl::{Communicator, Fmpl, FmplError, Options},
    prelude::*,
};
use std::{collections::VecDeque, process::Command, time::Duration};

/// The number of tasks by default.
pub(crate) const TASKS: u64 = 40;

/// The end of a worker that is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Death {
    /// Its process is killed.
    Kill,
    /// Its program panics.
    Panic,
}

/// The indices of results, which are requests for more, and of tasks.
const RESULT: usize = 0;
const TASK: usize = 1;
/// In place of a task: none is left.
const NONE: u64 = u64::MAX;

/// Completes the tasks, during which worker 1 dies if `death` is given.
pub(crate) async fn farm(fabric: Fabric, tasks: u64, death: Option<Death>) -> ProgramResult<()> {
    let fmpl = Fmpl::init_with(&fabric, Options::default().spool(4096, Duration::ZERO)).await?;
    let world = fmpl.world();
    match world.me() {
        0 => hand_out(world, tasks).await,
        me => work(world, death.filter(|_| me == 1)).await,
    }
    // The lost rank can't take part in `finalize`. Everything that was sent has been received by
    // now, so the library can be dropped.
}

/// Gives each worker one task at a time until all are done; returns when all surviving workers have
/// stopped.
async fn hand_out(world: &Communicator, tasks: u64) -> ProgramResult<()> {
    let result = world.buffer::<[u64; 2]>(1)?;
    let mut left: VecDeque<u64> = (0..tasks).collect();
    let mut given = vec![None; world.len()];
    let (mut done, mut missing) = (vec![None; tasks as usize], tasks);
    let mut living = world.len() - 1;
    // Workers for which no task is left, while others may still be lost with theirs.
    let mut idle = Vec::new();
    let begin = world.fabric().now();
    for worker in 1..world.len() {
        give(world, worker, &mut left, &mut given, &mut idle).await?;
    }
    while missing > 0 {
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
            missing -= u64::from(done[task as usize].replace(found[0][1]).is_none());
        }
        give(world, worker, &mut left, &mut given, &mut idle).await?;
    }
    let took = (world.fabric().now() - begin).div_f64(tasks.max(1) as f64);
    let wrong = done.iter().zip(0..).find(|(found, task)| **found != Some(square(*task)));
    assert_eq!(wrong, None, "a result and its task");
    println!("{living} workers have done all {tasks} tasks: {took:?} a task");
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
async fn work(world: &Communicator, death: Option<Death>) -> ProgramResult<()> {
    let given = world.buffer::<u64>(1)?;
    let mut task = [0];
    let mut next = world.irecv(&given, 0, TASK).await?;
    loop {
        next.wait().await?;
        world.fabric().read(&given, &mut task)?;
        if task[0] == NONE {
            return Ok(());
        }
        if let Some(death) = death {
            die(death);
        }
        // Posted before the result is sent, so that the next task is put into place at once.
        next = world.irecv(&given, 0, TASK).await?;
        world.send_any(&[[task[0], square(task[0])]], 0, RESULT).await?;
    }
}

/// The work.
fn square(task: u64) -> u64 {
    task * task
}

/// Ends this rank without notifying any other.
fn die(death: Death) {
    if matches!(death, Death::Kill) {
        let _ = Command::new("kill").args(["-9", &std::process::id().to_string()]).status();
        loop {
            std::thread::park();
        }
    }
    panic!("this worker dies on purpose");
}
