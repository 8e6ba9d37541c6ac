//! Everything recorded about a job: the records of its ranks.

use crate::{Counts, WaitKind, Waits};
use crate::{counts::PeerCounts, recorder::RankRecord, table, trace};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    io::{self, Write as _},
};

/// The records of a job's ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    ranks: usize,
    /// The records in rank order, each rank at most once.
    records: Vec<RankRecord>,
}

/// The schema of [`Observation::json`].
#[derive(Debug, Serialize)]
struct Document<'a> {
    ranks: usize,
    /// Ranks that left no record.
    missing: Vec<u32>,
    total: Counts,
    by_rank: Vec<Rank<'a>>,
}

#[derive(Debug, Serialize)]
struct Rank<'a> {
    rank: u32,
    total: Counts,
    nops: u64,
    word_waits: u64,
    waits_by_kind: &'a BTreeMap<WaitKind, Waits>,
    peers: Vec<PeerCounts>,
}

impl Observation {
    /// Creates the observation of a job of `ranks`; records of other ranks are left out.
    pub fn new(ranks: usize, mut records: Vec<RankRecord>) -> Self {
        records.retain(|record| (record.rank as usize) < ranks);
        records.sort_by_key(|record| record.rank);
        records.dedup_by_key(|record| record.rank);
        Observation { ranks, records }
    }

    /// Returns the number of ranks, with or without a record.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the existing records, in rank order.
    pub fn records(&self) -> &[RankRecord] {
        &self.records
    }

    /// Returns the ranks without a record: those killed, not observed, or not using this library at
    /// all.
    pub fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        let known = |rank: &u32| self.records.binary_search_by_key(rank, |record| record.rank).is_ok();
        (0..self.ranks as u32).filter(move |rank| !known(rank))
    }

    /// Returns the sums over all ranks.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.records.iter().for_each(|record| total += record.counts.total());
        total
    }

    /// Returns the number of events that were dropped for lack of room.
    pub fn dropped(&self) -> u64 {
        self.records.iter().filter_map(|record| record.events.as_ref()).map(|events| events.dropped()).sum()
    }

    /// Renders a human-readable table, ending with a newline.
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// Writes JSON: one object with `ranks`, `missing`, `total` and `by_rank`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn json(&self, out: impl io::Write) -> io::Result<()> {
        let mut out = io::BufWriter::new(out);
        let document = Document {
            ranks: self.ranks,
            missing: self.missing().collect(),
            total: self.total(),
            by_rank: self.records.iter().map(Rank::of).collect(),
        };
        serde_json::to_writer_pretty(&mut out, &document)?;
        out.write_all(b"\n")?;
        out.flush()
    }

    /// Writes a trace for a viewer, in the trace-event format that Perfetto and Chrome read.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn trace(&self, out: impl io::Write) -> io::Result<()> {
        trace::write(self, out)
    }
}

impl<'a> Rank<'a> {
    fn of(record: &'a RankRecord) -> Self {
        Rank {
            rank: record.rank,
            total: record.counts.total(),
            nops: record.counts.nops,
            word_waits: record.counts.word_waits,
            waits_by_kind: &record.counts.waits,
            peers: record.counts.by_peer().collect(),
        }
    }
}
