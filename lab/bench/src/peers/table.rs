//! Formatting rows as tables.

use super::sweep::SweepRow;
use crate::{
    locks::row::Quantiles,
    quantity::{rate, three, time},
};
use comfy_table::{Cell, Table};
use evidence::page::{self, number};
use repro::quantity;

/// Returns a line for each row, with the cost of its simulation.
pub(super) fn terminal(rows: &[SweepRow]) -> String {
    format!("{}\n{}", page::terminal(table(rows, true)), note(rows))
}

/// Returns a line for each row.
pub(super) fn markdown(rows: &[SweepRow]) -> String {
    format!("{}\n\n{}", page::markdown(table(rows, false)), note(rows)).trim_end().to_owned() + "\n"
}

fn table(rows: &[SweepRow], with_cost: bool) -> Table {
    let mut table = Table::new();
    let columns = ["clients", "locks", "skew", "writers", "lock", "per s", "p50", "p99", "Jain", "atomics", "gets"];
    table.set_header(columns.into_iter().chain(with_cost.then_some("CPU s")));
    for row in rows {
        let cut = if row.cut { "*" } else { "" };
        let wait =
            |pick: fn(&Quantiles) -> u64| row.acquire.as_ref().map_or_else(|| "–".into(), |all| time(pick(all) as f64));
        let skew = if row.locks.number == 1 { "–".into() } else { three(row.locks.skew) };
        let mut cells = vec![
            number(quantity::count(u64::from(row.clients))),
            number(row.locks.number.to_string()),
            number(skew),
            number(row.writers.to_string()),
            Cell::new(row.lock),
        ];
        cells.extend(
            [
                format!("{}{cut}", rate(row.throughput)),
                wait(|all| all.p50_ns),
                wait(|all| all.p99_ns),
                format!("{:.2}", row.fairness.jain),
                three(row.operations[0]),
                three(row.operations[1]),
            ]
            .map(number),
        );
        cells.extend(with_cost.then(|| number(format!("{:.1}", row.cpu_seconds))));
        table.add_row(cells);
    }
    table
}

fn note(rows: &[SweepRow]) -> &'static str {
    match rows.iter().any(|row| row.cut) {
        true => {
            "* Time was over before all clients had done their acquisitions; what was not completed counts neither in the \
             throughput nor in the waits.\n"
        }
        false => "",
    }
}
