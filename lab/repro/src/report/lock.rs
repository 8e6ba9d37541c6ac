//! The lock paper's section of the page.

use super::{escaped, html_table, key, plots};
use crate::{
    ReproError,
    figures::{self, Figure},
    lock_paper::{LockRuns, PairRun, StencilRun, TniRun, WhatIf, variant},
    outcome::Row,
    quantity::{self, count},
    simulate::Cost,
    unpublished::STENCIL_ANSWER,
    workloads::WAVES,
};
use std::fmt::{self, Write};

/// Plots and their subject.
pub(super) struct Section<'a> {
    plots: Plots,
    runs: &'a LockRuns,
    rows: &'a [Row],
}

impl<'a> Section<'a> {
    pub(super) fn draw(runs: &'a LockRuns, rows: &'a [Row]) -> Result<Self, ReproError> {
        Ok(Section { plots: Plots::draw(runs)?, runs, rows })
    }

    pub(super) fn write(&self, page: &mut String) -> fmt::Result {
        let Section { plots, runs, rows } = self;
        page.push_str(
            "<h1>A readers-writer lock on FX100</h1><p class=\"lead\">Hatanaka, Hori and Ishikawa, “Implementation and evaluation of \
             MPI RMA lock synchronisation on FX100”, section 5.</p>",
        );
        page.push_str("<h2>Latency against the number of ranks</h2><figure>");
        page.push_str(&plots.latency);
        page.push_str(&plots.share);
        key(
            page,
            &[
                (plots::OURS, "simulated, packed at 32 ranks per node"),
                (plots::THEIRS, "published (L4 calibrates)"),
                (plots::NULL, "null model: line through L4"),
            ],
        )?;
        page.push_str(
            "<figcaption>Mean of the slowest rank over all its pairs; paper: Fig. 8, and Fig. 10 divided by 1000. L4 was \
             measured at one rank per node. The null model follows the published points as well: these predictions are \
             checks, not evidence.</figcaption></figure>",
        );

        finishing(page, plots, runs, rows)?;
        fetch_adds(page, plots)?;
        k_scale(page, rows)?;
        what_if(page, plots, &runs.what_if)?;
        stencils(page, &runs.stencils)?;
        Ok(())
    }
}

struct Plots {
    latency: String,
    share: String,
    /// By rank and by hops, for each full run.
    full: Vec<(String, String)>,
    /// By rank, with 8 ranks and 1 rank per node.
    fewer: Vec<String>,
    fetch_adds: Vec<String>,
    /// By receiving TNIs.
    waves: Vec<(u32, String)>,
}

impl Plots {
    fn draw(runs: &LockRuns) -> Result<Plots, ReproError> {
        let value = |id: &str| figures::find(id).and_then(Figure::value);
        let last: Vec<f64> = value("L6").into_iter().collect();
        // The first finisher as printed: its share of the last finisher's time, times that time.
        let ends: Vec<f64> =
            value("L8").zip(value("L6")).map(|(share, last)| share * last).into_iter().chain(last).collect();
        let fewer = [(1024, 8, "L5"), (128, 1, "L4")];
        let fewer = fewer.into_iter().filter_map(|(ranks, ppn, id)| Some((runs.fx100(ranks, ppn)?, value(id)?)));
        let highest = runs.tnis.iter().map(TniRun::slowest).fold(1e-9, f64::max);
        Ok(Plots {
            latency: plots::latency(runs)?,
            share: plots::share(runs)?,
            full: (runs.full().map(|run| Ok((plots::by_rank(run, &ends)?, plots::by_hops(run)?))))
                .collect::<Result<_, ReproError>>()?,
            fewer: fewer.map(|(run, last)| plots::by_rank(run, &[last])).collect::<Result<_, _>>()?,
            waves: (runs.plan.what_if_tnis.iter().filter(|_| !runs.what_if.is_empty()))
                .map(|&tnis| Ok((tnis, plots::waves(&runs.what_if, tnis)?)))
                .collect::<Result<_, ReproError>>()?,
            fetch_adds: runs.tnis.iter().map(|run| plots::fetch_adds(run, highest)).collect::<Result<_, _>>()?,
        })
    }
}

fn finishing(page: &mut String, plots: &Plots, runs: &LockRuns, rows: &[Row]) -> fmt::Result {
    if plots.full.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>The order of finishing</h2>");
    page.push_str(
        "<p>All 4096 ranks start together, yet the paper saw them finish between 0.1 and 2.2 s. A queue that serves in \
         order of arrival would let them finish together. Here the spread comes from the routers: each gives its input ports \
         equal turns, so traffic that joins near the lock gets a larger share.</p>",
    );
    for (run, (by_rank, by_hops)) in runs.full().zip(&plots.full) {
        write!(
            page,
            "<figure><div class=\"pair\"><div>{by_rank}</div><div>{by_hops}</div></div><figcaption>{}</figcaption></figure>",
            escaped(&finishing_words(run, rows))
        )?;
    }
    if !plots.fewer.is_empty() {
        page.push_str("<figure><div class=\"pair\">");
        for plot in &plots.fewer {
            write!(page, "<div>{plot}</div>")?;
        }
        page.push_str(
            "</div><figcaption>The same nodes with 8 ranks each (left) and 1 rank each (right). Dashed: the published \
             time of the last finisher.</figcaption></figure>",
        );
    }
    Ok(())
}

