//! The points at which an executor's death leaves distinct states behind, and at which tests kill
//! it.

#[cfg(test)]
pub(crate) use hook::reach;

/// A point in the execution of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeathPoint {
    /// The claim is taken, the command has not started.
    Claimed,
    /// The data phase has started; if a notice was requested, a record in the target's receive
    /// queue is claimed.
    Data,
    /// All bytes except the last are written.
    Written,
    /// The last bytes have been written, or the atomic executed; no rank was notified.
    Past,
    /// The target has received its notice.
    Noticed,
    /// The target's session offset was advanced; the released commands are not executed yet.
    Advanced,
    /// The command is reported; the next one has not started.
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
