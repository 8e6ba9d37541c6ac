//! The errors of lock calls.

use rdma_fabric::{FabricError, Rank};

/// The failure of a lock call.
///
/// Two words: a larger error would cost every call that succeeds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// The underlying fabric failed.
    #[error("{0}")]
    Fabric(#[source] FabricError),
    /// The deadline passed first. The lock is not held, and no cleanup is needed.
    #[error("the deadline came before the lock")]
    TimedOut,
    /// An earlier operation of this rank on this lock failed between two steps of the protocol; the
    /// state of the lock's words is unknown. Guards still held can be released.
    #[error("an earlier operation of this lock failed half-way: {0}")]
    Broken(Box<LockError>),
    /// All of the rank's queue nodes for this lock are held by acquisitions that wait or were
    /// abandoned: an abandoned acquisition keeps its node until it would have been its turn. Await
    /// or drop some of them, and retry later. No cleanup is needed.
    #[error(
        "all {nodes} queue nodes of {rank} are held by acquisitions that wait or were given up: await or drop some, and try \
         again when the lock has come to them"
    )]
    TooManyWaiting {
        /// The rank.
        rank: Rank,
        /// The number of its queue nodes per lock.
        nodes: u32,
    },
    /// The number of guards, live or [forgotten](core::mem::forget), that hold the lock has reached
    /// the holder limit, which is far below an overflow of the count. No cleanup is needed.
    /// Forgotten guards stay counted forever.
    #[error(
        "the lock is held {most} times already, guards that were forgotten included, and counts no more: release some"
    )]
    TooManyHolders {
        /// The holder limit.
        most: u32,
    },
    /// The job has more ranks than a queue-based lock can encode in half a word.
    #[error("a lock with queues serves jobs of up to {most} ranks, not {ranks}")]
    TooManyRanks {
        /// The number of ranks of the job.
        ranks: u32,
        /// The largest number of ranks supported.
        most: u32,
    },
    /// The lock was taken at every attempt that its [back-off](crate::locks::BackOff) allows. No
    /// cleanup is needed.
    #[error("the lock was taken at all {attempts} attempts that its back-off allows")]
    Contended {
        /// The number of attempts.
        attempts: u32,
    },
    /// The data that the lock protects may be half-written: its writer died or panicked, or is
    /// suspected of having died. The lock is not held. [`crate::locks::RecoverableLock::mend`]
    /// takes it regardless; [`crate::locks::RecoverableWriteGuard::clear_torn`] ends this state.
    #[error(
        "what the lock protects may be torn: {by} died or panicked while it wrote, or is suspected of it; take the lock by \
         `mend`, repair what it protects, and say so by `clear_torn`"
    )]
    Torn {
        /// The rank that was writing.
        by: Rank,
    },
    /// More ranks have died, or in more epochs, than the lock's options allow it to survive
    /// ([`crate::locks::Recovery`]).
    #[error("the lock was made to survive {deaths} deaths in {epochs} epochs, and that was not enough")]
    Unrecoverable {
        /// The number of epochs of the lock.
        epochs: u32,
        /// The number of deaths that the lock can record.
        deaths: u32,
    },
    /// The options of a lock exceed the limits, or allow no epoch ([`crate::locks::Recovery`]). It
    /// was not created.
    #[error("a lock can survive up to 4095 deaths, in 1 to 256 epochs; {deaths} in {epochs} were asked for")]
    RecoveryLimits {
        /// The requested number of epochs.
        epochs: u32,
        /// The requested number of deaths.
        deaths: u32,
    },
    /// A rank panicked while it wrote the protected data; the lock was released.
    /// [`crate::AcquireError::into_inner`] returns the guard regardless;
    /// [`crate::LockedWriteGuard::clear_poison`] ends this state. See [`crate::PoisonError`].
    #[error(
        "{by} panicked while it wrote what the lock guards; take the guard all the same (`into_inner` of the error that \
         holds it), repair what it guards, and say so by `clear_poison`"
    )]
    Poisoned {
        /// The rank that panicked.
        by: Rank,
    },
    /// A lock word contains a value that no rank following the protocol writes.
    #[error(transparent)]
    Corrupt(Box<CorruptWord>),
}

const _: () = assert!(size_of::<LockError>() <= 16);

/// A lock word and its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word} of the lock holds {value:#x}")]
#[non_exhaustive]
pub struct CorruptWord {
    /// The word's name.
    pub word: &'static str,
    /// Its value.
    pub value: u64,
}

impl LockError {
    /// Reports to [`crate::locks::RecoverableLock`] that its home word keeps all ranks out; no
    /// cleanup is needed. Callers of this crate never receive it: every lock admits more than 0
    /// holders.
    pub(crate) const KEPT_OUT: LockError = LockError::TooManyHolders { most: 0 };

    #[cold]
    pub(crate) fn corrupt(word: &'static str, value: u64) -> Self {
        LockError::Corrupt(Box::new(CorruptWord { word, value }))
    }
}

impl From<FabricError> for LockError {
    #[cold]
    fn from(error: FabricError) -> Self {
        LockError::Fabric(error)
    }
}

/// The result of a lock call.
pub type Result<T, E = LockError> = core::result::Result<T, E>;

/// The reason why a protocol stopped before its end.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// It stopped in an orderly way: no cleanup is needed.
    GaveUp(LockError),
    /// It stopped between two steps: the state of the lock's words is unknown.
    Broken(LockError),
}

impl From<FabricError> for Stopped {
    fn from(error: FabricError) -> Self {
        Stopped::Broken(error.into())
    }
}
