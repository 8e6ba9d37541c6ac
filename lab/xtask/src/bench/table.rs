//! Human-readable tables of rows: on a terminal, as Markdown, and (`bench --compare BEFORE AFTER`)
//! next to those of another run.

use super::{
    placement::Class,
    report::{Report, SCHEMA},
    rows::Row,
};
use crate::page;
use comfy_table::{Cell, CellAlignment, Table, presets::NOTHING};
use std::{error::Error, fmt::Write, fs, path::Path};

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

/// Formats a report for a terminal, with a summary.
pub(super) fn terminal(report: &Report) -> String {
    format!("{}\n\n{}", page::terminal(filled(&report.rows, |row| row.name.clone())), summary(report))
}

/// Formats a report for a page.
pub(super) fn markdown(report: &Report) -> String {
    format!("{}\n{}\n", summary(report), page::markdown(filled(&report.rows, |row| format!("`{}`", row.name))))
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

/// Returns the measured command, the machine, and the number of goals met.
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

/// Formats a power of two in its unit.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0 => "–".into(),
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// Formats nanoseconds with about three digits.
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

/// Returns the comparison of two files that `--json` wrote.
pub(super) fn compare(before: &Path, after: &Path) -> Result<String, Box<dyn Error>> {
    let (before, after) = (read(before)?, read(after)?);
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        "case",
        "size",
        "class",
        "before min",
        "median",
        "after min",
        "median",
        "min",
        "median",
        "verdict",
    ]);
    let mut alone = Vec::new();
    for row in &after.rows {
        let Some(old) = before.rows.iter().find(|old| is_same(old, row)) else {
            alone.push(row);
            continue;
        };
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        let ratio = |new: f64, old: f64| number(format!("×{:.2}", new / old));
        table.add_row([
            Cell::new(&row.name),
            number(size(row.bytes)),
            Cell::new(row.class.name()),
            number(time(old.figure.min_ns)),
            number(time(old.figure.median_ns)),
            number(time(row.figure.min_ns)),
            number(time(row.figure.median_ns)),
            ratio(row.figure.min_ns, old.figure.min_ns),
            ratio(row.figure.median_ns, old.figure.median_ns),
            Cell::new(match (old.met, row.met) {
                (Some(false), Some(true)) => "now met",
                (Some(true), Some(false)) => "NO LONGER MET",
                (_, Some(true)) => "met",
                (_, Some(false)) => "missed",
                _ => "",
            }),
        ]);
    }
    alone.extend(before.rows.iter().filter(|old| !after.rows.iter().any(|row| is_same(old, row))));
    let mut text = format!("{}\n", table.trim_fmt());
    if !alone.is_empty() {
        text.push_str("In one of the runs only: ");
        let names = alone.iter().map(|row| format!("{} {} {}", row.name, size(row.bytes), row.class.name()));
        text.push_str(&names.collect::<Vec<_>>().join(", "));
        text.push('\n');
    }
    Ok(text)
}

/// Returns whether two rows are compared; figures of different classes never are.
fn is_same(a: &Row, b: &Row) -> bool {
    (&a.name, a.bytes, a.class) == (&b.name, b.bytes, b.class)
}

fn read(path: &Path) -> Result<Report, Box<dyn Error>> {
    let at = |error: &dyn Error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| at(&error))?;
    let report: Report = serde_json::from_str(&text).map_err(|error| at(&error))?;
    if report.schema != SCHEMA {
        return Err(format!("{}: schema {} where {SCHEMA} is known", path.display(), report.schema).into());
    }
    Ok(report)
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
