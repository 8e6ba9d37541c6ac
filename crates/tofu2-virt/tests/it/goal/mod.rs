//! Schedules in the formats of GOAL, and their replay by the LogGPS model.

mod by_formula;
mod by_hand;
mod formats;
mod naive;

use tofu2_virt::goal::{LogGps, Replay, ReplayError, Schedule};

fn read(text: &str) -> Schedule {
    Schedule::read_text(text.as_bytes()).expect("a schedule")
}

fn replay(text: &str, machine: &str) -> Result<Replay, ReplayError> {
    read(text).replay(&machine.parse().expect("parameters"))
}

/// Returns the finishing times in nanoseconds.
fn times(replay: &Replay) -> Vec<u64> {
    replay.finish_times.iter().map(|time| time / 1000).collect()
}

/// Machines on which the CPU, or the interface, or the byte is what takes the time.
fn machines() -> Vec<LogGps> {
    ["L=2500", "L=900,o=300,g=2000,G=3", "L=5000,o=700,g=10,G=1,O=4", "L=1000,o=0,g=500,G=0", "L=12000,G=0.125,O=0.25"]
        .map(|text| text.parse().expect("parameters"))
        .to_vec()
}
