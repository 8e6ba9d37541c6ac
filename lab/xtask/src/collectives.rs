//! `cargo xtask collectives`: the time of collectives by software and by hardware, in virtual time,
//! from which `fmpl::Table::measured` is derived; and the memory of a communicator at each rank.

use crate::page;
use clap::Args;
use comfy_table::Table;
use fmpl::{Algorithm, Choice, Collective, Communicator, Fmpl, Memory, Op, Options as FmplOptions, Rule};
use rdma_fabric::{Fabric, ProgramResult};
use std::{error::Error, io::Write, path::PathBuf, process::ExitCode};
use tofu2_sim::virt::{Job, Platform};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write the tables into this file, in place of earlier ones.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
    /// Report the memory of jobs of these sizes, instead of times.
    #[arg(long, value_name = "RANKS", num_args = 1..)]
    memory: Vec<usize>,
    /// Jobs of two members with two lengths: a smoke test.
    #[arg(long, conflicts_with_all = ["markdown", "memory"])]
    quick: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let (name, tables) = match &options.memory[..] {
        [] => ("collectives", times(options.quick)?),
        sizes => ("memory", vec![("Bytes of a communicator at each rank".to_owned(), memory(sizes)?)]),
    };
    match &options.markdown {
        Some(path) => {
            let tables = tables.into_iter().map(|(title, table)| format!("{title}:\n\n{}\n", page::markdown(table)));
            let text = tables.collect::<Vec<_>>().join("\n");
            page::Part::of(path, name)?.write(&text)?;
        }
        None => {
            for (title, table) in tables {
                writeln!(std::io::stdout(), "{title}\n{}\n", page::terminal(table))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

const MEMBERS: [usize; 5] = [2, 3, 4, 8, 16];

/// A collective, and the lengths at which it is measured, in bytes.
struct Subject {
    collective: Collective,
    hardware: Algorithm,
    bytes: &'static [usize],
}

const LENGTHS: &[usize] = &[0, 8, 512, 8 << 10, 64 << 10, 512 << 10, 8 << 20];
/// The last lengths exceed the capacity of a barrier unit.
const SHORT: &[usize] = &[4, 24, 28, 512, 4 << 10, 64 << 10];

const UNIT: [Subject; 3] = [
    Subject { collective: Collective::Barrier, hardware: Algorithm::Gates, bytes: &[0] },
    Subject { collective: Collective::Reduce, hardware: Algorithm::Gates, bytes: SHORT },
    Subject { collective: Collective::Allreduce, hardware: Algorithm::Gates, bytes: SHORT },
];
const NETWORK: [Subject; 2] = [
    Subject { collective: Collective::Barrier, hardware: Algorithm::Colour, bytes: &[0] },
    Subject { collective: Collective::Broadcast, hardware: Algorithm::Multicast, bytes: LENGTHS },
];

/// Returns a table for each machine and kind of collective.
fn times(quick: bool) -> Result<Vec<(String, Table)>, Box<dyn Error>> {
    let mut tables = Vec::new();
    let (members, lengths) = if quick { (&MEMBERS[..1], 2) } else { (&MEMBERS[..], usize::MAX) };
    let machines: [(Platform, &[Subject]); 2] = [(Platform::fx100(), &UNIT), (Platform::sr8000(), &NETWORK)];
    for (platform, subjects) in machines {
        for subject in subjects {
            let mut table = Table::new();
            table.set_header(
                ["bytes".to_owned()].into_iter().chain(members.iter().map(|members| format!("{members} members"))),
            );
            for &bytes in subject.bytes.iter().take(lengths) {
                let mut row = vec![bytes.to_string()];
                for &members in members {
                    let hardware = Rule::new(subject.collective, subject.hardware);
                    let by = |rules: Vec<Rule>| time(&platform, members, subject.collective, bytes, rules);
                    row.push(format!("{:.2} / {:.2}", by(vec![])?, by(vec![hardware])?));
                }
                table.add_row(row);
            }
            tables.push((format!("{}, {}, µs by software / by hardware", platform.name(), subject.collective), table));
        }
    }
    Ok(tables)
}

/// Returns the microseconds per collective, in a sequence whose roots rotate.
fn time(
    platform: &Platform,
    members: usize,
    collective: Collective,
    bytes: usize,
    rules: Vec<Rule>,
) -> Result<f64, Box<dyn Error>> {
    let choice = Choice::By(rules.into_iter().collect());
    let program = async |fabric: Fabric| -> ProgramResult<u64> {
        let fmpl = Fmpl::init_with(&fabric, FmplOptions::default().collectives(choice.clone())).await?;
        let (world, rounds) = (fmpl.world(), 2 * members);
        let span = world.buffer::<i32>(bytes / size_of::<i32>())?;
        let once = async |comm: &Communicator, root: usize| match collective {
            Collective::Barrier => comm.barrier().await,
            Collective::Broadcast => comm.broadcast(&span, root).await,
            Collective::Reduce => comm.reduce(&span, Op::Sum, root).await,
            Collective::Allreduce => comm.allreduce(&span, Op::Sum).await,
        };
        // Connects every member to every peer with which it will communicate.
        for root in 0..members {
            once(world, root).await?;
        }
        world.barrier().await?;
        let begun = fabric.now();
        for round in 0..rounds {
            once(world, round % members).await?;
        }
        let took = fabric.now().picos_since(begun) / rounds as u64;
        world.barrier().await?;
        fmpl.finalize().await?;
        Ok(took)
    };
    let run = Job::new(platform, members).run(&program)?;
    Ok(run.outs.into_iter().max().unwrap_or(0) as f64 / 1e6)
}

/// Returns the memory of the world's communicator at a rank after one collective of each kind, in
/// large jobs after a barrier.
fn memory(sizes: &[usize]) -> Result<Table, Box<dyn Error>> {
    let mut table = Table::new();
    table.set_header(["machine", "ranks", "areas", "an area", "staging", "peers met, at most", "kept for them"]);
    for platform in [Platform::fx100(), Platform::sr8000()] {
        let name = platform.name();
        for &ranks in sizes {
            // A crossbar network of two dimensions cannot be larger, and an SR8000 is not much
            // larger.
            if name == "SR8000" && ranks > 128 {
                continue;
            }
            let program = async |fabric: Fabric| -> ProgramResult<Memory> {
                let fmpl = Fmpl::init(&fabric).await?;
                let world = fmpl.world();
                world.barrier().await?;
                // The peer data of all ranks of a large job would exceed this machine's memory.
                if ranks <= 10_000 {
                    let span = world.buffer::<i32>(100)?;
                    world.broadcast(&span, 0).await?;
                    world.allreduce(&span, Op::Sum).await?;
                }
                let memory = world.memory()?;
                fmpl.finalize().await?;
                Ok(memory)
            };
            let run = Job::new(&platform, ranks).run(&program)?;
            let most = run.outs.into_iter().max_by_key(|memory| memory.met).unwrap_or_default();
            let cells = [most.areas, most.area, most.staging, most.met, most.kept].map(|bytes| bytes.to_string());
            table.add_row([name.to_owned(), ranks.to_string()].into_iter().chain(cells));
        }
    }
    Ok(table)
}
