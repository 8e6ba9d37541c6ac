//! The paths that do not complete at once, compiled once for each scheme.
//!
//! The body of an `async fn`, like that of a closure, is compiled again in each crate that polls
//! it, and so is everything generic. Behind a function of a trait's implementation for one type it
//! is compiled here, so programs that use the locks do not compile them again.

#![allow(private_interfaces, reason = "nobody outside this crate can name the trait")]

use super::{
    Core, CountedLock, Flat, Packed, Recoverable, Scheme, WritersFirst,
    guard::{ReadGuard, WriteGuard},
    reader::{ReadEntry, ReadExit},
    scheme::Rules,
    writer::{NotInside, Writing},
    writer_exit::NotOut,
};
use crate::Result;
use rdma_fabric::{Handle, Time, provider::Boxed};
use std::sync::Arc;

macro_rules! later {
    ($($(#[$doc:meta])* fn $name:ident$(<$life:lifetime>)?($($arg:ident: $of:ty),*) $(-> $out:ty)? $body:block)*) => {
        /// The part that is the same for all schemes, implemented for each one separately.
        pub trait Later: Rules {
            $($(#[$doc])* fn $name$(<$life>)?($($arg: $of),*) $(-> $out)? where Self: Scheme;)*
        }

        macro_rules! compiled {
            ($scheme:ty) => {
                impl Later for $scheme {
                    $(fn $name$(<$life>)?($($arg: $of),*) $(-> $out)? $body)*
                }
            };
        }
    };
}

later! {
    /// Continues [`CountedLock::read_before`].
    fn read_later<'a>(lock: &'a CountedLock<Self>, entry: ReadEntry, deadline: Time) -> Boxed<'a, Result<ReadGuard<'a, Self>>> {
        Box::pin(lock.wait_to_read(entry, deadline))
    }
    /// Continues [`CountedLock::try_read`].
    fn try_read_later<'a>(lock: &'a CountedLock<Self>, entry: ReadEntry) -> Boxed<'a, Result<Option<ReadGuard<'a, Self>>>> {
        Box::pin(lock.read_or_withdraw(entry))
    }
    /// Continues [`ReadGuard::release`].
    fn release_read_later<'a>(exit: ReadExit<'a, Self>) -> Boxed<'a, Result<()>> {
        Box::pin(CountedLock::uncount_me_later(exit))
    }
    /// Continues [`CountedLock::write_before`].
    fn write_later<'a>(lock: &'a CountedLock<Self>, entry: NotInside, deadline: Time) -> Boxed<'a, Result<WriteGuard<'a, Self>>> {
        Box::pin(lock.wait_to_write(entry, deadline))
    }
    /// Continues [`CountedLock::try_write`].
    fn try_write_later<'a>(lock: &'a CountedLock<Self>, entry: NotInside) -> Boxed<'a, Result<Option<WriteGuard<'a, Self>>>> {
        Box::pin(lock.write_or_withdraw(entry))
    }
    /// Continues [`WriteGuard::release`].
    fn release_write_later<'a>(guard: WriteGuard<'a, Self>, exit: NotOut) -> Boxed<'a, Result<()>> {
        Box::pin(CountedLock::leave_later(guard, exit))
    }
    /// Detaches the release of a [`ReadGuard`] that was dropped.
    fn release_read_unawaited(core: &Arc<Core<Self>>) {
        core.detach_release();
    }
    /// Detaches the rest of the release of a [`WriteGuard`] that was dropped.
    fn release_write_unawaited(core: &Arc<Core<Self>>, held: Writing, exit: NotOut) {
        core.detach_write_release(held, exit);
    }
    /// Detaches what the last reader, which found `old` when it left, still has to do.
    fn wake_unawaited(core: &Arc<Core<Self>>, old: u64) {
        core.detach_wake(old);
    }
    /// Detaches the withdrawal of a reader whose arrival was posted.
    fn withdraw_unawaited(core: &Arc<Core<Self>>, posted: Handle<u64>) {
        core.detach_withdrawal(posted);
    }
    /// Takes a shared hold that any rank may end.
    fn hold<'a>(lock: &'a CountedLock<Self>, deadline: Time) -> Boxed<'a, Result<()>> {
        Box::pin(async move { Ok(lock.read_before(deadline).await?.pass_on()) })
    }
    /// Takes a shared hold that any rank may end, if that needs no wait.
    fn try_hold<'a>(lock: &'a CountedLock<Self>) -> Boxed<'a, Result<bool>> {
        Box::pin(async move { Ok(lock.try_read().await?.map(ReadGuard::pass_on).is_some()) })
    }
    /// Ends a shared hold, whichever rank took it.
    fn end_hold<'a>(lock: &'a CountedLock<Self>) -> Boxed<'a, Result<()>> {
        Box::pin(ReadGuard::take_over(lock).release())
    }
    /// Takes an exclusive hold, kept as bits.
    fn keep<'a>(lock: &'a CountedLock<Self>, deadline: Time) -> Boxed<'a, Result<u64>> {
        Box::pin(async move { Ok(lock.write_before(deadline).await?.disarm().bits()) })
    }
    /// Takes an exclusive hold, kept as bits, if that needs no wait.
    fn try_keep<'a>(lock: &'a CountedLock<Self>) -> Boxed<'a, Result<Option<u64>>> {
        Box::pin(async move { Ok(lock.try_write().await?.map(|guard| guard.disarm().bits())) })
    }
    /// Ends an exclusive hold that was kept.
    fn end_kept<'a>(lock: &'a CountedLock<Self>, kept: u64) -> Boxed<'a, Result<()>> {
        Box::pin(WriteGuard::new(lock, Writing::of_bits(kept)).release())
    }
    /// Detaches what follows a departure that was posted.
    fn leave_unawaited(core: &Arc<Core<Self>>, posted: Handle<u64>) {
        core.detach_departure(posted);
    }
}

compiled!(Flat);
compiled!(Packed);
compiled!(WritersFirst);
compiled!(Recoverable);
