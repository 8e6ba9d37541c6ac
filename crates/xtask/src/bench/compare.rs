//! `bench --compare BEFORE AFTER`: the ratio of each row that both runs have.

use super::{
    report::{Report, SCHEMA},
    rows::Row,
    table::{size, time},
};
use comfy_table::{Cell, CellAlignment, Table, presets::NOTHING};
use std::{error::Error, fs, path::Path};

/// The comparison of two files that `--json` wrote.
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

/// Figures of different classes are never compared.
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
