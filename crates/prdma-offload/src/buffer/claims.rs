//! The bytes of a buffer that are in use: by requests, which *claim* the bytes that they send and
//! receive, and by the program, to which the buffer *lends* views.
//!
//! Claims and views may conflict across several threads of the rank. A claim is first taken and
//! then checks for views; a view is first entered and then checks for claims. So of two that
//! conflict, at least one sees the other and withdraws.

use super::Memory;
use crate::{
    Holder, PrdmaError, Result,
    init::{Block, Blocks, Channel},
    layout::Layout,
};
use core::sync::atomic::{
    AtomicU8, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The use of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Reading: the bytes are sent.
    Send,
    /// Writing: the bytes are received.
    Receive,
}

impl Use {
    /// Returns whether the two uses of the same bytes exclude each other.
    fn excludes(self, other: Use) -> bool {
        self == Use::Receive || other == Use::Receive
    }
}

/// Bytes, with their uses.
pub(crate) type Uses = Vec<(Use, Layout)>;

/// The request is inactive.
const IDLE: u8 = 0;
/// Neighbours may write the received bytes, but no iteration is in progress: a start or an
/// iteration has failed. The program may copy, but the received bytes are not lent to it.
const BROKEN: u8 = 1;
/// A start is not complete: sent bytes may be in flight. The program may copy, but nothing is lent
/// to it.
const STARTING: u8 = 2;
/// An iteration is in progress.
const ACTIVE: u8 = 3;

/// The bytes of a buffer that one request uses while it is active.
///
/// Only the rank that owns the buffer reads it, but possibly several of its threads: a thread that
/// finds it idle sees the received bytes.
#[derive(Debug)]
pub(crate) struct Claim {
    /// [`IDLE`], [`BROKEN`], [`STARTING`] or [`ACTIVE`].
    state: AtomicU8,
    blocks: Uses,
}

impl Claim {
    /// Returns the holder that forbids a `wanted` use of the bytes of `layout`, if the claim is in
    /// one of the states from `least` on.
    fn forbids(&self, least: u8, wanted: Use, layout: &Layout) -> Option<Holder> {
        // SeqCst: see the module.
        let state = self.state.load(SeqCst);
        if state < least {
            return None;
        }
        let hurt = self.blocks.iter().find(|(used, block)| {
            used.excludes(wanted) && (state >= STARTING || *used == Use::Receive) && block.overlaps(layout)
        });
        hurt.map(|(used, _)| match (state, used) {
            (ACTIVE, Use::Send) => Holder::Sender,
            (ACTIVE, Use::Receive) => Holder::Receiver,
            _ => Holder::Broken,
        })
    }
}

/// Prevents new views.
pub(crate) struct NoViews<'a>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, Entries>);

/// All claims on a buffer, and all views of it.
#[derive(Debug, Default)]
pub(crate) struct ClaimTable {
    entries: Mutex<Entries>,
    /// The number of views.
    views: AtomicUsize,
}

#[derive(Debug, Default)]
struct Entries {
    /// Claims of freed requests are removed when a new one is entered.
    claims: Vec<Weak<Claim>>,
    /// Claims of requests that were freed while neighbours may still write the received bytes.
    abandoned: Vec<Arc<Claim>>,
    views: Vec<(u64, Use, Layout)>,
    /// The number of the next view.
    next: u64,
}

impl Entries {
    fn claims(&self) -> impl Iterator<Item = Arc<Claim>> {
        self.claims.iter().filter_map(Weak::upgrade).chain(self.abandoned.iter().cloned())
    }

    /// Returns the view that excludes a `wanted` use of the bytes of `layout`.
    fn viewed(&self, wanted: Use, layout: &Layout) -> Option<Holder> {
        let hurt = self.views.iter().find(|(_, used, view)| used.excludes(wanted) && view.overlaps(layout));
        hurt.map(|(_, used, _)| if *used == Use::Send { Holder::View } else { Holder::ViewMut })
    }
}

impl ClaimTable {
    fn all(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, claim: &Arc<Claim>) {
        let mut all = self.all();
        all.claims.retain(|claim| claim.strong_count() > 0);
        all.claims.push(Arc::downgrade(claim));
    }

