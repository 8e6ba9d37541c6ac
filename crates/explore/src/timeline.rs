//! The line-by-line account of a run: the acts of each rank, the beginning of each wait, the
//! arrivals, and the operations that had not arrived at the end.

use crate::{
    acknowledged::Unwritten,
    act::{Act, Answer},
    cell::{CellPart, Cells},
    dropped::Holding,
    state::{ItemKind, State},
    words::{atomic, in_flight, operation, place},
};
use rdma_fabric::{Amo, Rank};
use std::collections::BTreeSet;

/// The lines so far.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    lines: Vec<String>,
    /// Waits that have a line and have not ended.
    waits: BTreeSet<(Rank, String)>,
}

/// The maximum number of lines about operations still in flight at the end.
const MOST_UNDER_WAY: usize = 24;

impl Timeline {
    fn line(&mut self, rank: Rank, text: String) {
        self.waits.retain(|(waiting, _)| *waiting != rank);
        self.lines.push(format!("{rank}  {text}"));
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines
    }

    /// Records that `rank` waits for `what`, unless it already did.
    pub(crate) fn waits(&mut self, rank: Rank, what: &str) {
        if self.waits.insert((rank, what.to_owned())) {
            self.lines.push(format!("{rank}  waits for {what}"));
        }
    }

    /// Adds the operations still in flight, and the notices not taken, at the end of the run.
    pub(crate) fn ends(&mut self, cells: &Cells, state: &State) {
        let items = state.items.iter().filter_map(|item| Some((item.by, in_flight(cells, item)?)));
        let notices = state
            .notices
            .iter()
            .map(|(at, notice)| (*at, format!("notice {:#x} of {} was not taken", notice.data, notice.from)));
        let all: Vec<_> = items.chain(notices).collect();
        self.lines.extend(all.iter().take(MOST_UNDER_WAY).map(|(rank, text)| format!("{rank}  … {text}")));
        if all.len() > MOST_UNDER_WAY {
            self.lines.push(format!("… and {} more", all.len() - MOST_UNDER_WAY));
        }
    }

    pub(crate) fn tick(&mut self, rank: Rank, deadline: u64) {
        self.line(rank, format!("its clock comes to {deadline} ps"));
    }

    pub(crate) fn dies(&mut self, rank: Rank) {
        self.line(rank, "DIES".to_owned());
    }

    pub(crate) fn record_loss(&mut self, rank: Rank, lost: Rank) {
        self.line(rank, format!("learns that {lost} is lost"));
    }

    pub(crate) fn begins(&mut self, cells: &Cells, state: &State, place_of: usize) {
        let item = &state.items[place_of];
        let old = item.at.get(state.read(item.at));
        self.line(
            item.by,
            format!("← {} at {} reads {old:#x} and will write", atomic(item.amo()), place(cells, item.at)),
        );
    }

    /// Records that the item at `place_of` of `state` is about to be too late.
    fn comes_too_late(&mut self, cells: &Cells, state: &State, place_of: usize, dropped: Holding) {
        let item = &state.items[place_of];
        let what = match item.kind {
            ItemKind::Atomic | ItemKind::Begun => atomic(item.amo()),
            ItemKind::Get | ItemKind::GetInto => "get".to_owned(),
            ItemKind::Landing => "what was got".to_owned(),
            ItemKind::Notice => "put of no byte".to_owned(),
            _ => "put".to_owned(),
        };
        let Holding { rank, index } = dropped;
        let there = if item.kind == ItemKind::Landing { item.own } else { item.at };
        let at = if item.kind == ItemKind::Notice { String::new() } else { format!(" for {}", place(cells, there)) };
        self.line(item.by, format!("← {what}{at} comes too late: {rank} has dropped its region {index}"));
    }

    pub(crate) fn vanishes(&mut self, rank: Rank) {
        self.line(rank, "what it had on its way is lost with it".to_owned());
    }

    pub(crate) fn done(&mut self, rank: Rank) {
        self.line(rank, "ends".to_owned());
    }

