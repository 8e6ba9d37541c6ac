//! Output of the rows of a search: to a terminal, as JSON, to a page.

use clap::Args;
use comfy_table::Table;
use evidence::page;
use serde::Serialize;
use std::{error::Error, fs, path::PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Output {
    /// Write the result as JSON; `-` is standard output, without the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Write the table into this file, in place of an earlier one.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
    /// List the names without searching.
    #[arg(long)]
    list: bool,
}

impl Output {
    /// Lists the names of the searches, if only the list is requested, and returns whether it is.
    ///
    /// # Errors
    /// If there are no names: no `what` has such a name. If the page has no `part` to rewrite,
    /// which is better detected before a long search.
    pub(crate) fn lists(&self, what: &str, names: &[&str], part: &str) -> Result<bool, Box<dyn Error>> {
        if names.is_empty() {
            return Err(format!("no {what} has such a name; --list shows them").into());
        }
        if let Some(path) = &self.markdown {
            page::Part::of(path, part)?;
        }
        if self.list {
            names.iter().for_each(|name| println!("{name}"));
        }
        Ok(self.list)
    }

    /// Returns whether only JSON is requested on standard output.
    pub(crate) fn is_json(&self) -> bool {
        self.json.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// Writes `rows`, which `table` formats; `part` is the name of the page's part.
    pub(crate) fn write(
        &self,
        part: &str,
        rows: &[impl Serialize],
        table: impl Fn() -> Table,
    ) -> Result<(), Box<dyn Error>> {
        if let Some(path) = &self.json {
            let json = serde_json::to_string_pretty(rows)?;
            if self.is_json() { println!("{json}") } else { fs::write(path, json)? }
        }
        if !self.is_json() {
            println!("{}", page::terminal(table()));
        }
        if let Some(path) = &self.markdown {
            page::Part::of(path, part)?.write(&page::markdown(table()))?;
        }
        Ok(())
    }
}