fn finishing_words(run: &PairRun, rows: &[Row]) -> String {
    let shape = run.shape.map_or("no shape".to_owned(), |shape| shape.to_string());
    let value = |id: &str| {
        let id = format!("{id}{}", variant(run)?);
        rows.iter().find(|row| row.id == id && row.case.as_deref() == Some(&shape)).and_then(|row| row.simulated)
    };
    let (first, last) = run.seconds().fold((f64::INFINITY, 0.0f64), |(low, high), s| (low.min(s), high.max(s)));
    format!(
        "Network {shape}, 128 nodes with 32 ranks each. Left: each rank; dashed, the published first and last finisher. Right: mean of each node's ranks. First {} s, last {} s; \
         first over last {} (published 0.1 / 2.2 = 0.045); rank correlation of time and hops {}. Paper: Fig. 10, which does not give the shape.",
        quantity::number(first),
        quantity::number(last),
        value("L8").map_or("–".into(), quantity::number),
        value("L9").map_or("–".into(), quantity::number),
    )
}

fn fetch_adds(page: &mut String, plots: &Plots) -> fmt::Result {
    page.push_str("<h2>Four receiving engines are not four times as fast</h2><figure><div class=\"pair\">");
    for plot in &plots.fetch_adds {
        write!(page, "<div>{plot}</div>")?;
    }
    page.push_str("</div>");
    key(page, &[(plots::OURS, "issue: until posted"), (plots::WAIT, "wait: until the result is here")])?;
    page.push_str(
        "<figcaption>32 ranks of one node, one fetch-add each through loopback; paper: Figs. 11 and 12. The serial share of \
         the atomic unit is calibrated on the published “about 40 %”, so this predicts nothing.</figcaption></figure>",
    );
    Ok(())
}

fn k_scale(page: &mut String, rows: &[Row]) -> fmt::Result {
    let Some(row) = rows.iter().find(|row| row.id == "L10") else { return Ok(()) };
    let Some(value) = row.simulated else { return Ok(()) };
    write!(
        page,
        "<h2>At the size of the K computer</h2><p>One pair of the slowest of 663,552 ranks takes <b>{} s</b> in the model, \
         over a network with latency but without arbitration. The paper says about 1 s. {}</p>",
        quantity::number(value),
        escaped(&row.remark)
    )?;
    if let Some(Cost { ranks, events, cpu_seconds, bytes_per_rank, resident_bytes_per_rank }) = &row.cost {
        write!(
            page,
            "<p class=\"quiet\">{} ranks, {} events, {cpu_seconds:.1} CPU seconds, {bytes_per_rank} bytes of simulator per rank{}.</p>",
            count(*ranks),
            count(*events),
            resident_bytes_per_rank
                .map_or(String::new(), |bytes| format!(", {bytes} bytes of growth in resident memory"))
        )?;
    }
    Ok(())
}

fn what_if(page: &mut String, plots: &Plots, waves: &[WhatIf]) -> fmt::Result {
    if waves.is_empty() {
        return Ok(());
    }
    page.push_str(
        "<h2>What if not every rank went to the home?</h2><p>The paper ends with a problem: all atomics meet at one home. Here all ranks lock all of a window at once, \
         and unlock it at once when all have it; 8 ranks a node. Flat is the paper's lock, packed has one home word. By node, the first and the last of each node's ranks go to \
         the home for all of them; in the tree, the first and the last of 64 nodes, and of 64 of those. Each rank: a lock for each rank, and lock_all takes them one after \
         another (Li and others). These are no figures of the paper.</p>",
    );
    for (tnis, plot) in &plots.waves {
        write!(page, "<figure>{plot}")?;
        key(page, &WAVES.map(|(form, name)| (plots::colour(form), name)))?;
        write!(page, "<figcaption>Slowest rank, receiving TNIs: {tnis}.</figcaption></figure>")?;
    }
    let rows = waves.chunk_by(|a, b| (a.ranks, a.tnis) == (b.ranks, b.tnis)).map(|of_one| {
        let [a, b, c, d, e] = WAVES.map(|(form, _)| {
            let wave = of_one.iter().find(|wave| wave.form == form);
            wave.map_or("–".to_owned(), |wave| quantity::seconds(wave.pair()))
        });
        [count(of_one[0].ranks.into()), of_one[0].tnis.to_string(), a, b, c, d, e]
    });
    let [a, b, c, d, e] = WAVES.map(|(_, name)| format!("#{name}"));
    html_table(page, ["#ranks", "receiving TNIs", &a, &b, &c, &d, &e], rows)
}

fn stencils(page: &mut String, runs: &[StencilRun]) -> fmt::Result {
    if runs.is_empty() {
        return Ok(());
    }
    write!(
        page,
        "<h2>Does lock_all stencil code run at tens of thousands of nodes?</h2><p>A five-point stencil in the two forms of the paper's \
         Figures 4 and 5; 8 ranks a node, slowest rank. {}</p>",
        escaped(STENCIL_ANSWER)
    )?;
    let rows = runs.iter().map(|run| {
        let lock = if run.lock > 0.0 { quantity::seconds(run.lock) } else { "–".into() };
        [count(run.ranks.into()), run.form.to_string(), quantity::seconds(run.step), lock]
    });
    html_table(page, ["#ranks", "form", "#a step", "#the lock, once"], rows)
}

#[cfg(test)]
mod tests;
