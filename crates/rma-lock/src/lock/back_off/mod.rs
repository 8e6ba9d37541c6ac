//! Locks that back off: a rank that finds the lock taken undoes its attempt, sleeps, and tries
//! again.
//!
//! These are the locks of foMPI (Gerstenberger, Besta and Hoefler, SC 2013, section 2.3), with the
//! exponential back-off that the paper proposes.
//!
//! # Words
//! Each word is changed only by atomics. An addition is undone by a subtraction, never by
//! overwriting, because others may have added to the word in the meantime.
//! * One word per lock ([`BackOffLock`]), or per rank of a window ([`WindowLock`]): bit 0 is a
//!   writer, and the remaining bits are readers times 2.
//! * A window's second level is one word at its home: exclusive holders of any rank in the low
//!   half, holders of all ranks in the high half.
//!
//! # Steps
//! An access is one or two [claims](attempt::Claim), made in order. A reader adds itself and checks
//! the previous value; if there is a conflicting writer, it subtracts itself again. A writer
//! compares the word with 0 and swaps; if that fails, nothing has changed. An exclusive access to a
//! window's rank counts itself at the home, where it may conflict with holders of all ranks, and
//! then takes the rank's word; if that is taken, it uncounts itself. So no rank waits while it
//! holds a part of its claims, and no order of claims can deadlock.
//!
//! # Waiting
//! Between two attempts a rank sleeps and polls nothing ([`BackOff`] determines the duration).
//! There are no wake-ups and no queue: any rank that finds the lock free takes it, and a rank that
//! does not run does not delay others.

mod attempt;
mod guard;
mod pace;
mod single;
mod window;

pub use guard::{BackOffGuard, Exclusive, Mode, Shared};
pub use pace::BackOff;
pub use single::BackOffLock;
pub use window::{WindowGuard, WindowLock};
