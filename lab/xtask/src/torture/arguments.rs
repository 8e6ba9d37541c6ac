//! Wrong, missing, huge, negative and non-UTF-8 values of every option, and closed standard
//! descriptors.

mod tables;

use super::{
    cgroup::Groups,
    environment::{Environment, Launch},
    fault::{Fault, Outcome},
    limits::Limits,
    run::{Run, panic_in, place, shell_code, tail},
};
use std::{
    error::Error,
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    process::Command,
    time::Duration,
};
use tables::{CLOSED, DESCRIPTORS, HUGE, Kind, LAUNCH, LINES, ROOM, SUBCOMMANDS, VALUES, VARIABLES};

/// A safeguard.
const BOUND: Duration = Duration::from_secs(30);

pub(super) fn all() -> usize {
    (LAUNCH.len() + VARIABLES.len() + SUBCOMMANDS.len()) * VALUES.len()
        + LINES.len()
        + HUGE.len()
        + CLOSED.len() * DESCRIPTORS.len()
}

pub(super) fn case(environment: &Environment, number: usize) -> Result<Outcome, Box<dyn Error>> {
    // Tables alternate, so that any few cases cover all of them.
    let values = VALUES.len();
    let tables = [
        LAUNCH.len() * values,
        VARIABLES.len() * values,
        SUBCOMMANDS.len() * values,
        LINES.len(),
        HUGE.len(),
        CLOSED.len() * DESCRIPTORS.len(),
    ];
    let (table, at) = turn(&tables, number).ok_or("there is no such case")?;
    let value = VALUES[at % values];
    match table {
        0 => option(environment, LAUNCH[at / values], value),
        1 => variable(environment, VARIABLES[at / values], value),
        2 => subcommand(environment, SUBCOMMANDS[at / values], value),
        3 => {
            let (line, codes, name) = LINES[at];
            tried(environment, line.to_owned(), shell(environment, line), codes, &[name])
        }
        4 => huge(environment, HUGE[at]),
        _ => closed(environment, CLOSED[at / DESCRIPTORS.len()], DESCRIPTORS[at % DESCRIPTORS.len()]),
    }
}

/// Returns the table of a case and its position in the table, if tables of these lengths alternate.
fn turn(tables: &[usize], number: usize) -> Option<(usize, usize)> {
    let longest = tables.iter().copied().max()?;
    let turns = (0..longest)
        .flat_map(|at| (0..tables.len()).filter(move |table| at < tables[*table]).map(move |table| (table, at)));
    turns.into_iter().nth(number)
}

fn shown(words: &[&OsStr]) -> String {
    words.iter().map(|word| format!("{:?}", word.display().to_string())).collect::<Vec<_>>().join(" ")
}

/// Returns the codes for a value of an option of this kind: a usage error, unless the value may be
/// right, or only the system can decide.
fn codes(kind: Kind, value: Option<&[u8]>) -> &'static [i32] {
    match kind {
        _ if value.is_none_or(|value| value.is_empty()) => &[2],
        Kind::Number | Kind::Name => &[2],
        Kind::File => &[1, 2],
        Kind::Text => &[0, 1, 2],
    }
}

fn option(
    environment: &Environment,
    (option, kind, with): (&str, Kind, &[&str]),
    (what, value): (&str, Option<&[u8]>),
) -> Result<Outcome, Box<dyn Error>> {
    if with.contains(&"cluster")
        && let Some(why) = environment.obstacle(Launch::Cluster)
    {
        return Ok(Outcome::skipped(format!("{option}: {what}"), why));
    }
    let mut command = Command::new(&environment.program);
    command.args(["words", "--for", "0"]).args(with).arg(option).args(value.map(OsStr::from_bytes));
    let words: Vec<&OsStr> = command.get_args().collect();
    let what = format!("{what}: torture_rank {}", shown(&words));
    tried(environment, what, command, codes(kind, value), &[option])
}

fn variable(
    environment: &Environment,
    (name, kind): (&str, Kind),
    (what, value): (&str, Option<&[u8]>),
) -> Result<Outcome, Box<dyn Error>> {
    let Some(value) = value else {
        return Ok(Outcome::skipped(format!("{name}: {what}"), "an unset variable is none"));
    };
    let mut command = Command::new(&environment.program);
    command.args(["words", "--for", "0"]).env(name, OsString::from(OsStr::from_bytes(value)));
    let what = format!("{what}: {name}={:?} torture_rank words", OsStr::from_bytes(value).display().to_string());
    tried(environment, what, command, codes(kind, Some(value)), &[name])
}

