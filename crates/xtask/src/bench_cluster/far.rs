//! Operations between two nodes, beside bare calls of libfabric on the same provider.

use super::{
    Found, PROVIDERS,
    row::{Goal, Row, Unit},
    scene::lines_of,
};
use serde::Deserialize;
use std::{error::Error, path::Path, process::Command};

/// What the program prints of an operation: ns.
#[derive(Debug, Deserialize)]
struct Measured {
    operation: String,
    fabric: Option<f64>,
    bare: Option<f64>,
}

pub(super) fn measure(bare: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    for (provider, interface) in PROVIDERS {
        let mut command = Command::new(bare);
        command.args(["--json", provider, interface.unwrap_or(provider)]).args(quick.then_some("--quick"));
        let lines = match lines_of(command) {
            Ok(lines) => lines,
            Err(why) => {
                found.skip(&format!("operations over {provider}"), why);
                continue;
            }
        };
        for (line, _) in lines {
            let Measured { operation, fabric, bare } = serde_json::from_str(&line)?;
            // Messages are none of a fabric's operations.
            let (Some(fabric), Some(bare)) = (fabric, bare) else { continue };
            let goal = Goal::Times(if operation.contains("MiB") { 1.03 } else { 1.15 });
            let what = format!("{provider}: {operation}, beside bare calls");
            found.rows.push(Row::beside(what, Unit::Nanoseconds, fabric, bare, goal));
        }
    }
    Ok(())
}
