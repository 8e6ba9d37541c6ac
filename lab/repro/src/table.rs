//! The table at the end of a reproduction.

use crate::{
    figures::{Bound, Paper, Status},
    outcome::{Row, Verdict},
    provenance::Provenance,
    quantity,
    tally::Tally,
};
use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// The number of terminal columns for which the table is made.
pub const WIDTH: u16 = 120;

/// A rule under the header, and no other lines.
pub(crate) const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// Returns the table, summary and notes, ending with a newline. `provenance` may be absent if no
/// job was run.
pub fn render(rows: &[Row], provenance: Option<&Provenance>) -> String {
    let mut out = String::new();
    if let Some(warning) = provenance.and_then(Provenance::warning) {
        out.push_str(&format!("{warning}\n\n"));
    }
    for paper in Paper::ALL {
        let of_paper: Vec<&Row> = rows.iter().filter(|row| row.paper == paper).collect();
        if !of_paper.is_empty() {
            let (name, subject) = (paper.name().to_uppercase(), paper.subject());
            let free = wrapped(&format!("Free in the model: {}", paper.free()));
            out.push_str(&format!("{name}: {subject}\n{}\n{free}\n", terminal(table(&of_paper))));
        }
    }
    for line in summary(&Tally::of(rows)) {
        out.push_str(&wrapped(&line));
    }
    if let Some(provenance) = provenance {
        out.push_str(&provenance.line());
        out.push('\n');
    }
    for note in notes(rows) {
        out.push_str(&wrapped(&note));
    }
    out
}

fn table(rows: &[&Row]) -> Table {
    let mut table = ruled();
    table.set_header(["id", "what", "published", "ours", "deviation", "null model", "kind", "bound", "verdict"]);
    for row in rows {
        table.add_row([
            Cell::new(&row.id),
            Cell::new(what(row)),
            number(published(row)),
            number(row.simulated.map_or("–".into(), |value| quantity::with_unit(value, &row.unit))),
            number(row.deviation.map_or("–".into(), quantity::deviation)),
            number(row.null.map_or("–".into(), |value| quantity::with_unit(value, &row.unit))),
            Cell::new(row.kind),
            Cell::new(bound(row)),
            Cell::new(verdict(row)),
        ]);
    }
    table
}

/// Creates a table as wide as the terminal, with one rule under its header.
pub(crate) fn ruled() -> Table {
    let mut table = Table::new();
    table.load_style(RULED_HEADER).set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    table
}

/// Formats a table with its columns close together.
pub(crate) fn terminal(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.trim_fmt()
}

