//! The paper on persistent exchanges: its published figures in virtual time, and start and wait of an exchange between
//! threads of this machine.
//!
//! Run with `cargo bench --bench paper_prdma`.

mod paper;

use paper::Reproduced;
use repro::{
    ReproError,
    figures::Paper,
    prdma_paper::{self, PrdmaPlan},
};

fn main() {
    paper::published(Paper::Prdma, reproduce);
    #[cfg(target_os = "linux")]
    threads::bench();
}

fn reproduce(smoke: bool) -> Result<Reproduced, ReproError> {
    let plan = if smoke { PrdmaPlan::quick(0) } else { PrdmaPlan::paper(0) }.published();
    let runs = prdma_paper::run(&plan, &mut paper::progress())?;
    Ok(Reproduced { rows: prdma_paper::compare(&runs), jobs: runs.jobs().cloned().collect() })
}

#[cfg(target_os = "linux")]
mod threads {
    use super::paper::threads::{Machine, Operations, criterion, in_jobs, run};
    use onesided::prdma::{EndOfData, Form};
    use repro::{
        figures::Paper,
        workloads::{Exchange, Kept, Together, exchanges},
    };
    use std::time::Duration;

    pub(super) fn bench() {
        let mut criterion = criterion();
        let mut operations = Operations::new(&mut criterion, Paper::Prdma);
        for bytes in [0, 8 << 10, 64 << 10] {
            let forms = [("fast", Form::Fast), ("mrc", Form::Mrc), ("cpu", Form::Cpu)];
            let forms = forms.map(|(name, form)| (name.to_owned(), move |times| exchange(form, bytes, times)));
            let limit = |machine: &Machine, times| machine.exchange(bytes, times);
            operations.beside(&format!("exchange, {bytes} B"), ("flags and memcpy", limit), forms);
        }
    }

    /// Returns the time of the slower of two ranks, each of which is both neighbours of the other.
    fn exchange(form: Form, bytes: usize, times: u64) -> Duration {
        in_jobs(times, 100_000, |iterations| {
            let (grid, sizes) = (vec![2], vec![bytes]);
            let (periodic, corners, end, kept, warm_up) = (true, false, EndOfData::WithData, Kept::Persistent, 10);
            let exchange = Exchange { grid, periodic, corners, form, end, kept, sizes, warm_up, iterations };
            let program = async |fabric| exchanges(fabric, exchange.clone(), Together::Barrier).await;
            let outs = run(2, &program);
            outs.iter().map(|rank| rank[0]).max().unwrap_or(0)
        })
    }
}
