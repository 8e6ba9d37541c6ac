//! The progress thread, which serves peers while the rank computes or sleeps.

use super::net::Net;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Acquire},
    thread::{self, JoinHandle},
    time::Instant,
};

/// The initial and the maximum pause of the thread while threads of the program poll the network.
const PAUSE: [Duration; 2] = [Duration::from_micros(150), Duration::from_millis(1)];
/// The thread pauses if the program's threads have polled at least this often since the last
/// comparison.
const ATTENDED: u64 = 8;
/// Polls without an event before the thread sleeps.
const SPIN_LIMIT: u32 = 64;
/// The longest time of such polls, which a slow CPU or NIC exceeds.
const SPIN_TIME: Duration = Duration::from_micros(500);
/// Polls without an event before the thread yields the CPU.
const SPINS: u32 = 8;
/// The longest sleep on the endpoint's descriptor, which some providers do not signal for all work.
const SLEEP: Duration = Duration::from_millis(20);
/// The longest sleep without a descriptor.
const NAP: Duration = Duration::from_millis(5);

/// The progress thread, which is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct ProgressThread {
    net: Arc<Net>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressThread {
    pub(super) fn start(net: Arc<Net>) -> std::io::Result<Self> {
        let works = net.clone();
        let thread = thread::Builder::new().name(format!("serves for {}", net.me)).spawn(move || run(&works))?;
        Ok(ProgressThread { net, thread: Some(thread) })
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `run`.
        self.net.closing.store(true, std::sync::atomic::Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The thread does not panic, and an error could not be reported.
            let _ = thread.join();
        }
    }
}

fn run(net: &Net) {
    let progress = &net.progress;
    progress.serve_by(&thread::current());
    let (mut vain, mut naps) = (0, 0);
    let mut since = Instant::now();
    let (mut pause, mut seen) = (PAUSE[0], progress.polls_of_program());
    // Acquire: pairs with the release in `drop`.
    while !net.closing.load(Acquire) {
        let polls_of_program = progress.polls_of_program();
        let attended = !progress.is_handed_over() && polls_of_program.wrapping_sub(seen) >= ATTENDED;
        if attended || progress.is_kept() {
            // The program's own thread makes progress, and sees completions sooner.
            (vain, naps, seen) = (0, 0, polls_of_program);
            thread::park_timeout(pause);
            pause = (pause * 2).min(PAUSE[1]);
            continue;
        }
        pause = PAUSE[0];
        if net.progress() > 0 {
            (vain, naps) = (0, 0);
            continue;
        }
        if vain == 0 {
            since = Instant::now();
        }
        vain += 1;
        if vain < SPIN_LIMIT && since.elapsed() < SPIN_TIME {
            if vain.is_multiple_of(SPINS) {
                thread::yield_now();
            }
            continue;
        }
        seen = progress.polls_of_program();
        match sleep(net) {
            // Also after a peer's atomic, which is not an event, because more of them may follow
            // immediately.
            Some(true) => vain = 0,
            Some(false) => {}
            None => {
                naps = (naps + 1).min(8);
                thread::park_timeout(NAP.min(Duration::from_micros(20) * (1 << naps)));
            }
        }
    }
}

/// Sleeps until the endpoint may have work, if it has a descriptor and no other thread is using it;
/// returns whether the descriptor was signalled.
fn sleep(net: &Net) -> Option<bool> {
    let descriptor: Option<OwnedFd> = {
        // Waiting for the lock would make each release of it by the program's threads a system call
        // and, on one core, a switch to this thread.
        let mut state = net.try_lock()?;
        let link = state.link.as_mut()?;
        match link.endpoint.may_sleep() {
            Ok(true) => link.endpoint.descriptor().and_then(|fd| fd.as_fd().try_clone_to_owned().ok()),
            _ => None,
        }
    };
    let descriptor = descriptor?;
    let timeout = Timespec { tv_sec: 0, tv_nsec: SLEEP.subsec_nanos().into() };
    // The next poll finds the cause of the wakeup.
    Some(poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0))
}
