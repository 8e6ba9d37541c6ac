//! One rank's mutated fabric: how a mutant changes calls.

use super::{
    Mutant,
    operation::{Operation, Then},
};
use rdma_fabric::{
    AccessPolicy, Amo, Fabric, Rank, Refused, Region, RemoteAddr, Result, forward,
    op::Nop,
    provider::{
        BarrierUnit, Colours, Deferred, Ended, HelperTask, InFlightTable, Multicast, OneThread, Place, Posted,
        Protected, Provider, Queues, Sink, Source, Token, WaitFor, WaitState,
    },
};
use std::{
    cell::RefCell,
    fmt,
    future::poll_fn,
    mem::replace,
    ops::Deref,
    rc::Rc,
    task::{Context, Poll},
};

/// The provider between a program and the fabric below. It never leaves its thread.
pub(super) struct Mutated {
    pub(super) below: Fabric,
    state: OneThread<Rc<State>>,
}

/// The state that all handles of a rank share.
pub(super) struct State {
    pub(super) mutant: Box<dyn Mutant>,
    /// Stores held back until an atomic completes.
    pub(super) held: RefCell<Vec<(RemoteAddr, Box<[u8]>)>>,
    /// Puts held back until a word lets them go.
    later: RefCell<Vec<Later>>,
    /// Operations in flight. Their tokens are not those of the fabric below.
    pub(super) in_flight: InFlightTable<Operation>,
}

type Later = Box<dyn FnOnce(&Mutated)>;

pub(super) fn word_bits(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

impl Deref for Mutated {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl fmt::Debug for Mutated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.mutant, self.below)
    }
}

impl Mutated {
    pub(super) fn new(below: Fabric, mutant: impl Mutant) -> Self {
        let state = State {
            mutant: Box::new(mutant),
            held: RefCell::default(),
            later: RefCell::default(),
            in_flight: InFlightTable::default(),
        };
        Mutated { below, state: OneThread::new(Rc::new(state)) }
    }

    /// Applies this rank's mutant to another of its handles.
    pub(super) fn over(&self, below: Fabric) -> Self {
        Mutated { below, state: OneThread::new(self.shared()) }
    }

    pub(super) fn shared(&self) -> Rc<State> {
        Rc::clone(&self.state)
    }

    pub(super) fn provider(&self) -> &dyn Provider {
        self.below.provider()
    }

