//! The time of packing by several threads of one rank, which sets [`Threads::ABOVE`].

use super::mapping;
use crate::{
    output::Steps,
    sheet::{Entry, Sheet, ns},
};
use core::time::Duration;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::error::Error;
use tofu2_sim::shm;
use xmp_reflect::{Array, NodeSet, Nodes, Order, Reflect, Reflected, Schedule, Threads, Transport, Widths};

/// The faces: the number of blocks, and of doubles in a block.
const FACES: [(usize, usize); 10] = [
    (64, 16),
    (256, 16),
    (1024, 4),
    (1024, 16),
    (256, 128),
    (1024, 64),
    (1024, 128),
    (4096, 64),
    (1024, 1024),
    (16_384, 64),
];

/// The numbers of threads.
const THREADS: [usize; 2] = [1, 2];

pub(super) fn sheet(quick: bool, steps: &mut Steps) -> Result<Sheet, Box<dyn Error>> {
    let title = "Packing by threads of one rank of this machine";
    let names = THREADS.map(|threads| format!("{threads} thread{}", if threads == 1 { "" } else { "s" }));
    let columns = ["blocks of", "doubles", "bytes of a face"].map(String::from).into_iter().chain(names);
    let mut sheet = Sheet::new(title, columns);
    let (faces, rounds) = if quick { (&FACES[..1], 4) } else { (&FACES[..], 400) };
    steps.expect(faces.len());
    for &(count, doubles) in faces {
        steps.begin(format_args!("{title}, {count} blocks of {doubles}"));
        let mut row: Vec<Entry> = vec![count.into(), doubles.into(), (count * doubles * 8).into()];
        for threads in THREADS {
            row.push(ns(time(count, doubles, threads, rounds)?));
        }
        sheet.row(row);
    }
    Ok(sheet)
}

/// Returns the nanoseconds of an update of two faces of one node, which it packs, puts to itself
/// and unpacks; as the best of several series of at most `rounds` updates.
fn time(count: usize, doubles: usize, threads: usize, rounds: u32) -> Result<f64, Box<dyn Error>> {
    let program = async |fabric: Fabric| -> ProgramResult<f64> {
        let set = NodeSet::new(Group::world(&fabric).await?, Nodes::new(&[1], Order::LastFastest)?)?;
        let mut set = set.with_packing(Threads::new(threads)?.packing_above(0));
        let array: Array<f64> = set.array(&mapping(&set, count, doubles)?)?;
        let reflect = Reflect::widths(&[Widths::NONE, Widths::WHOLE.periodic()]).by(Transport::Packed);
        let mut schedule = Schedule::new(&mut set, &[&array as &dyn Reflected], &reflect).await?;
        let rounds = if doubles * count > 16_384 { rounds.min(40) } else { rounds };
        let mut best = Duration::MAX;
        for _ in 0..7 {
            let begun = fabric.now();
            for _ in 0..rounds {
                schedule.start().await?;
                schedule.wait().await?;
            }
            best = best.min(Duration::from_nanos(fabric.now().picos_since(begun) / 1000));
        }
        Ok(best.as_secs_f64() * 1e9 / f64::from(rounds))
    };
    Ok(shm::Threads::new(1).run(&program)?.into_iter().next().ok_or("there is a rank")?)
}
