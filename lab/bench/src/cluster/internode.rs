//! Operations between two nodes, compared with bare calls of libfabric on the same provider.

use super::{Found, PROVIDERS, row::Row};
use crate::foreign::lines_of::lines_of;
use crate::{goal::Goal, quantity::Unit};
use serde::Deserialize;
use std::{error::Error, path::Path, process::Command};

/// The program's output for an operation: ns.
#[derive(Debug, Deserialize)]
struct Measured {
    operation: String,
    fabric: Option<f64>,
    bare: Option<f64>,
}

pub(super) fn measure(bare: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    let networks = PROVIDERS.into_iter().flat_map(|provider| [(provider, false), (provider, true)]);
    for ((provider, interface), by_nic) in networks {
        let mut command = Command::new(bare);
        command.args(["--json", provider, interface.unwrap_or(provider)]).args(quick.then_some("--quick"));
        command.args(by_nic.then_some("--nic"));
        let lines = match lines_of(command) {
            Ok(lines) => lines,
            Err(why) => {
                found.skip(&format!("operations over {provider}"), why);
                continue;
            }
        };
        for (line, _) in lines {
            let Measured { operation, fabric, bare } = serde_json::from_str(&line)?;
            // Messages are not operations of a fabric.
            let (Some(fabric), Some(bare)) = (fabric, bare) else { continue };
            let is_long = operation.contains("MiB");
            if by_nic && is_long {
                // No words.
                continue;
            }
            let goal = Goal::Ratio(if is_long { 1.03 } else { 1.15 });
            let how = if by_nic { " with `--atomics nic`" } else { "" };
            let what = format!("{provider}: {operation}{how}, beside bare calls");
            found.rows.push(Row::beside(what, Unit::Nanoseconds, fabric, bare, goal));
        }
    }
    Ok(())
}
