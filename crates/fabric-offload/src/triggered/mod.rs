//! Triggered puts without queues: puts that a rank issues as soon as words of its own reach a
//! number.
//!
//! A network interface with [session queues](crate::control_queue) executes such puts by itself. If
//! there are no queues, or none is left, the CPU has to poll: a rank arms [`TriggeredPuts`], and
//! puts that can't be issued immediately are issued in the next call in which this rank waits, for
//! any purpose. So a rank that has started two operations may wait for them in any order, and so
//! may its neighbours (MPI 4.1, §2.9: progress).
//!
//! # Progress
//! Every call that waits [beside](Triggers::run_during) the rank's [`Triggers`] makes progress:
//! owners waiting for their own puts, the [`Group`](rdma_fabric::Group)'s collectives, the systems that use such
//! puts. A rank that computes, or waits for something else (a lock, a notice), makes no progress in
//! the meantime; that requires queues.
//!
//! # Nothing is done twice
//! A put is posted once for each number, no matter which futures are dropped in the meantime:
//! posted puts are recorded separately from the futures that drive them. Before its word is written
//! a put may be repeated; afterwards its target may proceed, and must not receive it again.
//!
//! A future that executes a put holds it until the network has accepted it, and the put's owner
//! waits for that. So such a future must be either polled or dropped, not set aside.
//!
//! # Source
//! Triggered operations: B. Barrett et al., The Portals 4 network programming interface (2012),
//! §3.14; `FI_TRIGGER` of libfabric.

mod block_spans;
mod board;
mod put;
mod set;
mod transfer;

pub use put::{TriggeredPut, put_behind};
pub use set::TriggeredPuts;
pub use transfer::{Spans, Transfer};

use board::{Board, Watch};
use core::{
    fmt,
    future::{Future, poll_fn},
    hint::spin_loop,
    pin::pin,
    task::Poll,
};
use rdma_fabric::{Deps, Fabric, FabricError, LocalWord, Rank, Result, WaitHook, join, provider::Boxed};

/// The result of a call that does only work that needs no wait: ready if no work is left. Small
/// enough to be returned in registers, because it is requested often.
pub type Now = Poll<Result<(), Box<FabricError>>>;

/// Returns the number of polls of a word before a wait for it is prepared.
fn looks(word: &LocalWord<u64>) -> u32 {
    if word.is_shared() { 12 } else { 0 }
}

/// The puts that a rank has armed and can't execute yet: one set for all its handles. A
/// [layered](Fabric::layered) fabric has its own.
pub struct Triggers {
    board: Board,
}

impl Default for Triggers {
    fn default() -> Self {
        Triggers { board: Board::new() }
    }
}

impl fmt::Debug for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_idle() { "Triggers(idle)" } else { "Triggers" })
    }
}

impl WaitHook for Triggers {
    fn is_idle(&self) -> bool {
        self.board.is_idle()
    }

    fn run_during<'a>(&'a self, awaited: Boxed<'a, ()>) -> Boxed<'a, ()> {
        Box::pin(Triggers::run_during(self, awaited))
    }
}

impl Triggers {
    /// Returns the puts of this rank.
    pub fn of(fabric: &Fabric) -> &Self {
        fabric.wait_hook()
    }

    /// Returns whether there are no armed puts for calls other than the owner's to execute.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.board.is_idle()
    }

    /// Executes the puts that are possible now. Waits only for the network.
    pub async fn advance(&self) {
        if !self.is_idle() {
            self.board.advance().await;
        }
    }

    /// Executes the puts that are possible now, and returns whether all of `puts` have been
    /// executed. Each is checked once; [`Triggers::advance`] followed by [`TriggeredPuts::test`]
    /// would check those that wait for their words twice.
    ///
    /// # Errors
    /// As [`TriggeredPuts::test`]; the first error in order, after everything possible has been
    /// done.
    pub async fn test<'a>(&self, puts: impl IntoIterator<Item = &'a mut TriggeredPuts>) -> Result<bool> {
        // Sets held here are not on the board.
        let mut hands = Vec::new();
        for puts in puts {
            hands.push(puts.hand().await);
        }
        let own = async {
            match &mut hands[..] {
                [hand] => hand.set().advance().await,
                hands => join::join_all(hands.iter_mut().map(|hand| hand.set().advance()))
                    .await
                    .into_iter()
                    .try_fold(true, |all, done| Ok(all & done?)),
            }
        };
        if self.is_idle() { own.await } else { join::join(self.board.advance(), own).await.1 }
    }

    /// Waits until all of the words have reached `number`, executing puts in the meantime as
    /// [`Triggers::run_during`] does. The wait depends on `ranks`.
    ///
    /// # Errors
    /// As [`Fabric::load`] and [`Fabric::wait_until`].
    pub async fn until_reached(fabric: &Fabric, words: &[LocalWord<u64>], ranks: &[Rank], number: u64) -> Result<()> {
        for word in words {
            let mut looks = looks(word);
            while fabric.load(word)? < number {
                if looks == 0 {
                    let wait = fabric.wait_until(word, Deps::Ranks(ranks), |value| value >= number);
                    Triggers::of(fabric).run_during(wait).await?;
                    break;
                }
                looks -= 1;
                spin_loop();
            }
        }
        Ok(())
    }

    /// Waits for `awaited`, and executes puts as they become possible, including those that other
    /// tasks of this rank arm in the meantime.
    pub async fn run_during<T: Future>(&self, awaited: T) -> T::Output {
        let mut awaited = pin!(awaited);
        let board = &self.board;
        let (mut watch, mut driving) = (Watch::new(board), None);
        poll_fn(|cx| {
            if let Poll::Ready(out) = awaited.as_mut().poll(cx) {
                return Poll::Ready(out);
            }
            board.watch(cx, &mut watch);
            let turn = board.turns();
            if driving.as_ref().is_none_or(|(since, _)| *since != turn) {
                driving = (!board.is_idle()).then(|| (turn, Box::pin(board.drive())));
            }
            if let Some((_, drive)) = &mut driving
                && drive.as_mut().poll(cx).is_ready()
            {
                driving = None;
                // This may have been the event for which `awaited` waits.
                return awaited.as_mut().poll(cx);
            }
            Poll::Pending
        })
        .await
    }
}
