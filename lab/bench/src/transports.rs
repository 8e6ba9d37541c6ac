//! The time of the transports of a reflect, from which the choice of [`Transport::Auto`] is derived:
//! on threads of this machine, and on nodes of simulated ones; and the time of packing by several
//! threads of a rank.

mod packing;

use crate::{
    output::{Context, Output, Steps},
    sheet::{Entry, Sheet, ns},
};
use clap::Args;
use core::time::Duration;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{error::Error, process::ExitCode};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};
use xmp_reflect::{
    Align, Array, Format, Mapping, NodeSet, Nodes, Order, Reflect, Reflected, Schedule, Shadow, Template, Transport,
    Widths,
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Two faces, each a few times: a smoke test; the figures are not significant.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    options.output.sheets(Context::new("transports", "threads and virt", options.quick), |steps| {
        let platforms = [Platform::fx100(), Platform::tofud(), Platform::k()];
        let machines = [None].into_iter().chain(platforms.iter().map(Some));
        let sheets: Result<Vec<_>, _> = machines.map(|platform| sheet(platform, options.quick, steps)).collect();
        let mut sheets = sheets?;
        sheets.push(packing::sheet(options.quick, steps)?);
        Ok(sheets)
    })
}

/// The faces of a block of an array: the number of blocks, and of doubles in a block.
const FACES: [(usize, usize); 15] = [
    (1, 1),
    (1, 64),
    (1, 8192),
    (4, 1),
    (4, 64),
    (16, 2),
    (16, 64),
    (64, 1),
    (64, 2),
    (64, 16),
    (64, 256),
    (64, 1024),
    (1024, 1),
    (1024, 2),
    (1024, 16),
];

/// The transports to measure.
const TRANSPORTS: [Transport; 4] = [Transport::Blocks, Transport::Packed, Transport::Fast, Transport::Mrc];

/// Returns a table of one machine; of threads of this machine if there is no platform.
fn sheet(platform: Option<&Platform>, quick: bool, steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    // Without session queues, transports that need them fall back to blocks.
    let queues = platform.is_some_and(|platform| platform.name() != "K");
    let transports = if queues { &TRANSPORTS[..] } else { &TRANSPORTS[..2] };
    let names = transports.iter().map(|transport| transport.to_string());
    let columns = ["blocks of", "doubles"].map(String::from).into_iter().chain(names);
    let title = platform.map_or("Two threads of this machine", |platform| platform.name());
    let mut sheet = Sheet::new(title, columns.chain(["auto", "chosen"].map(String::from)));
    let (faces, rounds) = if quick { (&FACES[3..5], 4) } else { (&FACES[..], 400) };
    steps.expect(faces.len());
    for &(count, doubles) in faces {
        steps.begin(format_args!("{title}, {count} blocks of {doubles}"));
        let mut row: Vec<Entry> = vec![count.into(), doubles.into()];
        for &transport in transports {
            row.push(ns(time(platform, count, doubles, (transport, rounds))?.0));
        }
        let (took, chosen) = time(platform, count, doubles, (Transport::Auto, rounds))?;
        row.extend([ns(took), chosen.to_string().into()]);
        sheet.row(row);
    }
    Ok(sheet)
}

/// Returns the nanoseconds of an update of two faces, and the transport that performs it; as the
/// best of several series of at most `rounds` updates.
fn time(
    platform: Option<&Platform>,
    count: usize,
    doubles: usize,
    (transport, rounds): (Transport, u32),
) -> Result<(f64, Transport), Box<dyn Error>> {
    let program = async |fabric: Fabric| -> ProgramResult<(f64, Transport)> {
        reflects(&fabric, count, doubles, (transport, rounds)).await
    };
    let outs = match platform {
        None => Threads::new(2).run(&program)?,
        Some(platform) => Job::new(platform, 2).run(&program)?.outs,
    };
    Ok(outs.into_iter().next().ok_or("there are two ranks")?)
}

/// A ring of two nodes, each with faces of `count` blocks of `doubles` doubles on both sides.
async fn reflects(
    fabric: &Fabric,
    count: usize,
    doubles: usize,
    (transport, most): (Transport, u32),
) -> ProgramResult<(f64, Transport)> {
    let mut set = NodeSet::new(Group::world(fabric).await?, Nodes::new(&[2], Order::LastFastest)?)?;
    let mapping = mapping(&set, count, doubles)?;
    let array: Array<f64> = set.array(&mapping)?;
    let reflect = Reflect::widths(&[Widths::NONE, Widths::WHOLE.periodic()]).by(transport);
    let mut schedule = Schedule::new(&mut set, &[&array as &dyn Reflected], &reflect).await?;
    let (mut best, rounds) = (Duration::MAX, if doubles * count > 1024 { most.min(40) } else { most });
    for _ in 0..5 {
        set.barrier().await?;
        let begun = fabric.now();
        for _ in 0..rounds {
            schedule.start().await?;
            schedule.wait().await?;
        }
        best = best.min(Duration::from_nanos(fabric.now().picos_since(begun) / 1000));
    }
    set.barrier().await?;
    Ok((best.as_secs_f64() * 1e9 / f64::from(rounds), schedule.explain().transport))
}

/// Rows of which each node has one and a half times as many elements as the shadow is wide.
fn mapping(set: &NodeSet, count: usize, doubles: usize) -> ProgramResult<Mapping> {
    let (rows, columns) = (count as i64, 4 * doubles as i64);
    let template = Template::new(&(0..columns), &[Format::Block], set.nodes())?;
    let aligned = template.align(&[0..rows, 0..columns], &[Align::Collapsed, Align::with(0)])?;
    Ok(aligned.shadow(&[Shadow::NONE, Shadow::of(doubles)])?)
}
