//! Blocks of a page of documentation that a command writes, and that CI compares.
//!
//! A block is what lies between a line `<!-- reproduce: NAME -->` and the next line `<!-- end -->`.

use crate::{figures::Paper, outcome::Row, prdma_paper::FormTrace, quantity, table, tally::Tally};

/// A block with its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    name: String,
    text: String,
}

/// A page lacks a block, or the end of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    /// There is no such block.
    #[error("the page has no block \"{0}\"")]
    NoBlock(String),
    /// A block has no end.
    #[error("the block \"{0}\" has no end")]
    NoEnd(String),
}

/// The line at the end of a block.
const END: &str = "<!-- end -->";

impl Block {
    /// Returns the table of a paper's rows, with a summary and what is free in the model.
    pub fn figures(paper: Paper, rows: &[Row]) -> Block {
        let rows: Vec<Row> = rows.iter().filter(|row| row.paper == paper).cloned().collect();
        let mut text =
            "| figure | what | published | ours | null model | verdict |\n|---|---|---|---|---|---|\n".to_owned();
        for row in &rows {
            let value = |value: Option<f64>| value.map_or("–".into(), |value| quantity::with_unit(value, &row.unit));
            let cells = [
                row.id.clone(),
                table::what(row),
                table::published(row),
                value(row.simulated),
                value(row.null),
                table::verdict(row),
            ];
            text.push_str(&format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | ")));
        }
        text.push('\n');
        for line in table::summary(&Tally::of(&rows)) {
            text.push_str(&format!("{line}\n"));
        }
        text.push_str(&format!("\n**Free in the model.** {}\n", paper.free()));
        Block { name: paper.name().to_owned(), text }
    }

    /// Returns the commands of one iteration of a form of persistent exchange.
    pub fn form(form: &FormTrace) -> Block {
        let name = form.title.split(':').next().unwrap_or_default().to_owned();
        Block { name, text: format!("```text\n{}```\n", form.text()) }
    }

    fn begin(&self) -> String {
        format!("<!-- reproduce: {} -->", self.name)
    }
}

/// Returns the page with these blocks in place of its own; all other text stays.
///
/// # Errors
/// [`BadPage`] if the page lacks a block.
pub fn with_blocks(page: &str, blocks: &[Block]) -> Result<String, BadPage> {
    let mut page = page.to_owned();
    for block in blocks {
        let begin = format!("{}\n", block.begin());
        let from = page.find(&begin).ok_or_else(|| BadPage::NoBlock(block.name.clone()))? + begin.len();
        let to = from + page[from..].find(END).ok_or_else(|| BadPage::NoEnd(block.name.clone()))?;
        page.replace_range(from..to, &block.text);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    const PAGE: &str = include_str!("../../../docs/papers/reproducing.md");

    #[test]
    fn only_the_block_changes() {
        let blocks = [Block { name: "acp".into(), text: "new\n".into() }];
        let page = "before\n<!-- reproduce: acp -->\nold\nold\n<!-- end -->\nafter\n";
        let changed = with_blocks(page, &blocks).expect("a block");
        assert_eq!(changed, "before\n<!-- reproduce: acp -->\nnew\n<!-- end -->\nafter\n");
        assert_eq!(with_blocks(&changed, &blocks).as_ref(), Ok(&changed));
        assert_eq!(with_blocks("nothing", &blocks), Err(BadPage::NoBlock("acp".into())));
        assert_eq!(with_blocks("<!-- reproduce: acp -->\n", &blocks), Err(BadPage::NoEnd("acp".into())));
    }

    #[test]
    fn the_page_has_a_row_for_every_figure_with_its_published_value() {
        for paper in Paper::ALL {
            let begin = format!("<!-- reproduce: {paper} -->\n");
            let from = PAGE.find(&begin).unwrap_or_else(|| panic!("no block {paper}")) + begin.len();
            let block = &PAGE[from..from + PAGE[from..].find(END).expect("an end")];
            for figure in figures::of(paper) {
                let row = block.lines().find(|line| line.starts_with(&format!("| {} |", figure.id)));
                let row = row.unwrap_or_else(|| panic!("{} is missing", figure.id));
                let published = table::published(&Row::unsimulated(figure));
                assert!(row.contains(&format!("| {published} |")), "{}: not {published} in {row}", figure.id);
            }
            assert!(block.contains(paper.free()), "{paper}");
        }
    }
}
