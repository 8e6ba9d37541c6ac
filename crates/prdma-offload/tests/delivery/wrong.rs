//! Steps of the protocol done wrong, by a fabric that spoils its operations.

use explore::mutant::Mutation;
use rdma_fabric::{Amo, Rank, RemoteAddr};
use std::{cell::Cell, rc::Rc};

/// A step done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Any READY counts, that of an earlier iteration too.
    ReadyIsAFlag,
    /// Data leave without any READY.
    ReadyIgnored,
    /// A READY is said for the next iteration as well.
    ReadyTooEarly,
    /// The second READY never comes.
    ReadyLost,
    /// END follows its data without a flush.
    DataNotFlushed,
    /// END is a put where it has to be an atomic.
    EndNotOrdered,
    /// END goes first.
    EndFirst,
    /// END of the iteration before is told again.
    EndRepeated,
    /// A wait is content with the END of the iteration before.
    WaitsForTheLast,
}
use Wrong::*;

/// [`Wrong`] at one rank, from when its set-up is over.
#[derive(Debug)]
pub(crate) struct Spoiled {
    pub(crate) wrong: Wrong,
    pub(crate) begun: Rc<Cell<bool>>,
}

/// Regions from here on are local: of these only the words of a request are put one by one.
const LOCAL: u32 = 1 << 16;
/// READYs stand in one line of so many bytes, ENDs in the next.
const LINE: u64 = 128;

impl Spoiled {
    fn word(&self, wrong: Wrong, addr: RemoteAddr, end: bool) -> bool {
        self.wrong == wrong && self.begun.get() && addr.region.index >= LOCAL && (addr.offset / LINE % 2 == 1) == end
    }

    fn ready(&self, wrong: Wrong, addr: RemoteAddr) -> bool {
        self.word(wrong, addr, false)
    }

    fn end(&self, wrong: Wrong, addr: RemoteAddr) -> bool {
        self.word(wrong, addr, true)
    }
}

impl Mutation for Spoiled {
    fn nop_at_once(&self) -> bool {
        false
    }

    fn flushes(&self, _: Option<Rank>) -> bool {
        !(self.wrong == DataNotFlushed && self.begun.get())
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
        self.wrong == EndFirst && self.begun.get()
    }

    fn lets_go(&self, addr: RemoteAddr) -> bool {
        self.end(EndFirst, addr)
    }
}
