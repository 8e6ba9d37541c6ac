//! The paths as tables of `docs/rp-lock.md` and `docs/queued-locks.md`.

use crate::{
    mutant::Subject,
    page::Part,
    scene::Line,
    scenes::scenes,
    tally::{Place, Tally},
};

const FLAT: Part = Part { page: "docs/rp-lock.md", name: "operation counts" };
const OTHERS: [(Subject, Part); 3] = [
    (Subject::Packed, Part { page: "docs/queued-locks.md", name: "packed" }),
    (Subject::WritersFirst, Part { page: "docs/queued-locks.md", name: "writers first" }),
    (Subject::Fair, Part { page: "docs/queued-locks.md", name: "fair" }),
];
const COMMAND: &str = "CONFORMANCE_WRITE=1 cargo test --test lock_counts";

fn row(scene: &str, line: &Line) -> String {
    let tally = Tally::of_steps(line.steps, false);
    let printed = line.printed.map_or("–".to_owned(), |(home, peers)| format!("{home} + {peers}"));
    let steps = if line.steps.is_empty() { "–" } else { line.steps };
    format!(
        "| {scene} | {} | {steps} | {} + {} | {printed} | {} | {} | {} |\n",
        line.what,
        tally.at(Place::Home),
        tally.at(Place::Peer),
        tally.at(Place::Own),
        tally.flushes(),
        line.because
    )
}

/// The same for a lock that nobody has printed.
fn short_row(scene: &str, line: &Line) -> String {
    let tally = Tally::of_steps(line.steps, false);
    let steps = if line.steps.is_empty() { "–" } else { line.steps };
    let (home, peers, own) = (tally.at(Place::Home), tally.at(Place::Peer), tally.at(Place::Own));
    format!("| {scene} | {} | {steps} | {home} + {peers} | {own} | {} |\n", line.what, tally.flushes())
}

#[test]
fn the_other_page_has_the_paths() {
    for (lock, part) in OTHERS {
        let mut table = String::from("| path | who | operations | home + peers | own | flushes |\n");
        table += "|---|---|---|---|---|---|\n";
        for scene in scenes().iter().filter(|scene| scene.lock == lock) {
            let shown = scene.lines.iter().filter(|line| !line.what.is_empty());
            shown.enumerate().for_each(|(at, line)| table += &short_row(if at == 0 { scene.name } else { "" }, line));
        }
        part.settle(&table, COMMAND);
    }
}

#[test]
fn the_page_has_the_paths() {
    let mut table =
        String::from("| path | who | operations | home + peers | printed | own | flushes | why not as printed |\n");
    table += "|---|---|---|---|---|---|---|---|\n";
    for scene in scenes().iter().filter(|scene| scene.lock == Subject::Flat) {
        let shown = scene.lines.iter().filter(|line| !line.what.is_empty());
        shown.enumerate().for_each(|(at, line)| table += &row(if at == 0 { scene.name } else { "" }, line));
    }
    FLAT.settle(&table, COMMAND);
}

#[test]
fn a_path_is_as_printed_or_says_why_not() {
    for scene in scenes() {
        for line in &scene.lines {
            let tally = Tally::of_steps(line.steps, false);
            let counted = (tally.at(Place::Home), tally.at(Place::Peer));
            let same = line.printed.is_none_or(|printed| printed == counted);
            let (name, what) = (scene.name, line.what);
            assert_eq!(same, line.because.is_empty(), "{name}, {what}: {counted:?}, printed {:?}", line.printed);
        }
    }
}

#[test]
fn each_line_is_compared_once() {
    for scene in scenes() {
        for (at, line) in scene.lines.iter().enumerate() {
            let place = (line.phase, line.rank);
            assert!(line.phase < scene.phases() && (line.rank as usize) < scene.ranks, "{}, {place:?}", scene.name);
            let again = scene.lines[at + 1..].iter().any(|other| (other.phase, other.rank) == place);
            assert!(!again, "{}, {place:?}: two lines", scene.name);
        }
    }
}
