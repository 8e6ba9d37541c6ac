//! Processes for which the system calls that probe other processes are refused.

use crate::{
    children::{Place, SOON},
    roles::{listen, say},
};
use named_lock::{Error, NamedLock};
use rustix::{
    io::Errno,
    process::{Resource, Rlimit, setrlimit},
};
use std::{fs::File, os::fd::AsRawFd, path::Path, time::Instant};

/// Makes `pidfd_open` fail in this process from now on, as container filters do.
#[allow(unsafe_code)]
fn refuse_pidfds(errno: Errno) {
    let jump = |code: u32, k: u32, yes: u8, no: u8| libc::sock_filter { code: code as u16, jt: yes, jf: no, k };
    let answer = libc::SECCOMP_RET_ERRNO | errno.raw_os_error().cast_unsigned();
    let mut filter = [
        // The number of the system call.
        jump(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, libc::SYS_pidfd_open as u32, 0, 1),
        jump(libc::BPF_RET | libc::BPF_K, answer, 0, 0),
        jump(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the arguments are numbers.
    let privileges = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its filter live during the call, which copies them.
    let filtered = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!((privileges, filtered), (0, 0), "{}", std::io::Error::last_os_error());
    let this = rustix::process::getpid();
    let refused = rustix::process::pidfd_open(this, rustix::process::PidfdFlags::empty());
    assert_eq!(refused.expect_err("refused"), errno);
}

/// The role of a process that waits without pidfds, and prints the error that it receives.
pub(crate) fn wait_without_pidfds(path: &Path, errno: &str) {
    refuse_pidfds(if errno == "EPERM" { Errno::PERM } else { Errno::NOSYS });
    let lock = NamedLock::open_path(path).expect("opened");
    assert!(lock.try_write().expect("no error").is_none(), "the holder lives");
    assert!(matches!(lock.write_within(std::time::Duration::from_millis(30)), Err(Error::TimedOut { .. })));
    say("waits");
    match lock.write() {
        Err(Error::Torn { by, .. }) => say(&format!("torn by {by}")),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn a_killed_holder_is_noticed_without_pidfds() {
    for errno in ["EPERM", "ENOSYS"] {
        for reaped in [false, true] {
            let place = Place::new();
            let mut holder = place.start("write", &[]);
            holder.await_line("holds");
            let number = holder.number();
            let mut waiter = place.start("without-pidfds", &[errno]);
            waiter.await_line("waits");
            holder.kill();
            if reaped {
                drop(holder);
            }
            waiter.await_line(&format!("torn by {number}"));
            waiter.ends_well();
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
        Err(Error::System { cause, .. }) if cause.raw_os_error() == Some(libc::EMFILE) => say("refused"),
        other => panic!("{other:?}"),
    }
}

/// The role of a process that cannot open any file, and therefore cannot probe the holder.
pub(crate) fn wait_without_descriptors(path: &Path) {
    let lock = NamedLock::open_path(path).expect("opened");
    say("opened");
    listen();
    let spare = leave_descriptors(1);
    assert_eq!(File::open("/dev/null").expect_err("no descriptor is left").raw_os_error(), Some(libc::EMFILE));
    let began = Instant::now();
    match lock.write() {
        Err(Error::Probe { process, cause, .. }) => {
            assert_eq!(cause.raw_os_error(), Some(libc::EMFILE));
            assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
            say(&format!("cannot tell of {process}"));
        }
        other => panic!("{other:?}"),
    }
    // An open fails, too.
    assert!(NamedLock::open_path(path).is_err());
    drop(spare);
}

pub(crate) fn a_process_that_cannot_probe_is_told() {
    let place = Place::new();
    let mut waiter = place.start("without-descriptors", &[]);
    waiter.await_line("opened");
    let mut holder = place.start("write", &[]);
    holder.await_line("holds");
    waiter.tell();
    waiter.await_line(&format!("cannot tell of {}", holder.number()));
    waiter.ends_well();
    // It has left no traces.
    holder.tell();
    holder.ends_well();
    place.open().write_within(SOON).expect("free").release().expect("released");
}
