//! The work is completed although a worker is killed: of processes, of threads and in virtual time.

mod farm;

use farm::{Death, TASKS, farm};
use onesided::sim::{
    shm::{self, JOB_VARIABLE, Launcher, Threads},
    virt::{Job, Platform},
};
use rdma_fabric::Fabric;
use std::{env, fs, process};

const RANKS: usize = 4;
/// The exit code of a rank that was killed, as in shells.
const KILLED: i32 = 128 + 9;
/// The variable with the file that rank 0 writes when the work is done.
const DONE: &str = "WORK_FARM_DONE";

#[test]
fn the_work_is_done_when_a_process_is_killed() {
    let file = env::temp_dir().join(format!("work-farm-{}", process::id()));
    let binary = env::current_exe().expect("the running test has a path");
    let args = ["--exact", "is_a_rank", "--nocapture", "--test-threads=1"];
    let launcher = Launcher::new(RANKS).segment_bytes(1 << 20).command(binary, args);
    let code = launcher.env(DONE, file.display().to_string()).run().expect("the job runs");
    let done = fs::read_to_string(&file);
    let _ = fs::remove_file(&file);
    assert_eq!((code, done.as_deref().ok()), (KILLED, Some("done")));
}

/// Runs one rank of that job; does nothing without a job.
#[test]
fn is_a_rank() {
    if env::var_os(JOB_VARIABLE).is_none() {
        return;
    }
    let fabric = shm::from_env().expect("a rank").expect("the variable is there");
    let is_first = fabric.rank().number() == 0;
    let ended = shm::run_rank(fabric, &async |fabric: Fabric| farm(fabric, TASKS, Some(Death::Kill)).await);
    if is_first && ended.is_ok() {
        fs::write(env::var_os(DONE).expect("a file"), "done").expect("to write that it is done");
    }
    process::exit(i32::from(ended.is_err()));
}

#[test]
fn the_work_is_done_when_a_thread_panics() {
    let program = async |fabric: Fabric| farm(fabric, TASKS, Some(Death::Panic)).await;
    let (ended, _) = Threads::new(RANKS).run_through(&program).expect("the job runs");
    let ended: Vec<bool> = ended.iter().map(Result::is_ok).collect();
    assert_eq!(ended, [true, false, true, true]);
}

#[test]
fn the_work_is_done_in_virtual_time() {
    let program = async |fabric: Fabric| farm(fabric, TASKS, Some(Death::Panic)).await;
    let (run, _) = Job::new(&Platform::fx100(), RANKS).run_through(&program).expect("the job runs");
    let ended: Vec<bool> = run.outs.iter().map(Option::is_some).collect();
    assert_eq!(ended, [true, false, true, true]);
}
