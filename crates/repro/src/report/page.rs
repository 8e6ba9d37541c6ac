//! The page.

use super::{escape::escaped, plots};
use crate::{
    ReproError,
    cost::Cost,
    figures::{self, Figure},
    lock_paper::{LockRuns, PairRun, TniRun, WhatIf},
    outcome::{Row, Tally, Verdict},
    platforms,
    provenance::{Provenance, short},
    quantity::{self, count},
    table,
    workloads::Form,
};
use plotters::style::RGBColor;
use std::fmt::{self, Write};

const STYLE: &str = include_str!("style.css");

pub(super) fn render(runs: &LockRuns, rows: &[Row], made: &Provenance) -> Result<String, ReproError> {
    let plots = Plots::draw(runs)?;
    let mut page = String::with_capacity(1 << 20);
    // Writing to a string does not fail.
    body(&mut page, &plots, runs, rows, made).ok();
    Ok(page)
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
        // The first finisher as printed: its share of the last one's time, times that.
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

fn body(page: &mut String, plots: &Plots, runs: &LockRuns, rows: &[Row], made: &Provenance) -> fmt::Result {
    write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>A readers-writer lock on FX100, reproduced in virtual time</title><style>{STYLE}</style></head><body><main>"
    )?;
    page.push_str(
        "<h1>A readers-writer lock on FX100, reproduced in virtual time</h1>\
         <p class=\"lead\">Figures of Hatanaka, Hori and Ishikawa, “Implementation and evaluation of MPI RMA lock \
         synchronisation on FX100”, section 5, from a simulated Tofu2 network. Few of them calibrate the model; the others \
         have to come out of it.</p>",
    );
    if let Some(warning) = made.warning() {
        write!(page, "<p class=\"warning\">{}</p>", escaped(&warning))?;
    }
    tiles(page, rows, made)?;

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

    page.push_str("<h2>All figures</h2>");
    rows_table(page, rows)?;
    constants(page)?;
    provenance(page, made)?;
    page.push_str("</main></body></html>\n");
    Ok(())
}

fn tiles(page: &mut String, rows: &[Row], made: &Provenance) -> fmt::Result {
    let tally = Tally::of(rows);
    let tile =
        |page: &mut String, number: String, words: &str| write!(page, "<li><b>{number}</b><span>{words}</span></li>");
    page.push_str("<ul class=\"sum\">");
    tile(page, format!("{} of {}", tally.within, tally.predictions), "predictions within their bounds")?;
    tile(
        page,
        format!("{} of {}", tally.informative_within, tally.informative),
        "of these are informative: a trivial model would miss the bound",
    )?;
    tile(page, format!("{} of {}", tally.given_back, tally.calibrated), "calibrated values given back")?;
    tile(
        page,
        count(made.events()),
        &format!("events in {} jobs, {:.1} CPU seconds", made.jobs.len(), made.cpu_seconds()),
    )?;
    page.push_str("</ul>");
    Ok(())
}

