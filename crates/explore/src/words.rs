//! Human-readable descriptions of memory words, operations and waits, for timelines, deadlocks and
//! reports.

use crate::{
    act::{Act, Op},
    cell::{CellPart, Cells, Home},
    dropped::Holding,
    state::{ALL, Item, ItemKind, Phase, State},
};
use rdma_fabric::{Amo, Notice, Rank, RemoteAddr};

/// The maximum number of words of one operation that are listed one by one.
const MOST_WORDS: usize = 8;

/// Describes where a word is.
pub(crate) fn place(cells: &Cells, part: CellPart) -> String {
    match cells.home(part.cell) {
        Home::Fact(number) => match cells.names.get(&Cells::name_of_fact(number)) {
            Some(name) => format!("“{name}”"),
            None => format!("fact {number}"),
        },
        Home::Memory(RemoteAddr { rank, region, offset }) => {
            let offset = offset + u64::from(part.mask.trailing_zeros() / 8);
            match cells.names.get(&(region.index, offset)) {
                Some(name) => format!("{rank}'s {name}"),
                None => format!("{rank}'s region {}+{offset}", region.index),
            }
        }
    }
}

fn name(amo: Amo<u64>) -> &'static str {
    match amo {
        Amo::Add(_) => "fetch-add",
        Amo::Swap(_) => "swap",
        Amo::CompareSwap { .. } => "compare-and-swap",
        Amo::Or(_) => "fetch-or",
        Amo::And(_) => "fetch-and",
        Amo::Xor(_) => "fetch-xor",
    }
}

/// Describes an atomic with its operands.
pub(crate) fn atomic(amo: Amo<u64>) -> String {
    let name = name(amo);
    match amo {
        Amo::Add(v) if v > 1 << 63 => format!("{name} -{}", v.wrapping_neg()),
        Amo::Add(v) => format!("{name} {v}"),
        Amo::CompareSwap { expected, new } => format!("{name} {expected:#x} to {new:#x}"),
        Amo::Swap(v) | Amo::Or(v) | Amo::And(v) | Amo::Xor(v) => format!("{name} {v:#x}"),
    }
}

/// Lists `all`, each as described by `each`, up to a bound, and states the number of the remaining
/// ones.
fn listed<T>(all: &[T], each: impl Fn(&T) -> String) -> String {
    let reported = all.iter().take(MOST_WORDS).map(each).collect::<Vec<_>>().join(", ");
    match all.len().saturating_sub(MOST_WORDS) {
        0 if all.is_empty() => "no byte".to_owned(),
        0 => reported,
        1 => format!("{reported} and 1 more word"),
        more => format!("{reported} and {more} more words"),
    }
}

/// Describes the posting of `op`.
pub(crate) fn operation(cells: &Cells, op: &Op) -> String {
    let at = |part: &CellPart| place(cells, *part);
    let with =
        |notice: &Option<Notice>| notice.map_or(String::new(), |notice| format!(", with notice {:#x}", notice.data));
    match op {
        Op::Atomic { at: part, amo, .. } => format!("posts {} at {}", atomic(*amo), at(part)),
        Op::Get { pieces, .. } => format!("posts get of {}", listed(pieces, |(part, _)| at(part))),
        Op::Put { pieces, notice, .. } => {
            let words = listed(pieces, |(part, bits)| format!("{:#x} to {}", part.get(*bits), at(part)));
            format!("posts put of {words}{}", with(notice))
        }
        Op::PutFrom { pieces, notice, .. } => {
            let words = listed(pieces, |(to, from)| format!("{} to {}", at(from), at(to)));
            format!("posts put of {words}{}", with(notice))
        }
        Op::Flush { target: Some(target), .. } => format!("flushes {target}"),
        Op::Flush { target: None, .. } => "flushes all".to_owned(),
    }
}

/// Describes an item.
fn named(cells: &Cells, item: &Item) -> String {
    let there = || place(cells, item.at);
    match item.kind {
        ItemKind::Atomic => format!("{} at {}", atomic(item.amo()), there()),
        ItemKind::Get | ItemKind::GetInto => format!("get of {}", there()),
        ItemKind::Landing => format!("get into {}", place(cells, item.own)),
        ItemKind::Put => format!("put of {:#x} to {}", item.at.get(item.bits), there()),
        ItemKind::PutFrom => format!("put of {} to {}", place(cells, item.own), there()),
        ItemKind::Notice => format!("notice {:#x} to {}", item.bits, item.target),
        ItemKind::Flush if item.target == ALL => "flush of all".to_owned(),
        ItemKind::Flush => format!("flush of {}", item.target),
        ItemKind::Begun => format!("write of {} at {}", atomic(item.amo()), there()),
        ItemKind::Executed => format!("write of an atomic at {}", there()),
        ItemKind::Complete | ItemKind::Lost | ItemKind::Stale => "operation".to_owned(),
    }
}

