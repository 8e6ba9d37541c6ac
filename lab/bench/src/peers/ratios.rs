//! The papers' claims, compared with the same ratios of our rows.

use super::sweep::SweepRow;
use crate::quantity::three;
use comfy_table::{Cell, Table};
use evidence::page::{self, number};
use repro::peers::{Competitor, Peer};

/// A claim of a paper, of the form "up to".
struct Claim {
    of: Peer,
    than: Peer,
    what: What,
    /// In the paper's words, shortened.
    published: &'static str,
    /// The baseline of the paper.
    there: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Throughput,
    Tail,
}

/// The claims for microbenchmarks, each for every lock here to which it may refer.
const CLAIMS: [Claim; 6] = [
    Claim {
        of: Peer::ShiftLock,
        than: Peer::Spin,
        what: What::Throughput,
        published: "up to 3.62×",
        there: "goodput, against the locks it compares with: compare-and-swap, DrTM, DSLR, MCS, RMA-RW",
    },
    Claim {
        of: Peer::ShiftLock,
        than: Peer::Mcs,
        what: What::Throughput,
        published: "up to 3.62×",
        there: "the same claim",
    },
    Claim {
        of: Peer::ShiftLock,
        than: Peer::Spin,
        what: What::Tail,
        published: "down to 0.234× (76.6 % less)",
        there: "tail latency, against the same locks",
    },
    Claim {
        of: Peer::DecLock,
        than: Peer::Spin,
        what: What::Throughput,
        published: "up to 43.37×",
        there: "throughput, against RDMA spin locks",
    },
    Claim {
        of: Peer::DecLock,
        than: Peer::Mcs,
        what: What::Throughput,
        published: "up to 1.81×",
        there: "throughput, against RDMA MCS locks",
    },
    Claim {
        of: Peer::DecLock,
        than: Peer::ShiftLock,
        what: What::Throughput,
        published: "up to 1.81×",
        there: "the same claim; of the baselines in its artifact, ShiftLock is the one with an MCS queue",
    },
];

/// Returns the ratios of one pair in all cases that both have, sorted. MCS has no readers: it is
/// compared in cases with writers only.
fn of(rows: &[SweepRow], claim: &Claim) -> Vec<f64> {
    let is = |row: &SweepRow, peer| row.lock == Competitor::Peer(peer);
    let fits = |row: &SweepRow| claim.than != Peer::Mcs || row.writers.is_all();
    let mut ratios: Vec<f64> = rows
        .iter()
        .filter(|row| is(row, claim.of) && fits(row))
        .filter_map(|row| {
            let other = rows.iter().find(|other| is(other, claim.than) && other.is_beside(row))?;
            match claim.what {
                What::Throughput => Some(row.throughput / other.throughput).filter(|ratio| ratio.is_finite()),
                What::Tail => Some(row.acquire?.p99_ns as f64 / other.acquire?.p99_ns as f64),
            }
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios
}

/// Returns a line for each claim, with the minimum, the median and the maximum of our ratios.
pub(super) fn ratios(rows: &[SweepRow]) -> String {
    let mut table = Table::new();
    table.set_header(["ratio", "published", "of what", "cases here", "least", "median", "greatest"]);
    for claim in &CLAIMS {
        let ratios = of(rows, claim);
        let what = if claim.what == What::Tail { "p99 of " } else { "" };
        let at = |index: usize| ratios.get(index).map_or_else(|| "–".into(), |&ratio| three(ratio) + "×");
        table.add_row([
            Cell::new(format!("{what}{} / {}", claim.of.name(), claim.than.name())),
            Cell::new(claim.published),
            Cell::new(claim.there),
            number(ratios.len().to_string()),
            number(at(0)),
            number(at(ratios.len() / 2)),
            number(at(ratios.len().saturating_sub(1))),
        ]);
    }
    page::markdown(table) + "\n"
}
