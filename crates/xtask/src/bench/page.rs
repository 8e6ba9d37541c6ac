//! The part of a Markdown page that a run rewrites.

/// `page` with `text` between `<!-- name:begin -->` and `<!-- name:end -->`.
///
/// # Errors
/// What is wrong with the markers.
pub(super) fn rewritten(page: &str, name: &str, text: &str) -> Result<String, String> {
    let (begin_marker, end_marker) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let once = |marker: &str| match page.match_indices(marker).collect::<Vec<_>>()[..] {
        [(at, _)] => Ok(at),
        _ => Err(format!("the page must have {marker} exactly once")),
    };
    let (begin, end) = (once(&begin_marker)?, once(&end_marker)?);
    if end < begin {
        return Err(format!("{end_marker} stands before {begin_marker}"));
    }
    Ok(format!("{}{begin_marker}\n{}\n{}", &page[..begin], text.trim_end(), &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page =
            "above\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nbelow <!-- locks:begin --><!-- locks:end -->\n";
        let new = rewritten(page, "bench", "new\n\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(rewritten(&new, "bench", "new").unwrap(), new);
        assert!(rewritten(&new, "locks", "more").unwrap().contains("begin -->\nmore\n<!-- locks:end"));
    }

    #[test]
    fn pages_without_a_place_are_refused() {
        let (begin, end) = ("<!-- bench:begin -->", "<!-- bench:end -->");
        for page in ["", begin, end, &format!("{end}{begin}"), &format!("{begin}{begin}{end}")] {
            assert!(rewritten(page, "bench", "").is_err(), "{page}");
        }
    }
}
