//! Formatting rows as tables: all of them for a terminal, side by side for a page.

use super::row::{LockRow, Quantiles};
use crate::quantity::{rate, three, time};
use comfy_table::{Cell, Table};
use evidence::page::{self, number};
use repro::workloads::locks::Workload;

/// Returns a line for each row.
pub(super) fn terminal(rows: &[LockRow]) -> String {
    let simulated = rows.iter().any(|row| row.simulation.is_some());
    let mut table = Table::new();
    let last = if simulated { "atomics" } else { "ping-pong" };
    table.set_header([
        "workload",
        "ranks",
        "writers",
        "lock",
        "per s",
        "least",
        "most",
        "acquire",
        "p50",
        "p99",
        "p99.9",
        "longest",
        "pair",
        "p50",
        "readers p99.9",
        "writers p50",
        "p99.9",
        "Jain",
        "max/min",
        last,
    ]);
    for row in rows {
        let (case, waits) = (&row.case, &row.waits);
        let last = match (&row.simulation, row.ping_pong_ns) {
            (Some(simulation), _) => format!("{:.2}", simulation.atomics_per_acquisition),
            (None, Some(ns)) => time(ns),
            (None, None) => "–".into(),
        };
        let cut = if row.cut { "*" } else { "" };
        let mut cells = vec![
            Cell::new(case.workload),
            number(case.ranks.to_string()),
            number(case.writers.to_string()),
            Cell::new(&case.lock),
        ];
        cells.extend(
            [
                format!("{}{cut}", rate(row.throughput.median)),
                rate(row.throughput.min),
                rate(row.throughput.max),
                part(waits.acquire, |all| all.mean_ns),
                part(waits.acquire, |all| all.p50_ns as f64),
                part(waits.acquire, |all| all.p99_ns as f64),
                part(waits.acquire, |all| all.p999_ns as f64),
                part(waits.acquire, |all| all.longest_ns as f64),
                part(waits.pair, |all| all.mean_ns),
                part(waits.pair, |all| all.p50_ns as f64),
                part(waits.readers, |all| all.p999_ns as f64),
                part(waits.writers, |all| all.p50_ns as f64),
                part(waits.writers, |all| all.p999_ns as f64),
                format!("{:.3}", row.fairness.jain),
                row.fairness.max_over_min.map_or_else(|| "∞".into(), three),
                last,
            ]
            .map(number),
        );
        table.add_row(cells);
    }
    format!("{}\n{}", page::terminal(table), note(rows))
}

/// Returns two tables: throughput with the locks side by side, and latencies of [`Workload::Lb`].
pub(super) fn markdown(rows: &[LockRow]) -> String {
    let mut out = String::new();
    let (about_latency, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.case.workload.is_about_latency());
    if !others.is_empty() {
        out.push_str("Acquisitions a second of all ranks together; in brackets Jain's index over the ranks.\n\n");
        out.push_str(&side_by_side(&others));
        out.push_str("\n\n");
    }
    if !about_latency.is_empty() {
        out.push_str(&format!("Latencies of {}.\n\n", Workload::Lb));
        out.push_str(&latencies(&about_latency));
        out.push_str("\n\n");
    }
    out.push_str(note(rows));
    format!("{}\n", out.trim_end())
}

fn side_by_side(rows: &[&LockRow]) -> String {
    let mut locks: Vec<&str> = Vec::new();
    for row in rows {
        if !locks.contains(&&row.case.lock[..]) {
            locks.push(&row.case.lock);
        }
    }
    let mut table = Table::new();
    table.set_header(["workload", "ranks", "writers"].into_iter().chain(locks.iter().copied()));
    let key = |row: &LockRow| (row.case.workload, row.case.ranks, row.case.writers);
    let mut shown = Vec::new();
    for row in rows {
        if shown.contains(&key(row)) {
            continue;
        }
        shown.push(key(row));
        let of_lock = |lock: &&str| {
            let beside = rows.iter().find(|other| key(other) == key(row) && other.case.lock == **lock);
            number(beside.map_or_else(
                || "–".into(),
                |row| {
                    let cut = if row.cut { "*" } else { "" };
                    format!("{}{cut} ({:.2})", rate(row.throughput.median), row.fairness.jain)
                },
            ))
        };
        let mut cells = vec![
            Cell::new(row.case.workload),
            number(row.case.ranks.to_string()),
            number(row.case.writers.to_string()),
        ];
        cells.extend(locks.iter().map(of_lock));
        table.add_row(cells);
    }
    page::markdown(table)
}

fn latencies(rows: &[&LockRow]) -> String {
    let mut table = Table::new();
    table.set_header([
        "ranks",
        "writers",
        "lock",
        "acquire: mean",
        "p50",
        "p99",
        "p99.9",
        "and release: mean",
        "p50",
        "p99",
        "p99.9",
        "readers p99.9",
        "writers p50",
        "writers p99.9",
    ]);
    for row in rows {
        let of = |all: Option<Quantiles>| {
            let at = |pick: fn(Quantiles) -> f64| part(all, pick);
            [
                at(|all| all.mean_ns),
                at(|all| all.p50_ns as f64),
                at(|all| all.p99_ns as f64),
                at(|all| all.p999_ns as f64),
            ]
        };
        let mut cells =
            vec![number(row.case.ranks.to_string()), number(row.case.writers.to_string()), Cell::new(&row.case.lock)];
        cells.extend(of(row.waits.acquire).into_iter().chain(of(row.waits.pair)).map(number));
        cells.push(number(part(row.waits.readers, |all| all.p999_ns as f64)));
        cells.push(number(part(row.waits.writers, |all| all.p50_ns as f64)));
        cells.push(number(part(row.waits.writers, |all| all.p999_ns as f64)));
        table.add_row(cells);
    }
    page::markdown(table)
}

fn note(rows: &[LockRow]) -> &'static str {
    match rows.iter().any(|row| row.cut) {
        true => {
            "* Time was over before all ranks had done their acquisitions; what was not completed does not count.\n"
        }
        false => "",
    }
}

fn part(all: Option<Quantiles>, pick: impl Fn(Quantiles) -> f64) -> String {
    all.map_or_else(|| "–".into(), |all| time(pick(all)))
}

#[cfg(test)]
mod tests {
    use super::super::row::LockCase;
    use super::*;
    use repro::workloads::locks::{RankRecord, WriterShare};

    fn row(workload: Workload, lock: &str, cut: bool) -> LockRow {
        let record = RankRecord { completed: [30, 0], elapsed: 1_000_000, gave_up: cut, ..RankRecord::default() };
        let case = LockCase { workload, writers: WriterShare::per_mille(2), ranks: 1, lock: lock.to_owned() };
        LockRow::of(case, &[vec![record]], &[]).expect("a row")
    }

    #[test]
    fn locks_stand_side_by_side() {
        let rows = [row(Workload::Ecsb, "a", false), row(Workload::Ecsb, "b", true), row(Workload::Sob, "b", false)];
        let page = markdown(&rows);
        assert!(page.contains("30.0 M (1.00)") && page.contains("30.0 M* (1.00)"), "{page}");
        let lines: Vec<&str> = page.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(lines.len(), 4, "{page}");
        assert!(lines[3].contains("SOB") && lines[3].contains('–'), "{page}");
        assert!(page.ends_with("does not count.\n"), "{page}");
    }

    #[test]
    fn the_terminal_has_every_row() {
        let text = terminal(&[row(Workload::Lb, "a", false), row(Workload::Dht, "b", false)]);
        assert!(text.contains("LB") && text.contains("DHT") && !text.contains('*'), "{text}");
    }
}
