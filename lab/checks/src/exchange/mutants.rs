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
    mutant::{Mutant, mutated},
};
use rdma_fabric::{Amo, Fabric, PutOrder, Rank, RemoteAddr};
use std::{cell::Cell, rc::Rc};

/// A mutated step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeMutant {
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
use ExchangeMutant::*;

/// The mutant that applies an [`ExchangeMutant`] at one rank once its set-up has completed.
#[derive(Debug)]
pub struct MutatedExchange {
    /// The mutant.
    pub mutant: ExchangeMutant,
    /// Whether the set-up has completed.
    pub begun: Rc<Cell<bool>>,
}

/// The first index of local regions. Of these, only the words of a request are put one by one.
const LOCAL: u32 = 1 << 16;
/// The size of a line in bytes: READYs are in one line, ENDs in the next.
const LINE: u64 = 128;

impl MutatedExchange {
    fn word(&self, mutant: ExchangeMutant, addr: RemoteAddr, end: bool) -> bool {
        self.mutant == mutant && self.begun.get() && addr.region.index >= LOCAL && (addr.offset / LINE % 2 == 1) == end
    }

    fn ready(&self, mutant: ExchangeMutant, addr: RemoteAddr) -> bool {
        self.word(mutant, addr, false)
    }

    fn end(&self, mutant: ExchangeMutant, addr: RemoteAddr) -> bool {
        self.word(mutant, addr, true)
    }
}

impl Mutant for MutatedExchange {
    fn nop_at_once(&self) -> bool {
        false
    }

    fn flushes(&self, _: Option<Rank>) -> bool {
        !(self.mutant == DataNotFlushed && self.begun.get())
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
        self.mutant == EndFirst && self.begun.get()
    }

    fn releases_held(&self, addr: RemoteAddr) -> bool {
        self.end(EndFirst, addr)
    }
}

/// A mutant and a job that detects it.
#[derive(Clone, Copy, Debug)]
pub struct MutantCase {
    /// The mutated step.
    pub mutant: ExchangeMutant,
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

const fn mutant_case(mutant: ExchangeMutant, case: Case, found: &'static str) -> MutantCase {
    MutantCase { mutant, case, found }
}

/// All mutants that must be detected.
pub const MUTANTS: &[MutantCase] = &[
    mutant_case(ReadyIsAFlag, WEAK, WRONG_DATA),
    mutant_case(ReadyIsAFlag, PARTS, WRONG_DATA),
    mutant_case(ReadyTooEarly, WEAK, WRONG_DATA),
    mutant_case(ReadyTooEarly, PARTS, WRONG_DATA),
    mutant_case(ReadyLost, WEAK, STUCK),
    mutant_case(ReadyLost, PARTS, STUCK),
    mutant_case(DataNotFlushed, WEAK, WRONG_DATA),
    mutant_case(DataNotFlushed, PARTS, WRONG_DATA),
    mutant_case(EndNotOrdered, STRONG, WRONG_DATA),
    mutant_case(EndFirst, WEAK, WRONG_DATA),
    mutant_case(EndFirst, STRONG, WRONG_DATA),
    mutant_case(EndRepeated, WEAK, STUCK),
    mutant_case(WaitsForTheLast, WEAK, WRONG_DATA),
    mutant_case(WaitsForTheLast, PARTS, WRONG_DATA),
    // A view is lent before END.
    mutant_case(WaitsForTheLast, VIEWS, WRONG_DATA),
    mutant_case(EndFirst, VIEWS, WRONG_DATA),
];

impl MutantCase {
    /// Returns its name in lists.
    pub fn name(&self) -> String {
        format!("{:?} ({})", self.mutant, self.case.name)
    }

    /// Returns the program of the job with the mutated step.
    pub fn job(self) -> impl Fn(Fabric) -> Run {
        move |fabric| {
            let (probe, begun) = (Probe::of(&fabric), Rc::new(Cell::new(false)));
            let mutant_fabric = mutated(fabric.clone(), MutatedExchange { mutant: self.mutant, begun: begun.clone() });
            Box::pin(exchange(mutant_fabric, fabric, probe, self.case, move || begun.set(true)))
        }
    }
}
