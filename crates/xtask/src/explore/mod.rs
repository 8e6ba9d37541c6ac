//! `cargo xtask explore`: the locks with queues, and persistent exchanges without, under every delivery order, right and with each of their steps done wrong.
//!
//! Programs, bounds and mutations are those of their own tests. `docs/verification.md` says what is proven.

#[path = "../../../rma-lock/tests/delivery/cases.rs"]
mod cases;
#[path = "../../../rma-lock/tests/mutant/mod.rs"]
#[allow(dead_code, unused_imports, reason = "shared with tests that need more of it")]
mod mutant;
#[path = "../../../rma-lock/tests/delivery/nodes_cases.rs"]
mod nodes_cases;
mod persistent;
#[path = "../../../rma-lock/tests/delivery/program.rs"]
mod program;
mod row;
mod table;

use crate::progress::Progress;
use cases::{Case, Mutation, cases, mutations};
use clap::Args;
use mutant::Step;
use row::Row;
use std::{
    error::Error,
    fs,
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
    time::Instant,
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only what takes less than some seconds; that is what `cargo test` explores as well.
    #[arg(long)]
    quick: bool,
    /// Stop a case at so many states; each takes 16 to 40 bytes.
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    states: u64,
    /// Only cases and mutations with one of these in their names.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    only: Vec<String>,
    /// Show the timelines of counter-examples.
    #[arg(long)]
    timelines: bool,
    /// Write the result as JSON; `-` is standard output, without the table.
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    json: Option<PathBuf>,
    /// Rewrite the part of this page between `<!-- begin explorer -->` and `<!-- end explorer -->`.
    #[arg(long, value_name = "PAGE")]
    markdown: Option<PathBuf>,
    /// List what would be explored.
    #[arg(long)]
    list: bool,
}

/// One thing to explore.
#[derive(Clone, Copy)]
enum Item {
    Right(Case),
    Wrong(Mutation),
    Nodes(nodes_cases::Case),
    NodesWrong(nodes_cases::Mistaken),
    Exchange(persistent::member::Case),
    ExchangeWrong(persistent::spoiled::Mistaken),
}

impl Item {
    fn name(&self) -> String {
        match self {
            Item::Right(case) => format!("{}: {}", case.subject.name(), case.name),
            Item::Wrong(mutation) => {
                let roles: Vec<_> = mutation.roles.iter().map(|role| format!("{role:?}")).collect();
                let lock = mutation.subject.name();
                format!("{lock}: {:?} ({}, x{})", mutation.step, roles.join(" "), mutation.rounds)
            }
            Item::Nodes(case) => case.name(),
            Item::NodesWrong(mistaken) => format!("{:?} ({})", mistaken.wrong, mistaken.case.name()),
            Item::Exchange(case) => format!("exchange: {}", case.name),
            Item::ExchangeWrong(mistaken) => format!("exchange: {}", mistaken.name()),
        }
    }

    fn explore(&self, states: u64, progress: &Progress) -> Row {
        let (subject, roles, rounds, step) = match self {
            Item::Right(case) => (case.subject, case.roles, case.rounds, Step::Right),
            Item::Wrong(mutation) => (mutation.subject, mutation.roles, mutation.rounds, mutation.step),
            Item::Nodes(case) => return self.explore_nodes(case, None, states, progress),
            Item::NodesWrong(mistaken) => {
                return self.explore_nodes(&mistaken.case, Some(mistaken.wrong), states, progress);
            }
            Item::Exchange(case) => return self.explore_exchange(case, None, states, progress),
            Item::ExchangeWrong(mistaken) => {
                return self.explore_exchange(&mistaken.case, Some(mistaken), states, progress);
            }
        };
        let start = Instant::now();
        let explorer = program::explorer(roles)
            .state_limit(states)
            .watch(|now| progress.look(now.states, now.transitions, now.depth));
        let report = explorer.run(program::job(subject, roles, rounds, step));
        let at_least = if let Item::Right(case) = self { case.at_least } else { 0 };
        Row::new(self.name(), step != Step::Right, at_least, &report, start.elapsed())
    }

