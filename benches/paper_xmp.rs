//! The XcalableMP paper: its orderings in virtual time, and reflects of SCALE-LES's arrays between threads of this
//! machine.
//!
//! Run with `cargo bench --bench paper_xmp`.

mod paper;

use paper::Reproduced;
use repro::{
    ReproError,
    figures::Paper,
    progress::Progress,
    xmp_paper::{self, XmpPlan},
};
use std::thread;

fn main() {
    paper::published(Paper::Xmp, reproduce);
    #[cfg(target_os = "linux")]
    threads::bench();
}

fn reproduce(smoke: bool) -> Result<Reproduced, ReproError> {
    let plan = if smoke { XmpPlan::quick(0) } else { XmpPlan::paper(0) }.published();
    let flat = XmpPlan { nodes: Vec::new(), ..plan.clone() };
    let hybrid = XmpPlan { flat: Vec::new(), ..plan };
    let (flat, hybrid) = thread::scope(|scope| {
        let flat = scope.spawn(|| xmp_paper::run(&flat, &mut Progress::silent()));
        let hybrid = xmp_paper::run(&hybrid, &mut paper::progress());
        (flat.join().expect("no panic"), hybrid)
    });
    let mut runs = hybrid?;
    let flat = flat?;
    runs.plan.flat = flat.plan.flat;
    runs.flat = flat.flat;
    Ok(Reproduced { rows: xmp_paper::compare(&runs), jobs: runs.jobs().cloned().collect() })
}

#[cfg(target_os = "linux")]
mod threads {
    use super::paper::threads::{Machine, Operations, criterion, in_jobs, run};
    use repro::{
        figures::Paper,
        workloads::{
            Together,
            dynamics::SHADOW,
            reflects::{Dynamics, Grid, Library, Order, Transport, dynamics},
        },
        xmp_paper::XmpPlan,
    };
    use std::{num::NonZeroUsize, time::Duration};

    /// Only arrays really pack; messages and puts are sent from separate memory.
    const LIBRARIES: [(&str, Library); 6] = [
        ("messages", Library::Messages),
        ("datatypes", Library::Gathered),
        ("datatypes, block by block", Library::Scattered),
        ("packed", Library::Arrays(Transport::Packed)),
        ("blocks", Library::Arrays(Transport::Blocks)),
        ("barriers", Library::Arrays(Transport::Barriers)),
    ];

    pub(super) fn bench() {
        let mut criterion = criterion();
        let mut operations = Operations::new(&mut criterion, Paper::Xmp);
        for columns in [16, 128] {
            let libraries = LIBRARIES;
            let reflects =
                libraries.map(|(name, library)| (name.to_owned(), move |times| reflect(columns, library, times)));
            // A column of the arrays has an additional element.
            let block = [XmpPlan::VERTICAL + 1, columns, SHADOW];
            let limit = |machine: &Machine, times| machine.border(block, times);
            let name = format!("reflect, {columns} × {columns} columns");
            operations.beside(&name, ("flags and memcpy", limit), reflects);
        }
    }

    /// Returns the time of the slower of two ranks with `columns` × `columns` columns each. Faces in i are sent to the
    /// other rank, faces in j to the rank itself.
    fn reflect(columns: usize, library: Library, times: u64) -> Duration {
        let nodes = [2, 1].map(|nodes| NonZeroUsize::new(nodes).expect("nodes"));
        let horizontal = nodes.map(|nodes| nodes.get() * columns);
        let grid = Grid { horizontal, vertical: XmpPlan::VERTICAL, nodes };
        in_jobs(times, 10_000, |stages| {
            let (variables, warm_up, steps) = (1, 2, 1);
            let (cell, imbalance, order, threads) = (0, 0, Order::InTurn, false);
            let what = Dynamics { grid, variables, stages, warm_up, steps, cell, imbalance, library, order, threads };
            let program = async |fabric| dynamics(fabric, what, Together::Barrier).await;
            let outs = run(2, &program);
            outs.iter().map(|took| took.all).max().unwrap_or(0)
        })
    }
}
