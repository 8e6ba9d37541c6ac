//! Hooks: work of crates above the contract that makes progress while a rank waits.

use super::Fabric;
use crate::{Result, provider::Boxed};
use core::{any::Any, iter::successors};
use std::sync::{Arc, OnceLock};

/// Work that a rank does while it waits, such as puts that have to be issued when words of its own
/// reach a number. For crates that build asynchronous operations over [`Fabric`], because protocols
/// spawn no tasks.
///
/// A rank has one hook of each type: [`Fabric::wait_hook`]. The collectives of a
/// [`Group`](crate::Group) run all of them while they wait. Every other wait runs a hook only if its
/// caller passes it to that hook, so a hook's crate states where its work makes progress.
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult, WaitHook, provider::Boxed};
/// use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
///
/// /// Jobs that have to be done by the next collective.
/// #[derive(Default)]
/// struct Jobs(AtomicU32);
///
/// impl WaitHook for Jobs {
///     fn is_idle(&self) -> bool {
///         self.0.load(Relaxed) == 0
///     }
///     fn run_during<'a>(&'a self, awaited: Boxed<'a, ()>) -> Boxed<'a, ()> {
///         Box::pin(async move {
///             self.0.store(0, Relaxed); // … does them …
///             awaited.await
///         })
///     }
/// }
///
/// async fn program(fabric: Fabric) -> ProgramResult<()> {
///     let mut world = Group::world(&fabric).await?;
///     fabric.wait_hook::<Jobs>().0.fetch_add(2, Relaxed);
///     world.barrier().await?;
///     assert!(fabric.clone().wait_hook::<Jobs>().is_idle());
///     Ok(())
/// }
/// # tofu2_sim::shm::Threads::new(2).run(&program).unwrap();
/// # tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 2).run(&program).unwrap();
/// ```
pub trait WaitHook: Any + Send + Sync {
    /// Returns whether there is no work. Called before each wait of a collective, so it should be
    /// cheap.
    fn is_idle(&self) -> bool;

    /// Waits for `awaited`, and does the work that becomes possible in the meantime. Ready once
    /// `awaited` is, whether or not work is left.
    fn run_during<'a>(&'a self, awaited: Boxed<'a, ()>) -> Boxed<'a, ()>;
}

/// The hooks of a rank, which its handles share; allocated when first used.
#[derive(Default)]
pub(super) struct WaitHooks(OnceLock<Arc<List>>);

/// A list that only grows, so that it is read without a lock.
#[derive(Default)]
struct List(OnceLock<Box<Node>>);

struct Node {
    hook: Box<dyn WaitHook>,
    next: List,
}

impl WaitHooks {
    /// Returns these hooks, for another handle of the rank.
    pub(super) fn share(&self) -> Self {
        WaitHooks(OnceLock::from(self.0.get_or_init(Arc::default).clone()))
    }

    #[inline]
    fn iter(&self) -> impl Iterator<Item = &dyn WaitHook> {
        let first = self.0.get().and_then(|list| list.0.get());
        successors(first, |node| node.next.0.get()).map(|node| &*node.hook)
    }

    fn get<H: WaitHook + Default>(&self) -> &H {
        let mut list = &**self.0.get_or_init(Arc::default);
        loop {
            let node = list.0.get_or_init(|| Box::new(Node { hook: Box::<H>::default(), next: List::default() }));
            let hook: &dyn Any = &*node.hook;
            match hook.downcast_ref() {
                Some(hook) => return hook,
                None => list = &node.next,
            }
        }
    }

    fn are_idle(&self) -> bool {
        self.iter().all(WaitHook::is_idle)
    }

    async fn run_during<T: Send>(&self, awaited: Boxed<'_, T>) -> T {
        let mut outcome = None;
        let wait: Boxed<'_, ()> = Box::pin(async { outcome = Some(awaited.await) });
        self.iter().fold(wait, |wait, hook| hook.run_during(wait)).await;
        outcome.expect("a hook is ready only after what it waits for")
    }
}

impl Fabric {
    /// Returns this rank's hook of type `H`, which the first call creates. All handles of the rank
    /// share it; a [layered](Fabric::layered) fabric has its own, as has that of a
    /// [helper](Fabric::helper).
    pub fn wait_hook<H: WaitHook + Default>(&self) -> &H {
        self.inner.hooks.get()
    }

    /// Returns whether no hook of this rank has work.
    #[inline]
    pub(crate) fn has_idle_hooks(&self) -> bool {
        self.inner.hooks.are_idle()
    }

    /// Waits for `awaited`, and runs all hooks of the rank in the meantime.
    pub(crate) async fn run_hooks_during<T: Send>(&self, awaited: Boxed<'_, Result<T>>) -> Result<T> {
        self.inner.hooks.run_during(awaited).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::join::now;
    use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

    /// Counts down by one for each wait.
    #[derive(Default)]
    struct Countdown<const KIND: usize>(AtomicU32);

    impl<const KIND: usize> WaitHook for Countdown<KIND> {
        fn is_idle(&self) -> bool {
            self.0.load(Relaxed) == 0
        }

        fn run_during<'a>(&'a self, awaited: Boxed<'a, ()>) -> Boxed<'a, ()> {
            Box::pin(async move {
                let _ = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
                awaited.await;
            })
        }
    }

    #[test]
    fn handles_share_one_hook_of_each_type_and_each_runs() {
        let hooks = WaitHooks::default();
        assert!(hooks.are_idle());
        let other = hooks.share();
        hooks.get::<Countdown<0>>().0.store(1, Relaxed);
        other.get::<Countdown<1>>().0.store(2, Relaxed);
        assert_eq!(other.get::<Countdown<0>>().0.load(Relaxed), 1);
        for left in [1, 0, 0] {
            assert_eq!(now(other.run_during(Box::pin(async { 7 }))), Some(7));
            assert_eq!(hooks.get::<Countdown<1>>().0.load(Relaxed), left);
            assert_eq!(hooks.are_idle(), left == 0);
        }
        assert!(WaitHooks::default().get::<Countdown<0>>().is_idle(), "another rank");
    }
}