/// Describes `item`; `None` if it has happened.
pub(crate) fn in_flight(cells: &Cells, item: &Item) -> Option<String> {
    match item.kind {
        ItemKind::Complete | ItemKind::Lost | ItemKind::Stale => None,
        ItemKind::Flush if item.phase == Phase::Complete => None,
        ItemKind::Flush => Some(format!("{} is not over", named(cells, item))),
        _ => Some(format!("{} is still on its way", named(cells, item))),
    }
}

/// Describes the condition that a rank waits for when no answer to `acts` has satisfied it.
pub(crate) fn awaited(cells: &Cells, state: &State, rank: Rank, acts: &[Act]) -> String {
    let each = acts.iter().filter_map(|act| {
        Some(match act {
            Act::Watch(part) => {
                format!("{} to be something else than {:#x}", place(cells, *part), part.get(state.read(*part)))
            }
            Act::NextNotice => "a notice".to_owned(),
            Act::Sleep(until) => format!("its clock to come to {until} ps"),
            Act::Await(slot) => {
                let its = state.items.iter().find(|item| item.by == rank && item.slot == *slot);
                format!("its {} to be complete", its.map_or("operation".to_owned(), |item| named(cells, item)))
            }
            _ => return None,
        })
    });
    each.collect::<Vec<_>>().join(", or ")
}

/// Describes an act of a program, with all values.
pub(crate) fn exactly(cells: &Cells, act: &Act) -> String {
    match act {
        Act::Post(op) => operation(cells, op),
        Act::Store(part, bits) => format!("store of {:#x} to {}", part.get(*bits), place(cells, *part)),
        Act::Fact(part, amo) => format!("{} at {}", atomic(*amo), place(cells, *part)),
        Act::Await(_) => "wait for an operation".to_owned(),
        Act::Step(result) => format!("end of a step with result {result:x}"),
        _ => deed(cells, act).unwrap_or_else(|| format!("{act:?}")),
    }
}

/// Describes a question or notification of a program, without values, which change while the
/// program repeats the same acts. `None` for events that are not acts of the program.
pub(crate) fn deed(cells: &Cells, act: &Act) -> Option<String> {
    let at = |part: &CellPart| place(cells, *part);
    Some(match act {
        Act::Post(Op::Atomic { at: part, amo, .. }) => format!("{} at {}", name(*amo), at(part)),
        Act::Post(Op::Get { pieces, .. }) => format!("get of {}", listed(pieces, |(part, _)| at(part))),
        Act::Post(Op::Put { pieces, .. }) => format!("put to {}", listed(pieces, |(part, _)| at(part))),
        Act::Post(Op::PutFrom { pieces, .. }) => format!("put to {}", listed(pieces, |(to, _)| at(to))),
        Act::Post(Op::Flush { .. }) => "flush".to_owned(),
        Act::Load(part) => format!("load of {}", at(part)),
        Act::Store(part, _) => format!("store to {}", at(part)),
        Act::Fact(part, _) => format!("look at {}", at(part)),
        Act::Watch(part) => format!("wait for {}", at(part)),
        Act::Test(_) => "test of a handle".to_owned(),
        Act::TryNotice => "look for a notice".to_owned(),
        Act::NextNotice => "wait for a notice".to_owned(),
        Act::Now => "look at its clock".to_owned(),
        Act::Sleep(_) => "wait for a moment".to_owned(),
        Act::Yield => "yield".to_owned(),
        Act::Note(text) => format!("-- {text}"),
        Act::Done => "its end".to_owned(),
        Act::Failed(what) => format!("a failure: {what}"),
        Act::Drop(Holding { index, .. }) => format!("drop of its region {index}"),
        Act::Await(_)
        | Act::Forget(_)
        | Act::Reach(_)
        | Act::IsDropped(_)
        | Act::Step(_)
        | Act::Choose
        | Act::Detach
        | Act::IsLost(_)
        | Act::LostAmong(_)
        | Act::Endless => {
            return None;
        }
    })
}
