//! Ratios of the times of operations to those of bare calls of libfabric, and to those of perftest's tools, between
//! two processes of one machine.

use super::cases::{Programs, QUEUES, SEGMENT};
use crate::hosts::bed::{Bed, Good, Outcome};
use serde::Deserialize;
use std::error::Error;

/// The NIC of a machine.
const NIC: &str = "rxe0";
/// perftest's tools, each with the operation of `bare` that does the same work. A put completes with the answer to
/// it, for which `ib_write_lat` takes the time of two messages.
const TOOLS: [(&str, &str, f64); 3] =
    [("ib_write_lat", "put 64 B", 2.0), ("ib_read_lat", "get 64 B", 1.0), ("ib_atomic_lat", "fetch-add", 1.0)];

/// A line of `bare --json`, in ns.
#[derive(Deserialize)]
struct Line {
    operation: String,
    fabric: Option<f64>,
    endpoint: Option<f64>,
    bare: Option<f64>,
}

/// Measures on the first machine, which must have two CPUs.
pub(super) fn speed(bed: &Bed, programs: &Programs, provider: &str) -> Outcome {
    let Some(bare) = &programs.bare else { return Ok(Good::default()) };
    if bed.network.shell(0, "nproc")?.trim() == "1" {
        return Ok(Good { note: "SKIPPED: needs --cpus 2".to_owned(), ..Good::default() });
    }
    let measured = |options: &str| {
        let line = format!("{SEGMENT} {QUEUES} '{}' --quick --json {options} '{provider}' {NIC}", bare.display());
        let printed = bed.network.shell(0, &line)?;
        let lines = printed.lines().filter(|line| line.starts_with('{'));
        Ok::<_, Box<dyn Error>>(lines.map(serde_json::from_str).collect::<Result<Vec<Line>, _>>()?)
    };
    let lines = measured("")?;
    let mut notes: Vec<String> = lines.iter().map(beside_bare_calls).collect();
    let words = |line: &&Line| ["put 8 B", "get 8 B", "fetch-add"].contains(&&*line.operation);
    notes.extend(
        measured("--nic")?.iter().filter(words).map(|line| format!("--atomics nic: {}", beside_bare_calls(line))),
    );
    for (tool, operation, messages) in TOOLS {
        if bed.network.shell(0, &format!("command -v {tool}")).is_err() {
            notes.push(format!("SKIPPED: {tool} (package perftest)"));
            continue;
        }
        let took = tool_ns(bed, tool)? * messages;
        let ours = lines.iter().find(|line| line.operation == operation).and_then(|line| line.fabric);
        let ratio = ours.map_or_else(|| "–".to_owned(), |ours| format!("×{:.2}", ours / took));
        notes.push(format!("{operation}: {ratio} of {tool} ({took:.0} ns)"));
    }
    Ok(Good { note: notes.join("; "), ..Good::default() })
}

/// Returns the ratios of an operation to the bare calls.
fn beside_bare_calls(line: &Line) -> String {
    let ratio = |side: &str, ns: Option<f64>| ns.zip(line.bare).map(|(ns, bare)| format!("{side} ×{:.2}", ns / bare));
    let ratios: Vec<String> =
        [ratio("fabric", line.fabric), ratio("endpoint", line.endpoint)].into_iter().flatten().collect();
    format!("{}: {} of bare calls ({:.0} ns)", line.operation, ratios.join(", "), line.bare.unwrap_or(f64::NAN))
}

/// Returns the typical latency that a tool of perftest reports, in ns.
fn tool_ns(bed: &Bed, tool: &str) -> Result<f64, Box<dyn Error>> {
    let size = if tool == "ib_atomic_lat" { "" } else { "-s 64" };
    let line = format!(
        "{tool} -d {NIC} -F {size} -n 2000 >/dev/null 2>&1 & server=$!; sleep 2; \
         {tool} -d {NIC} -F {size} -n 2000 10.88.0.1; code=$?; kill $server 2>/dev/null; exit $code"
    );
    let printed = bed.network.shell(0, &line)?;
    // Bytes, iterations, the least, the greatest and the typical time in µs, and others.
    let row = printed
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|row| row.len() >= 5 && row[..2].iter().all(|word| word.parse::<u64>().is_ok()));
    let typical = row.and_then(|row| row[4].parse::<f64>().ok());
    Ok(typical.ok_or_else(|| format!("{tool} prints no time: {printed}"))? * 1e3)
}
