//! The placement of the ranks, and the current distance between their cores.

use super::{bare::Bare, limit, lines, rendezvous::Abandoned};
pub(crate) use limits::cores::{allowed_cores, pin};
use serde::{Deserialize, Serialize};
use std::{error::Error, fs::File, io, os::unix::fs::FileExt, time::Instant};

/// The nanoseconds of a raw flag one way below which the ranks' cores are *siblings*.
const SIBLING_NS: f64 = 40.0;
/// The nanoseconds below which they are *near*.
const NEAR_NS: f64 = 110.0;
/// The number of round trips of the ping-pong that are timed, after some that are not.
const ROUND_TRIPS: u64 = 100;
const WARM_UP: u64 = 20;

/// The distance between the two ranks' cores right before a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Class {
    /// A raw flag takes less than 40 ns one way: two threads of one core, which share its units and
    /// its caches.
    Sibling,
    /// A raw flag takes less than 110 ns one way.
    Near,
    /// A raw flag takes longer.
    Far,
    /// All samples, because too few were clean, or there are more ranks than cores.
    Any,
}

/// Returns whether the ping-pongs right before and right after a sample took about the same time: a
/// hypervisor moves virtual CPUs nearer to each other or farther apart at any time.
pub(crate) fn is_same(before: f64, after: f64) -> bool {
    before < after * 1.3 && after < before * 1.3
}

impl Class {
    /// The classes of clean samples.
    pub(crate) const DISTANCES: [Class; 3] = [Class::Sibling, Class::Near, Class::Far];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Sibling => "sibling",
            Class::Near => "near",
            Class::Far => "far",
            Class::Any => "any",
        }
    }

    /// Returns the class for a ping-pong of `ping_pong_ns` one way.
    pub(crate) fn of(ping_pong_ns: f64) -> Self {
        match ping_pong_ns {
            ns if ns < SIBLING_NS => Class::Sibling,
            ns if ns < NEAR_NS => Class::Near,
            _ => Class::Far,
        }
    }
}

/// Returns the cores for ranks 0 and 1: those requested, otherwise the first that are allowed.
pub(crate) fn cores(asked: &[usize]) -> Result<Vec<usize>, Box<dyn Error>> {
    let allowed = allowed_cores()?;
    match asked {
        [] => Ok(allowed.into_iter().take(2).collect()),
        [a, b] if a != b => match asked.iter().find(|core| !allowed.contains(core)) {
            Some(core) => Err(format!("--cores: core {core} is not among those allowed, {allowed:?}").into()),
            None => Ok(asked.to_vec()),
        },
        _ => Err("--cores needs two different cores".into()),
    }
}

/// A counter of the involuntary context switches of the calling thread.
#[derive(Debug)]
pub(crate) struct Switches {
    status: File,
    text: Vec<u8>,
}

impl Switches {
    pub(crate) fn of_this_thread() -> io::Result<Self> {
        Ok(Switches { status: File::open("/proc/thread-self/status")?, text: vec![0; 8192] })
    }

    pub(crate) fn count(&mut self) -> io::Result<u64> {
        let len = self.status.read_at(&mut self.text, 0)?;
        parse(&self.text[..len]).ok_or_else(|| io::Error::other("/proc/thread-self/status tells no switches"))
    }
}

/// Returns the number after `nonvoluntary_ctxt_switches:`.
fn parse(status: &[u8]) -> Option<u64> {
    let text = str::from_utf8(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"))?;
    line.trim().parse().ok()
}

/// The raw flag ping-pong of ranks 0 and 1 that classes a sample.
#[derive(Debug, Default)]
pub(crate) struct PingPong {
    turn: u64,
}

impl PingPong {
    /// Returns the nanoseconds of one way.
    pub(crate) fn measure(&mut self, bare: &Bare, me: usize) -> Result<f64, Abandoned> {
        let (there, back) = (bare.word(lines::PING_PONG), bare.word(lines::PING_PONG + 1));
        let abandoned = bare.word(lines::ABANDONED);
        limit::flags::<false>(me, there, back, &mut self.turn, WARM_UP, abandoned)?;
        let begun = Instant::now();
        limit::flags::<false>(me, there, back, &mut self.turn, ROUND_TRIPS, abandoned)?;
        Ok(begun.elapsed().as_secs_f64() * 1e9 / (2 * ROUND_TRIPS) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_found_in_a_status() {
        assert_eq!(parse(b"Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t12\n"), Some(12));
        assert_eq!(parse(b"voluntary_ctxt_switches:\t7\n"), None);
        assert!(Switches::of_this_thread().unwrap().count().is_ok());
    }

    #[test]
    fn the_classes_meet_at_40_and_110_ns() {
        assert_eq!(Class::of(39.9), Class::Sibling);
        assert_eq!(Class::of(40.0), Class::Near);
        assert_eq!(Class::of(109.9), Class::Near);
        assert_eq!(Class::of(110.0), Class::Far);
    }
}
