//! The rows of all figures on the page, and their counts.

use super::escaped;
use crate::{
    figures::Paper,
    outcome::{Row, Verdict},
    provenance::Provenance,
    quantity::{self, count},
    table,
    tally::Tally,
};
use std::fmt::{self, Write};

pub(super) fn tiles(page: &mut String, rows: &[Row], made: &Provenance) -> fmt::Result {
    let tally = Tally::of(rows);
    let tile =
        |page: &mut String, number: String, words: &str| write!(page, "<li><b>{number}</b><span>{words}</span></li>");
    page.push_str("<ul class=\"sum\">");
    tile(
        page,
        format!("{} of {}", tally.misses, tally.predictions + tally.derived),
        "predictions, orderings and derived values contradict the papers",
    )?;
    tile(page, format!("{} of {}", tally.within, tally.predictions), "predictions within bounds")?;
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

pub(super) fn table_of(page: &mut String, rows: &[Row]) -> fmt::Result {
    page.push_str(
        "<p>PRED must come out of the model unaided. CAL set one of its constants. DER follows by arithmetic. SPEC is a fact that jobs observe. ORD is an ordering, 1 if it holds. \
         OWN is our own value, which no paper states. MISS contradicts the paper; its reason stands below the figure. Times are those of the slowest rank. The null model knows the calibrated figures, but no mechanism.</p>\
         <div class=\"scroll\"><table><thead><tr><th>id</th><th>what</th><th class=\"n\">published</th><th class=\"n\">ours</th>\
         <th class=\"n\">deviation</th><th class=\"n\">null model</th><th>kind</th><th>bound</th><th>verdict</th></tr></thead><tbody>",
    );
    for row in rows {
        let value =
            |value: Option<f64>| value.map_or("–".into(), |value| escaped(&quantity::with_unit(value, &row.unit)));
        let class = match row.verdict() {
            Verdict::Within | Verdict::Asserted => "good",
            Verdict::Miss | Verdict::CalibrationLost => "bad",
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
    page.push_str("</tbody></table></div><h3>Free in the model</h3><ul>");
    for paper in Paper::ALL.into_iter().filter(|paper| rows.iter().any(|row| row.paper == *paper)) {
        write!(page, "<li>{}: {}</li>", paper.name(), escaped(paper.free()))?;
    }
    page.push_str("</ul>");
    Ok(())
}
