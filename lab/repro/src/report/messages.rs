//! The section of the page about messages.

use super::{html_table, key, plots};
use crate::{
    ReproError,
    fmpl_paper::{Breakdown, FmplRuns},
};
use plots::Curve;
use std::fmt::{self, Write};

/// Plots and their subject.
pub(super) struct Section {
    plots: Vec<(Curve, String)>,
    breakdown: Option<Breakdown>,
}

fn heading(curve: Curve) -> &'static str {
    match curve {
        Curve::BetweenTwo => "Figure 7: bandwidth between two ranks",
        Curve::Barrier => "Figure 8: barrier",
        Curve::Broadcast => "Figure 9: broadcast of 8 KB",
        Curve::BroadcastRate => "Figure 10: bandwidth of a broadcast to 16 nodes",
        Curve::Reduction => "Figure 11: sum of 8 KB",
    }
}

fn caption(curve: Curve) -> &'static str {
    match curve {
        Curve::BetweenTwo => {
            "From half a round trip. MPI and BLACS on it are software terms, which M2, M5, M13 and M14 set; M11 and M12 are the link."
        }
        Curve::Barrier => {
            "From 9 to 15 nodes fill no rectangle: there is no hardware barrier, and FMPL takes its tree."
        }
        Curve::Broadcast => {
            "Mean over all roots. From 9 to 15 nodes there is no hardware broadcast (section 4.2), although section 6.3 says that it always wins."
        }
        Curve::BroadcastRate => "Mean over roots; M16 sets what the crossbar takes for each byte of a broadcast.",
        Curve::Reduction => "Mean over all roots. What combining takes is not published and not charged.",
    }
}

impl Section {
    pub(super) fn draw(runs: &FmplRuns) -> Result<Self, ReproError> {
        let plots = Curve::ALL.iter().map(|&curve| Ok((curve, plots::curves(runs, curve)?)));
        Ok(Section { plots: plots.collect::<Result<_, ReproError>>()?, breakdown: runs.breakdown })
    }

    pub(super) fn write(&self, page: &mut String) -> fmt::Result {
        page.push_str(
            "<h1>FMPL on SR8000</h1><p class=\"lead\">Tatebe, Nagashima, Sekiguchi, Kitabayashi and Hayashida, “Design and Implementation of FMPL”, section 6. \
             One rank a node, two rows of eight nodes. FMPL is the crate that runs anywhere; MPI and BLACS are terms of software over the same machine.</p>",
        );
        if let Some(Breakdown { send, receive }) = self.breakdown {
            page.push_str("<h2>Table 1: parts of a send and of a receive of 8 bytes, off the timeline</h2>");
            let row = |name: &str, parts: [f64; 3]| {
                let [a, b, c] = parts.map(|seconds| format!("{:.1}", seconds * 1e6));
                [name.to_owned(), a, b, c]
            };
            let rows = [
                row("send: init, waiting for the header, sending the data", [send.init, send.header, send.data]),
                row(
                    "receive: init, sending the header, waiting for the data",
                    [receive.init, receive.header, receive.data],
                ),
            ];
            html_table(page, ["call", "#µs", "#µs", "#µs"], rows)?;
        }
        for (curve, plot) in &self.plots {
            write!(page, "<h2>{}</h2><figure>{plot}", heading(*curve))?;
            let entries: Vec<_> = curve.libraries().iter().map(|it| (plots::library_colour(*it), it.name())).collect();
            key(page, &entries)?;
            write!(page, "<figcaption>{}</figcaption></figure>", caption(*curve))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        fmpl_paper::{FmplPlan, compare, run},
        progress::Progress,
        provenance::tests::example,
        report::{Results, render},
    };

    #[test]
    fn the_page_has_all_curves_and_the_breakdown() {
        let mut plan = FmplPlan::quick(0);
        plan.collectives.retain(|case| [2, 8, FmplPlan::NODES].contains(&case.nodes));
        let runs = run(&plan, &mut Progress::silent()).expect("it runs");
        let results = Results { fmpl: Some(&runs), ..Results::default() };
        let page = render(results, &compare(&runs), &example()).expect("it can be drawn");
        assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (5, 5));
        for part in ["Figure 7", "Figure 11", "Table 1", "BLACS on MPI (nordma)", "M8-data", "software.fmpl.wait"] {
            assert!(page.contains(part), "{part} is missing");
        }
        for reference in ["http", "src=", "href=", "url(", "<script", "<link"] {
            assert!(!page.contains(reference), "{reference} leads outside");
        }
    }
}
