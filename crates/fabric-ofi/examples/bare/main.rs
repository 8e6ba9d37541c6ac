//! Measures what `fabric_ofi::Endpoint` costs above bare calls of libfabric, in one run.
//!
//! ```text
//! cargo run --release -p fabric-ofi --features ofi --example bare [-- PROVIDER [DOMAIN]]
//! ```
//!
//! Two processes, each on a core of its own: one measures, the other lets its endpoint work. Rounds
//! of both sides alternate, and the one that is first. Printed are ns for each operation: what a
//! tenth of the rounds stays below, since others use the machine, too.

mod calls;
mod layer;

use comfy_table::{Table, presets::ASCII_MARKDOWN};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::{
    env,
    error::Error,
    io::{ErrorKind, Read, Write},
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
/// How often each side measures each operation, unless that takes too long.
const ROUNDS: usize = 600;
/// What all rounds of an operation may take, once there are some.
const LIMIT: Duration = Duration::from_secs(2);
/// What a single operation may take.
const BOUND: Duration = Duration::from_secs(10);

/// What is measured, and how often in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A put of so many bytes from where the program has them.
    PutBytes(usize),
    /// A put of so many bytes from registered memory.
    Put(usize),
    /// A get of so many bytes into registered memory.
    Get(usize),
    /// A fetching add on a word.
    Add,
    /// A message of 8 bytes, and one back.
    PingPong,
}

const OPERATIONS: [(&str, Operation, usize); 7] = [
    ("put 8 B", Operation::PutBytes(8), 20),
    ("get 8 B", Operation::Get(8), 20),
    ("fetch-add", Operation::Add, 20),
    ("message 8 B, there and back", Operation::PingPong, 20),
    ("put 1 MiB from a region", Operation::Put(LONG), 1),
    ("put 1 MiB of bytes, copied", Operation::PutBytes(LONG), 1),
    ("get 1 MiB into a region", Operation::Get(LONG), 1),
];

/// One of the two things that are compared.
trait Side {
    /// Returns what the other process has to know.
    fn card(&self) -> Vec<u8>;
    /// Takes the other process's card.
    fn meet(&mut self, card: &[u8]) -> Result<()>;
    /// Does an operation, and waits until it is over.
    fn run(&mut self, operation: Operation) -> Result<()>;
    /// Lets the endpoint work once, and answers messages.
    fn serve(&mut self) -> Result<()>;
}

fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", provider, domain] => serve(provider, domain),
        [] => measure("tcp;ofi_rxm", "lo").and_then(|()| measure("shm", "shm")),
        [provider] => measure(provider, if *provider == "shm" { "shm" } else { "lo" }),
        [provider, domain] => measure(provider, domain),
        _ => Err("usage: bare [PROVIDER [DOMAIN]]".into()),
    }
}

fn sides(provider: &str, domain: &str) -> Result<[Box<dyn Side>; 2]> {
    Ok([Box::new(layer::Layer::open(provider, domain)?), Box::new(calls::Calls::open(provider, domain)?)])
}

/// Runs on the `nth` of the cores that this process may use.
fn pin(nth: usize) -> Result<()> {
    let allowed = sched_getaffinity(None)?;
    let core = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).nth(nth);
    let mut set = CpuSet::new();
    set.set(core.ok_or("there are not two cores")?);
    Ok(sched_setaffinity(None, &set)?)
}

fn measure(provider: &str, domain: &str) -> Result<()> {
    let (mut socket, theirs) = UnixStream::pair()?;
    let mut server = Command::new(env::current_exe()?)
        .args(["serve", provider, domain])
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    pin(0)?;
    let mut sides = sides(provider, domain)?;
    swap_cards(&mut sides, &mut socket)?;
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN);
    table.set_header([provider, "endpoint, ns", "bare calls, ns", "ratio"]);
    for (name, operation, count) in OPERATIONS {
        let mut times = [Vec::new(), Vec::new()];
        let first = Instant::now();
        for round in 0..=ROUNDS {
            for turn in 0..2 {
                let index = (round + turn) % 2;
                socket.write_all(&[index as u8])?;
                socket.read_exact(&mut [0])?;
                let begun = Instant::now();
                for _ in 0..count {
                    sides[index].run(operation)?;
                }
                // The first round connects.
                if round > 0 {
                    times[index].push(begun.elapsed().as_nanos() as f64 / count as f64);
                }
            }
            if round > 20 && first.elapsed() > LIMIT {
                break;
            }
        }
        let [ours, bare] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 10]
        });
        table.add_row([name.to_owned(), format!("{ours:.0}"), format!("{bare:.0}"), format!("{:.3}", ours / bare)]);
    }
    socket.write_all(&[2])?;
    server.wait()?;
    println!("{table}");
    Ok(())
}

/// Lets the endpoint work that the other process asks for, until it asks for neither.
fn serve(provider: &str, domain: &str) -> Result<()> {
    pin(1)?;
    let mut socket = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let mut sides = sides(provider, domain)?;
    swap_cards(&mut sides, &mut socket)?;
    socket.set_nonblocking(true)?;
    let mut current = 0;
    loop {
        for _ in 0..256 {
            sides[current].serve()?;
        }
        let mut next = [0];
        match socket.read(&mut next) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(1) if usize::from(next[0]) < sides.len() => {
                current = next[0].into();
                socket.write_all(&[0])?;
            }
            _ => return Ok(()),
        }
    }
}

fn swap_cards(sides: &mut [Box<dyn Side>; 2], socket: &mut UnixStream) -> Result<()> {
    for side in sides {
        let card = side.card();
        socket.write_all(&(card.len() as u32).to_le_bytes())?;
        socket.write_all(&card)?;
        let mut len = [0; 4];
        socket.read_exact(&mut len)?;
        let mut theirs = vec![0; u32::from_le_bytes(len) as usize];
        socket.read_exact(&mut theirs)?;
        side.meet(&theirs)?;
    }
    Ok(())
}

/// Returns an error if something takes too long.
fn bounded(begun: Instant) -> Result<()> {
    if begun.elapsed() < BOUND { Ok(()) } else { Err("an operation is not over in time".into()) }
}
