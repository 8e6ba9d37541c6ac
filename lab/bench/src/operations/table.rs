//! Human-readable tables of rows: on a terminal, as Markdown, and (`bench --compare BEFORE AFTER`)
//! next to those of another run.

use super::rows::Row;
use crate::{
    goal::Fault,
    outside::placement::Class,
    quantity::{Unit, size, time},
    report::{Report, SCHEMA},
};
use comfy_table::{Cell, Table, presets::NOTHING};
use evidence::page::{self, number};
use std::{error::Error, fs, path::Path};

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
pub(super) fn terminal(report: &Report<Row>) -> String {
    format!("{}\n\n{}", page::terminal(filled(&report.rows, |row| row.name.clone())), summary(report))
}

/// Formats a report for a page.
pub(super) fn markdown(report: &Report<Row>) -> String {
    format!("{}\n{}\n", summary(report), page::markdown(filled(&report.rows, |row| format!("`{}`", row.name))))
}

fn filled(rows: &[Row], name: impl Fn(&Row) -> String) -> Table {
    let mut table = Table::new();
    table.set_header(HEADER.into_iter().chain(["verdict"]));
    for row in rows {
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
            Cell::new(row.goal.map_or_else(|| "–".into(), |goal| goal.text(Unit::Nanoseconds))),
            Cell::new(verdict(row)),
        ]);
    }
    table
}

fn verdict(row: &Row) -> String {
    match (row.goal, row.met) {
        (None, _) => "no goal".to_owned(),
        (Some(_), Some(true)) => "met".to_owned(),
        (Some(_), Some(false)) => format!("MISSED: {}", row.fault.map_or("unknown", Fault::name)),
        (Some(_), None) if row.class == Class::Any => "unclean".to_owned(),
        (Some(_), None) => "no limit".to_owned(),
    }
}

/// Returns the measured command, the machine, and the numbers of goals met, and missed by fault.
fn summary(report: &Report<Row>) -> String {
    let judged = report.rows.iter().filter(|row| row.met.is_some()).count();
    let met = report.rows.iter().filter(|row| row.met == Some(true)).count();
    let missed = Fault::ALL.map(|fault| {
        let missed = report.rows.iter().filter(|row| row.fault == Some(fault)).count();
        format!("{missed} by {}", fault.name())
    });
    report.summary(&format!("Goals met: {met} of {judged}; missed: {}.\n", missed.join(", ")))
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

fn read(path: &Path) -> Result<Report<Row>, Box<dyn Error>> {
    let at = |error: &dyn Error| format!("{}: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| at(&error))?;
    let report: Report<Row> = serde_json::from_str(&text).map_err(|error| at(&error))?;
    // Version 1 names one of the goals differently.
    if !(1..=SCHEMA).contains(&report.schema) {
        return Err(format!("{}: schema {} where 1 to {SCHEMA} are known", path.display(), report.schema).into());
    }
    Ok(report)
}
