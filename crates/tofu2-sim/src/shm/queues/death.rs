//! The moments at which an executor's death leaves different states behind, and at which tests let
//! it die.

#[cfg(test)]
pub(crate) use hook::reach;

/// A moment in the execution of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeathPoint {
    /// The claim is taken, the command not begun.
    Claimed,
    /// The data phase has begun; if there is to be a notice, a place in the target's receive queue
    /// is claimed.
    Data,
    /// All bytes except the last are written.
    Written,
    /// The last bytes are written, or the atomic is done; nobody was notified.
    Past,
    /// The target was given its notice.
    Noticed,
    /// The target's session offset was advanced; nobody executes what that released.
    Advanced,
    /// The command is reported; the next one is not begun.
    Completed,
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn reach(_: DeathPoint) {}

#[cfg(test)]
pub(crate) mod hook {
    use super::DeathPoint;
    use std::cell::RefCell;

    type Hook = Box<dyn FnMut(DeathPoint)>;

    thread_local! {
        static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    }

    /// Calls `hook` at each label that this thread reaches from now on.
    pub(crate) fn set(hook: impl FnMut(DeathPoint) + 'static) {
        HOOK.with_borrow_mut(|set| *set = Some(Box::new(hook)));
    }

    pub(crate) fn reach(label: DeathPoint) {
        // Taken out during the call, because it may panic.
        let hook = HOOK.with_borrow_mut(Option::take);
        if let Some(mut hook) = hook {
            hook(label);
            HOOK.with_borrow_mut(|set| *set = Some(hook));
        }
    }
}
