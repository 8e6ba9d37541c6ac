//! The plans of the papers that are asked for.

use crate::arguments::Reproduce;
use repro::{Traced, figures::Paper, lock_paper::LockPlan, prdma_paper::PrdmaPlan};
use tofu2_sim::virt::Timeline;

/// By paper. They run in this order, and their jobs are numbered through.
#[derive(Debug)]
pub(crate) struct Plans {
    pub(crate) lock: Option<LockPlan>,
    pub(crate) prdma: Option<PrdmaPlan>,
}

impl Plans {
    /// What the options ask for.
    ///
    /// # Errors
    /// A `--trace-job` that leaves no timeline, in words.
    pub(crate) fn of(options: &Reproduce) -> Result<Plans, String> {
        let papers = options.papers();
        let (shapes, seed) = (options.shapes.into(), options.seed);
        let lock = papers.contains(&Paper::Lock).then(|| match options.quick {
            true => LockPlan::quick(shapes, seed),
            false => LockPlan::paper(shapes, seed),
        });
        let prdma = papers.contains(&Paper::Prdma).then(|| match options.quick {
            true => PrdmaPlan::quick(seed),
            false => PrdmaPlan::paper(seed),
        });
        let mut plans = Plans { lock, prdma };
        if options.trace.is_some() {
            plans.trace(options.trace_job.get())?;
        }
        Ok(plans)
    }

    fn trace(&mut self, number: usize) -> Result<(), String> {
        let (mut before, mut possible) = (0, Vec::new());
        let mut job = |jobs: usize, traceable: usize| {
            let job = number.checked_sub(before).filter(|job| (1..=traceable).contains(job));
            possible.push(format!("{} to {}", before + 1, before + traceable));
            before += jobs;
            job.map(|job| Traced { job, entries: Timeline::ENTRIES })
        };
        if let Some(plan) = &mut self.lock {
            plan.traced = job(plan.jobs(), plan.traceable());
        }
        if let Some(plan) = &mut self.prdma {
            plan.traced = job(plan.jobs.len(), plan.jobs.len());
        }
        let lock = self.lock.as_ref().and_then(|plan| plan.traced);
        match lock.or(self.prdma.as_ref().and_then(|plan| plan.traced)) {
            Some(_) => Ok(()),
            None => {
                Err(format!("--trace-job {number}: jobs with a timeline have the numbers {}", possible.join(" and ")))
            }
        }
    }

    /// Jobs of all of them.
    pub(crate) fn jobs(&self) -> usize {
        self.lock.as_ref().map_or(0, LockPlan::jobs) + self.prdma.as_ref().map_or(0, |plan| plan.jobs.len())
    }

    /// What is less than in the papers, if anything is.
    pub(crate) fn less(&self) -> Option<String> {
        let lock = self.lock.as_ref().filter(|plan| plan.quick);
        let prdma = self.prdma.as_ref().filter(|plan| plan.quick);
        let lock = lock.map(|plan| format!("{} pairs per rank instead of {}", plan.pairs, LockPlan::PAPER_PAIRS));
        let prdma = prdma.map(|_| format!("sizes in steps of 8 KiB instead of {} B", PrdmaPlan::STEP));
        let all: Vec<String> = lock.into_iter().chain(prdma).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}