    /// Checks that the program may copy bytes now, out for [`Use::Send`] or in for
    /// [`Use::Receive`]. No view is entered before the returned guard is dropped.
    ///
    /// # Errors
    /// [`PrdmaError::InUse`].
    pub(crate) fn may(&self, wanted: Use, start: usize, len: usize) -> Result<NoViews<'_>> {
        let all = self.all();
        if len == 0 || all.claims.is_empty() && all.views.is_empty() {
            return Ok(NoViews(all));
        }
        let layout = Layout::range(start as u64, len as u64);
        let claimed = all.claims().find_map(|claim| claim.forbids(ACTIVE, wanted, &layout));
        match claimed.or_else(|| all.viewed(wanted, &layout)) {
            None => Ok(NoViews(all)),
            Some(holder) => Err(in_use(&layout, holder)),
        }
    }

    /// Enters a view of the bytes of `layout`, and returns its number.
    ///
    /// # Errors
    /// [`PrdmaError::InUse`].
    pub(crate) fn lend(&self, wanted: Use, layout: &Layout) -> Result<u64> {
        let mut all = self.all();
        // SeqCst: see the module.
        self.views.fetch_add(1, SeqCst);
        let claimed = all.claims().find_map(|claim| claim.forbids(BROKEN, wanted, layout));
        if let Some(holder) = claimed.or_else(|| all.viewed(wanted, layout)) {
            self.views.fetch_sub(1, Relaxed);
            return Err(in_use(layout, holder));
        }
        let number = all.next;
        all.next += 1;
        all.views.push((number, wanted, *layout));
        Ok(number)
    }

    /// Ends a view.
    pub(crate) fn take_back(&self, number: u64) {
        let mut all = self.all();
        all.views.retain(|(view, _, _)| *view != number);
        // Release: pairs with the load in `begin`, so that the accesses of the view happen before
        // those of the request.
        self.views.fetch_sub(1, Release);
    }

    /// Takes the bytes of an idle claim, as [`STARTING`], before an iteration starts.
    fn begin(&self, claim: &Claim, in_place: bool) -> Result<()> {
        match in_place {
            // SeqCst: see the module.
            true => _ = claim.state.swap(STARTING, SeqCst),
            // A view is a copy here, or a loan to a rank of one thread.
            false => claim.state.store(STARTING, Release),
        }
        // Includes an acquire, which pairs with `take_back`.
        self.unviewed(claim).inspect_err(|_| claim.state.store(IDLE, Release))
    }

    /// Checks that no view excludes the use of a claim's bytes.
    fn unviewed(&self, claim: &Claim) -> Result<()> {
        if self.views.load(SeqCst) == 0 {
            return Ok(());
        }
        let all = self.all();
        let viewed = claim.blocks.iter().find_map(|(used, block)| Some((all.viewed(*used, block)?, block)));
        viewed.map_or(Ok(()), |(holder, block)| Err(in_use(block, holder)))
    }

    /// Returns whether neighbours may write to the memory forever.
    pub(crate) fn is_abandoned(&self) -> bool {
        !self.all().abandoned.is_empty()
    }
}

fn in_use(layout: &Layout, holder: Holder) -> PrdmaError {
    PrdmaError::InUse { start: layout.offset, end: layout.end(), holder }
}

/// A request's claims on its buffers.
#[derive(Debug)]
pub(crate) struct ClaimSet {
    claims: Vec<(Memory, Arc<Claim>)>,
    /// Whether neighbours write to memory that is lent in place.
    guarded: bool,
}

impl ClaimSet {
    /// Makes claims on no buffer.
    pub(crate) fn none() -> Self {
        ClaimSet { claims: Vec::new(), guarded: false }
    }

    /// Enters one claim in each of the blocks' buffers.
    pub(crate) fn of<'a>(blocks: impl Iterator<Item = (Use, &'a Block)>) -> Self {
        let mut buffers: Vec<(&Memory, Uses)> = Vec::new();
        for (used, block) in blocks {
            match buffers.iter_mut().find(|(memory, _)| memory.is(&block.memory)) {
                Some((_, blocks)) => blocks.push((used, block.layout)),
                None => buffers.push((&block.memory, vec![(used, block.layout)])),
            }
        }
        let enter = |(memory, blocks): (&Memory, _)| {
            let claim = Arc::new(Claim { state: AtomicU8::new(IDLE), blocks });
            memory.claims().enter(&claim);
            (memory.clone(), claim)
        };
        ClaimSet { claims: buffers.into_iter().map(enter).collect(), guarded: false }
    }

    /// Declares whether neighbours write to memory that is lent in place.
    pub(crate) fn guarded(mut self, guarded: bool) -> Self {
        self.guarded = guarded;
        self
    }

    /// Enters claims for the blocks of slots that have a neighbour.
    pub(crate) fn of_channels(channels: &[Channel], blocks: &Blocks) -> Self {
        let outs = channels.iter().filter_map(|channel| channel.out).map(|end| (Use::Send, &blocks.sends[end.slot]));
        let ins =
            channels.iter().filter_map(|channel| channel.inn).map(|end| (Use::Receive, &blocks.receives[end.slot]));
        ClaimSet::of(outs.chain(ins))
    }

    /// Takes all bytes before an iteration starts, or none. From then on, no bytes are lent that
    /// the iteration excludes; [`ClaimSet::activate`] follows when it has started, or
    /// [`ClaimSet::end`] if it cannot start.
    ///
    /// # Errors
    /// [`PrdmaError::InUse`] if there is a view of the bytes.
    pub(crate) fn begin(&self) -> Result<()> {
        for (at, (memory, claim)) in self.claims.iter().enumerate() {
            if let Err(error) = memory.claims().begin(claim, memory.is_in_place()) {
                self.claims[..at].iter().for_each(|(_, taken)| taken.state.store(IDLE, Release));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Checks that no view excludes the use of the claimed bytes.
    ///
    /// # Errors
    /// [`PrdmaError::InUse`].
    pub(crate) fn unviewed(&self) -> Result<()> {
        self.claims.iter().try_for_each(|(memory, claim)| memory.claims().unviewed(claim))
    }

    /// Records that an iteration has started: the program may not even copy.
    pub(crate) fn activate(&self) {
        self.set(ACTIVE);
    }

    /// Records the end of an iteration. If it `failed`, neighbours may still write the bytes to be
    /// received.
    pub(crate) fn end(&self, failed: bool) {
        if failed {
            self.claims.iter().for_each(|(memory, _)| memory.expose());
        }
        self.set(if failed { BROKEN } else { IDLE });
    }

    fn set(&self, state: u8) {
        // Release: pairs with the load in `forbids`, which sees the received bytes.
        self.claims.iter().for_each(|(_, claim)| claim.state.store(state, Release));
    }
}

impl Drop for ClaimSet {
    /// Keeps the claims of bytes that are lent in place if neighbours may still write them.
    fn drop(&mut self) {
        for (memory, claim) in self.claims.drain(..) {
            if claim.state.load(Acquire) == IDLE {
                continue;
            }
            memory.expose();
            if self.guarded && memory.is_in_place() {
                memory.claims().all().abandoned.push(claim);
            }
        }
    }
}