    /// Puts, and drops the handle.
    fn post(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Result<()> {
        match self.provider().put(to, from, notice) {
            Posted::Pending(token) => self.provider().forget(token),
            Posted::Failed(error) => return Err(error),
            Posted::Complete(_) | Posted::Full => {}
        }
        Ok(())
    }

    /// Puts a word to a remote location, and drops the handle.
    pub(super) fn post_word(&self, to: RemoteAddr, bits: u64) -> Result<()> {
        let to = self.below.remote_span::<u64>(to, 1)?;
        self.post(to.place(), Source::Bytes(&bits.to_ne_bytes()), None)
    }

    /// Holds a put back.
    pub(super) fn hold(&self, to: &Place, own: &Place, notice: Option<u64>) {
        let (to, own) = (to.clone(), own.clone());
        let put = move |mutated: &Mutated| drop(mutated.post(&to, Source::Place(&own), notice));
        self.later.borrow_mut().push(Box::new(put));
    }

    /// Posts the puts that were held back, if this word lets them go.
    pub(super) fn release_held(&self, word: RemoteAddr) {
        if self.mutant.releases_held(word) {
            self.later.take().into_iter().for_each(|put| put(self));
        }
    }

    pub(super) fn put_word(&self, to: &Place, bits: u64, notice: Option<u64>) -> Posted {
        let addr = to.addr();
        self.mutant.sees_put(addr, bits);
        if let Some((before, bits)) = self.mutant.puts_before(addr, bits) {
            // If this fails, so does the put of the word itself.
            let _ = self.post_word(before, bits);
        }
        let Some(bits) = self.mutant.put(addr, bits) else { return Posted::Complete(0) };
        let posted = self.provider().put(to, Source::Bytes(&bits.to_ne_bytes()), notice);
        if matches!(posted, Posted::Complete(_) | Posted::Pending(_)) {
            self.release_held(addr);
        }
        self.posted(posted, Then::Nothing, Sink::none())
    }

    /// Flushes. The wait state belongs to the flush below.
    pub(super) fn flush(
        &self,
        wait_state: &mut WaitState,
        target: Option<Rank>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let wait_for = WaitFor::Flush(target);
        if wait_state.is_empty() && !self.mutant.flushes(target) {
            return Poll::Ready(Ok(()));
        }
        let awaits = self.mutant.awaits_flush(target);
        let stands = self.provider().poll_wait(wait_state, wait_for, cx);
        if awaits || stands.is_ready() {
            return stands;
        }
        if !wait_state.is_empty() {
            self.provider().end_wait(wait_state, wait_for, Ended::GivenUp);
            *wait_state = WaitState::default();
        }
        Poll::Ready(Ok(()))
    }

    /// Executes the stores that were held back.
    pub(super) fn catch_up(&self) {
        for (addr, bytes) in self.held.borrow_mut().drain(..) {
            match word_bits(&bytes) {
                Some(bits) => {
                    let word = self.below.local_word::<u64>(addr).expect("resolved before");
                    self.below.store(&word, bits).expect("registered");
                }
                None => {
                    let span = self.below.local_span::<u8>(addr, bytes.len()).expect("resolved before");
                    self.below.write(&span, &bytes).expect("registered");
                }
            }
        }
    }
}

impl Provider for Mutated {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, wake, try_notice, end_wait, now, abort);

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        let (addr, mutant) = (from.addr(), &self.mutant);
        let waits = !waiting || mutant.waits(addr);
        self.provider().read(from, into, waiting && waits)?;
        if let Some(bits) = word_bits(into) {
            let bits = if waits { mutant.seen(addr, bits) } else { mutant.taken_for(addr, bits) };
            into.copy_from_slice(&bits.to_ne_bytes());
        }
        Ok(())
    }

    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()> {
        let is_late = match word_bits(from) {
            Some(bits) => self.mutant.late(to.addr(), bits),
            None => self.mutant.late_bytes(to.addr()),
        };
        if is_late {
            self.held.borrow_mut().push((to.addr(), from.into()));
            return Ok(());
        }
        self.provider().write(to, from, waited)
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        match from {
            Source::Bytes(bytes) => {
                if let Some(bits) = word_bits(bytes) {
                    return self.put_word(to, bits, notice);
                }
            }
            Source::Place(own) => {
                if self.mutant.holds(to.addr(), to.len()) {
                    self.hold(to, own, notice);
                    return Posted::Complete(0);
                }
            }
        }
        self.posted(self.provider().put(to, from, notice), Then::Nothing, Sink::none())
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        match to {
            Sink::Bytes(bytes) => {
                let posted = self.provider().get(from, Sink::Bytes(&mut *bytes));
                self.posted(posted, Then::Got(from.addr()), Sink::Bytes(bytes))
            }
            own => self.posted(self.provider().get(from, own), Then::Nothing, Sink::none()),
        }
    }

    fn copy(&self, to: &Place, from: &Place) -> Posted {
        self.posted(self.provider().copy(to, from), Then::Nothing, Sink::none())
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.change(word, amo).unwrap_or_else(Posted::failed)
    }

    fn nop(&self) -> Posted {
        if self.mutant.nop_at_once() {
            return self.posted(self.provider().nop(), Then::Nothing, Sink::none());
        }
        let nop = match self.below.try_post(Nop) {
            Ok(nop) => nop,
            Err(Refused::Full(Nop)) => return Posted::Full,
            Err(Refused::Failed(error, Nop)) => return Posted::failed(error),
        };
        let mut polled = false;
        let later = poll_fn(move |cx| {
            if replace(&mut polled, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        self.several(async {
            later.await;
            nop.await.map(|()| 0)
        })
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.result(*token, into, cx)
    }

    fn test(&self, token: &Token) -> bool {
        self.is_complete(*token)
    }

    fn forget(&self, token: Token) {
        if let Some(Operation::Below(token, _)) = self.in_flight.take(token) {
            self.provider().forget(token);
        }
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        match wait_for {
            WaitFor::Flush(target) => self.flush(wait_state, target, cx),
            _ => self.provider().poll_wait(wait_state, wait_for, cx),
        }
    }

    fn detach(&self, deferred: Deferred<'_>) {
        if self.mutant.detaches() {
            self.provider().detach(deferred);
        }
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        self.provider().multicast().map(|_| self as &dyn Multicast)
    }

    /// Offers no queues: their operations would pass unmutated.
    fn queues(&self) -> Option<&dyn Queues> {
        None
    }

    fn gates(&self) -> Option<&dyn BarrierUnit> {
        self.provider().gates()
    }

    fn colours(&self) -> Option<&dyn Colours> {
        self.provider().colours()
    }

    fn protected(&self) -> Option<&dyn Protected> {
        self.provider().protected().map(|_| self as &dyn Protected)
    }

    /// The operations of a helper are mutated as well. Its provider runs it on the simulating
    /// thread.
    fn helper(&self, _: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        let state = OneThread::new(self.shared());
        let mutated = move |below: Fabric| task(below.layered(Mutated { below: below.clone(), state }));
        self.provider().helper(&self.below, name, Box::new(mutated))
    }
}

impl Protected for Mutated {
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric> {
        Ok(like.sibling(self.over(self.below.protected(policy)?)))
    }

    fn abandon(&self, region: Region) {
        region.abandon(&self.below);
    }
}
