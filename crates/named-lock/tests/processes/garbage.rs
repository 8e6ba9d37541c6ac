//! Files that are overwritten with garbage while processes use them, one of which is killed.

use crate::children::{Place, SOON};
use fabric_conformance::watchdog::{LIMIT_VARIABLE, watch};
use fastrand::Rng;
use named_lock::{Error, NamedLock};
use process_tests::child::{Child, this_program};
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

/// The number of files that are overwritten.
const FILES: u64 = 200;
/// The number of processes that share this work.
const WORKERS: u64 = 4;
/// The time limit of each call.
const DEADLINE: Duration = Duration::from_millis(10);
/// Opening waits up to 10 s for room.
const OPENING: Duration = Duration::from_secs(30);
const PAGE: u64 = 4096;

pub(crate) fn calls_keep_their_deadlines_with_garbage_in_the_file() {
    let each = FILES / WORKERS;
    let start = |worker: u64| {
        let seeds = [worker * each, (worker + 1) * each].map(|seed| seed.to_string());
        let mut command = this_program(["role", "fuzz", "no-path"]);
        command.args(seeds).env(LIMIT_VARIABLE, OPENING.as_secs().to_string());
        Child::start(command)
    };
    let workers: Vec<_> = (0..WORKERS).map(start).collect();
    for worker in workers {
        print!("{}", worker.succeed_within(Duration::from_secs(100)).out);
    }
}

/// The role of a worker: handles the files of these seeds.
pub(crate) fn fuzz(seeds: std::ops::Range<u64>) -> ExitCode {
    let mut reported = 0;
    for seed in seeds.clone() {
        reported += one(seed);
    }
    println!("    seeds {seeds:?}: {reported} calls reported garbage");
    assert!(reported > 0, "garbage was never noticed");
    ExitCode::SUCCESS
}

/// Runs `act`, which must end within `limit`. If it hangs, the watchdog names it after [`OPENING`] and
/// aborts this process.
fn within<T>(name: &str, limit: Duration, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let watched = watch(name);
    let out = act();
    drop(watched);
    assert!(began.elapsed() < limit, "{name} took {:?}", began.elapsed());
    out
}

/// Returns the number of calls that reported an error of the file.
fn one(seed: u64) -> u32 {
    let mut random = Rng::with_seed(seed);
    let place = Place::new();
    let lock = place.open();
    // A process that holds the lock or waits for it is killed, before or after the file is damaged.
    let role = ["write", "read", "wait-to-write"][random.usize(..3)];
    let mut holder = place.start(if role == "wait-to-write" { "write" } else { role }, &[]);
    holder.expect_line("holds");
    let mut waiter = (role == "wait-to-write").then(|| place.start(role, &[]));
    if let Some(waiter) = &mut waiter {
        waiter.expect_line("waits");
    }
    let victim = waiter.as_ref().unwrap_or(&holder);
    let kill_first = random.bool();
    if kill_first {
        victim.kill();
    }
    damage(&place, &mut random);
    if !kill_first {
        victim.kill();
    }
    let mut reported = 0;
    let mut call = |name: &str, act: &dyn Fn() -> Result<(), Error>| {
        let outcome = within(&format!("seed {seed}: {name}"), SOON, act);
        reported += u32::from(matches!(outcome, Err(Error::Lock { .. } | Error::Foreign { .. })));
    };
    // Twice: each call finds the state that the previous one left.
    for _ in 0..2 {
        call("read_within", &|| lock.read_within(DEADLINE).and_then(|guard| guard.release()));
        call("write_within", &|| lock.write_within(DEADLINE).and_then(|guard| guard.release()));
        call("try_read", &|| lock.try_read().and_then(|guard| guard.map_or(Ok(()), |guard| guard.release())));
        call("try_write", &|| lock.try_write().and_then(|guard| guard.map_or(Ok(()), |guard| guard.release())));
        call("mend_within", &|| {
            let mut guard = lock.mend_within(DEADLINE)?;
            guard.clear_torn()?;
            guard.release()
        });
    }
    if seed.is_multiple_of(16) {
        let _ = within(&format!("seed {seed}: open"), OPENING, || NamedLock::open_path(place.path()));
    }
    within(&format!("seed {seed}: drop"), SOON, || drop(lock));
    reported
}

/// Overwrites two or more pages after the header, or some words.
fn damage(place: &Place, random: &mut Rng) {
    let file = File::options().read(true).write(true).open(place.path()).expect("opened");
    let pages = fs::metadata(place.path()).expect("there").len() / PAGE;
    // The first pages hold the slots and the home's part of the lock.
    let near = 1 + random.u64(..12);
    for _ in 0..2 + random.u64(..6) {
        let page = if random.bool() { 1 + random.u64(..near) } else { 1 + random.u64(..pages - 1) };
        let mut bytes = vec![0; PAGE as usize];
        file.read_exact_at(&mut bytes, page * PAGE).expect("read");
        let how = random.u64(..4);
        for word in bytes.chunks_exact_mut(8) {
            let value = match how {
                0 => random.u64(..),
                // Values typical of a lock's words: small numbers and flags.
                1 => random.u64(..256) << (8 * random.u64(..8)),
                2 => u64::MAX,
                _ if random.u64(..8) > 0 => continue,
                _ => random.u64(..) >> random.u64(..64),
            };
            word.copy_from_slice(&value.to_ne_bytes());
        }
        file.write_all_at(&bytes, page * PAGE).expect("written");
        if random.u64(..3) == 0 {
            thread::yield_now();
        }
    }
}