fn finishing(page: &mut String, plots: &Plots, runs: &LockRuns, rows: &[Row]) -> fmt::Result {
    if plots.full.is_empty() {
        return Ok(());
    }
    page.push_str("<h2>Who finishes first</h2>");
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
    let shape = run.shape.map_or("no torus".to_owned(), |shape| shape.to_string());
    let value = |id: &str| {
        rows.iter().find(|row| row.id == id && row.case.as_deref() == Some(&shape)).and_then(|row| row.simulated)
    };
    let (first, last) = run.seconds().fold((f64::INFINITY, 0.0f64), |(low, high), s| (low.min(s), high.max(s)));
    format!(
        "Torus {shape}, 128 nodes with 32 ranks each. Left: each rank; dashed, the published first and last finisher. Right: mean of each node's ranks. First {} s, last {} s; \
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
         the home for all of them; in the tree, the first and the last of 64 nodes, and of 64 of those. These are no figures of the paper.</p>",
    );
    for (tnis, plot) in &plots.waves {
        write!(page, "<figure>{plot}")?;
        key(page, &Form::ALL.map(|form| (plots::colour(form), form.name())))?;
        write!(page, "<figcaption>Slowest rank, receiving TNIs: {tnis}.</figcaption></figure>")?;
    }
    page.push_str("<div class=\"scroll\"><table><thead><tr><th class=\"n\">ranks</th><th>receiving TNIs</th>");
    for form in Form::ALL {
        write!(page, "<th class=\"n\">{form}</th>")?;
    }
    page.push_str("</tr></thead><tbody>");
    for of_one in waves.chunks(Form::ALL.len()) {
        write!(page, "<tr><td class=\"n\">{}</td><td>{}</td>", count(of_one[0].ranks.into()), of_one[0].tnis)?;
        for wave in of_one {
            write!(page, "<td class=\"n\">{}</td>", quantity::seconds(wave.pair()))?;
        }
        page.push_str("</tr>");
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

fn rows_table(page: &mut String, rows: &[Row]) -> fmt::Result {
    page.push_str(
        "<p>PRED must come out of the model unaided. CAL set one of its constants. DER follows by arithmetic. SPEC is asserted. \
         OWN stands beside a number that the paper contradicts itself on. Times are those of the slowest rank. The null model knows the calibrated figures, but no mechanism.</p>\
         <div class=\"scroll\"><table><thead><tr><th>id</th><th>what</th><th class=\"n\">published</th><th class=\"n\">ours</th>\
         <th class=\"n\">deviation</th><th class=\"n\">null model</th><th>kind</th><th>bound</th><th>verdict</th></tr></thead><tbody>",
    );
    for row in rows {
        let value =
            |value: Option<f64>| value.map_or("–".into(), |value| escaped(&quantity::with_unit(value, &row.unit)));
        let class = match row.verdict() {
            Verdict::Within | Verdict::Asserted => "good",
            verdict if verdict.fails() => "bad",
            _ => "quiet",
        };
        write!(
            page,
            "<tr><td class=\"k\">{}</td><td>{}<br><small>{}</small></td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td><td class=\"k\">{}</td><td class=\"{class}\">{}</td></tr>",
            escaped(&row.id),
            escaped(&table::what(row)),
            escaped(&format!("{}{}{}", row.place, if row.remark.is_empty() { "" } else { ". " }, row.remark)),
            escaped(&table::published(row)),
            value(row.simulated),
            row.deviation.map_or("–".into(), quantity::deviation),
            value(row.null),
            row.kind,
            escaped(&table::bound(row)),
            escaped(&table::verdict(row)),
        )?;
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

fn constants(page: &mut String) -> fmt::Result {
    page.push_str("<h2>Constants of the machines</h2><p>No figure that the model predicts sets a constant.</p>");
    for platform in platforms::all() {
        write!(
            page,
            "<h3>{}</h3><div class=\"scroll\"><table><thead><tr><th>constant</th><th class=\"n\">value</th><th>set by</th>\
             <th>source</th></tr></thead><tbody>",
            escaped(platform.name())
        )?;
        for constant in platform.constants() {
            write!(
                page,
                "<tr><td class=\"k\"><code>{}</code></td><td class=\"n\">{}</td><td class=\"k\">{}</td><td>{}</td></tr>",
                escaped(constant.name),
                escaped(&platforms::readable(constant)),
                escaped(&constant.from.join(", ")),
                escaped(&constant.note),
            )?;
        }
        page.push_str("</tbody></table></div>");
    }
    Ok(())
}

fn provenance(page: &mut String, made: &Provenance) -> fmt::Result {
    write!(
        page,
        "<h2>How this page was made</h2><pre>{}</pre><p>onesided {}, seed {}. Equal seed, equal trace: the joint hash \
         is <code>{:016x}</code>.</p><div class=\"scroll\"><table><thead><tr><th>job</th><th class=\"n\">events</th>\
         <th class=\"n\">CPU s</th><th class=\"n\">B per rank</th><th>trace</th></tr></thead><tbody>",
        escaped(&made.command),
        env!("CARGO_PKG_VERSION"),
        made.seed,
        made.trace_hash()
    )?;
    for job in &made.jobs {
        write!(
            page,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{:.2}</td><td class=\"n\">{}</td><td><code>{}</code></td></tr>",
            escaped(&job.label),
            count(job.cost.events),
            job.cost.cpu_seconds,
            count(job.cost.bytes_per_rank),
            short(job.trace_hash)
        )?;
    }
    page.push_str("</tbody></table></div>");
    Ok(())
}

fn key(page: &mut String, entries: &[(RGBColor, &str)]) -> fmt::Result {
    page.push_str("<ul class=\"key\">");
    for (RGBColor(r, g, b), words) in entries {
        write!(page, "<li><i style=\"background:#{r:02x}{g:02x}{b:02x}\"></i>{}</li>", escaped(words))?;
    }
    page.push_str("</ul>");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        lock_paper::{LockPlan, Shape, Shapes, compare},
        provenance::tests::example,
        workloads::FetchAdd,
    };

    fn what_if() -> Vec<WhatIf> {
        let job = || example().jobs[0].clone();
        let wave =
            |ranks: u32, form| WhatIf { form, ranks, tnis: 1, lock: 1e-6 * f64::from(ranks), unlock: 1e-6, job: job() };
        [4, 663_552].into_iter().flat_map(|ranks| Form::ALL.map(|form| wave(ranks, form))).collect()
    }

    /// Runs as a latency of half a microsecond per rank would give them, without a simulator.
    fn invented() -> LockRuns {
        let plan = LockPlan::paper(Shapes::One, 0);
        let job = || example().jobs[0].clone();
        let run = |ranks: u32, ranks_per_node: u32, shape: Option<Shape>| PairRun {
            ranks,
            ranks_per_node,
            shape,
            pairs: 1000,
            elapsed: (0..ranks).map(|rank| 540_000_000 * u64::from(rank + 1)).collect(),
            hops: shape.map_or(Vec::new(), |_| (0..ranks).map(|rank| rank / ranks_per_node / 8).collect()),
            job: job(),
        };
        let shape = plan.shapes.first().copied();
        let mut fx100: Vec<_> = plan.scaling.iter().map(|&ranks| run(ranks, 32, shape)).collect();
        fx100.extend([run(128, 1, shape), run(1024, 8, shape)]);
        let fetch_add = |rank: u64| FetchAdd { issue: 150_000, wait: 1_000_000 + rank * 269_500 };
        let tnis = [1, 4].map(|tnis| TniRun { tnis, ranks: (0..32).map(fetch_add).collect(), job: job() });
        LockRuns {
            fx10: run(256, 16, None),
            k: Some(run(16, 8, None)),
            tnis: tnis.into(),
            fx100,
            plan,
            what_if: what_if(),
            timeline: None,
        }
    }

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let runs = invented();
        let page = render(&runs, &compare(&runs), &example()).expect("it can be drawn");
        for reference in ["http", "src=", "href=", "url(", "@import", "<script", "<link"] {
            assert!(!page.contains(reference), "{reference} leads outside");
        }
        assert_eq!(page.matches("<svg").count(), 10);
        assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    }

    #[test]
    fn the_page_says_what_made_it_and_what_it_shows() {
        let runs = invented();
        let mut made = example();
        made.quick = Some(50);
        let page = render(&runs, &compare(&runs), &made).expect("it can be drawn");
        for part in [
            "onesided reproduce --seed 7",
            "12345678",
            "QUICK RUN",
            "ranks locking at once",
            "(µs)",
            "hops to the lock",
            "atomic_service",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
    }
}
