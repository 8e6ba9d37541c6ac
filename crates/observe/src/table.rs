//! The counters as a table for people.

use crate::{
    counts::{Counts, RankCounts},
    observation::Observation,
};
use comfy_table::{Cell, CellAlignment, LineStyle, Table, TableStyle};
use std::fmt::Write;

/// A rule under the header and no other lines.
const RULED_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::new('─', '─', '─', '─'));
/// The maximum number of lines of a table; further ones are only counted.
const LINES: usize = 64;

/// Renders a table of ranks, a table of pairs, and the missing records, ending with a newline.
pub(crate) fn render(observation: &Observation) -> String {
    let mut out = String::new();
    let records = observation.records();
    if !records.is_empty() {
        let copies = observation.total().copies > 0;
        let mut ranks = new_table("rank", false, copies);
        for record in records.iter().take(LINES) {
            ranks.add_row(line(vec![Cell::new(record.rank)], &record.counts.total(), copies));
        }
        if records.len() > 1 {
            ranks.add_row(line(vec![Cell::new("all")], &observation.total(), copies));
        }
        writeln!(out, "{}", finish(ranks)).ok();
        rest(&mut out, records.len(), "ranks");

        let pairs = records.iter().flat_map(|record| record.counts.by_peer().map(move |peer| (record.rank, peer)));
        let mut peers = new_table("rank", true, copies);
        for (rank, peer) in pairs.clone().take(LINES) {
            peers.add_row(line(vec![Cell::new(rank), Cell::new(peer.peer)], &peer.counts, copies));
        }
        writeln!(out, "\n{}", finish(peers)).ok();
        rest(&mut out, pairs.count(), "pairs");
        waits(&mut out, records.iter().map(|record| &record.counts));
    }
    let missing: Vec<u32> = observation.missing().collect();
    if !missing.is_empty() {
        writeln!(out, "{}", absent(&missing, observation.ranks())).ok();
    }
    out
}

/// Lists the ranks that left no record.
fn absent(missing: &[u32], ranks: usize) -> String {
    if missing.len() == ranks {
        return "no rank left a record: only programs started by `onesided::launch` are observed".into();
    }
    let names: Vec<String> = missing.iter().take(16).map(u32::to_string).collect();
    let more = if missing.len() > 16 { format!(" and {} more", missing.len() - 16) } else { String::new() };
    format!("no record of rank {}{more}: killed, or ended without coming back from `launch`", names.join(", "))
}

fn rest(out: &mut String, all: usize, what: &str) {
    if all > LINES {
        writeln!(out, "and {} more {what}, which the JSON form has", all - LINES).ok();
    }
}

/// Writes the waits of all ranks by their kinds, in one line.
fn waits<'a>(out: &mut String, ranks: impl Iterator<Item = &'a RankCounts>) {
    let mut all = RankCounts::default();
    for rank in ranks {
        for (&kind, &waits) in &rank.waits {
            *all.waits.entry(kind).or_default() += waits;
        }
    }
    let kinds: Vec<String> = (all.waits.iter())
        .map(|(kind, waits)| format!("{} {} ({})", kind.name(), waits.count, duration(waits.total_ns)))
        .collect();
    if !kinds.is_empty() {
        writeln!(out, "\nwaits for: {}", kinds.join(", ")).ok();
    }
}

/// Creates a table. It has columns for third-party copies, which few programs make, only if there
/// are any.
fn new_table(first: &str, peers: bool, copies: bool) -> Table {
    let mut table = Table::new();
    table.load_style(RULED_HEADER);
    let peer = peers.then_some("peer");
    let copied = ["copies", "copied bytes"].into_iter().filter(|_| copies);
    let rest = ["atomics", "notices sent", "taken", "flushes", "waits", "waited", "longest"];
    let moved = ["puts", "put bytes", "gets", "got bytes"];
    let header: Vec<&str> = [first].into_iter().chain(peer).chain(moved).chain(copied).chain(rest).collect();
    table.set_header(header);
    table
}

fn line(mut cells: Vec<Cell>, counts: &Counts, copies: bool) -> Vec<Cell> {
    let kinds: Vec<String> = (counts.atomics.by_kind().into_iter())
        .filter(|&(_, count)| count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let number = |number: u64| Cell::new(number).set_alignment(CellAlignment::Right);
    let time = |ns: u64| match counts.waits.count {
        0 => Cell::new("–").set_alignment(CellAlignment::Right),
        _ => Cell::new(duration(ns)).set_alignment(CellAlignment::Right),
    };
    cells.extend([counts.puts, counts.put_bytes, counts.gets, counts.get_bytes].map(number));
    if copies {
        cells.extend([counts.copies, counts.copy_bytes].map(number));
    }
    cells.extend([
        Cell::new(if kinds.is_empty() { "–".into() } else { kinds.join(", ") }),
        number(counts.notices_sent),
        number(counts.notices_taken),
        number(counts.flushes),
        number(counts.waits.count),
        time(counts.waits.total_ns),
        time(counts.waits.longest_ns),
    ]);
    cells
}

fn finish(mut table: Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// Renders a duration with a unit and at most four digits.
fn duration(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Recorder;
    use rdma_fabric::Rank;

    #[test]
    fn ranks_pairs_sums_and_missing_ranks_are_shown() {
        let recorder = |rank: u32| {
            let recorder = Recorder::new(Rank::new(rank), None);
            let mut record = recorder.lock();
            let counts = record.counts.with(Some(1));
            (counts.puts, counts.put_bytes, counts.atomics.compare_swap) = (3, 24, 2);
            record.waited(crate::WaitKind::Word, Some(1), 0, 12_345_678);
            drop(record);
            recorder.record()
        };
        let text = Observation::new(4, vec![recorder(2), recorder(0)]).table();
        let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(fields).collect();
        assert!(lines.contains(&"all 6 48 0 0 4 cas 0 0 0 2 24.7 µs 12.3 µs".to_owned()), "{text}");
        assert!(lines.contains(&"2 1 3 24 0 0 2 cas 0 0 0 1 12.3 µs 12.3 µs".to_owned()), "{text}");
        assert!(text.contains("no record of rank 1, 3") && text.contains("word 2 (24.7 µs)"), "{text}");
        assert!(Observation::new(2, Vec::new()).table().starts_with("no rank left a record"));
    }

    #[test]
    fn durations_have_units() {
        let texts = [0, 9_999, 10_000, 9_999_900, 10_000_000, 10_000_000_000].map(duration);
        assert_eq!(texts, ["0 ns", "9999 ns", "10.0 µs", "9999.9 µs", "10.0 ms", "10.0 s"]);
    }
}
