//! One run for each point of each scenario, in which the victim kills itself at that point.

use crate::{
    checked::Tally,
    job::launch,
    scenes::{Scene, VICTIM},
};
use checks::killed::Outcome;
use process_tests::table::publish;
use std::{collections::BTreeMap, env, fmt::Write, time::Instant};

/// Set to run all points.
const ALL: &str = "KILLED_POINTS";

/// The results of a scenario's runs.
#[derive(Default)]
struct Row {
    points: usize,
    killed: usize,
    /// The number of runs in which the victim passed fewer points than when they were counted.
    missed: usize,
    torn: usize,
    wrong: Vec<String>,
}

/// Makes one run. Returns the failures, whether the victim was killed, the number of times that
/// survivors found torn data, and the points passed.
fn run(scene: Scene, point: Option<usize>) -> (Vec<String>, bool, u64, Vec<String>) {
    let asked = match point {
        Some(point) => format!("scene {scene:?} {point}"),
        None => format!("scene {scene:?}"),
    };
    let report = launch(scene.ranks(), &asked);
    let (mut wrong, mut torn, mut wrote, mut version) = (Vec::new(), 0, 0, 0);
    let mut tallied = |tally: &Tally| {
        torn += tally.torn;
        wrote += tally.wrote;
        version = version.max(tally.version);
    };
    for (rank, outcome) in report.outcomes.iter().enumerate() {
        match outcome {
            Outcome::Ended(text) if rank < 3 => {
                tallied(&text.parse().unwrap_or_else(|error| panic!("{asked}: {error}")))
            }
            Outcome::Silent if rank == 3 || rank == VICTIM.index() && point.is_some() => {}
            other => wrong.push(format!("{asked}: rank {rank} ended with {other:?}")),
        }
    }
    if version < wrote {
        wrong.push(format!("{asked}: version {version}, {wrote} written"));
    }
    (wrong, report.outcomes[VICTIM.index()] == Outcome::Silent, torn, report.notes)
}

/// Runs the points of a scenario that `picks` selects.
fn scene(scene: Scene, picks: impl Fn(usize, usize) -> bool) -> Row {
    let (wrong, _, _, labels) = run(scene, None);
    let mut row = Row { points: labels.len(), wrong, ..Row::default() };
    if labels.is_empty() {
        row.wrong.push(format!("{scene:?} has no points"));
    }
    for point in (0..labels.len()).filter(|point| picks(*point, labels.len())) {
        let (wrong, killed, torn, _) = run(scene, Some(point));
        row.wrong.extend(wrong.into_iter().map(|line| format!("{line}, at {}", labels[point])));
        row.killed += usize::from(killed);
        row.missed += usize::from(!killed);
        row.torn += usize::from(torn > 0);
    }
    row
}

fn table(rows: &BTreeMap<usize, Row>) -> String {
    let mut table =
        "| what the victim does | points | killed there | passed by | of these torn | wrong |\n|---|---|---|---|---|---|\n"
            .to_owned();
    for (number, row) in rows {
        let Row { points, killed, missed, torn, wrong } = row;
        let scene = Scene::ALL[*number];
        let _ = writeln!(table, "| `{scene:?}` | {points} | {killed} | {missed} | {torn} | {} |", wrong.len());
    }
    let all = |of: fn(&Row) -> usize| rows.values().map(of).sum::<usize>();
    let (points, killed, missed) = (all(|row| row.points), all(|row| row.killed), all(|row| row.missed));
    let _ = writeln!(
        table,
        "| all | {points} | {killed} | {missed} | {} | {} |",
        all(|row| row.torn),
        all(|row| row.wrong.len())
    );
    table
}

#[test]
fn a_rank_dies_at_its_points() {
    let all = env::var_os(ALL).is_some();
    let seed = std::process::id() as usize;
    let (begun, mut rows) = (Instant::now(), BTreeMap::new());
    for (number, which) in Scene::ALL.into_iter().enumerate() {
        // Unless all points are requested, one point of each scenario, a different one each time.
        let picks = |point: usize, points: usize| all || point == (seed + 7 * number) % points;
        let row = scene(which, picks);
        if all {
            println!("{which:?}: {} points, {:.1} s so far", row.points, begun.elapsed().as_secs_f64());
        }
        row.wrong.iter().for_each(|line| println!("{line}"));
        rows.insert(number, row);
    }
    let table = table(&rows);
    publish(&table);
    let wrong: Vec<_> = rows.values().flat_map(|row| &row.wrong).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}