    /// Records that the item at `place_of` of `state` is about to happen.
    pub(crate) fn happens(&mut self, cells: &Cells, state: &State, place_of: usize) {
        if let Some(dropped) = state.too_late(place_of) {
            return self.comes_too_late(cells, state, place_of, dropped);
        }
        let item = &state.items[place_of];
        let there = || place(cells, item.at);
        let text = match item.kind {
            ItemKind::Atomic => {
                let old = item.at.get(state.found_by_atomics(item.at));
                format!("← {} at {}: {old:#x} becomes {:#x}", atomic(item.amo()), there(), item.amo().apply(old))
            }
            ItemKind::Begun => {
                let (now, new) = (item.at.get(state.read(item.at)), item.amo().apply(item.bits));
                format!("← {} at {} writes: {now:#x} becomes {new:#x}", atomic(item.amo()), there())
            }
            ItemKind::Get | ItemKind::GetInto => {
                format!("← get of {} reads {:#x}", there(), item.at.get(state.read(item.at)))
            }
            ItemKind::Landing => format!("← what was got arrives in {}", place(cells, item.own)),
            ItemKind::PutFrom => format!("← the put's bytes are taken from {}", place(cells, item.own)),
            ItemKind::Put => {
                let (old, new) = (item.at.get(state.read(item.at)), item.at.get(item.bits));
                format!("← put arrives at {}: {old:#x} becomes {new:#x}", there())
            }
            ItemKind::Notice => format!("← notice {:#x} arrives at {}", item.bits, item.target),
            ItemKind::Flush => "flush is complete".to_owned(),
            ItemKind::Executed | ItemKind::Complete => format!("handle {} knows", item.slot),
            ItemKind::Stale => format!("handle {} knows that it came too late", item.slot),
            ItemKind::Lost => format!("handle {} knows that {} is lost", item.slot, item.target),
        };
        self.line(item.by, text);
    }

    /// Records that the word at `place_of` of those that atomics have changed is about to be written.
    pub(crate) fn writes_out(&mut self, cells: &Cells, state: &State, place_of: usize) {
        let Unwritten { at, word, bits, .. } = state.unwritten[place_of];
        let (old, new) = (word.get(state.read(word)), word.get(bits));
        self.line(at.rank, format!("← its network interface writes {}: {old:#x} becomes {new:#x}", place(cells, word)));
    }

    pub(crate) fn record(&mut self, cells: &Cells, rank: Rank, act: &Act) {
        let text = match act {
            Act::Post(op) => operation(cells, op),
            Act::Forget(slot) => format!("drops handle {slot}"),
            Act::Drop(Holding { index, .. }) => format!("drops its region {index}"),
            Act::Note(text) => format!("-- {text}"),
            _ => return,
        };
        self.line(rank, text);
    }

    pub(crate) fn acts(&mut self, cells: &Cells, rank: Rank, act: &Act, answer: &Answer, moves: bool) {
        let at = |part: &CellPart| place(cells, *part);
        let value = |part: &CellPart| if let Answer::Value(bits) = answer { part.get(*bits) } else { 0 };
        let text = match act {
            Act::Load(part) => format!("loads {:#x} from {}", value(part), at(part)),
            Act::Store(part, bits) => format!("stores {:#x} in {}", part.get(*bits), at(part)),
            Act::Fact(part, Amo::Or(_)) => format!("   {} is {}", at(part), value(part)),
            Act::Fact(part, amo) => {
                format!("   {} goes from {} to {}", at(part), value(part) as i64, amo.apply(value(part)) as i64)
            }
            Act::Watch(part) if moves => format!("wakes: {} is {:#x}", at(part), value(part)),
            Act::Watch(part) => format!("looks at {}: {:#x}", at(part), value(part)),
            Act::Await(_) if moves => match answer {
                Answer::Value(value) => format!("continues with {value:#x}"),
                Answer::Lost(rank) => format!("continues with an error: {rank} is lost"),
                Answer::Stale(Holding { rank, index }) => {
                    format!("continues with an error: {rank} has dropped its region {index}")
                }
                _ => "continues".to_owned(),
            },
            Act::Test(_) => format!("tests a handle: {}", *answer == Answer::Value(1)),
            Act::NextNotice if !moves => return,
            Act::TryNotice | Act::NextNotice => match answer {
                Answer::Notice(notice) => format!("takes notice {:#x} of {}", notice.data, notice.from),
                _ => "finds no notice".to_owned(),
            },
            Act::Sleep(_) if moves => "its deadline has come".to_owned(),
            Act::Yield => "yields".to_owned(),
            Act::Drop(Holding { index, .. }) => format!("drops its region {index}"),
            Act::IsDropped(Holding { rank, index }) if *answer == Answer::Value(1) => {
                format!("is refused: {rank} has dropped its region {index}")
            }
            Act::IsLost(rank) if *answer == Answer::Value(1) => format!("is refused: {rank} is lost"),
            Act::LostAmong(_) if *answer != Answer::Value(0) => "its wait ends with an error".to_owned(),
            _ => return,
        };
        self.line(rank, text);
    }
}
