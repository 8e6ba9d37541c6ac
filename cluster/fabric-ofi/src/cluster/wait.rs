//! Blocking waits of a thread without other work, and random numbers.

use crate::{OfiError, Result};
use core::time::Duration;
use std::{fs::File, io::Read, thread, time::Instant};

/// Number of polls before the first yield; `YIELDS` more polls precede the first nap.
const SPINS: u32 = 100;
const YIELDS: u32 = 400;
/// The longest nap.
const NAP: Duration = Duration::from_micros(200);

/// The backoff of a thread that polls repeatedly.
#[derive(Debug)]
pub(super) struct Patience {
    looks: u32,
    begun: Instant,
}

impl Patience {
    pub(super) fn new() -> Self {
        Patience { looks: 0, begun: Instant::now() }
    }

    /// Returns the time since the first poll.
    pub(super) fn age(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Pauses, for longer with each call.
    pub(super) fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks <= SPINS {
            core::hint::spin_loop();
        } else if self.looks <= SPINS + YIELDS {
            thread::yield_now();
        } else {
            thread::sleep(NAP);
        }
    }
}

/// Returns a random number.
pub(super) fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map(|()| u64::from_le_bytes(bytes)).map_err(OfiError::Random)
}
