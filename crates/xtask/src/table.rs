//! Tables of what was explored: on a terminal, and as a part of a page.

use comfy_table::{LineStyle, Table, TableStyle, presets::ASCII_MARKDOWN};

/// One rule under the header, nothing else.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// For a terminal.
pub(crate) fn terminal(mut table: Table) -> String {
    table.load_style(RULED_HEADER);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.trim_fmt()
}

/// `page` with this table between `<!-- begin name -->` and `<!-- end name -->`.
///
/// # Errors
/// If the page has no place for it.
pub(crate) fn rewritten(page: &str, name: &str, mut table: Table) -> Result<String, String> {
    let [begin, end] = ["begin", "end"].map(|which| format!("<!-- {which} {name} -->"));
    table.load_style(ASCII_MARKDOWN);
    let (above, rest) = page.split_once(&begin).ok_or_else(|| format!("the page has no {begin}"))?;
    let (_, below) = rest.split_once(&end).ok_or_else(|| format!("the page has no {end} after {begin}"))?;
    Ok(format!("{above}{begin}\n{}\n{end}{below}", table.trim_fmt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let table = || {
            let mut table = Table::new();
            table.set_header(["case"]);
            table
        };
        let page = "above\n<!-- begin twin -->\nold\n<!-- end twin -->\nbelow\n";
        let new = rewritten(page, "twin", table()).unwrap();
        assert!(new.starts_with("above\n<!-- begin twin -->\n| case"), "{new}");
        assert!(new.ends_with("\n<!-- end twin -->\nbelow\n") && !new.contains("old"), "{new}");
        assert_eq!(rewritten(&new, "twin", table()).unwrap(), new);
        assert!(rewritten("", "twin", table()).is_err() && rewritten("<!-- begin twin -->", "twin", table()).is_err());
        assert!(rewritten(page, "explorer", table()).is_err());
    }
}
