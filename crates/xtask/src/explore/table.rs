//! Rows for people: on a terminal, and as a part of a page.

use super::row::Row;
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle, presets::ASCII_MARKDOWN};

/// One rule under the header, nothing else.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

const BEGIN: &str = "<!-- begin explorer -->";
const END: &str = "<!-- end explorer -->";

fn filled(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.set_header(["case", "states", "transitions", "longest path", "s", "result"]);
    for row in rows {
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(&row.name),
            number(row.states.to_string()),
            number(row.transitions.to_string()),
            number(row.longest_path.to_string()),
            number(format!("{:.1}", row.seconds)),
            Cell::new(row.result()),
        ]);
    }
    table
}

/// For a terminal.
pub(super) fn terminal(rows: &[Row]) -> String {
    let mut table = filled(rows);
    table.load_style(RULED_HEADER);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    let unexpected = rows.iter().filter(|row| !row.as_expected).count();
    format!("{}\n\n{} of {} as expected\n", table.trim_fmt(), rows.len() - unexpected, rows.len())
}

/// `page` with these rows between its markers.
///
/// # Errors
/// If the page has no place for them.
pub(super) fn rewritten(page: &str, rows: &[Row]) -> Result<String, String> {
    let mut table = filled(rows);
    table.load_style(ASCII_MARKDOWN);
    let (above, rest) = page.split_once(BEGIN).ok_or_else(|| format!("the page has no {BEGIN}"))?;
    let (_, below) = rest.split_once(END).ok_or_else(|| format!("the page has no {END} after {BEGIN}"))?;
    Ok(format!("{above}{BEGIN}\n{}\n{END}{below}", table.trim_fmt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "above\n<!-- begin explorer -->\nold\n<!-- end explorer -->\nbelow\n";
        let new = rewritten(page, &[]).unwrap();
        assert!(new.starts_with("above\n<!-- begin explorer -->\n| case"), "{new}");
        assert!(new.ends_with("\n<!-- end explorer -->\nbelow\n") && !new.contains("old"), "{new}");
        assert_eq!(rewritten(&new, &[]).unwrap(), new);
        assert!(rewritten("", &[]).is_err() && rewritten(BEGIN, &[]).is_err());
    }
}
