//! `cargo xtask prose`: counts turns of phrase that documentation of the field avoids, in whole-line
//! comments of Rust files and in Markdown, outside of code blocks and tables.

use crate::tree::{self, SourceFile};
use clap::Args;
use std::{
    error::Error,
    io::{Write, stdout},
    process::ExitCode,
};

/// Phrases that all files together may have for each 1,000 lines.
const ALL: usize = 3;
/// Phrases that one file may have for each 1,000 lines; every file may have one.
const EACH: usize = 15;

/// Single words: a component in place of a person, a noun in place of a clause.
const WORDS: [&str; 6] = ["nobody", "whoever", "who", "told", "tell", "tells"];
/// Two words, each one of a list.
const PAIRS: [(&[&str], &[&str]); 5] = [
    (&["so"], &["many"]),
    (&["under"], &["way"]),
    (&["is", "are", "was", "were"], &["over"]),
    (&["go", "goes", "went", "going"], &["on"]),
    (
        &["what"],
        &[
            "is", "are", "was", "were", "has", "have", "had", "the", "a", "an", "it", "they", "this", "that", "comes",
            "came", "come", "stands", "waits", "belongs", "may", "can", "must",
        ],
    ),
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Fail if a file has more than 15 phrases for each 1,000 lines, or all together more than 3.
    #[arg(long)]
    check: bool,
    /// List the N files with the most phrases.
    #[arg(long, value_name = "N", default_value_t = 15)]
    files: usize,
}

/// The lines of prose of a file, and the phrases in them.
#[derive(Debug, Default)]
struct Count {
    name: String,
    lines: usize,
    phrases: usize,
}

impl Count {
    fn is_above(&self, limit: usize) -> bool {
        self.phrases > (self.lines * limit).div_ceil(1000)
    }
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let files = tree::files(&["rs", "md"])?;
    let mut counts: Vec<_> = files.into_iter().map(|SourceFile { name, text }| count(name, &text)).collect();
    counts.sort_by(|a, b| b.phrases.cmp(&a.phrases).then_with(|| a.name.cmp(&b.name)));
    let mut failed = false;
    let mut out = stdout().lock();
    for (kind, suffix) in [("comments", ".rs"), ("Markdown", ".md")] {
        let of_kind = || counts.iter().filter(|count| count.name.ends_with(suffix));
        let (lines, phrases) = of_kind().fold((0, 0), |sum, count| (sum.0 + count.lines, sum.1 + count.phrases));
        let rate = 1000.0 * phrases as f64 / lines.max(1) as f64;
        writeln!(out, "{kind}: {phrases} phrases in {lines} lines, {rate:.1} for each 1,000; the limit is {ALL}")?;
        failed |= Count { lines, phrases, ..Count::default() }.is_above(ALL);
    }
    for count in counts.iter().filter(|count| count.phrases > 0).take(options.files) {
        let above = if count.is_above(EACH) { ", above the limit" } else { "" };
        writeln!(out, "{:5} in {:5} lines  {}{above}", count.phrases, count.lines, count.name)?;
    }
    failed |= counts.iter().any(|count| count.is_above(EACH));
    Ok(if failed && options.check { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn count(name: String, text: &str) -> Count {
    let mut count = Count { name, ..Count::default() };
    let (is_markdown, mut is_code) = (count.name.ends_with(".md"), false);
    for line in text.lines().map(str::trim) {
        let prose = if is_markdown {
            is_code ^= line.starts_with("```");
            !is_code && !line.is_empty() && !line.starts_with('|') && !line.starts_with("```")
        } else {
            let text = line.strip_prefix("//").map(|text| text.trim_start_matches(['/', '!', ' ']));
            is_code &= text.is_some();
            let is_fence = text.is_some_and(|text| text.starts_with("```"));
            is_code ^= is_fence;
            text.is_some() && !is_code && !is_fence
        };
        if prose {
            count.lines += 1;
            count.phrases += phrases(line);
        }
    }
    count
}

/// Returns the number of phrases in a line.
fn phrases(line: &str) -> usize {
    let line = line.to_lowercase();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<_> = line.split(|letter| !is_word(letter)).collect();
    let single = words.iter().filter(|word| WORDS.contains(word)).count();
    let pairs = line.split(|letter: char| !is_word(letter) && letter != ' ').map(|part| {
        let words: Vec<_> = part.split_whitespace().collect();
        let is_phrase =
            |pair: &&[&str]| PAIRS.iter().any(|(first, second)| first.contains(&pair[0]) && second.contains(&pair[1]));
        words.windows(2).filter(is_phrase).count()
    });
    single + pairs.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_counted_by_word() {
        for (line, expected) in [
            ("// Nobody is told; whoever waits goes on.", 4),
            ("/// The operation is over, and what it found is here.", 2),
            ("// What\u{2019}s under way: so many, whole, overall, prologue, foretold", 2),
            ("// is: over, go `on`, what, the", 0),
            ("// Returns the operations in flight.", 0),
        ] {
            assert_eq!(phrases(line), expected, "{line}");
        }
    }

    #[test]
    fn only_prose_counts() {
        let rust = count("a.rs".into(), "// who\nlet who = 1; // who\n/// fine\n/// ```\n/// who\n/// ```\n");
        assert_eq!((rust.lines, rust.phrases), (2, 1));
        let page = count("a.md".into(), "who\n\n```text\nwho\n```\n| who |\n");
        assert_eq!((page.lines, page.phrases), (1, 1));
    }

    #[test]
    fn limits_are_for_each_thousand_lines() {
        let is_above = |lines, phrases, limit| Count { lines, phrases, ..Count::default() }.is_above(limit);
        assert!(!is_above(10, 1, EACH) && is_above(10, 2, EACH));
        assert!(!is_above(2000, 30, EACH) && is_above(2000, 31, EACH));
    }
}
