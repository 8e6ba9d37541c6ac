//! `onesided reproduce`.

use crate::{
    arguments::Reproduce,
    page::Page,
    plans::Plans,
    runs::{self, Runs},
};
use observe::{Output, emit, print};
use repro::{
    JobRecord, acp_paper, figures, fmpl_paper, lock_paper,
    outcome::Row,
    prdma_paper,
    provenance::Provenance,
    report::{self, Results},
    table, unpublished, xmp_paper,
};
use std::{error::Error, io::Write as _, path::Path, process::ExitCode};
use tofu2_sim::virt::Timeline;

/// Simulates, compares and prints. The exit code is 1 if `--check` found a verdict that is not the
/// recorded one.
pub(crate) fn reproduce(options: &Reproduce) -> Result<ExitCode, Box<dyn Error>> {
    if options.trace_forms {
        for form in prdma_paper::forms()? {
            print(&format!("{}\n", form.text()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let plans = Plans::of(options)?;
    let outputs = Outputs::open(options)?;
    let page = options.docs.as_deref().map(Page::read).transpose()?;
    let Runs { lock, acp, prdma, fmpl, xmp } = runs::run(&plans)?;
    let mut rows: Vec<Row> = lock.iter().flat_map(lock_paper::compare).collect();
    rows.extend(acp.iter().flat_map(acp_paper::compare));
    rows.extend(prdma.iter().flat_map(prdma_paper::compare));
    rows.extend(fmpl.iter().flat_map(fmpl_paper::compare));
    rows.extend(xmp.iter().flat_map(xmp_paper::compare));
    let of_lock = lock.iter().flat_map(|runs| runs.jobs());
    let of_acp = acp.iter().flat_map(|runs| runs.jobs());
    let of_prdma = prdma.iter().flat_map(|runs| runs.jobs());
    let of_fmpl = fmpl.iter().flat_map(|runs| runs.jobs());
    let of_xmp = xmp.iter().flat_map(|runs| runs.jobs());
    let made = Provenance {
        command: command(options),
        seed: options.seed,
        quick: plans.less(),
        jobs: of_lock.chain(of_acp).chain(of_prdma).chain(of_fmpl).chain(of_xmp).cloned().collect::<Vec<JobRecord>>(),
    };
    if let Some(out) = outputs.trace {
        let of_lock = lock.as_ref().and_then(|runs| runs.timeline.as_ref());
        let of_acp = acp.as_ref().and_then(|runs| runs.timeline.as_ref());
        let of_prdma = prdma.as_ref().and_then(|runs| runs.timeline.as_ref());
        let of_fmpl = fmpl.as_ref().and_then(|runs| runs.timeline.as_ref());
        let of_xmp = xmp.as_ref().and_then(|runs| runs.timeline.as_ref());
        trace(out, options, of_lock.or(of_acp).or(of_prdma).or(of_fmpl).or(of_xmp))?;
    }
    if let Some(out) = outputs.report {
        let (lock, acp, prdma) = (lock.as_ref(), acp.as_ref(), prdma.as_ref());
        let results = Results { lock, acp, prdma, fmpl: fmpl.as_ref(), xmp: xmp.as_ref() };
        let (page, path) = (report::render(results, &rows, &made)?, out.path().to_owned());
        out.write(|mut file| file.write_all(page.as_bytes()))?;
        emit(format_args!("report: {}", path.display()));
    }
    let differing = rows.iter().filter(|row| row.differs()).map(difference).collect::<Vec<_>>();
    if options.all {
        let simulated: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
        rows.extend(figures::all().filter(|f| !simulated.iter().any(|id| id == f.id)).map(Row::unsimulated));
    }
    output(options, outputs.json, &rows, Some(&made))?;
    if options.hashes && options.json.as_deref() != Some(Path::new("-")) {
        print(&made.hashes())?;
    }
    if options.includes_what_if() && options.json.as_deref() != Some(Path::new("-")) {
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
        if let Some(runs) = &xmp {
            print(&unpublished::speed_ups(runs))?;
            print(&unpublished::barriers_and_neighbours(runs))?;
            print(&unpublished::flat_parallel(runs))?;
            print(&unpublished::what_if_reflects(runs))?;
            print(&unpublished::orderings(runs))?;
            print(&unpublished::assumed(runs))?;
        }
    }

    let is_current = match page {
        Some(page) => page.documents(options, &rows)?,
        None => true,
    };
    if options.check && !(differing.is_empty() && is_current) {
        for difference in differing {
            emit(format_args!("check: {difference}"));
        }
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// The requested output files, opened early, so that a file that can't be written is reported
/// before a simulation of several minutes.
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
    emit(format_args!("trace: {}, {kept} entries of job {job}, {dropped} later ones left out", path.display()));
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

/// Returns why a row fails the check.
fn difference(row: &Row) -> String {
    let place = if row.within == Some(true) { "within" } else { "outside" };
    format!(
        "{}{}: {} is {place} {}{}{}",
        row.id,
        row.case.as_ref().map_or(String::new(), |case| format!(" [{case}]")),
        row.simulated.map_or("nothing".into(), |value| format!("{value} {}", row.unit)).trim_end(),
        row.bound.map_or("no bound".into(), |bound| bound.to_string()),
        row.published.map_or(String::new(), |value| format!(" of {value} {}", row.unit)).trim_end(),
        if row.known_miss { "; the figure is recorded as a miss" } else { "" },
    )
}

/// Returns the command that reproduces the same result.
fn command(options: &Reproduce) -> String {
    let mut command = "cargo reproduce".to_owned();
    if let Some(paper) = options.paper {
        command.push_str(&format!(" --paper {paper}"));
    }
    command.push_str(&format!(" --seed {}", options.seed));
    if options.shapes() == lock_paper::Shapes::All {
        command.push_str(" --shapes all");
    }
    if options.quick {
        command.push_str(" --quick");
    }
    if options.includes_what_if() && !options.full {
        command.push_str(" --what-if");
    }
    if options.full {
        command.push_str(" --full");
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_value_bound_and_figure() {
        let figure = figures::find("L1").expect("L1");
        assert_eq!(difference(&Row::simulated(figure, 2.6)), "L1: 2.6 µs is outside ±10 % of 2.3 µs");
        let figure = figures::find("L8").expect("L8");
        let text = difference(&Row::simulated(figure, 0.5).case("8×16"));
        assert!(text.starts_with("L8 [8×16]: 0.5 is outside factor 2 of 0.045"), "{text}");
        let figure = figures::find("L10").expect("L10");
        let text = difference(&Row::simulated(figure, 1.0));
        assert_eq!(text, "L10: 1 s is within ±10 % of 1 s; the figure is recorded as a miss");
    }
}
