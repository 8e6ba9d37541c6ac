//! Processes for which the system calls that probe other processes are refused.

use crate::{
    children::{Place, SOON, succeed},
    roles::{await_input, print},
};
use named_lock::{Error, NamedLock};
use process_tests::filter::refuse_call;
use rustix::{
    io::Errno,
    process::{PidfdFlags, Resource, Rlimit, getpid, pidfd_open, setrlimit},
};
use std::{fs::File, os::fd::AsRawFd, path::Path, time::Instant};

/// Makes `pidfd_open` fail in this process from now on, as container filters do.
fn refuse_pidfds(errno: Errno) {
    refuse_call(libc::SYS_pidfd_open, errno);
    let refused = pidfd_open(getpid(), PidfdFlags::empty());
    assert_eq!(refused.expect_err("refused"), errno);
}

/// The role of a process that waits without pidfds, and prints the error that it receives.
pub(crate) fn wait_without_pidfds(path: &Path, errno: &str) {
    refuse_pidfds(if errno == "EPERM" { Errno::PERM } else { Errno::NOSYS });
    let lock = NamedLock::open_path(path).expect("opened");
    assert!(lock.try_write().expect("no error").is_none(), "the holder lives");
    assert!(matches!(lock.write_within(std::time::Duration::from_millis(30)), Err(Error::TimedOut { .. })));
    print("waits");
    match lock.write() {
        Err(Error::Torn { by, .. }) => print(&format!("torn by {by}")),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_killed_holder_is_noticed_without_pidfds() {
    for errno in ["EPERM", "ENOSYS"] {
        for reaped in [false, true] {
            let place = Place::new();
            let mut holder = place.start("write", &[]);
            holder.expect_line("holds");
            let number = holder.id();
            let mut waiter = place.start("without-pidfds", &[errno]);
            waiter.expect_line("waits");
            holder.kill();
            if reaped {
                drop(holder);
            }
            waiter.expect_line(&format!("torn by {number}"));
            succeed(waiter);
        }
    }
}

/// Limits this process to `more` descriptors beyond those that it has open, and returns the first
/// of them.
fn leave_descriptors(more: u64) -> File {
    // The lowest free number: all numbers below it are in use.
    let spare = File::open("/dev/null").expect("opened");
    let most = more + spare.as_raw_fd() as u64;
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: Some(most) }).expect("lower");
    spare
}

/// The role of a process that can open two files at a time: enough for all that an open does before
/// it searches for removed files, and too few for that search.
pub(crate) fn open_with_two_descriptors(path: &Path) {
    drop(leave_descriptors(2));
    match NamedLock::open_path(path) {
        Err(Error::System { cause, .. }) if cause.raw_os_error() == Some(libc::EMFILE) => print("refused"),
        other => panic!("{other:?}"),
    }
}

/// The role of a process that cannot open any file, and therefore cannot probe the holder.
pub(crate) fn wait_without_descriptors(path: &Path) {
    let lock = NamedLock::open_path(path).expect("opened");
    print("opened");
    await_input();
    let spare = leave_descriptors(1);
    assert_eq!(File::open("/dev/null").expect_err("no descriptor is left").raw_os_error(), Some(libc::EMFILE));
    let began = Instant::now();
    match lock.write() {
        Err(Error::Probe { process, cause, .. }) => {
            assert_eq!(cause.raw_os_error(), Some(libc::EMFILE));
            assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
            print(&format!("cannot probe {process}"));
        }
        other => panic!("{other:?}"),
    }
    // An open fails, too.
    assert!(NamedLock::open_path(path).is_err());
    drop(spare);
}

pub(crate) fn a_process_that_cannot_probe_gets_an_error() {
    let place = Place::new();
    let mut waiter = place.start("without-descriptors", &[]);
    waiter.expect_line("opened");
    let mut holder = place.start("write", &[]);
    holder.expect_line("holds");
    waiter.write("\n");
    waiter.expect_line(&format!("cannot probe {}", holder.id()));
    succeed(waiter);
    // It has left no traces.
    holder.write("\n");
    succeed(holder);
    place.open().write_within(SOON).expect("free").release().expect("released");
}