fn subcommand(
    environment: &Environment,
    (name, option, kind): (&str, &str, Kind),
    (what, value): (&str, Option<&[u8]>),
) -> Result<Outcome, Box<dyn Error>> {
    let mut command = Command::new(&environment.onesided);
    command.arg(name);
    if name == "run" && option != "--ranks" {
        command.args(["--ranks", "1"]);
    }
    command.arg(option).args(value.map(OsStr::from_bytes));
    if name == "run" && value.is_some() {
        command.args(["--", "true"]);
    }
    let words: Vec<&OsStr> = command.get_args().collect();
    let what = format!("{what}: onesided {}", shown(&words));
    // Clap takes a negative number for an option. It names UTF-8 only for options without a list of values.
    let named = match value {
        _ if name == "no-such-command" => name,
        Some(b"-1") => "-1",
        Some(value) if std::str::from_utf8(value).is_err() && option != "--shapes" => "UTF-8",
        _ => option,
    };
    tried(environment, what, command, codes(kind, value), &[named])
}

/// Returns a command of the shell, for which `$0` is `onesided` and `$1` is `torture_rank`.
fn shell(environment: &Environment, line: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec {line}")).args([&environment.onesided, &environment.program]);
    command
}

fn huge(environment: &Environment, (line, name): (&str, &str)) -> Result<Outcome, Box<dyn Error>> {
    if line.contains("cluster")
        && let Some(why) = environment.obstacle(Launch::Cluster)
    {
        return Ok(Outcome::skipped(line.to_owned(), why));
    }
    match Groups::new(ROOM.0, ROOM.1) {
        Err(why) => Ok(Outcome::skipped(line.to_owned(), why)),
        Ok(_) => tried(
            environment,
            format!("within {} MiB: {line}", ROOM.0 >> 20),
            shell(environment, line),
            &[1, 2],
            &[name],
        ),
    }
}

fn closed(environment: &Environment, (line, codes): (&str, &[i32]), which: &str) -> Result<Outcome, Box<dyn Error>> {
    if line.contains("cluster")
        && let Some(why) = environment.obstacle(Launch::Cluster)
    {
        return Ok(Outcome::skipped(line.to_owned(), why));
    }
    tried(environment, format!("{line} {which}"), shell(environment, &format!("{line} {which}")), codes, &[])
}

/// Runs a command that has to end with one of these codes, and for a non-zero code, with a message
/// that has all these words.
fn tried(
    environment: &Environment,
    what: String,
    command: Command,
    codes: &[i32],
    names: &[&str],
) -> Result<Outcome, Box<dyn Error>> {
    // No interpretation of a value may exhaust the machine.
    let groups = Groups::new(ROOM.0, ROOM.1).ok();
    let paths = groups.as_ref().map_or_else(Vec::new, |groups| groups.paths().to_vec());
    let limits = Limits { address_space: Some(16 << 30), groups: paths, ..Limits::default() };
    let mut outcome = Outcome::of(what);
    let run = Run::start(limits.around(&environment.xtask, &command), place()?)?;
    let ended = run.end(0, BOUND, Duration::from_secs(10))?;
    outcome.faults = ended.faults;
    let Some(status) = ended.status else { return Ok(outcome) };
    let (code, said) = (shell_code(status), tail(&ended.err));
    let said = if said.is_empty() { tail(&ended.out) } else { said };
    if !codes.contains(&code) {
        outcome.faults.push(Fault::Code(format!("{code} instead of {codes:?}: {said}")));
    }
    outcome.faults.extend(panic_in(&ended.err).or_else(|| debug_in(&ended.err)));
    if code != 0
        && let Some(name) = names.iter().find(|name| !ended.err.contains(**name))
    {
        outcome.faults.push(Fault::Nameless(format!("`{name}` is not named: {said}")));
    }
    Ok(outcome)
}

/// Returns a fault if a message holds the `Debug` form of a value.
fn debug_in(text: &str) -> Option<Fault> {
    const MARKS: [&str; 8] = ["Some(", "None)", "Err(", "Ok(", " { ", ": []", "ParseIntError", "Utf8Error"];
    let line = text.lines().find(|line| MARKS.iter().any(|mark| line.contains(mark)))?;
    Some(Fault::Nameless(format!("the Debug form of a value: {}", line.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_has_its_turn() {
        let turns: BTreeSet<_> = (0..6).map(|number| turn(&[3, 1, 2], number)).collect();
        assert_eq!(turns.len(), 6);
        assert!(!turns.contains(&None));
        assert_eq!(turn(&[3, 1, 2], 6), None);
        assert!(turn(&[1, 1], 1) == Some((1, 0)));
    }

    #[test]
    fn debug_forms_are_found() {
        assert!(debug_in("error: ranks that did not come in time: []").is_some());
        assert_eq!(debug_in("Usage: onesided run [OPTIONS] --ranks <N> -- <PROGRAM ARGS>..."), None);
    }
}
