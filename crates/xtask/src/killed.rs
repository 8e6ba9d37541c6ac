//! Running a test of `rma-lock`'s killed processes with more than `cargo test` asks of it, and putting its table into `docs/verification.md`.

use crate::suite;
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{self, ExitCode},
};

/// Run the test `name` with these environment variables; if it passes and `write` is asked for, its table goes into the page's `part`.
pub(crate) fn run(
    name: &str,
    mut environment: Vec<(&str, String)>,
    part: &str,
    write: bool,
) -> Result<ExitCode, Box<dyn Error>> {
    let table = std::env::temp_dir().join(format!("onesided-killed-{}.md", process::id()));
    environment.push(("KILLED_TABLE", table.display().to_string()));
    let code = suite::run_of("rma-lock", "processes", name, &environment)?;
    let found = fs::read_to_string(&table);
    let _ = fs::remove_file(&table);
    if write && code == ExitCode::SUCCESS {
        let page: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/verification.md");
        let text = fs::read_to_string(&page).map_err(|error| format!("{}: {error}", page.display()))?;
        fs::write(&page, replaced(&text, part, &found?)?)?;
        println!("docs/verification.md rewritten: {part}");
    }
    Ok(code)
}

/// `page` with `text` between the markers of `part`.
fn replaced(page: &str, part: &str, text: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- begin {part} -->\n"), format!("<!-- end {part} -->"));
    let at = |marker: &str| page.find(marker).ok_or_else(|| format!("the page has no {marker:?}"));
    let (start, stop) = (at(&begin)? + begin.len(), at(&end)?);
    if stop < start {
        return Err(format!("{end} stands before {begin}"));
    }
    Ok(format!("{}{text}{}", &page[..start], &page[stop..]))
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_the_part_changes() {
        let page = "above\n<!-- begin x -->\nold\n<!-- end x -->\nbelow\n";
        let new = replaced(page, "x", "new\n").expect("both markers");
        assert_eq!(new, "above\n<!-- begin x -->\nnew\n<!-- end x -->\nbelow\n");
        assert!(replaced(page, "y", "").is_err());
        assert!(replaced("<!-- end x -->\n<!-- begin x -->\n", "x", "").is_err());
    }
}
