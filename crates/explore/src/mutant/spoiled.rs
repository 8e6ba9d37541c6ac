//! One rank's fabric, spoiled: puts, flushes, and stores that come late.

use super::{
    Mutation,
    operation::{Operation, Then},
};
use rdma_fabric::{
    Fabric, Rank, RemoteAddr, Result,
    provider::{Ended, Goal, InFlightTable, OneThread, Place, Posted, Provider, Sink, Slot, Source},
};
use std::{
    cell::RefCell,
    fmt,
    ops::Deref,
    rc::Rc,
    task::{Context, Poll},
};

/// What stands between a program and the fabric below. It never leaves its thread.
pub(super) struct Spoiled {
    pub(super) below: Fabric,
    state: OneThread<Rc<State>>,
}

/// What all handles of a rank share.
pub(super) struct State {
    pub(super) mutation: Box<dyn Mutation>,
    /// Stores that wait for an atomic to complete.
    pub(super) held: RefCell<Vec<(RemoteAddr, u64)>>,
    /// Puts that wait for a word to let them go.
    later: RefCell<Vec<Later>>,
    /// By tokens, none of which is one of below.
    pub(super) under_way: InFlightTable<Operation>,
}

type Later = Box<dyn FnOnce(&Spoiled)>;

pub(super) fn word_bits(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

impl Deref for Spoiled {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl fmt::Debug for Spoiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.mutation, self.below)
    }
}

impl Spoiled {
    pub(super) fn new(below: Fabric, mutation: impl Mutation) -> Self {
        let state = State {
            mutation: Box::new(mutation),
            held: RefCell::default(),
            later: RefCell::default(),
            under_way: InFlightTable::default(),
        };
        Spoiled { below, state: OneThread::new(Rc::new(state)) }
    }

    /// The same mutation of another handle of this rank.
    pub(super) fn over(&self, below: Fabric) -> Self {
        Spoiled { below, state: OneThread::new(self.shared()) }
    }

    pub(super) fn shared(&self) -> Rc<State> {
        Rc::clone(&self.state)
    }

    pub(super) fn provider(&self) -> &dyn Provider {
        self.below.provider()
    }

    /// Put, and ask no more about it.
    fn post(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Result<()> {
        match self.provider().put(to, from, notice) {
            Posted::Pending(token) => self.provider().forget(token),
            Posted::Failed(error) => return Err(error),
            Posted::Over(_) | Posted::Full => {}
        }
        Ok(())
    }

    /// Put a word somewhere else, and ask no more about it.
    pub(super) fn post_word(&self, to: RemoteAddr, bits: u64) -> Result<()> {
        let to = self.below.remote_span::<u64>(to, 1)?;
        self.post(to.place(), Source::Bytes(&bits.to_ne_bytes()), None)
    }

    /// Put later.
    pub(super) fn hold(&self, to: &Place, own: &Place, notice: Option<u64>) {
        let (to, own) = (to.clone(), own.clone());
        let put = move |spoiled: &Spoiled| drop(spoiled.post(&to, Source::Place(&own), notice));
        self.later.borrow_mut().push(Box::new(put));
    }

    /// Post what is held, if this word lets it go.
    pub(super) fn let_go(&self, word: RemoteAddr) {
        if self.mutation.lets_go(word) {
            self.later.take().into_iter().for_each(|put| put(self));
        }
    }

    pub(super) fn put_word(&self, to: &Place, bits: u64, notice: Option<u64>) -> Posted {
        let addr = to.addr();
        self.mutation.sees_put(addr, bits);
        if let Some((before, bits)) = self.mutation.puts_before(addr, bits) {
            // What is wrong with it is wrong with the word itself.
            let _ = self.post_word(before, bits);
        }
        let Some(bits) = self.mutation.put(addr, bits) else { return Posted::Over(0) };
        let posted = self.provider().put(to, Source::Bytes(&bits.to_ne_bytes()), notice);
        if matches!(posted, Posted::Over(_) | Posted::Pending(_)) {
            self.let_go(addr);
        }
        self.posted(posted, Then::Nothing, Sink::none())
    }

    /// The slot is that of the flush below.
    pub(super) fn flush(&self, slot: &mut Slot, target: Option<Rank>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let goal = Goal::Flush(target);
        if slot.is_empty() && !self.mutation.flushes(target) {
            return Poll::Ready(Ok(()));
        }
        let awaits = self.mutation.awaits_flush(target);
        let stands = self.provider().poll_wait(slot, goal, cx);
        if awaits || stands.is_ready() {
            return stands;
        }
        if !slot.is_empty() {
            self.provider().end_wait(slot, goal, Ended::GivenUp);
            *slot = Slot::default();
        }
        Poll::Ready(Ok(()))
    }

    /// Store what was held back.
    pub(super) fn catch_up(&self) {
        for (addr, bits) in self.held.borrow_mut().drain(..) {
            let word = self.below.local_word::<u64>(addr).expect("resolved before");
            self.below.store(&word, bits).expect("registered");
        }
    }
}
