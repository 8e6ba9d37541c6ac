//! Tests that run longer here than under `cargo test`, and whose tables go into a page:
//! `cargo xtask kill`, `death`, `matrix` and `reduction`.

use crate::ofi;
use clap::Args;
use evidence::page;
use std::{
    env,
    error::Error,
    fs,
    process::{self, Command, ExitCode},
    time::SystemTime,
};

type Outcome = Result<ExitCode, Box<dyn Error>>;

/// The variable of `process_tests::table`.
const TABLE: &str = "TEST_TABLE";

/// Runs the test `name` of a package's target `test`, or all tests of a module (`name::`), with
/// these environment variables. Shows its output, and returns its exit code.
fn run_of(package: &str, test: &str, name: &str, environment: &[(&str, String)]) -> Outcome {
    let mut cargo = Command::new("cargo");
    cargo.args(["test", "--quiet", "--package", package, "--test", test]);
    if package == "fabric-ofi" {
        cargo.args(["--features", "ofi"]);
    }
    cargo.arg("--");
    cargo.args(["--nocapture", name]);
    if !name.ends_with("::") {
        cargo.arg("--exact");
    }
    cargo.envs(environment.iter().map(|(variable, value)| (variable, value)));
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The section of `target/evidence/kills.md` for the table of a test.
type Section = &'static str;

/// Runs a test of a package's target that publishes a table; if it passes and `section` is given, writes
/// the table there.
fn tabled([package, test, name]: [&str; 3], mut environment: Vec<(&str, String)>, section: Option<Section>) -> Outcome {
    let table = env::temp_dir().join(format!("onesided-table-{}.md", process::id()));
    environment.push((TABLE, table.display().to_string()));
    let code = run_of(package, test, name, &environment)?;
    let found = fs::read_to_string(&table);
    let _ = fs::remove_file(&table);
    if let Some(section) = section.filter(|_| code == ExitCode::SUCCESS) {
        page::Part::of_evidence("kills.md", section)?.write(&found?)?;
        println!("{}/kills.md: {section}", page::EVIDENCE);
    }
    Ok(code)
}

/// Returns the variable that lets a test rewrite its part of a page.
fn writing() -> (&'static str, String) {
    ("CONFORMANCE_WRITE", "1".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct KillOptions {
    /// Ranks and launchers to kill, one after the other.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,
    /// Draws cases, victims and delays; by the clock unless given.
    #[arg(long)]
    seed: Option<u64>,
    /// Kill ranks that hammer the lock that survives its ranks instead, at random moments.
    #[arg(long)]
    lock: bool,
    /// Kill ranks at each of the calls of the fabric that its operations make, one after the other.
    #[arg(long, conflicts_with_all = ["lock", "kills", "seed"])]
    points: bool,
}

/// Runs the kill campaigns, whose results go into `target/evidence/kills.md`.
pub(crate) fn kill(options: &KillOptions) -> Outcome {
    if options.points {
        let all = vec![("KILLED_POINTS", "all".to_owned())];
        return tabled(["rma-lock", "processes", "points::a_rank_dies_at_its_points"], all, Some("lock points"));
    }
    let by_clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let (kills, seed) = (options.kills.to_string(), options.seed.unwrap_or_else(by_clock).to_string());
    if options.lock {
        let drawn = vec![("KILLED_KILLS", kills), ("KILLED_SEED", seed)];
        return tabled(["rma-lock", "processes", "hammered::ranks_are_killed_at_random"], drawn, Some("lock kills"));
    }
    let drawn = vec![("CONFORMANCE_KILLS", kills), ("CONFORMANCE_SEED", seed)];
    let test = ["onesided", "it", "conformance::kill::a_kill_leaves_losses_and_nothing_else"];
    tabled(test, drawn, Some("kill campaign"))
}

#[derive(Debug, Args)]
pub(crate) struct DeathOptions {
    /// Deaths for each kind of wait and number of ranks, or of holder.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    deaths: u32,
    /// Measure until a survivor that waits for the lock is inside instead.
    #[arg(long, conflicts_with = "json")]
    lock: bool,
    /// Print JSON at the end, times in nanoseconds.
    #[arg(long)]
    json: bool,
    /// Put the table into `target/evidence/kills.md`.
    #[arg(long)]
    write: bool,
}

/// Measures the time until the others know that a rank was killed.
pub(crate) fn death(options: &DeathOptions) -> Outcome {
    if options.lock {
        let deaths = vec![("KILLED_DEATHS", options.deaths.to_string())];
        let section = options.write.then_some("lock death");
        return tabled(["rma-lock", "processes", "delays::a_survivor_is_inside_soon"], deaths, section);
    }
    let report = env::temp_dir().join(format!("onesided-death-{}.json", process::id()));
    let mut environment = vec![("CONFORMANCE_SAMPLES", options.deaths.to_string())];
    environment.push(("CONFORMANCE_REPORT", report.display().to_string()));
    let test = ["onesided", "it", "conformance::death::the_others_know_soon"];
    let code = tabled(test, environment, options.write.then_some("death"))?;
    let found = fs::read_to_string(&report);
    let _ = fs::remove_file(&report);
    if options.json {
        print!("{}", found?);
    }
    Ok(code)
}

/// Rewrites the capability matrix of `docs/evidence/capabilities.md`.
pub(crate) fn matrix() -> Outcome {
    let code = run_of("onesided", "it", "conformance::matrix::is_what_was_found", &[writing()])?;
    if let Some(missing) = ofi::missing() {
        println!("SKIPPED: the columns of clusters: {missing}");
        return Ok(code);
    }
    let clusters = run_of("fabric-ofi", "conformance", "matrix::is_what_was_found", &[writing()])?;
    Ok(if code == ExitCode::SUCCESS { clusters } else { code })
}

/// Compares explorations with and without shortcuts over all the random programs, of which
/// `cargo test` takes a tenth.
pub(crate) fn reduction() -> Outcome {
    run_of("onesided-explore", "it", "reduction::", &[("EXPLORE_PROGRAMS", "all".to_owned())])
}
