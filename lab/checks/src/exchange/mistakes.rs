//! Mutated steps of the protocol, by a fabric that alters their operations, and the smallest jobs
//! known to detect them.

use super::{
    Case,
    cases::{PAIR, case, slow, two_parts},
    delivery::exchange,
};
use crate::exploration::Run;
use explore::{
    Probe,
    mutant::{Mutation, mutant},
};
use rdma_fabric::{Amo, Fabric, PutOrder, Rank, RemoteAddr};
use std::{cell::Cell, rc::Rc};

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// Any READY is accepted, even that of an earlier iteration.
    ReadyIsAFlag,
    /// Data is sent without any READY.
    ReadyIgnored,
    /// A READY announces the next iteration as well.
    ReadyTooEarly,
    /// The second READY is lost.
    ReadyLost,
    /// END follows the data without a flush.
    DataNotFlushed,
    /// END is a put, although it must be an atomic.
    EndNotOrdered,
    /// END is sent before the data.
    EndFirst,
    /// The END of the preceding iteration is put again.
    EndRepeated,
    /// A wait is satisfied by the END of the preceding iteration.
    WaitsForTheLast,
}
use Mistake::*;

/// The mutation that applies a [`Mistake`] at one rank once its set-up has completed.
#[derive(Debug)]
pub struct Spoiled {
    /// The mutation.
    pub mistake: Mistake,
    /// Whether the set-up has completed.
    pub begun: Rc<Cell<bool>>,
}

/// The first index of local regions. Of these, only the words of a request are put one by one.
const LOCAL: u32 = 1 << 16;
/// The size of a line in bytes: READYs are in one line, ENDs in the next.
const LINE: u64 = 128;

impl Spoiled {
    fn word(&self, mistake: Mistake, addr: RemoteAddr, end: bool) -> bool {
        self.mistake == mistake
            && self.begun.get()
            && addr.region.index >= LOCAL
            && (addr.offset / LINE % 2 == 1) == end
    }

    fn ready(&self, mistake: Mistake, addr: RemoteAddr) -> bool {
        self.word(mistake, addr, false)
    }

    fn end(&self, mistake: Mistake, addr: RemoteAddr) -> bool {
        self.word(mistake, addr, true)
    }
}

impl Mutation for Spoiled {
    fn nop_at_once(&self) -> bool {
        false
    }

    fn flushes(&self, _: Option<Rank>) -> bool {
        !(self.mistake == DataNotFlushed && self.begun.get())
    }

    fn seen(&self, addr: RemoteAddr, bits: u64) -> u64 {
        match bits {
            1.. if self.ready(ReadyIsAFlag, addr) => u64::MAX,
            _ if self.ready(ReadyIgnored, addr) => u64::MAX,
            _ if self.end(WaitsForTheLast, addr) => bits + 1,
            _ => bits,
        }
    }

    fn put(&self, addr: RemoteAddr, bits: u64) -> Option<u64> {
        let lost = bits == 2 && self.ready(ReadyLost, addr);
        (!lost).then_some(bits + u64::from(self.ready(ReadyTooEarly, addr)))
    }

    fn puts_before(&self, addr: RemoteAddr, bits: u64) -> Option<(RemoteAddr, u64)> {
        (bits > 1 && self.end(EndRepeated, addr)).then(|| (addr, bits - 1))
    }

    fn as_put(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<u64> {
        match amo {
            Amo::Swap(bits) if self.end(EndNotOrdered, addr) => Some(bits),
            _ => None,
        }
    }

    fn holds(&self, _: RemoteAddr, _: usize) -> bool {
        self.mistake == EndFirst && self.begun.get()
    }

    fn lets_go(&self, addr: RemoteAddr) -> bool {
        self.end(EndFirst, addr)
    }
}

/// A mutant and a job that detects it.
#[derive(Clone, Copy, Debug)]
pub struct Mistaken {
    /// The mutated step.
    pub mistake: Mistake,
    /// The job.
    pub case: Case,
    /// The text with which the report begins.
    pub found: &'static str,
}

const WRONG_DATA: &str = "rank";
const STUCK: &str = "deadlock";

const WEAK: Case = slow(case("a pair x2", PAIR, 2, PutOrder::None));
const STRONG: Case = slow(case("a pair x2, put order", PAIR, 2, PutOrder::SameTarget));
const PARTS: Case = two_parts("parts: one way x2");
const VIEWS: Case = Case { views: true, ..WEAK };

const fn mistaken(mistake: Mistake, case: Case, found: &'static str) -> Mistaken {
    Mistaken { mistake, case, found }
}

/// All mutants that must be detected.
pub const MISTAKES: &[Mistaken] = &[
    mistaken(ReadyIsAFlag, WEAK, WRONG_DATA),
    mistaken(ReadyIsAFlag, PARTS, WRONG_DATA),
    mistaken(ReadyTooEarly, WEAK, WRONG_DATA),
    mistaken(ReadyTooEarly, PARTS, WRONG_DATA),
    mistaken(ReadyLost, WEAK, STUCK),
    mistaken(ReadyLost, PARTS, STUCK),
    mistaken(DataNotFlushed, WEAK, WRONG_DATA),
    mistaken(DataNotFlushed, PARTS, WRONG_DATA),
    mistaken(EndNotOrdered, STRONG, WRONG_DATA),
    mistaken(EndFirst, WEAK, WRONG_DATA),
    mistaken(EndFirst, STRONG, WRONG_DATA),
    mistaken(EndRepeated, WEAK, STUCK),
    mistaken(WaitsForTheLast, WEAK, WRONG_DATA),
    mistaken(WaitsForTheLast, PARTS, WRONG_DATA),
    // A view is lent before END.
    mistaken(WaitsForTheLast, VIEWS, WRONG_DATA),
    mistaken(EndFirst, VIEWS, WRONG_DATA),
];

impl Mistaken {
    /// Returns its name in lists.
    pub fn name(&self) -> String {
        format!("{:?} ({})", self.mistake, self.case.name)
    }

    /// Returns the program of the job with the mutated step.
    pub fn job(self) -> impl Fn(Fabric) -> Run {
        move |fabric| {
            let (probe, begun) = (Probe::of(&fabric), Rc::new(Cell::new(false)));
            let spoiled = mutant(fabric.clone(), Spoiled { mistake: self.mistake, begun: begun.clone() });
            Box::pin(exchange(spoiled, fabric, probe, self.case, move || begun.set(true)))
        }
    }
}
