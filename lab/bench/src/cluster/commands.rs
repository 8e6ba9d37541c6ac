//! Commands of jobs on several nodes, and their measurements.

use crate::foreign::lines_of::Line;
use std::{error::Error, path::Path, process::Command};

/// Returns a scene of `in_cluster`, without its options.
pub(super) fn commands(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words);
    command
}

/// Adds the options of a job on several nodes.
pub(super) fn on_nodes(command: &mut Command, ranks: usize, per_node: usize, provider: (&str, Option<&str>)) {
    command.args(["--fabric", "cluster", "--ranks", &ranks.to_string(), "--ranks-per-node", &per_node.to_string()]);
    command.args(["--provider", provider.0]).args(provider.1.iter().flat_map(|name| ["--interface", name]));
}

/// Returns the numbers of the line that begins with `word`.
///
/// # Errors
/// If there is none, or it has other words behind that.
pub(super) fn numbers(lines: &[Line], word: &str) -> Result<Vec<f64>, Box<dyn Error>> {
    let found = lines.iter().find_map(|(line, _)| line.strip_prefix(word)?.strip_prefix(' '));
    let found = found.ok_or_else(|| format!("no line begins with `{word}`"))?;
    Ok(found.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}
