//! `onesided reproduce`.

use crate::arguments::Reproduce;
use observe::{Output, print, say};
use repro::{
    JobRecord, ReproError, Traced,
    acp_paper::{self, AcpPlan},
    figures::{self, Paper},
    fmpl_paper::{self, FmplPlan},
    lock_paper::{self, LockPlan},
    outcome::Row,
    prdma_paper::{self, PrdmaPlan},
    progress::Progress,
    provenance::Provenance,
    report::{self, Results},
    table, unpublished,
};
use std::{error::Error, io::Write as _, path::Path, process::ExitCode};
use tofu2_sim::virt::Timeline;

/// Simulates, compares and prints. The exit code is 1 if `--check` found a miss.
pub(crate) fn reproduce(options: &Reproduce) -> Result<ExitCode, Box<dyn Error>> {
    if options.trace_forms {
        for form in prdma_paper::forms()? {
            print(&format!("{}\n", form.text()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(paper) = options.paper.filter(|paper| !paper.simulated()) {
        if options.all {
            // Listing needs no simulation.
            let rows: Vec<Row> = figures::of(paper).iter().map(Row::unsimulated).collect();
            return output(options, Outputs::open(options)?.json, &rows, None).map(|()| ExitCode::SUCCESS);
        }
        return Err(ReproError::NotSimulated { paper }.into());
    }

    let plans = Plans::of(options)?;
    let outputs = Outputs::open(options)?;
    let mut progress = Progress::stderr();
    progress.expect(plans.jobs());
    let lock = plans.lock.as_ref().map(|plan| lock_paper::run(plan, &mut progress)).transpose()?;
    let acp = plans.acp.as_ref().map(|plan| acp_paper::run(plan, &mut progress)).transpose()?;
    let prdma = plans.prdma.as_ref().map(|plan| prdma_paper::run(plan, &mut progress)).transpose()?;
    let fmpl = plans.fmpl.as_ref().map(|plan| fmpl_paper::run(plan, &mut progress)).transpose()?;
    let mut rows: Vec<Row> = lock.iter().flat_map(lock_paper::compare).collect();
    rows.extend(acp.iter().flat_map(acp_paper::compare));
    rows.extend(prdma.iter().flat_map(prdma_paper::compare));
    rows.extend(fmpl.iter().flat_map(fmpl_paper::compare));
    let of_lock = lock.iter().flat_map(|runs| runs.jobs());
    let of_acp = acp.iter().flat_map(|runs| runs.jobs());
    let of_prdma = prdma.iter().flat_map(|runs| runs.runs.iter().map(|run| &run.job));
    let of_fmpl = fmpl.iter().flat_map(|runs| runs.jobs());
    let made = Provenance {
        command: command(options),
        seed: options.seed,
        quick: plans.less(),
        jobs: of_lock.chain(of_acp).chain(of_prdma).chain(of_fmpl).cloned().collect::<Vec<JobRecord>>(),
    };
    if let Some(out) = outputs.trace {
        let of_lock = lock.as_ref().and_then(|runs| runs.timeline.as_ref());
        let of_acp = acp.as_ref().and_then(|runs| runs.timeline.as_ref());
        let of_prdma = prdma.as_ref().and_then(|runs| runs.timeline.as_ref());
        let of_fmpl = fmpl.as_ref().and_then(|runs| runs.timeline.as_ref());
        trace(out, options, of_lock.or(of_acp).or(of_prdma).or(of_fmpl))?;
    }
    if let Some(out) = outputs.report {
        let results = Results { lock: lock.as_ref(), acp: acp.as_ref(), prdma: prdma.as_ref(), fmpl: fmpl.as_ref() };
        let (page, path) = (report::render(results, &rows, &made)?, out.path().to_owned());
        out.write(|mut file| file.write_all(page.as_bytes()))?;
        say(format_args!("report: {}", path.display()));
    }
    let misses = rows.iter().filter(|row| row.verdict().fails()).map(miss).collect::<Vec<_>>();
    if options.all {
        let simulated: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        rows.extend(figures::all().filter(|f| !simulated.iter().any(|id| id == f.id)).map(Row::unsimulated));
    }
    output(options, outputs.json, &rows, Some(&made))?;
    if options.json.as_deref() != Some(Path::new("-")) {
        if let Some(runs) = &lock {
            print(&unpublished::what_if(&runs.what_if))?;
            print(&unpublished::stencils(&runs.stencils))?;
        }
        if let Some(runs) = &acp {
            print(&unpublished::global_adds(runs))?;
            print(&unpublished::disturbances(runs))?;
        }
        if let Some(runs) = &prdma {
            print(&unpublished::exchanges(runs))?;
        }
        if let Some(runs) = &fmpl {
            print(&unpublished::collectives(runs))?;
        }
    }

    if options.check && !misses.is_empty() {
        for miss in misses {
            say(format_args!("check: {miss}"));
        }
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// The plans of the papers that are asked for. They run in this order, and their jobs are numbered
/// consecutively.
#[derive(Debug)]
struct Plans {
    lock: Option<LockPlan>,
    acp: Option<AcpPlan>,
    prdma: Option<PrdmaPlan>,
    fmpl: Option<FmplPlan>,
}

impl Plans {
    /// Returns the plans that the options ask for.
    ///
    /// # Errors
    /// A message if `--trace-job` names a job that leaves no timeline.
    fn of(options: &Reproduce) -> Result<Plans, String> {
        let papers = options.papers();
        let (shapes, seed) = (options.shapes.into(), options.seed);
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
        let mut plans = Plans { lock, acp, prdma, fmpl };
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
            plan.traced = job(plan.jobs.len(), plan.jobs.len());
        }
        if let Some(plan) = &mut self.fmpl {
            plan.traced = job(plan.jobs(), plan.jobs());
        }
        let lock = self.lock.as_ref().and_then(|plan| plan.traced);
        let acp = self.acp.as_ref().and_then(|plan| plan.traced);
        let prdma = self.prdma.as_ref().and_then(|plan| plan.traced);
        match lock.or(acp).or(prdma).or(self.fmpl.as_ref().and_then(|plan| plan.traced)) {
            Some(_) => Ok(()),
            None => {
                Err(format!("--trace-job {number}: jobs with a timeline have the numbers {}", possible.join(" and ")))
            }
        }
    }

    /// Returns the number of jobs of all plans.
    fn jobs(&self) -> usize {
        let of_prdma = self.prdma.as_ref().map_or(0, |plan| plan.jobs.len());
        let of_fmpl = self.fmpl.as_ref().map_or(0, FmplPlan::jobs);
        self.lock.as_ref().map_or(0, LockPlan::jobs) + self.acp.as_ref().map_or(0, AcpPlan::jobs) + of_prdma + of_fmpl
    }

    /// Returns what is less than in the papers, if anything is.
    fn less(&self) -> Option<String> {
        let lock = self.lock.as_ref().filter(|plan| plan.quick);
        let acp = self.acp.as_ref().filter(|plan| plan.quick);
        let prdma = self.prdma.as_ref().filter(|plan| plan.quick);
        let lock = lock.map(|plan| format!("{} pairs per rank instead of {}", plan.pairs, LockPlan::PAPER_PAIRS));
        let acp = acp.map(|plan| format!("{} adds instead of {}", plan.count, AcpPlan::COUNT));
        let prdma = prdma.map(|_| format!("sizes in steps of 8 KiB instead of {} B", PrdmaPlan::STEP));
        let fmpl = self.fmpl.as_ref().filter(|plan| plan.quick);
        let fmpl = fmpl.map(|plan| format!("{} sizes of messages instead of {}", plan.sizes.len(), FmplPlan::SIZES));
        let all: Vec<String> = lock.into_iter().chain(acp).chain(prdma).chain(fmpl).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// The files that are asked for, open, so that what can't be written is known before the minutes
/// that a simulation takes.
struct Outputs {
    /// `None` for standard output.
    json: Option<Output>,
    trace: Option<Output>,
    report: Option<Output>,
}

impl Outputs {
    fn open(options: &Reproduce) -> Result<Outputs, Box<dyn Error>> {
        let open = |path: Option<&Path>| path.map(Output::open).transpose();
        let page = options.report.as_deref().map(report::page_in).transpose()?;
        Ok(Outputs {
            json: open(options.json.as_deref().filter(|path| *path != Path::new("-")))?,
            trace: open(options.trace.as_deref())?,
            report: open(page.as_deref())?,
        })
    }
}

/// Writes the timeline of one job.
fn trace(out: Output, options: &Reproduce, timeline: Option<&Timeline>) -> Result<(), Box<dyn Error>> {
    let Some(timeline) = timeline else {
        return Err(
            format!("--trace-job {}: there is no such job; progress shows their numbers", options.trace_job).into()
        );
    };
    let path = out.path().to_owned();
    out.write(|file| timeline.write_labelled(file, prdma_paper::label))?;
    let (kept, dropped, job) = (timeline.len(), timeline.dropped(), options.trace_job);
    say(format_args!("trace: {}, {kept} entries of job {job}, {dropped} later ones left out", path.display()));
    Ok(())
}

fn output(
    options: &Reproduce,
    json: Option<Output>,
    rows: &[Row],
    made: Option<&Provenance>,
) -> Result<(), Box<dyn Error>> {
    if options.json.is_some() {
        let mut text = serde_json::to_string_pretty(rows)?;
        text.push('\n');
        let Some(json) = json else { return Ok(print(&text)?) };
        json.write(|mut file| file.write_all(text.as_bytes()))?;
    }
    Ok(print(&table::render(rows, made))?)
}

fn miss(row: &Row) -> String {
    format!(
        "{}{}: {} is outside {}{}",
        row.id,
        row.case.as_ref().map_or(String::new(), |case| format!(" [{case}]")),
        row.simulated.map_or("nothing".into(), |value| format!("{value} {}", row.unit)).trim_end(),
        row.bound.map_or("no bound".into(), |bound| bound.to_string()),
        row.published.map_or(String::new(), |value| format!(" of {value} {}", row.unit)).trim_end(),
    )
}

/// Returns the command that makes the same result again.
fn command(options: &Reproduce) -> String {
    let mut command = "cargo reproduce".to_owned();
    if let Some(paper) = options.paper {
        command.push_str(&format!(" --paper {paper}"));
    }
    command.push_str(&format!(" --seed {}", options.seed));
    if lock_paper::Shapes::from(options.shapes) == lock_paper::Shapes::All {
        command.push_str(" --shapes all");
    }
    if options.quick {
        command.push_str(" --quick");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_names_value_bound_and_figure() {
        let figure = figures::find("L1").expect("L1");
        assert_eq!(miss(&Row::simulated(figure, 2.6)), "L1: 2.6 µs is outside ±10 % of 2.3 µs");
        let figure = figures::find("L8").expect("L8");
        let text = miss(&Row::simulated(figure, 0.5).case("8×16"));
        assert!(text.starts_with("L8 [8×16]: 0.5 is outside factor 2 of 0.045"), "{text}");
    }
}
