//! Parts of pages under `docs/`, each between two markers, that the suite compares with its
//! results, or replaces.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The variable that makes the suite rewrite parts instead of comparing them; `cargo xtask` sets
/// it.
pub(crate) const WRITE: &str = "CONFORMANCE_WRITE";

/// Returns the path of a page, from the root of the repository.
fn path(page: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let has_docs = |dir: &&Path| dir.join("docs/contract").is_dir();
    package.ancestors().find(has_docs).unwrap_or(package).join(page)
}

/// Returns a page's text.
pub(crate) fn read(page: &str) -> String {
    fs::read_to_string(path(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// A part of a page, from `<!-- begin NAME … -->` to `<!-- end NAME -->`.
pub(crate) struct Part {
    pub(crate) page: &'static str,
    pub(crate) name: &'static str,
}

impl Part {
    /// Returns the text before, in and after the part; the markers' lines stay outside.
    fn split<'a>(&self, text: &'a str) -> (&'a str, &'a str, &'a str) {
        let missing = |marker: &str| -> ! { panic!("{} has no line with {marker:?}", self.page) };
        let (begin, end) = (format!("<!-- begin {}", self.name), format!("<!-- end {} -->", self.name));
        let start = text.find(&begin).unwrap_or_else(|| missing(&begin));
        let start = start + text[start..].find('\n').unwrap_or_else(|| missing(&begin)) + 1;
        let stop = start + text[start..].find(&end).unwrap_or_else(|| missing(&end));
        (&text[..start], &text[start..stop], &text[stop..])
    }

    /// Compares the part with `found`, or replaces it if [`WRITE`] is set, as `command` does.
    pub(crate) fn settle(&self, found: &str, command: &str) {
        let text = read(self.page);
        let (before, stands, after) = self.split(&text);
        if env::var_os(WRITE).is_some() {
            let written = fs::write(path(self.page), format!("{before}{found}{after}"));
            written.unwrap_or_else(|error| panic!("{}: {error}", self.page));
            return println!("{} rewritten: {}", self.page, self.name);
        }
        assert!(
            stands == found,
            "{}, {}, does not say what was found; `{command}` rewrites it. It says\n{stands}\nand should say\n{found}",
            self.page,
            self.name
        );
    }
}
