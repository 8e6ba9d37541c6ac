//! The section of the page about atomic adds through global addresses.

use super::{html_table, key, plots};
use crate::{
    ReproError,
    acp_paper::{AcpPlan, AcpRuns, Load, initiators_in_words},
};
use std::fmt::{self, Write};

/// Plots and their subject.
pub(super) struct Section<'a> {
    runs: &'a AcpRuns,
    table: String,
    what_if: String,
    disturbance: String,
}

impl<'a> Section<'a> {
    pub(super) fn draw(runs: &'a AcpRuns) -> Result<Self, ReproError> {
        Ok(Section {
            runs,
            table: plots::adds(runs)?,
            what_if: plots::adds_what_if(runs)?,
            disturbance: plots::disturbance(runs)?,
        })
    }

    pub(super) fn write(&self, page: &mut String) -> fmt::Result {
        page.push_str(
            "<h1>ACP base layer on Tofu2</h1><p class=\"lead\">Nose, Ajima, Saga, Shida and Sumimoto, “Performance optimization of the ACP library”, section 5. \
             Two ranks on neighbouring nodes; an atomic add of 4 bytes and its completion, 1000 times.</p><h2>Table 3</h2>",
        );
        let bars = [(plots::OURS, "remote"), (plots::WAIT, "local"), (plots::THEIRS, "published")];
        write!(page, "<figure>{}", self.table)?;
        key(page, &bars)?;
        page.push_str(
            "<figcaption>hw: atomics by hardware. desc: prepared descriptors. ts: any thread may call. by: the program posts past its helper. Six of the eight local \
             values calibrate; no remote one does. Remote in conditions 1 and 2 is the delegation that runs here.</figcaption></figure>",
        );
        write!(page, "<h2>What if</h2><figure>{}", self.what_if)?;
        key(page, &bars)?;
        page.push_str(
            "<figcaption>The distance between A4 and A9 is what the communication helper costs. Predictions without a \
             published value, except for the two that are marked.</figcaption></figure>",
        );
        write!(page, "<h2>Disturbance</h2><figure>{}", self.disturbance)?;
        key(page, &Load::ALL.map(|load| (plots::load_colour(load), load.name())))?;
        page.push_str(
            "<figcaption>A rank adds to another rank's word while others have copies of 64 KiB carried out by it, one at a time each. \
             Predictions without a published value.</figcaption></figure>",
        );
        let rows = Load::ALL.map(|load| {
            let [a, b, c, d] = AcpPlan::INITIATORS.map(|initiators| {
                let run = self.runs.disturbed(load, initiators);
                run.map_or("–".to_owned(), |run| format!("{:.2} ({:.0})", run.add * 1e6, run.copies * 1e-3))
            });
            [load.name().to_owned(), a, b, c, d]
        });
        let [a, b, c, d] = AcpPlan::INITIATORS.map(|initiators| format!("#{}", initiators_in_words(initiators)));
        page.push_str("<p>µs per add (thousand copies per second):</p>");
        html_table(page, ["who serves", &a, &b, &c, &d], rows)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        acp_paper::{AcpPlan, AcpRuns, AddRun, DisturbanceRun, compare},
        provenance::tests::example,
        report::{Results, render},
    };

    /// Returns invented runs with the right shape and plausible numbers.
    fn invented() -> AcpRuns {
        let plan = AcpPlan::paper(0);
        let job = example().jobs[0].clone();
        let adds = plan.adds.iter().map(|&case| AddRun { case, seconds: 3.4e-6, job: job.clone() }).collect();
        let disturbances = plan.disturbances.iter().map(|&(load, initiators)| DisturbanceRun {
            load,
            initiators,
            add: 3.4e-6 + f64::from(initiators) * 1e-7,
            copies: 1e4,
            job: job.clone(),
        });
        AcpRuns { disturbances: disturbances.collect(), adds, states: None, timeline: None, plan }
    }

    #[test]
    fn the_page_has_its_plots_and_says_what_nobody_has_published() {
        let runs = invented();
        let results = Results { acp: Some(&runs), ..Results::default() };
        let page = render(results, &compare(&runs), &example()).expect("it can be drawn");
        assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (3, 3));
        assert!(page.matches("without a published").count() >= 2);
        for part in ["A14", "thousand copies", "software.acp.network", "hw desc ts by"] {
            assert!(page.contains(part), "{part} is missing");
        }
        for reference in ["http", "src=", "href=", "url(", "<script", "<link"] {
            assert!(!page.contains(reference), "{reference} leads outside");
        }
    }
}
