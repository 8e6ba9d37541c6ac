//! Memory per peer with which a rank has communicated, excluding libfabric's: the memory that Rust
//! code has allocated at that time, and the rank's share of its node's control block.

use super::{
    Found, PROVIDERS,
    commands::{commands, numbers, on_nodes},
    row::Row,
};
use crate::foreign::lines_of::lines_of;
use crate::quantity::Unit;
use std::{error::Error, path::Path};

const MOST: f64 = 1024.0;

pub(super) fn measure(program: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    let sizes: &[usize] = if quick { &[4, 16] } else { &[8, 24, 64] };
    let mut measured: Vec<(usize, f64, f64)> = Vec::new();
    for ranks in sizes {
        let mut command = commands(program, &["memory"]);
        on_nodes(&mut command, *ranks, 1, PROVIDERS[0]);
        match lines_of(command) {
            Ok(lines) => {
                let [allocated, mapped] = numbers(&lines, "memory")?[..] else { return Err("no figures".into()) };
                measured.push((*ranks, allocated, mapped));
            }
            Err(why) => {
                found.skip(&format!("memory of {ranks} ranks"), why);
                return Ok(());
            }
        }
    }
    for two in measured.windows(2) {
        let [(few, allocated, mapped), (many, more, more_mapped)] = two[..] else { continue };
        let per_peer = (more + more_mapped - allocated - mapped) / (many - few) as f64;
        let what = format!("own memory for each peer, from {few} to {many} ranks, each on a node of its own");
        found.rows.push(Row::alone(what, Unit::Bytes, per_peer, MOST));
    }
    Ok(())
}
