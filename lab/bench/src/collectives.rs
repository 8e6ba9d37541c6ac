//! The time of collectives by software and by hardware, in virtual time, from which
//! `fmpl::Table::measured` is derived; and the memory of a communicator at each rank (`cargo xtask
//! collectives`).

use crate::{
    output::{Context, Output, Steps},
    quantity::Unit,
    report::VIRTUAL,
    sheet::{Entry, Sheet, ns},
};
use clap::Args;
use fmpl::{Algorithm, Choice, Collective, Communicator, Fmpl, Memory, Op, Options as FmplOptions, Rule};
use rdma_fabric::{Fabric, ProgramResult};
use std::{error::Error, process::ExitCode};
use tofu2_sim::virt::{Job, Platform};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Report the memory of jobs of these sizes, instead of times.
    #[arg(long, value_name = "RANKS", num_args = 1..)]
    memory: Vec<usize>,
    /// Jobs of two members with two lengths: a smoke test.
    #[arg(long, conflicts_with = "memory")]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let part = if options.memory.is_empty() { "collectives" } else { "memory" };
    options.output.sheets(Context::new(part, VIRTUAL, options.quick), |steps| match &options.memory[..] {
        [] => times(options.quick, steps),
        sizes => Ok(vec![memory(sizes, steps)?]),
    })
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
fn times(quick: bool, steps: &mut Steps) -> Result<Vec<Sheet>, Box<dyn Error>> {
    let mut sheets = Vec::new();
    let (members, lengths) = if quick { (&MEMBERS[..1], 2) } else { (&MEMBERS[..], usize::MAX) };
    let machines: [(Platform, &[Subject]); 2] = [(Platform::fx100(), &UNIT), (Platform::sr8000(), &NETWORK)];
    for (platform, subjects) in machines {
        for subject in subjects {
            steps.expect(subject.bytes.len().min(lengths));
            let columns =
                members.iter().flat_map(|members| [format!("{members} members"), format!("{members}, hardware")]);
            let title = format!("{}, {}, by software and by hardware", platform.name(), subject.collective);
            let mut sheet = Sheet::new(title, ["bytes".to_owned()].into_iter().chain(columns));
            for &bytes in subject.bytes.iter().take(lengths) {
                steps.begin(format_args!("{}, {}, {bytes} B", platform.name(), subject.collective));
                let mut row = vec![Entry::from(bytes)];
                for &members in members {
                    let hardware = Rule::new(subject.collective, subject.hardware);
                    for rules in [vec![], vec![hardware]] {
                        row.push(ns(time(&platform, members, subject.collective, bytes, rules)?));
                    }
                }
                sheet.row(row);
            }
            sheets.push(sheet);
        }
    }
    Ok(sheets)
}

/// Returns the nanoseconds per collective, in a sequence whose roots rotate.
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
    Ok(run.outs.into_iter().max().unwrap_or(0) as f64 / 1e3)
}

/// Returns the memory of the world's communicator at a rank after one collective of each kind, in
/// large jobs after a barrier.
fn memory(sizes: &[usize], steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let columns = ["machine", "ranks", "areas", "an area", "staging", "peers met, at most", "kept for them"];
    let mut sheet = Sheet::new("Bytes of a communicator at each rank", columns);
    for platform in [Platform::fx100(), Platform::sr8000()] {
        let name = platform.name();
        for &ranks in sizes {
            // A crossbar network of two dimensions cannot be larger, and an SR8000 is not much
            // larger.
            if name == "SR8000" && ranks > 128 {
                continue;
            }
            steps.expect(1);
            steps.begin(format_args!("{name}, {ranks} ranks"));
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
            let bytes = |bytes: usize| Entry::Figure(bytes as f64, Unit::Bytes);
            let [areas, area, staging, kept] = [most.areas, most.area, most.staging, most.kept].map(bytes);
            sheet.row([name.into(), ranks.into(), areas, area, staging, most.met.into(), kept]);
        }
    }
    Ok(sheet)
}
