//! Tables of figures, as text and as JSON.

use crate::quantity::Unit;
use comfy_table::{Cell, Table};
use evidence::page::{self, number};
use serde::{Serialize, Serializer, ser::SerializeMap};

/// An entry of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    Text(String),
    Count(u64),
    Figure(f64, Unit),
    None,
}

impl Entry {
    /// Returns the entry of a figure that may be missing.
    pub(crate) fn figure(figure: Option<f64>, unit: Unit) -> Self {
        figure.map_or(Entry::None, |figure| Entry::Figure(figure, unit))
    }

    fn cell(&self) -> Cell {
        match self {
            Entry::Text(text) => Cell::new(text),
            Entry::Count(count) => number(count),
            Entry::Figure(figure, unit) => number(unit.text(*figure)),
            Entry::None => number("–"),
        }
    }
}

impl From<&str> for Entry {
    fn from(text: &str) -> Self {
        Entry::Text(text.to_owned())
    }
}

impl From<String> for Entry {
    fn from(text: String) -> Self {
        Entry::Text(text)
    }
}

impl From<usize> for Entry {
    fn from(count: usize) -> Self {
        Entry::Count(count as u64)
    }
}

impl From<u64> for Entry {
    fn from(count: u64) -> Self {
        Entry::Count(count)
    }
}

/// Returns the entry of a time in nanoseconds.
pub(crate) fn ns(time: f64) -> Entry {
    Entry::Figure(time, Unit::Nanoseconds)
}

/// Returns the entry of a time in picoseconds.
pub(crate) fn picos(time: u64) -> Entry {
    ns(time as f64 * 1e-3)
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Entry::Text(text) => to.serialize_str(text),
            Entry::Count(count) => to.serialize_u64(*count),
            Entry::Figure(figure, _) => to.serialize_f64(*figure),
            Entry::None => to.serialize_none(),
        }
    }
}

/// A table with a title. As JSON each row is an object with the columns' names as keys; figures are in ns, bytes,
/// parts of a CPU, per second, or ratios.
#[derive(Clone, Debug)]
pub(crate) struct Sheet {
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<Entry>>,
}

impl Sheet {
    /// Creates a table without rows. The columns' names are all different.
    pub(crate) fn new<C: Into<String>>(title: impl Into<String>, columns: impl IntoIterator<Item = C>) -> Self {
        Sheet { title: title.into(), columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.rows.push(entries.into_iter().collect());
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.set_header(&self.columns);
        for row in &self.rows {
            table.add_row(row.iter().map(Entry::cell));
        }
        table
    }
}

/// Formats tables for a terminal.
pub(crate) fn terminal(sheets: &[Sheet]) -> String {
    let text = |sheet: &Sheet| format!("{}\n{}\n", sheet.title, page::terminal(sheet.table()));
    sheets.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// Formats tables for a page.
pub(crate) fn markdown(sheets: &[Sheet]) -> String {
    let text = |sheet: &Sheet| format!("{}:\n\n{}\n", sheet.title, page::markdown(sheet.table()));
    sheets.iter().map(text).collect::<Vec<_>>().join("\n")
}

struct Row<'a>(&'a [String], &'a [Entry]);

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().zip(self.1))
    }
}

impl Serialize for Sheet {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(2))?;
        map.serialize_entry("title", &self.title)?;
        let rows: Vec<_> = self.rows.iter().map(|row| Row(&self.columns, row)).collect();
        map.serialize_entry("rows", &rows)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_three_forms() {
        let mut sheet = Sheet::new("Times", ["case", "bytes", "took", "ratio"]);
        sheet.row(["put".into(), 8usize.into(), picos(1_500_000), Entry::figure(Some(2.0), Unit::Times)]);
        sheet.row(["get".into(), 8usize.into(), ns(3.0), Entry::figure(None, Unit::Times)]);
        let json = serde_json::to_string(&sheet).unwrap();
        assert_eq!(
            json,
            r#"{"title":"Times","rows":[{"case":"put","bytes":8,"took":1500.0,"ratio":2.0},{"case":"get","bytes":8,"took":3.0,"ratio":null}]}"#
        );
        let (page, text) = (markdown(&[sheet.clone(), sheet.clone()]), terminal(&[sheet]));
        assert!(page.starts_with("Times:\n\n| case") && page.contains("\n\nTimes:"), "{page}");
        assert!(text.contains("1.50 µs") && text.contains("×2.00") && text.contains('–'), "{text}");
    }
}
