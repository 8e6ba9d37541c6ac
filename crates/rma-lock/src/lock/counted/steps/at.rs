//! The names of the steps.

use crate::steps::End;

/// The next step.
#[allow(missing_docs, reason = "named as on the locks' page")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum At {
    /// The acquisition or release has ended.
    End(End),
    /// Making the holder's puts visible before it leaves.
    Flush,
    /// R2, W1.
    Take,
    R1,
    /// R1 of a woken reader that was not counted.
    R1Again,
    /// U1 of a reader that waits uncounted.
    Uncount,
    /// U1 of a reader that does not enter.
    Withdraw,
    R3,
    R3Store,
    R4,
    R5Forget,
    R5,
    R6,
    R6Retire,
    /// Checking whether the epoch still admits ranks.
    Recheck,
    /// Checking whether the epoch has ended, so that a member may have left it.
    Closed,
    U1,
    /// U1 for a reader that gave up while it was counted.
    U1ForAnother,
    /// U2, W5, X7.
    Activate,
    /// U3, also as part of X7.
    Head,
    /// Barging in: compares with the count word as last seen.
    B1,
    /// Barging in: compares with the count word that B1 found.
    B2,
    /// Barging in: checking whether the lock has become free.
    Look,
    W2,
    /// The compare-and-swap in place of W3–W5.
    Free,
    W3,
    W3Flush,
    W4,
    W6,
    W7,
    /// Preparing to be woken once more, before the check.
    W8Block,
    /// Woken to check the lock: entering.
    W8,
    /// Passed by another writer: forbids further passing.
    W8Next,
    /// Withdrawing the interest of a try.
    Retract,
    /// R6, W7: the wait has ended without a wake.
    GiveUp,
    /// Checking whether there is a known successor to hand the lock to.
    Known,
    HandOver,
    X2,
    /// A writer that barged in leaves.
    XB,
    /// A writer of the queue leaves without a known successor.
    XQ,
    /// A writer that leaves readers behind becomes one of them.
    Downgrade,
    /// Removing a head that gave up from the count word.
    Unregister,
    X3Forget,
    X3,
    X4Load,
    X4,
    X4Mark,
    X4Retire,
    X5,
    X5Flush,
    X6,
    /// R5, R7, X3: waking a reader.
    WakeReader,
    /// Finding the reader below one that gave up.
    Below,
    BelowRetire,
    /// U4, X7: waking a writer.
    Wake,
    /// Retiring the node of a writer that has handed over.
    Retire,
}

/// The continuation when no work for others remains.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Then {
    /// The acquisition or release has ended.
    End,
    /// R6.
    Wait,
    /// R2 of a reader that is not counted.
    Take,
    /// The reader is inside.
    Entered,
    /// R1 of a reader that was not counted.
    Again,
    /// A writer that was about to enter is out again.
    Back,
    /// A writer that was inside is out.
    Left,
}
