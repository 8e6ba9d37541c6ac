//! Ranks that sleep or wait: the latency of serving them, and its CPU cost.

use super::{
    Found, PROVIDERS,
    commands::{commands, numbers, on_nodes},
    row::Row,
};
use crate::foreign::lines_of::lines_of;
use crate::quantity::Unit;
use std::{error::Error, path::Path};

pub(super) fn asleep(program: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    const MOST: f64 = 50e6;
    for provider in PROVIDERS {
        let mut command = commands(program, &["asleep", if quick { "1" } else { "3" }]);
        on_nodes(&mut command, 2, 1, provider);
        match lines_of(command) {
            Ok(lines) => {
                let [median, worst, count] = numbers(&lines, "asleep")?[..] else { return Err("no figures".into()) };
                let what = |which: &str| format!("{}: atomic at a rank that sleeps, {which} of {count}", provider.0);
                found.rows.push(Row::alone(what("median"), Unit::Nanoseconds, median, MOST));
                found.rows.push(Row::alone(what("worst"), Unit::Nanoseconds, worst, MOST));
            }
            Err(why) => found.skip(&format!("a rank that sleeps, over {}", provider.0), why),
        }
    }
    Ok(())
}

pub(super) fn idle(program: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    const MOST: f64 = 0.01;
    for provider in PROVIDERS {
        let mut command = commands(program, &["idle", if quick { "1" } else { "4" }]);
        on_nodes(&mut command, 2, 1, provider);
        match lines_of(command) {
            Ok(lines) => {
                let [notice, barrier] = numbers(&lines, "idle")?[..] else { return Err("no figures".into()) };
                let what = |what: &str| format!("{}: CPU of a rank that waits {what}", provider.0);
                found.rows.push(Row::alone(what("for a notice"), Unit::Core, notice, MOST));
                found.rows.push(Row::alone(what("in a barrier"), Unit::Core, barrier, MOST));
            }
            Err(why) => found.skip(&format!("a rank that waits, over {}", provider.0), why),
        }
    }
    Ok(())
}
