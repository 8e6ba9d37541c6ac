//! The section of the page about reflects.

use super::{html_table, key, plots};
use crate::{
    ReproError, unpublished,
    xmp_paper::{Ordering, Version, XmpRuns},
};
use plots::SpeedUp;
use std::fmt::{self, Write};

/// Plots and their subject.
pub(super) struct Section<'a> {
    runs: &'a XmpRuns,
    plots: Vec<(SpeedUp, String)>,
}

fn heading(plot: SpeedUp) -> &'static str {
    match plot {
        SpeedUp::Synchronous => "Figure 8: synchronous reflects",
        SpeedUp::Asynchronous => "Figure 9: asynchronous reflects",
        SpeedUp::Scattered => "Figures 8 and 9, if derived datatypes are put block by block",
        SpeedUp::Rdma => "Figure 10: RDMA, and our prediction",
    }
}

impl<'a> Section<'a> {
    pub(super) fn draw(runs: &'a XmpRuns) -> Result<Self, ReproError> {
        let plots = SpeedUp::ALL.iter().map(|&plot| Ok((plot, plots::speed_ups(runs, plot)?)));
        Ok(Section { runs, plots: plots.collect::<Result<_, ReproError>>()? })
    }

    pub(super) fn write(&self, page: &mut String) -> fmt::Result {
        page.push_str(
            "<h1>XcalableMP’s reflect on the K computer</h1><p class=\"lead\">Murai and Sato, “An efficient implementation of stencil communication in \
             XcalableMP”, section 6. SCALE-LES’s dynamical core, 512×512×128 cells, one rank a node. The paper’s curves have no numbers. Nothing is calibrated: \
             what is not known of the machine is assumed, and not all of the orderings come out; where they flip is below.</p>",
        );
        for (plot, drawn) in &self.plots {
            write!(page, "<h2>{}</h2><figure>{drawn}", heading(*plot))?;
            let words = |version: &Version| match version {
                Version::Blocks | Version::BlocksOverlap => format!("{version}: our prediction"),
                _ if version.is_papers() => version.to_string(),
                _ => format!("{version}: not in the paper"),
            };
            let words: Vec<_> = plot.versions().iter().map(words).collect();
            let colours = plot.versions().iter().map(|version| plots::version_colour(*version));
            let entries: Vec<_> = colours.zip(words.iter().map(String::as_str)).collect();
            key(page, &entries)?;
            page.push_str("<figcaption>How many times faster than one node.</figcaption></figure>");
        }
        if self.runs.swept.is_empty() {
            return Ok(());
        }
        page.push_str("<h2>Where the orderings hold</h2><p>One assumed constant changed at a time.</p>");
        let rows = self.runs.swept.iter().map(|swept| {
            let (of, [low, high]) = (swept.assumed, swept.assumed.range);
            let [a, b, c, d, e, f, g] =
                Ordering::ALL.map(|ordering| super::escaped(&unpublished::where_it_holds(swept, ordering)));
            let default = of.readable(of.default(&self.runs.plan.platform));
            let range = format!("{} – {}", of.readable(low), of.readable(high));
            [of.name.to_owned(), of.what.to_owned(), default, range, a, b, c, d, e, f, g]
        });
        let [a, b, c, d, e, f, g] = Ordering::ALL.map(Ordering::id);
        html_table(page, [".constant", "what", "#assumed", "#range", a, b, c, d, e, f, g], rows)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        progress::Progress,
        provenance::tests::example,
        report::{Results, render},
        xmp_paper::{Nodes, RANGES, XmpPlan, compare, run},
    };

    #[test]
    fn the_page_has_all_curves_and_says_where_orderings_hold() {
        let (nodes, ranges) = (Nodes::ALL[..1].to_vec(), vec![&RANGES[5]]);
        let plan = XmpPlan { nodes, flat: Vec::new(), ranges, ..XmpPlan::quick(0) };
        let runs = run(&plan, &mut Progress::silent()).expect("it runs");
        let results = Results { xmp: Some(&runs), ..Results::default() };
        let page = render(results, &compare(&runs), &example()).expect("it can be drawn");
        assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (4, 4));
        for part in
            ["Figure 8", "Figure 10", "XMP-async-olap", "neighbours: our prediction", "software.mpi.setup", "always"]
        {
            assert!(page.contains(part), "{part} is missing");
        }
        for reference in ["http", "src=", "href=", "url(", "<script", "<link"] {
            assert!(!page.contains(reference), "{reference} leads outside");
        }
    }
}
