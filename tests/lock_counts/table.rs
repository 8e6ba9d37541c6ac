//! The paths as a table of `docs/rp-lock.md`.

use crate::{
    page::Part,
    scene::Line,
    scenes::scenes,
    tally::{Place, Tally},
};

const PAGE: Part = Part { page: "docs/rp-lock.md", name: "operation counts" };
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

#[test]
fn the_page_has_the_paths() {
    let mut table =
        String::from("| path | who | operations | home + peers | printed | own | flushes | why not as printed |\n");
    table += "|---|---|---|---|---|---|---|---|\n";
    for scene in scenes() {
        let shown = scene.lines.iter().filter(|line| !line.what.is_empty());
        shown.enumerate().for_each(|(at, line)| table += &row(if at == 0 { scene.name } else { "" }, line));
    }
    PAGE.settle(&table, COMMAND);
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
