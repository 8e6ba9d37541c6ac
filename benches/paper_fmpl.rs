//! The FMPL paper: its published figures in virtual time, and messages by matching areas between threads of this
//! machine.
//!
//! Run with `cargo bench --bench paper_fmpl`.

mod paper;

use paper::Reproduced;
use repro::{
    ReproError,
    figures::Paper,
    fmpl_paper::{self, FmplPlan},
};

fn main() {
    paper::published(Paper::Fmpl, reproduce);
    #[cfg(target_os = "linux")]
    threads::bench();
}

fn reproduce(smoke: bool) -> Result<Reproduced, ReproError> {
    let plan = if smoke { FmplPlan::quick(0) } else { FmplPlan::paper(0) }.published();
    let runs = fmpl_paper::run(&plan, &mut paper::progress())?;
    Ok(Reproduced { rows: fmpl_paper::compare(&runs), jobs: runs.jobs().cloned().collect() })
}

#[cfg(target_os = "linux")]
mod threads {
    use super::paper::threads::{Machine, Operations, criterion, in_jobs, run};
    use repro::{
        figures::Paper,
        workloads::{
            Together,
            messages::{Library, ping_pong, posted_receives},
        },
    };

    pub(super) fn bench() {
        let mut criterion = criterion();
        let mut operations = Operations::new(&mut criterion, Paper::Fmpl);
        for bytes in [8, 1 << 10, 64 << 10, 1 << 20] {
            let name = format!("message, {bytes} B");
            let limit = |machine: &Machine, times| machine.message(bytes, times);
            let message = move |times| in_jobs(times, 20_000, |rounds| one_way(bytes, rounds) * u64::from(rounds));
            operations.beside(&name, ("copy and flag", limit), [(String::new(), message)]);
        }
        // A job measures a few messages, and represents more.
        let message = |times| in_jobs(times, 100_000, |messages| behind_600() * u64::from(messages));
        let flag = |machine: &Machine, times| machine.message(0, times);
        operations.beside("message, 4 B, 600 receives posted", ("flag", flag), [(String::new(), message)]);
    }

    /// Returns the picoseconds of a message.
    fn one_way(bytes: usize, rounds: u32) -> u64 {
        let program = async |fabric| ping_pong(fabric, Library::Fmpl, vec![bytes], rounds, Together::Barrier).await;
        run(2, &program)[0][0]
    }

    /// Returns the picoseconds of a message to one of 600 posted receives.
    fn behind_600() -> u64 {
        let program = async |fabric| posted_receives(fabric, Library::Fmpl, 600, Together::Barrier).await;
        run(2, &program)[0].latency
    }
}
