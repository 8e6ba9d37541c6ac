//! Measures the cost of a program over a cluster's `Fabric`, and of `fabric_ofi::Endpoint` below
//! it, relative to direct libfabric calls, in one run. `cargo xtask bench-cluster` evaluates the
//! output.
//!
//! ```text
//! cargo run --release -p fabric-ofi --features ofi --example bare [-- [--quick] [--json] [--nic] [--only PART] [PROVIDER [DOMAIN]]]
//! ```
//!
//! Two processes run on one core each: one measures, the other makes progress on its endpoint or,
//! as a program over `Fabric`, waits. The rounds of all sides alternate, and so does the side that
//! is first. The output is in ns per operation: the 10th percentile of the rounds, because other
//! processes also use the machine. With `--nic`, libfabric's atomics change the program's words;
//! otherwise the other rank's CPU does.

mod calls;
mod full_stack;
mod layer;

use comfy_table::{Table, presets::ASCII_MARKDOWN};
use fabric_ofi::cluster::AtomicsBy;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};
use std::{
    env,
    error::Error,
    io::{Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::{Command, Stdio},
    time::{Duration, Instant},
};

type Result<T> = core::result::Result<T, Box<dyn Error>>;

/// The longest put and get in bytes.
const LONG: usize = 1 << 20;
/// Maximum number of rounds in which each side measures each operation.
const ROUNDS: usize = 600;
/// Time limit for all rounds of an operation, once a minimum number of them has completed.
const LIMIT: Duration = Duration::from_secs(2);
/// Time limit for a single operation.
const BOUND: Duration = Duration::from_secs(10);

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A put of this number of bytes from the program's own memory.
    PutBytes(usize),
    /// A put of this number of bytes from registered memory.
    Put(usize),
    /// A get of this number of bytes into registered memory.
    Get(usize),
    /// A fetching add on a word.
    Add,
    /// A message of 8 bytes, and one back.
    PingPong,
}

impl Operation {
    /// Returns the number of bytes that one of these moves.
    fn bytes(self) -> usize {
        match self {
            Operation::PutBytes(len) | Operation::Put(len) | Operation::Get(len) => len,
            Operation::Add | Operation::PingPong => 8,
        }
    }
}

/// The operations, with their names and their numbers per turn.
///
/// Turns of short operations are long enough for a waiting program to park.
const OPERATIONS: [(&str, Operation, usize); 9] = [
    ("put 8 B", Operation::PutBytes(8), 300),
    ("get 8 B", Operation::Get(8), 300),
    ("put 64 B", Operation::PutBytes(64), 300),
    ("get 64 B", Operation::Get(64), 300),
    ("fetch-add", Operation::Add, 300),
    ("message 8 B, there and back", Operation::PingPong, 300),
    ("put 1 MiB from a region", Operation::Put(LONG), 1),
    ("put 1 MiB of bytes, copied", Operation::PutBytes(LONG), 1),
    ("get 1 MiB into a region", Operation::Get(LONG), 1),
];

/// One of the compared sides.
trait Side {
    /// Returns the data that the other process needs.
    fn contact(&self) -> Vec<u8>;
    /// Receives the other process's contact.
    fn connect(&mut self, contact: &[u8]) -> Result<()>;
    /// Executes an operation `count` times, and waits each time until it completes.
    fn run(&mut self, operation: Operation, count: usize) -> Result<()>;
    /// Ends a turn, for a side that detects the end of a turn itself.
    fn end_turn(&mut self) -> Result<()> {
        Ok(())
    }
    /// Serves the other process while it measures, until the turn ends.
    fn serve(&mut self, has_ended: &mut dyn FnMut() -> Result<bool>) -> Result<()>;
}

/// Answers until the turn ends, which is checked only occasionally.
fn answer_until(has_ended: &mut dyn FnMut() -> Result<bool>, mut answer: impl FnMut() -> Result<()>) -> Result<()> {
    while !has_ended()? {
        (0..256).try_for_each(|_| answer())?;
    }
    Ok(())
}

/// The names of the sides, in the order of [`sides`].
const SIDES: [&str; 3] = ["fabric", "endpoint", "bare calls"];

/// Measures the cost of a program over a cluster's fabric relative to direct libfabric calls.
#[derive(clap::Parser)]
struct Options {
    #[command(flatten)]
    how: How,
    /// The provider; without one, `tcp;ofi_rxm` and then `shm`.
    provider: Option<String>,
    /// Its domain [default: `shm` of `shm`, else `lo`].
    domain: Option<String>,
    /// Run as the other process, controlled through standard input.
    #[arg(long, hide = true)]
    serve: bool,
}

/// Options of the measurement and its output.
#[derive(clap::Args)]
struct How {
    /// Measure for an eighth of the time.
    #[arg(long)]
    quick: bool,
    /// Print a line of JSON for each operation instead of a table.
    #[arg(long)]
    json: bool,
    /// Have the program's words changed by libfabric's atomics.
    #[arg(long)]
    nic: bool,
    /// Measure only the operations whose names contain this.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
}

impl How {
    fn limit(&self) -> Duration {
        if self.quick { LIMIT / 8 } else { LIMIT }
    }

    /// Returns how words of the other rank are accessed, for the program over `Fabric`.
    fn atomics(&self) -> AtomicsBy {
        if self.nic { AtomicsBy::Nic } else { AtomicsBy::Cpu }
    }
}

/// The JSON output for an operation, in ns.
#[derive(serde::Serialize)]
struct Line<'a> {
    provider: &'a str,
    operation: &'a str,
    fabric: Option<f64>,
    endpoint: Option<f64>,
    bare: Option<f64>,
}

