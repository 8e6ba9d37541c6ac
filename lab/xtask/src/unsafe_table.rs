//! `cargo xtask unsafe-table`: every use of `unsafe` in the workspace with the invariant on which
//! it relies, as `target/evidence/unsafe.md`.
//!
//! Files are read as tokens and not as syntax trees, because half of the uses are in macros, whose
//! bodies have no syntax tree.

mod scan;

use crate::tree::{self, SourceFile};
use clap::Args;
use scan::{Source, Use, UseKind};
use std::{error::Error, fmt::Write as _, fs, path::Path, process::ExitCode};

/// The page, from the workspace's root.
const PAGE: &str = "target/evidence/unsafe.md";

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Write nothing; fail if a use has no reason.
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let read = |SourceFile { name, text }| Source::read(&name, &text).map_err(|error| format!("{name}: {error}"));
    let sources = tree::files(&["rs"])?.into_iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let bare: Vec<_> =
        sources.iter().flat_map(|source| source.without_reason().map(move |use_| (source, use_))).collect();
    for (source, use_) in &bare {
        eprintln!("{}:{}: unsafe {} without a reason", source.name, use_.line, use_.kind);
    }
    if !bare.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    if options.check {
        let uses: usize = sources.iter().map(|source| source.uses.len()).sum();
        println!("{uses} uses of unsafe, each with its reason");
        return Ok(ExitCode::SUCCESS);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::write(path, write(&sources))?;
    println!("{PAGE} written");
    Ok(ExitCode::SUCCESS)
}

const HEAD: &str = "# Unsafe code

Written by `cargo xtask unsafe-table` from the sources; CI fails when a use has no reason. `unsafe_code` is denied in the whole
workspace and allowed in the modules below, and in tests of them. What a *fn* says is what its callers promise; what a *block* or *impl* says is why
it is sound. `docs/contract/soundness.md` describes the tests of these reasons.
";

fn write(sources: &[Source]) -> String {
    let (tests, product): (Vec<_>, Vec<_>) = sources
        .iter()
        .flat_map(|source| source.uses.iter().map(move |use_| (source, use_)))
        .partition(|(source, use_)| source.of_tests() || use_.of_tests());
    let mut page = HEAD.to_owned();
    let forbidding: Vec<_> = sources.iter().filter(|source| source.level == Some("forbid")).collect();
    let names = forbidding.iter().map(|source| format!("`{}`", source.name)).collect::<Vec<_>>().join(", ");
    line(&mut page, &format!("\nForbidden, so that no `allow` can bring it back, in the crates of {names}."));
    line(&mut page, &format!("\n{} in product code, {} in tests.", counted(&product), counted(&tests)));
    line(&mut page, "\n## Product code");
    section(&mut page, &product);
    line(&mut page, "\n## Tests, benches, examples");
    section(&mut page, &tests);
    page
}

fn line(page: &mut String, text: &str) {
    // Writing to a string can't fail.
    let _ = writeln!(page, "{text}");
}

fn counted(uses: &[(&Source, &Use)]) -> String {
    let count = |kind| uses.iter().filter(|(_, use_)| use_.kind == kind).count();
    let named = [
        (UseKind::Block, "blocks"),
        (UseKind::Function, "functions"),
        (UseKind::Impl, "impls"),
        (UseKind::Trait, "traits"),
        (UseKind::Foreign, "extern blocks"),
        (UseKind::Attribute, "attributes"),
    ];
    let all = named.into_iter().map(|(kind, name)| (count(kind), name)).filter(|(count, _)| *count > 0);
    let all: Vec<_> = all.map(|(count, name)| format!("{count} {name}")).collect();
    if all.is_empty() { "Nothing".to_owned() } else { all.join(", ") }
}

fn section(page: &mut String, uses: &[(&Source, &Use)]) {
    for of_file in uses.chunk_by(|(a, _), (b, _)| a.name == b.name) {
        let (source, _) = of_file[0];
        line(page, &format!("\n### `{}`\n{}\n", source.name, source.invariant));
        line(page, "| in | what | reason |\n|---|---|---|");
        let same = |(_, a): &(&Source, &Use), (_, b): &(&Source, &Use)| {
            (a.kind, &a.item, &a.reason) == (b.kind, &b.item, &b.reason)
        };
        for alike in of_file.chunk_by(same) {
            let (_, use_) = alike[0];
            let item = use_.item.iter().map(|item| format!("`{}`", shortened(item))).collect::<Vec<_>>().join(" › ");
            let times = if alike.len() > 1 { format!(" × {}", alike.len()) } else { String::new() };
            let reason = use_.reason.as_deref().unwrap_or("as declared by the trait").replace('|', "\\|");
            line(page, &format!("| {item} | {}{times} | {reason} |", use_.kind));
        }
    }
}

/// Returns an item's name: functions without the keyword, and nothing that would end a table's
/// cell.
fn shortened(item: &str) -> String {
    item.strip_prefix("fn ").unwrap_or(item).replace('|', "\\|")
}
