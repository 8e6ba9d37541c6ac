//! The page of documentation of `reproduce --docs`.

use crate::arguments::Reproduce;
use observe::{Output, emit};
use repro::{
    documented::{Block, with_blocks},
    figures::Paper,
    outcome::Row,
    prdma_paper,
};
use std::{error::Error, fs, io::Write as _, path::PathBuf};

/// A page whose blocks the results of a run fill. It is read before the simulation.
pub(crate) struct Page {
    path: PathBuf,
    old: String,
}

impl Page {
    pub(crate) fn read(path: &std::path::Path) -> Result<Page, Box<dyn Error>> {
        let old = fs::read_to_string(path).map_err(|error| format!("{} can't be read: {error}", path.display()))?;
        Ok(Page { path: path.to_owned(), old })
    }

    /// Writes the blocks, or compares them if `--check` is set. Returns whether the page has the
    /// results of this run.
    pub(crate) fn documents(&self, options: &Reproduce, rows: &[Row]) -> Result<bool, Box<dyn Error>> {
        let papers = options.papers();
        let mut blocks: Vec<Block> = papers.iter().map(|paper| Block::figures(*paper, rows)).collect();
        if papers.contains(&Paper::Prdma) {
            let forms = prdma_paper::forms()?;
            blocks.extend(forms.iter().filter(|form| form.title.starts_with("Fig. 8 (B)")).map(Block::form));
        }
        let path = self.path.display();
        let new = with_blocks(&self.old, &blocks).map_err(|error| format!("{path}: {error}"))?;
        if !options.check {
            Output::open(&self.path)?.write(|mut file| file.write_all(new.as_bytes()))?;
            emit(format_args!("docs: {path}"));
            return Ok(true);
        }
        if new == self.old {
            return Ok(true);
        }
        // Lines of blocks: all others are equal.
        let missing = new.lines().filter(|line| !self.old.lines().any(|old| old == *line));
        missing.for_each(|line| emit(format_args!("check: {path} lacks: {line}")));
        Ok(false)
    }
}
