//! Rows for people.

use super::row::Row;
use comfy_table::{Cell, CellAlignment, Table};

pub(super) fn filled(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.set_header(["job", "moves", "states", "transitions", "longest path", "s", "result"]);
    for row in rows {
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(&row.name),
            Cell::new(if row.apart { "apart" } else { "at once" }),
            number(row.states.to_string()),
            number(row.transitions.to_string()),
            number(row.longest_path.to_string()),
            number(format!("{:.1}", row.seconds)),
            Cell::new(row.result()),
        ]);
    }
    table
}