    fn explore_nodes(
        &self,
        case: &nodes_cases::Case,
        wrong: Option<nodes_cases::Wrong>,
        states: u64,
        progress: &Progress,
    ) -> Row {
        let start = Instant::now();
        let explorer = nodes_cases::explorer(case)
            .state_limit(states)
            .watch(|now| progress.look(now.states, now.transitions, now.depth));
        let report = explorer.run(nodes_cases::job(case, wrong));
        Row::new(self.name(), wrong.is_some(), case.at_least, &report, start.elapsed())
    }

    fn explore_exchange(
        &self,
        case: &persistent::member::Case,
        mistaken: Option<&persistent::spoiled::Mistaken>,
        states: u64,
        progress: &Progress,
    ) -> Row {
        let start = Instant::now();
        let explorer = persistent::exchange::explorer(case)
            .state_limit(states)
            .watch(|now| progress.look(now.states, now.transitions, now.depth));
        let report = match mistaken {
            None => explorer.run(persistent::exchange::job(*case)),
            Some(mistaken) => explorer.run(mistaken.job()),
        };
        Row::new(self.name(), mistaken.is_some(), case.at_least, &report, start.elapsed())
    }
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let right = cases().filter(|case| case.quick || !options.quick).map(Item::Right);
    let wrong = mutations().filter(|mutation| mutation.quick || !options.quick).map(Item::Wrong);
    let wanted = |item: &Item| options.only.is_empty() || options.only.iter().any(|part| item.name().contains(part));
    let nodes = nodes_cases::CASES.iter().filter(|case| case.quick || !options.quick).map(|case| Item::Nodes(*case));
    let nodes_wrong = nodes_cases::MISTAKES.iter().map(|mistaken| Item::NodesWrong(*mistaken));
    let exchanges = persistent::cases::CASES.iter().filter(|case| case.quick || !options.quick);
    let exchanges = exchanges.map(|case| Item::Exchange(*case));
    let exchanges_wrong = persistent::spoiled::MISTAKES.iter().map(|mistaken| Item::ExchangeWrong(*mistaken));
    let items: Vec<_> = right
        .chain(wrong)
        .chain(nodes)
        .chain(nodes_wrong)
        .chain(exchanges)
        .chain(exchanges_wrong)
        .filter(wanted)
        .collect();
    let mut out = io::stdout().lock();
    if items.is_empty() {
        return Err("no case has such a name; --list shows them".into());
    }
    if options.list {
        for item in &items {
            writeln!(out, "{}", item.name())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = Vec::new();
    for item in &items {
        let progress = Progress::new(&item.name());
        rows.push(item.explore(options.states, &progress));
        progress.end();
    }
    let to_stdout = options.json.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if let Some(path) = &options.json {
        let json = serde_json::to_string_pretty(&rows)?;
        if to_stdout { writeln!(out, "{json}")? } else { fs::write(path, json)? }
    }
    if !to_stdout {
        writeln!(out, "{}\n\n{}", crate::page::terminal(table::filled(&rows)), table::summary(&rows))?;
        if options.timelines {
            for row in rows.iter().filter(|row| !row.timeline.is_empty()) {
                writeln!(out, "\n{}: {}", row.name, row.what.as_deref().unwrap_or_default())?;
                row.timeline.iter().try_for_each(|line| writeln!(out, "  {line}"))?;
            }
        }
    }
    if let Some(path) = &options.markdown {
        fs::write(
            path,
            crate::page::rewritten(
                &fs::read_to_string(path)?,
                crate::page::named("explorer"),
                &crate::page::markdown(table::filled(&rows)),
            )?,
        )?;
    }
    Ok(if rows.iter().all(|row| row.as_expected) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
