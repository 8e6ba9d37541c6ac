//! The plans of `onesided reproduce`.

use crate::arguments::Reproduce;
use repro::{
    Traced, acp_paper::AcpPlan, figures::Paper, fmpl_paper::FmplPlan, lock_paper::LockPlan, prdma_paper::PrdmaPlan,
    xmp_paper::XmpPlan,
};
use tofu2_sim::virt::Timeline;

/// The plans of the requested papers. Their jobs are numbered consecutively in this order.
#[derive(Debug)]
pub(crate) struct Plans {
    pub(crate) lock: Option<LockPlan>,
    pub(crate) acp: Option<AcpPlan>,
    pub(crate) prdma: Option<PrdmaPlan>,
    pub(crate) fmpl: Option<FmplPlan>,
    pub(crate) xmp: Option<XmpPlan>,
}

impl Plans {
    /// Returns the plans requested by the options.
    ///
    /// # Errors
    /// A message if `--trace-job` selects a job that does not record a timeline.
    pub(crate) fn of(options: &Reproduce) -> Result<Plans, String> {
        let papers = options.papers();
        let (shapes, seed) = (options.shapes(), options.seed);
        let lock = papers.contains(&Paper::Lock).then(|| match options.quick {
            true => LockPlan::quick(shapes, seed),
            false => LockPlan::paper(shapes, seed),
        });
        let acp = papers.contains(&Paper::Acp).then(|| match options.quick {
            true => AcpPlan::quick(seed),
            false => AcpPlan::paper(seed),
        });
        let prdma = papers.contains(&Paper::Prdma).then(|| match options.quick {
            true => PrdmaPlan::quick(seed),
            false => PrdmaPlan::paper(seed),
        });
        let fmpl = papers.contains(&Paper::Fmpl).then(|| match options.quick {
            true => FmplPlan::quick(seed),
            false => FmplPlan::paper(seed),
        });
        let xmp = papers.contains(&Paper::Xmp).then(|| match (options.quick, options.full) {
            (true, _) => XmpPlan::quick(seed),
            (false, true) => XmpPlan::full(seed),
            (false, false) => XmpPlan::paper(seed),
        });
        let mut plans = Plans { lock, acp, prdma, fmpl, xmp };
        if !options.includes_what_if() {
            plans = Plans {
                lock: plans.lock.map(LockPlan::published),
                acp: plans.acp.map(AcpPlan::published),
                prdma: plans.prdma.map(PrdmaPlan::published),
                fmpl: plans.fmpl.map(FmplPlan::published),
                xmp: plans.xmp.map(XmpPlan::published),
            };
        }
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
        if let Some(plan) = &mut self.acp {
            plan.traced = job(plan.jobs(), plan.jobs());
        }
        if let Some(plan) = &mut self.prdma {
            plan.traced = job(plan.count(), plan.count());
        }
        if let Some(plan) = &mut self.fmpl {
            plan.traced = job(plan.jobs(), plan.jobs());
        }
        if let Some(plan) = &mut self.xmp {
            plan.traced = job(plan.jobs(), plan.jobs());
        }
        let lock = self.lock.as_ref().and_then(|plan| plan.traced);
        let acp = self.acp.as_ref().and_then(|plan| plan.traced);
        let prdma = self.prdma.as_ref().and_then(|plan| plan.traced);
        let fmpl = self.fmpl.as_ref().and_then(|plan| plan.traced);
        match lock.or(acp).or(prdma).or(fmpl).or(self.xmp.as_ref().and_then(|plan| plan.traced)) {
            Some(_) => Ok(()),
            None => {
                Err(format!("--trace-job {number}: jobs with a timeline have the numbers {}", possible.join(" and ")))
            }
        }
    }

    /// Returns the number of jobs of each paper's plan.
    pub(crate) fn jobs_by_paper(&self) -> [usize; 5] {
        [
            self.lock.as_ref().map_or(0, LockPlan::jobs),
            self.acp.as_ref().map_or(0, AcpPlan::jobs),
            self.prdma.as_ref().map_or(0, PrdmaPlan::count),
            self.fmpl.as_ref().map_or(0, FmplPlan::jobs),
            self.xmp.as_ref().map_or(0, XmpPlan::jobs),
        ]
    }

    /// Returns the number of jobs of all plans.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs_by_paper().iter().sum()
    }

    /// Returns a description of the work that is reduced relative to the papers, if any.
    pub(crate) fn less(&self) -> Option<String> {
        let lock = self.lock.as_ref().filter(|plan| plan.quick);
        let acp = self.acp.as_ref().filter(|plan| plan.quick);
        let prdma = self.prdma.as_ref().filter(|plan| plan.quick);
        let lock = lock.map(|plan| format!("{} pairs per rank instead of {}", plan.pairs, LockPlan::PAPER_PAIRS));
        let acp = acp.map(|plan| format!("{} adds instead of {}", plan.count, AcpPlan::COUNT));
        let prdma = prdma.map(|_| format!("sizes in steps of 8 KiB instead of {} B", PrdmaPlan::STEP));
        let fmpl = self.fmpl.as_ref().filter(|plan| plan.quick);
        let fmpl = fmpl.map(|plan| format!("{} sizes of messages instead of {}", plan.sizes.len(), FmplPlan::SIZES));
        let xmp = self.xmp.as_ref().filter(|plan| plan.quick);
        let xmp = xmp.map(|plan| format!("reflects on {} numbers of nodes instead of 6, no ranges", plan.nodes.len()));
        let all: Vec<String> = lock.into_iter().chain(acp).chain(prdma).chain(fmpl).chain(xmp).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}
