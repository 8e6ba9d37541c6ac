//! The locks of the literature, each under its own name: for benchmarks, papers, and programs that
//! require a particular one. [`crate::RwLock`] is one of them, selected by a [`crate::Policy`].
//!
//! * [`RpLock`], of Hatanaka, Hori and Ishikawa (MPI RMA lock synchronisation on FX100, section
//!   4.2): the reader-preference queue lock of Mellor-Crummey and Scott (PPoPP 1991) over remote
//!   atomics. [`PackedLock`] is that lock with fewer operations for writers; [`BargingLock`] allows
//!   running writers to barge while others wait; [`WritersFirstLock`] prefers writers, and
//!   [`FairLock`] admits all ranks in order of arrival.
//! * [`BackOffLock`] and [`WindowLock`], those of foMPI, have no queue: a rank that finds them
//!   taken sleeps and tries again. They cost less when free, and no rank has to be running for
//!   another to make progress.
//! * [`Aggregated`], [`IndicatorLock`], [`PerRankLock`] and [`EachLock`] are composed of these and
//!   take into account which ranks share a node (`docs/systems/locks.md`).
//! * [`RecoverableLock`] continues after members have died (`docs/systems/recovery.md`).
//!
//! [`LockKind`] lists them; [`crate::with_lock!`] runs code for the type of a kind, and a
//! [`crate::RwLock`] created with a kind selects the lock at run time. `docs/systems/locks.md`
//! recommends locks for each purpose.

pub use crate::{
    access::{OneGuard, OneLock},
    lock::{
        AnonymousShared, KeptExclusive,
        back_off::{BackOff, BackOffGuard, BackOffLock, Exclusive, Mode, Shared, WindowGuard, WindowLock},
        counted::{
            Barging, BargingLock, CountedLock, Flat, Packed, PackedLock, ReadGuard, RpLock, Scheme, WriteGuard,
            WritersFirst, WritersFirstLock,
        },
        fair::{FairGuard, FairLock},
        indicator::{IndicatorGuard, IndicatorLock},
        nodes::{Aggregated, AggregatedGuard, AggregatedOptions, Levels},
        ranks::{EachGuard, EachLock, EachOptions, PerRankGuard, PerRankLock},
        recovery::{
            OwnedReadGuard, OwnedWriteGuard, RecoverableLock, RecoverableReadGuard, RecoverableWriteGuard, Recovery,
            Room, Torn,
        },
        rw_lock::{Choice, Hint, LockKind, UnknownLock},
    },
};