pub(crate) fn number(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Returns the workload, with the case in brackets.
pub(crate) fn what(row: &Row) -> String {
    match &row.case {
        Some(case) => format!("{} [{case}]", row.what),
        None => row.what.clone(),
    }
}

pub(crate) fn published(row: &Row) -> String {
    match row.published {
        Some(value) => quantity::with_unit(value, &row.unit),
        None if row.kind == Status::Ordering || matches!(row.bound, Some(Bound::Above(_) | Bound::Holds)) => {
            "ordering".into()
        }
        None => "text".into(),
    }
}

pub(crate) fn bound(row: &Row) -> String {
    match row.bound {
        Some(bound) => bound.to_string(),
        None if row.kind == Status::Own => "none (note)".into(),
        None => "–".into(),
    }
}

pub(crate) fn verdict(row: &Row) -> String {
    let words = row.verdict().words();
    let counts = matches!(row.verdict(), Verdict::Within | Verdict::Miss);
    if counts && row.informative { format!("{words}, informative") } else { words.to_owned() }
}

/// Returns one line about a row: published value, ours, deviation, bound and verdict.
pub fn line(row: &Row) -> String {
    let verdict = match row.verdict() {
        Verdict::Within => verdict(row).replacen(Verdict::Within.words(), "HIT", 1),
        _ => verdict(row),
    };
    if row.bound == Some(Bound::Holds) {
        let holds = if row.within == Some(true) { "holds" } else { "does not hold" };
        return format!("published ordering {holds}: {verdict} ({})", what(row));
    }
    let ours = row.simulated.map_or("–".into(), |value| quantity::with_unit(value, &row.unit));
    let deviation = row.deviation.map_or(String::new(), |share| format!(" ({})", quantity::deviation(share)));
    format!("published {}, ours {ours}{deviation}, bound {}: {verdict} ({})", published(row), bound(row), what(row))
}

/// Returns the summary of the rows, one sentence for each kind of evidence.
pub fn summary(tally: &Tally) -> Vec<String> {
    let mut lines = Vec::new();
    if tally.predictions + tally.derived > 0 {
        lines.push(format!(
            "Misses: {} of {} predictions, orderings and derived values contradict the paper.",
            tally.misses,
            tally.predictions + tally.derived
        ));
    }
    if tally.predictions > 0 {
        lines.push(format!(
            "Predictions: {} of {} within their bounds. Informative, because the null model misses the bound: {} of {} within.",
            tally.within, tally.predictions, tally.informative_within, tally.informative
        ));
    }
    let mut others = Vec::new();
    let mut other = |count: usize, text: String| {
        if count > 0 {
            others.push(text);
        }
    };
    other(tally.derived, format!("derived: {} of {} within", tally.derived_within, tally.derived));
    other(
        tally.calibrated,
        format!("calibrated, given back by the model: {} of {}", tally.given_back, tally.calibrated),
    );
    other(tally.asserted, format!("asserted: {}", tally.asserted));
    other(tally.own, format!("own values, stated by no paper: {}", tally.own));
    other(tally.not_modelled, format!("published and not modelled: {}", tally.not_modelled));
    other(tally.not_simulated, format!("not simulated, counted nowhere: {}", tally.not_simulated));
    if !others.is_empty() {
        lines.push(format!("Not predictions: {}.", others.join("; ")));
    }
    lines
}

/// Returns the remarks that are essential to interpret the numbers: first those of misses, then
/// those of own values.
pub(crate) fn notes(rows: &[Row]) -> Vec<String> {
    let mut notes = Vec::new();
    let (misses, others): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.verdict() == Verdict::Miss);
    for row in misses.into_iter().chain(others) {
        let verdict = row.verdict();
        let explained = [Verdict::Miss, Verdict::OwnValue, Verdict::CalibrationLost, Verdict::NotModelled];
        if explained.contains(&verdict) {
            let word = match verdict {
                Verdict::Miss => " MISS",
                Verdict::NotModelled => " not modelled",
                _ => "",
            };
            let note = format!("{}{word}: {}", row.id, if row.remark.is_empty() { &row.what } else { &row.remark });
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if let Some(cost) = &row.cost {
            let resident = match cost.resident_bytes_per_rank {
                Some(bytes) if bytes > 0 => format!(" ({bytes} B of growth in resident memory)"),
                _ => String::new(),
            };
            notes.push(format!(
                "{}: {} ranks, {} events, {:.1} CPU s, {} B per rank{resident}.",
                row.id,
                quantity::count(cost.ranks),
                quantity::count(cost.events),
                cost.cpu_seconds,
                cost.bytes_per_rank
            ));
        }
    }
    notes
}

/// Wraps at spaces, with second and later lines indented.
pub(crate) fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > usize::from(WIDTH) {
            out.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{figures, provenance::tests::example};

    fn row(id: &str, value: f64) -> Row {
        Row::simulated(figures::find(id).expect(id), value)
    }

    fn rows() -> Vec<Row> {
        vec![
            row("L1", 2.34),
            row("L5", 0.7),
            row("L8", 0.0465).case("2×4×16"),
            row("L9", 0.98).case("2×4×16"),
            row("L4", 0.069),
            row("L10", 0.3577),
        ]
    }

    #[test]
    fn lines_fit_the_terminal() {
        let every: Vec<Row> = rows().into_iter().chain(figures::all().map(Row::unsimulated)).collect();
        for line in render(&every, Some(&example())).lines() {
            assert!(line.chars().count() <= usize::from(WIDTH), "{} columns: {line}", line.chars().count());
        }
    }

    #[test]
    fn rows_say_what_they_are() {
        let text = render(&rows(), Some(&example()));
        let line = |start: &str| {
            let found = text.lines().find(|line| line.trim_start().starts_with(start));
            found.unwrap_or_else(|| panic!("no line {start}:\n{text}")).to_owned()
        };
        for part in ["2.3 µs", "2.34 µs", "+1.7 %", "2.156 µs", "PRED", "±10 %", "within"] {
            assert!(line("L1 ").contains(part), "{part} is missing:\n{text}");
        }
        assert!(!line("L1 ").contains("informative"), "a line through L4 predicts L1 as well");
        assert!(line("L5 ").contains("MISS"));
        assert!(text.contains("informative"));
        let (misses, predictions) =
            (text.find("Misses: 2 of 5"), text.find("Predictions: 3 of 5 within their bounds."));
        assert!(misses.is_some_and(|misses| predictions.is_some_and(|predictions| misses < predictions)), "{text}");
        assert!(text.contains("L10 MISS: "));
        assert!(text.contains("2 of 2 within"));
        assert!(text.contains("0.34 to 0.36 s"), "the contradiction must be stated");
    }

    #[test]
    fn a_line_has_the_verdict() {
        let lines = [
            (row("L1", 2.34), "published 2.3 µs, ours 2.34 µs (+1.7 %), bound ±10 %: HIT (reader pair, 4 ranks)"),
            (row("L5", 0.7), "published 0.52 s, ours 0.7 s (+34.6 %), bound ±10 %: MISS (1000 pairs, 128 × 8 ranks)"),
            (
                row("L4", 0.069),
                "published 0.069 s, ours 0.069 s (0.0 %), bound ±5 %: calibrated (1000 pairs, 128 × 1 ranks)",
            ),
            (row("M20", 1.0), "published ordering holds: HIT (broadcast of 8 KB)"),
            (row("M20", 0.0), "published ordering does not hold: MISS (broadcast of 8 KB)"),
        ];
        for (row, expected) in lines {
            assert_eq!(line(&row), expected);
        }
    }

    #[test]
    fn a_quick_run_says_so_first() {
        let mut provenance = example();
        provenance.quick = Some("50 pairs per rank instead of 1000".into());
        assert!(render(&rows(), Some(&provenance)).starts_with("QUICK RUN: 50 pairs"));
    }

    #[test]
    fn unsimulated_figures_are_never_within() {
        let all: Vec<Row> = figures::all().map(Row::unsimulated).collect();
        let text = render(&all, None);
        assert!(!text.contains("Predictions:"));
        assert!(text.contains("counted nowhere"));
    }
}
