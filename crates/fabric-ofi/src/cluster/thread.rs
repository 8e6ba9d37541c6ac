//! The thread that works for peers while the rank computes or sleeps.

use super::net::Net;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Acquire},
    thread::{self, JoinHandle},
};

/// How long the thread rests while threads of the program look: at first, and at most.
const REST: [Duration; 2] = [Duration::from_micros(150), Duration::from_millis(1)];
/// Looks of the program's threads, since the last comparison, by which they count as looking.
const ATTENDED: u64 = 8;
/// Looks without an event before the thread sleeps.
const LOOKS: u32 = 64;
/// Looks without an event before it lets others have the CPU.
const SPINS: u32 = 8;
/// The longest sleep on the endpoint's descriptor: some providers have work that it does not tell.
const SLEEP: Duration = Duration::from_millis(20);
/// The longest sleep where there is no descriptor.
const NAP: Duration = Duration::from_millis(5);

/// The thread; ended when it is dropped.
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
            // It does not panic, and there is nobody to tell.
            let _ = thread.join();
        }
    }
}

fn run(net: &Net) {
    let attention = &net.attention;
    attention.serve_by(&thread::current());
    let (mut vain, mut naps) = (0, 0);
    let (mut rest, mut seen) = (REST[0], attention.looks());
    // Acquire: pairs with the release in `drop`.
    while !net.closing.load(Acquire) {
        let looks = attention.looks();
        let attended = !attention.is_handed_over() && looks.wrapping_sub(seen) >= ATTENDED;
        if attended || attention.is_kept() {
            // The program's own thread works, and finds things sooner.
            (vain, naps, seen) = (0, 0, looks);
            thread::park_timeout(rest);
            rest = (rest * 2).min(REST[1]);
            continue;
        }
        rest = REST[0];
        if net.progress() > 0 {
            (vain, naps) = (0, 0);
            continue;
        }
        vain += 1;
        if vain < LOOKS {
            if vain.is_multiple_of(SPINS) {
                thread::yield_now();
            }
            continue;
        }
        seen = attention.looks();
        match sleep(net) {
            // Also an atomic of a peer, which is no event: more of them may follow at once.
            Some(true) => vain = 0,
            Some(false) => {}
            None => {
                naps = (naps + 1).min(8);
                thread::park_timeout(NAP.min(Duration::from_micros(20) * (1 << naps)));
            }
        }
    }
}

/// Sleeps until the endpoint may have something to do, if it has a descriptor; returns whether it
/// said so.
fn sleep(net: &Net) -> Option<bool> {
    let descriptor: Option<OwnedFd> = {
        let mut state = net.lock();
        let link = state.link.as_mut()?;
        match link.endpoint.may_sleep() {
            Ok(true) => link.endpoint.descriptor().and_then(|fd| fd.as_fd().try_clone_to_owned().ok()),
            _ => None,
        }
    };
    let descriptor = descriptor?;
    let timeout = Timespec { tv_sec: 0, tv_nsec: SLEEP.subsec_nanos().into() };
    // What woke it is found by the next look.
    Some(poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&timeout)).is_ok_and(|ready| ready > 0))
}