fn main() -> Result<()> {
    let Options { how, provider, domain, serve: serves } = clap::Parser::parse();
    let providers = provider.map_or(vec!["tcp;ofi_rxm".to_owned(), "shm".to_owned()], |provider| vec![provider]);
    for provider in providers {
        let usual = if provider == "shm" { "shm" } else { "lo" };
        let domain = domain.as_deref().unwrap_or(usual);
        if serves {
            return serve(&provider, domain, how.atomics());
        }
        measure(&provider, domain, &how)?;
    }
    Ok(())
}

fn sides(rank: u32, provider: &str, domain: &str, atomics: AtomicsBy) -> Result<[Box<dyn Side>; 3]> {
    Ok([
        Box::new(full_stack::FullStack::open(rank, provider, domain, atomics)?),
        Box::new(layer::Layer::open(provider, domain)?),
        Box::new(calls::Calls::open(provider, domain)?),
    ])
}

/// Pins this process to the `nth` of the cores that it may use, and returns all of these.
fn pin(nth: usize) -> Result<CpuSet> {
    let allowed = sched_getaffinity(None)?;
    let core = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).nth(nth);
    let mut set = CpuSet::new();
    set.set(core.ok_or("there are not two cores")?);
    sched_setaffinity(None, &set)?;
    Ok(allowed)
}

fn measure(provider: &str, domain: &str, how: &How) -> Result<()> {
    let (mut socket, theirs) = UnixStream::pair()?;
    let mut server = Command::new(env::current_exe()?)
        .args(["--serve", provider, domain])
        .args(how.nic.then_some("--nic"))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    let allowed = pin(0)?;
    let mut sides = sides(0, provider, domain, how.atomics())?;
    swap_contacts(&mut sides, &mut socket)?;
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([provider, "fabric, ns", "endpoint, ns", "bare calls, ns", "fabric / bare", "endpoint / bare"]);
    for (name, operation, count) in OPERATIONS.into_iter().filter(|(name, ..)| name.contains(&how.only)) {
        let [fabric, endpoint, bare] = compare(&mut sides, &mut socket, operation, count, how.limit())?;
        if how.json {
            println!("{}", serde_json::to_string(&Line { provider, operation: name, fabric, endpoint, bare })?);
            continue;
        }
        let shown = |ns: Option<f64>, digits: usize| ns.map_or("–".to_owned(), |ns| format!("{ns:.digits$}"));
        let ratio = |ns: Option<f64>| shown(ns.zip(bare).map(|(ns, bare)| ns / bare), 3);
        let cells = [shown(fabric, 0), shown(endpoint, 0), shown(bare, 0), ratio(fabric), ratio(endpoint)];
        table.add_row([name.to_owned()].into_iter().chain(cells));
    }
    socket.write_all(&[u8::MAX])?;
    server.wait()?;
    // Dropping memory that a rank has resolved waits for the rank, which has ended.
    core::mem::forget(sides);
    sched_setaffinity(None, &allowed)?;
    if !how.json {
        println!("{table}");
    }
    Ok(())
}

/// Returns the ns per operation for each side that supports it.
fn compare(
    sides: &mut [Box<dyn Side>; 3],
    socket: &mut UnixStream,
    operation: Operation,
    count: usize,
    limit: Duration,
) -> Result<[Option<f64>; 3]> {
    let mut times = SIDES.map(|_| Vec::new());
    // A fabric has no messages.
    let takers: Vec<usize> = (0..SIDES.len()).filter(|side| *side > 0 || operation != Operation::PingPong).collect();
    let first = Instant::now();
    for round in 0..=ROUNDS {
        for turn in 0..takers.len() {
            let index = takers[(round + turn) % takers.len()];
            socket.write_all(&[index as u8])?;
            socket.read_exact(&mut [0])?;
            // Work left over from the previous turn is not measured.
            sides[index].run(operation, 1)?;
            let begun = Instant::now();
            sides[index].run(operation, count)?;
            // The first round establishes the connections.
            if round > 0 {
                times[index].push(begun.elapsed().as_nanos() as f64 / count as f64);
            }
            sides[index].end_turn()?;
        }
        if round > 20 && first.elapsed() > limit {
            break;
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 10).copied()
    }))
}

/// Serves as the side that the other process selects, until it selects none.
fn serve(provider: &str, domain: &str, atomics: AtomicsBy) -> Result<()> {
    pin(1)?;
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut sides = sides(1, provider, domain, atomics)?;
    swap_contacts(&mut sides, &mut socket)?;
    let mut next = [0];
    loop {
        if socket.read(&mut next)? == 0 {
            return Ok(());
        }
        let Some(side) = sides.get_mut(usize::from(next[0])) else {
            core::mem::forget(sides);
            return Ok(());
        };
        socket.write_all(&[0])?;
        side.serve(&mut || Ok(poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&Timespec::default()))? > 0))?;
    }
}

fn swap_contacts(sides: &mut [Box<dyn Side>], socket: &mut UnixStream) -> Result<()> {
    for side in sides {
        let contact = side.contact();
        socket.write_all(&(contact.len() as u32).to_le_bytes())?;
        socket.write_all(&contact)?;
        let mut len = [0; 4];
        socket.read_exact(&mut len)?;
        let mut theirs = vec![0; u32::from_le_bytes(len) as usize];
        socket.read_exact(&mut theirs)?;
        side.connect(&theirs)?;
    }
    Ok(())
}

/// Returns an error if an operation takes too long.
fn bounded(begun: Instant) -> Result<()> {
    if begun.elapsed() < BOUND { Ok(()) } else { Err("an operation is not over in time".into()) }
}
