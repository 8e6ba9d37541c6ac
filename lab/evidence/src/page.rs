//! Parts of Markdown pages that commands rewrite, and tables for them and for terminals.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle, presets::ASCII_MARKDOWN};
use std::{
    error::Error,
    fmt::Display,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// One rule under the header, nothing else.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));

/// Formats a table for a terminal.
pub fn terminal(mut table: Table) -> String {
    table.load_style(RULED_HEADER);
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    table.trim_fmt()
}

/// Formats a table for a page.
pub fn markdown(mut table: Table) -> String {
    table.load_style(ASCII_MARKDOWN);
    table.trim_fmt()
}

/// Returns a cell whose text is aligned at the right, such as a number.
pub fn number(text: impl ToString) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// The folder of the files that commands write by default, relative to the workspace's root.
pub const EVIDENCE: &str = "target/evidence";

/// A part of a Markdown file, between `<!-- begin NAME -->` and `<!-- end NAME -->`. Writing creates
/// the folder, the file and the part if they are missing.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    name: String,
}

impl Part {
    /// Returns a part of the file at `path`, for a command that measures before it writes.
    ///
    /// # Errors
    /// A message that names the file: it cannot be read, or its markers do not form a part.
    pub fn of(path: &Path, name: &str) -> Result<Part, Box<dyn Error>> {
        let part = Part { path: path.to_owned(), name: name.to_owned() };
        part.rewritten("")?;
        Ok(part)
    }

    /// Returns a part of a file in [`EVIDENCE`].
    ///
    /// # Errors
    /// As [`Part::of`].
    pub fn of_evidence(file: &str, name: &str) -> Result<Part, Box<dyn Error>> {
        Part::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(EVIDENCE).join(file), name)
    }

    /// Replaces the part with `text`. Reads the file again first, because other commands may have
    /// changed it.
    ///
    /// # Errors
    /// Like that of [`Part::of`], or that the file cannot be written.
    pub fn write(&self, text: &str) -> Result<(), Box<dyn Error>> {
        let page = self.rewritten(text)?;
        let folder = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(&self.path, page)).map_err(|error| self.problem(&error))?;
        Ok(())
    }

    fn rewritten(&self, text: &str) -> Result<String, Box<dyn Error>> {
        let page = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            page => page.map_err(|error| self.problem(&error))?,
        };
        Ok(rewritten(&page, &self.name, text).map_err(|problem| self.problem(&problem))?)
    }

    fn problem(&self, problem: &dyn Display) -> String {
        format!("{}: {problem}", self.path.display())
    }
}

/// Returns `page` with `text` as its part `name`, which is added at the end if the page lacks it.
fn rewritten(page: &str, name: &str, text: &str) -> Result<String, String> {
    let (begin, end) = (format!("<!-- begin {name} -->"), format!("<!-- end {name} -->"));
    let text = text.trim_end();
    let once = |marker: &str| match page.match_indices(marker).collect::<Vec<_>>()[..] {
        [] => Ok(None),
        [(at, _)] => Ok(Some(at)),
        _ => Err(format!("{marker} occurs more than once")),
    };
    match (once(&begin)?, once(&end)?) {
        (None, None) => Ok(format!("{page}{begin}\n{text}\n{end}\n")),
        (Some(start), Some(stop)) if start < stop => {
            Ok(format!("{}{begin}\n{text}\n{}", &page[..start], &page[stop..]))
        }
        _ => Err(format!("{begin} and {end} do not enclose a part")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_between_the_markers_changes() {
        let page = "above\n<!-- begin twin -->\nold\n<!-- end twin -->\nbelow\n";
        let new = rewritten(page, "twin", "new\n\n").unwrap();
        assert_eq!(new, page.replace("old", "new"));
        assert_eq!(rewritten(&new, "twin", "new").unwrap(), new);
        assert_eq!(rewritten(page, "x", "more").unwrap(), format!("{page}<!-- begin x -->\nmore\n<!-- end x -->\n"));
        let mut table = Table::new();
        table.set_header(["case"]);
        let new = rewritten(page, "twin", &markdown(table)).unwrap();
        assert!(new.starts_with("above\n<!-- begin twin -->\n| case") && !new.contains("old"), "{new}");
    }

    #[test]
    fn markers_without_a_part_are_refused() {
        let (begin, end) = ("<!-- begin x -->", "<!-- end x -->");
        for page in [begin, end, &format!("{end}{begin}"), &format!("{begin}{begin}{end}")] {
            assert!(rewritten(page, "x", "").is_err(), "{page}");
        }
    }

    #[test]
    fn a_missing_file_is_created_with_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("evidence/page.md");
        let parts = ["one", "two"].map(|name| Part::of(&path, name).unwrap());
        assert!(!path.exists());
        parts.iter().for_each(|part| part.write("text").unwrap());
        let found = fs::read_to_string(&path).unwrap();
        assert_eq!(found, "<!-- begin one -->\ntext\n<!-- end one -->\n<!-- begin two -->\ntext\n<!-- end two -->\n");
        fs::write(&path, "<!-- end one -->").unwrap();
        let error = parts[0].write("text").unwrap_err().to_string();
        assert!(error.contains("page.md: <!-- begin one -->"), "{error}");
    }
}
