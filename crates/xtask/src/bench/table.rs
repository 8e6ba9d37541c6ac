//! Rows for people: on a terminal, and as Markdown.

use super::{placement::Class, report::Report, rows::Row};
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle, presets::ASCII_MARKDOWN};
use std::fmt::Write;

/// One rule under the header, nothing else.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

const HEADER: [&str; 12] = [
    "case",
    "what",
    "size",
    "class",
    "ping-pong",
    "min",
    "median",
    "limit",
    "limit min",
    "limit median",
    "ratio",
    "goal",
];

/// For a terminal, with a summary.
pub(super) fn terminal(report: &Report) -> String {
    let mut table = filled(&report.rows, |row| row.name.clone());
    table.load_style(RULED_HEADER);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    format!("{}\n\n{}", table.trim_fmt(), summary(report))
}

/// For a page.
pub(super) fn markdown(report: &Report) -> String {
    let mut table = filled(&report.rows, |row| format!("`{}`", row.name));
    table.load_style(ASCII_MARKDOWN);
    format!("{}\n{}\n", summary(report), table.trim_fmt())
}

fn filled(rows: &[Row], name: impl Fn(&Row) -> String) -> Table {
    let mut table = Table::new();
    table.set_header(HEADER.into_iter().chain(["verdict"]));
    for row in rows {
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let limit = |f: fn(&super::rows::Limit) -> String| row.limit.as_ref().map_or_else(|| "–".into(), f);
        table.add_row([
            Cell::new(name(row)),
            Cell::new(&row.what),
            number(size(row.bytes)),
            Cell::new(row.class.name()),
            number(time(row.ping_pong_ns)),
            number(time(row.figure.min_ns)),
            number(time(row.figure.median_ns)),
            Cell::new(limit(|limit| limit.form.clone())),
            number(limit(|limit| time(limit.figure.min_ns))),
            number(limit(|limit| time(limit.figure.median_ns))),
            number(row.ratio.map_or_else(|| "–".into(), |ratio| format!("×{ratio:.2}"))),
            Cell::new(row.goal.map_or_else(|| "–".into(), |goal| goal.text())),
            Cell::new(verdict(row)),
        ]);
    }
    table
}

fn verdict(row: &Row) -> &'static str {
    match (row.goal, row.met) {
        (None, _) => "no goal",
        (Some(_), Some(true)) => "met",
        (Some(_), Some(false)) => "MISSED",
        (Some(_), None) if row.class == Class::Any => "unclean",
        (Some(_), None) => "no limit",
    }
}

/// What was measured, where, and how many goals are met.
fn summary(report: &Report) -> String {
    let (run, machine) = (&report.run, &report.machine);
    let mut out = String::new();
    let cores = machine.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
    let quick = if run.quick { "QUICK RUN, its figures say little: " } else { "" };
    writeln!(out, "{quick}`{}`, {}, {:.0} s, commit {}.", run.command, run.date, run.seconds, run.commit).ok();
    writeln!(out, "{}, kernel {}, cores {cores}.", machine.processor, machine.kernel).ok();
    writeln!(out, "Load average before the run {}, after it {}.", machine.load_before, machine.load_after).ok();
    let judged = report.rows.iter().filter(|row| row.met.is_some()).count();
    let met = report.rows.iter().filter(|row| row.met == Some(true)).count();
    writeln!(out, "Goals met: {met} of {judged}.").ok();
    out
}

/// A power of two in its unit.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0 => "–".into(),
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// Nanoseconds, in three digits or so.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns < 10.0 => format!("{ns:.2} ns"),
        ns if ns < 100.0 => format!("{ns:.1} ns"),
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e4 => format!("{:.2} µs", ns / 1e3),
        ns if ns < 1e5 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e6 => format!("{:.0} µs", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_read_well() {
        assert_eq!([0, 8, 65_536, 16 << 20].map(size), ["–", "8 B", "64 KiB", "16 MiB"]);
        assert_eq!(
            [1.234, 54.32, 230.4, 1_234.0, 54_321.0, 645_000.0, 1_234_567.0].map(time),
            ["1.23 ns", "54.3 ns", "230 ns", "1.23 µs", "54.3 µs", "645 µs", "1.23 ms"]
        );
    }
}
