//! Parts of Markdown pages that commands rewrite, and tables for them and for terminals.

use comfy_table::{LineStyle, Table, TableStyle, presets::ASCII_MARKDOWN};

/// One rule under the header, nothing else.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// Formats a table for a terminal.
pub(crate) fn terminal(mut table: Table) -> String {
    table.load_style(RULED_HEADER);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.trim_fmt()
}

/// Formats a table for a page.
pub(crate) fn markdown(mut table: Table) -> String {
    table.load_style(ASCII_MARKDOWN);
    table.trim_fmt()
}

/// Returns the markers of a part called `name`: `<!-- begin name -->` and `<!-- end name -->`.
pub(crate) fn named(name: &str) -> [String; 2] {
    ["begin", "end"].map(|which| format!("<!-- {which} {name} -->"))
}

/// Returns the markers of a measurement's part: `<!-- name:begin -->` and `<!-- name:end -->`.
#[cfg(target_os = "linux")]
pub(crate) fn measured(name: &str) -> [String; 2] {
    ["begin", "end"].map(|which| format!("<!-- {name}:{which} -->"))
}

/// Returns `page` with `text` between its `markers`.
///
/// # Errors
/// A message that describes the problem with the markers.
pub(crate) fn rewritten(page: &str, markers: [String; 2], text: &str) -> Result<String, String> {
    let once = |marker: &str| match page.match_indices(marker).collect::<Vec<_>>()[..] {
        [(at, _)] => Ok(at),
        _ => Err(format!("the page must have {marker} exactly once")),
    };
    let [begin, end] = markers;
    let (start, stop) = (once(&begin)?, once(&end)?);
    if stop < start {
        return Err(format!("{end} stands before {begin}"));
    }
    Ok(format!("{}{begin}\n{}\n{}", &page[..start], text.trim_end(), &page[stop..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "above\n<!-- begin twin -->\nold\n<!-- end twin -->\nbelow <!-- begin x --><!-- end x -->\n";
        let new = rewritten(page, named("twin"), "new\n\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(rewritten(&new, named("twin"), "new").unwrap(), new);
        assert!(rewritten(&new, named("x"), "more").unwrap().contains("begin x -->\nmore\n<!-- end x"));
        assert!(rewritten(page, named("explorer"), "").is_err());
        let mut table = Table::new();
        table.set_header(["case"]);
        let new = rewritten(page, named("twin"), &markdown(table)).unwrap();
        assert!(new.starts_with("above\n<!-- begin twin -->\n| case") && !new.contains("old"), "{new}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pages_without_a_place_are_refused() {
        let [begin, end] = &measured("bench");
        assert_eq!((&begin[..], &end[..]), ("<!-- bench:begin -->", "<!-- bench:end -->"));
        for page in ["", begin, end, &format!("{end}{begin}"), &format!("{begin}{begin}{end}")] {
            assert!(rewritten(page, measured("bench"), "").is_err(), "{page}");
        }
    }
}
