//! The simulations of `onesided reproduce`: the papers' plans, on all cores.

use crate::plans::Plans;
use repro::{
    ReproError, acp_paper,
    acp_paper::AcpRuns,
    fmpl_paper,
    fmpl_paper::FmplRuns,
    lock_paper,
    lock_paper::LockRuns,
    prdma_paper,
    prdma_paper::PrdmaRuns,
    progress::{Display, Progress},
    xmp_paper,
    xmp_paper::XmpRuns,
};
use std::{
    num::NonZeroUsize,
    sync::{Mutex, OnceLock, PoisonError},
    thread,
};

/// The results of the plans that there are.
#[derive(Debug)]
pub(crate) struct Runs {
    pub(crate) lock: Option<LockRuns>,
    pub(crate) acp: Option<AcpRuns>,
    pub(crate) prdma: Option<PrdmaRuns>,
    pub(crate) fmpl: Option<FmplRuns>,
    pub(crate) xmp: Option<XmpRuns>,
}

/// A plan to be run.
type Task<'a> = Box<dyn FnOnce() -> Result<(), ReproError> + Send + 'a>;

/// Runs all plans, each on one thread: jobs of different papers do not affect each other.
///
/// # Errors
/// The error of the first job that failed. Plans that had not begun do not run.
pub(crate) fn run(plans: &Plans) -> Result<Runs, ReproError> {
    let jobs = plans.jobs_by_paper();
    let display = Display::stderr(jobs.iter().filter(|jobs| **jobs > 0).count(), plans.jobs());
    let progress = |name, paper: usize| display.plan(name, jobs[..paper].iter().sum());
    let (lock, acp, prdma, fmpl, xmp) =
        (OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new(), OnceLock::new());
    // The longest last, where workers take them.
    let tasks = [
        task(&plans.acp, acp_paper::run, progress("acp", 1), &acp),
        task(&plans.fmpl, fmpl_paper::run, progress("fmpl", 3), &fmpl),
        task(&plans.prdma, prdma_paper::run, progress("prdma", 2), &prdma),
        task(&plans.xmp, xmp_paper::run, progress("xmp", 4), &xmp),
        task(&plans.lock, lock_paper::run, progress("lock", 0), &lock),
    ];
    on_all_cores(tasks.into_iter().flatten().collect())?;
    Ok(Runs {
        lock: lock.into_inner(),
        acp: acp.into_inner(),
        prdma: prdma.into_inner(),
        fmpl: fmpl.into_inner(),
        xmp: xmp.into_inner(),
    })
}

/// Runs tasks on all cores, the last one first.
///
/// # Errors
/// The error of the first task that failed. Those that had not begun do not run.
fn on_all_cores(tasks: Vec<Task<'_>>) -> Result<(), ReproError> {
    let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get).min(tasks.len());
    let (tasks, failed) = (Mutex::new(tasks), OnceLock::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while failed.get().is_none() {
                    let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).pop();
                    let Some(task) = next else { break };
                    if let Err(error) = task() {
                        // The first error is the one reported.
                        _ = failed.set(error);
                    }
                }
            });
        }
    });
    failed.into_inner().map_or(Ok(()), Err)
}

fn task<'a, P: Sync, R: Send + Sync>(
    plan: &'a Option<P>,
    run: fn(&P, &mut Progress) -> Result<R, ReproError>,
    mut progress: Progress,
    into: &'a OnceLock<R>,
) -> Option<Task<'a>> {
    let plan = plan.as_ref()?;
    Some(Box::new(move || {
        let runs = run(plan, &mut progress)?;
        _ = into.set(runs);
        Ok(())
    }))
}
