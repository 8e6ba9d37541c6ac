//! The part of a Markdown page that a run rewrites.

const BEGIN: &str = "<!-- bench:begin -->";
const END: &str = "<!-- bench:end -->";

/// `page` with `text` between its markers.
///
/// # Errors
/// What is wrong with the markers.
pub(super) fn rewritten(page: &str, text: &str) -> Result<String, String> {
    let once = |marker: &str| match page.match_indices(marker).collect::<Vec<_>>()[..] {
        [(at, _)] => Ok(at),
        _ => Err(format!("the page must have {marker} exactly once")),
    };
    let (begin, end) = (once(BEGIN)?, once(END)?);
    if end < begin {
        return Err(format!("{END} stands before {BEGIN}"));
    }
    Ok(format!("{}{BEGIN}\n{}\n{}", &page[..begin], text.trim_end(), &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_markers_changes() {
        let page = "above\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nbelow\n";
        let new = rewritten(page, "new\n\n").unwrap();
        assert_eq!(new, "above\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nbelow\n");
        assert_eq!(rewritten(&new, "new").unwrap(), new);
    }

    #[test]
    fn pages_without_a_place_are_refused() {
        for page in [
            "",
            BEGIN,
            END,
            "<!-- bench:end --><!-- bench:begin -->",
            "<!-- bench:begin --><!-- bench:begin --><!-- bench:end -->",
        ] {
            assert!(rewritten(page, "").is_err(), "{page}");
        }
    }
}
