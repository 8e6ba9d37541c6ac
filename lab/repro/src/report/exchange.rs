//! The section of the page about persistent exchanges with neighbours.

use super::{html_table, key, plots};
use crate::{
    ReproError,
    prdma_paper::{How, Pattern, PrdmaPlan, PrdmaRuns},
};
use prdma_offload::Form;
use std::fmt::{self, Write};

/// Plots and their subject.
pub(super) struct Section<'a> {
    runs: &'a PrdmaRuns,
    line: String,
    plane: String,
    ratio: String,
}

impl<'a> Section<'a> {
    pub(super) fn draw(runs: &'a PrdmaRuns) -> Result<Self, ReproError> {
        Ok(Section {
            runs,
            line: plots::exchange_time(runs, Pattern::Line)?,
            plane: plots::exchange_time(runs, Pattern::Plane)?,
            ratio: plots::exchange_ratio(runs)?,
        })
    }

    pub(super) fn write(&self, page: &mut String) -> fmt::Result {
        page.push_str(
            "<h1>Persistent neighbour exchange in session mode on FX100</h1><p class=\"lead\">Hatanaka, Ogura, Takagi, Hori and Ishikawa, “MPI persistent \
             neighbourhood collectives over Tofu2 protocol offload”, section 5. 36 nodes, one rank each, neighbours on adjacent nodes, start and wait only.</p>\
             <h2>Time against size</h2>",
        );
        let own = [
            (plots::OURS, "FAST: a queue for each neighbour"),
            (plots::WAIT, "2 queues"),
            (plots::MRC, "MRC: one queue"),
            (plots::NULL, "by the CPU"),
        ];
        write!(page, "<figure>{}", self.line)?;
        key(page, &[own[0], own[2], own[3], (plots::THEIRS, "published: R1 (calibrates)")])?;
        page.push_str(
            "<figcaption>1-D 3-point, periodic. Paper: Figs. 9 and 10, of which it prints the value at 16 KiB, the slope of FAST and the ratio below. \
             By the CPU: our own value.</figcaption></figure>",
        );
        write!(page, "<figure>{}", self.plane)?;
        key(page, &own[..3])?;
        page.push_str(
            "<figcaption>2-D 5-point on 6×6 nodes, the paper's Fig. 8 (C): a prediction without a published value.</figcaption></figure>",
        );
        write!(page, "<h2>MRC over FAST</h2><figure>{}", self.ratio)?;
        key(
            page,
            &[
                (plots::OURS, "simulated, 1-D"),
                (plots::MRC, "predicted, 2-D (not published)"),
                (plots::THEIRS, "published: range 1.2 to 1.8, and R4"),
                (plots::NULL, "null model: R1 and R2 with twice the payload"),
            ],
        )?;
        page.push_str(
            "<figcaption>Paper: Fig. 10. The lower end calibrates what it costs that a queue releases its own data; upper end and \
             R4 must come out.</figcaption></figure>",
        );
        self.in_space(page)
    }

    fn in_space(&self, page: &mut String) -> fmt::Result {
        let forms = [Form::Fast, Form::Queues(4), Form::Queues(2), Form::Mrc, Form::Cpu].map(How::persistent);
        write!(
            page,
            "<h2>In three dimensions, and with two ranks a node</h2><p>{} bytes to each neighbour, in µs: predictions without a published value.</p>",
            PrdmaPlan::IN_SPACE
        )?;
        let rows = Pattern::AT_ONE_SIZE.map(|pattern| {
            let [a, b, c, d, e] = forms.map(|how| {
                let seconds = self.runs.of(pattern, how).and_then(|run| run.at(PrdmaPlan::IN_SPACE));
                seconds.map_or("–".to_owned(), |seconds| format!("{:.2}", seconds * 1e6))
            });
            [pattern.to_string(), pattern.neighbours().to_string(), a, b, c, d, e]
        });
        let [a, b, c, d, e] = forms.map(|how| format!("#{how}"));
        html_table(page, ["pattern", "#neighbours", &a, &b, &c, &d, &e], rows)
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        prdma_paper::{ExchangeRun, PrdmaPlan, PrdmaRuns, compare},
        provenance::tests::example,
        report::{Results, render},
    };

    /// Returns invented runs with the right shape and plausible numbers.
    fn invented() -> PrdmaRuns {
        let plan = PrdmaPlan::paper(0);
        let run = |job: &crate::prdma_paper::ExchangeCase| ExchangeRun {
            pattern: job.pattern,
            how: job.how,
            points: job.sizes.iter().map(|&size| (size, 3.4e-6 + size as f64 * 1e-10)).collect(),
            job: example().jobs[0].clone(),
        };
        PrdmaRuns { runs: plan.jobs.iter().map(run).collect(), plan, machine: None, timeline: None }
    }

    #[test]
    fn the_page_has_its_plots_and_says_what_nobody_has_published() {
        let runs = invented();
        let results = Results { prdma: Some(&runs), ..Results::default() };
        let page = render(results, &compare(&runs), &example()).expect("it can be drawn");
        assert_eq!((page.matches("<svg").count(), page.matches("</svg>").count()), (3, 3));
        assert!(page.matches("without a published value").count() >= 2);
        for part in ["R4", "bytes to each neighbour", "queue_chain", "3-D 27-point"] {
            assert!(page.contains(part), "{part} is missing");
        }
        for reference in ["http", "src=", "href=", "url(", "<script", "<link"] {
            assert!(!page.contains(reference), "{reference} leads outside");
        }
    }
}
