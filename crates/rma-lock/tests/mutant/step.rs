//! Which lock, and which of its steps is done wrong.

/// Which lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Flat,
    Packed,
    WritersFirst,
    Fair,
}

impl Subject {
    /// What tables call it.
    #[allow(dead_code, reason = "not every checker shows it")]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subject::Flat => "RpLock",
            Subject::Packed => "PackedLock",
            Subject::WritersFirst => "WritersFirstLock",
            Subject::Fair => "FairLock",
        }
    }
}

/// One step of the lock done wrong.
#[allow(dead_code, reason = "not every checker needs all of them")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing is wrong: the wrapper itself must not matter.
    Right,
    /// R4 always finds the writer still there.
    NoSecondLook,
    /// Part of R2, W1 after R3, W2: the node's next is cleared when its rank may have got one.
    LateInitialisation,
    /// W3, X5 without flush.
    HeadNotFlushed,
    /// X1 as printed, the head cleared on leaving, and not flushed.
    HeadClearedUnflushed,
    /// X2 comes only with X6, after X3; without a successor, before X4's swap.
    LeaveMergedWithInterest,
    /// U2, W5, X7 believe that the comparison succeeded.
    ComparisonIgnored,
    /// So does a writer that wants to enter a free lock by one comparison.
    ShortcutIgnored,
    /// So does a writer that hands over by one.
    HandOverIgnored,
    /// A head in the count word is not written.
    HeadNotNamed,
    /// It is not taken out again.
    HeadKept,
    /// A reader that finds a writer registered stays counted while it waits.
    StaysCounted,
    /// The first of the readers that wait does not say so.
    NobodyTold,
    /// That readers wait is taken back after the stack was taken.
    ToldTooLate,
    /// U2, W5, X7 give up if readers began to wait meanwhile.
    OneComparison,
    /// F4 sees no readers.
    ReadersIgnored,
    /// A reader that is inside, or let in, is not counted.
    NotCounted,
    /// A reader that leaves does not say which writer comes next.
    NotSaid,
    /// G4 is left out.
    NotTakenBack,
    /// A reader that finds nobody registered when it leaves as the last looks again later, and lets in whom it finds: the lock as printed.
    LateLook,
    /// A reader that is inside does not say so in its node.
    NotInside,
    /// A reader does not see that the one before it is inside.
    InsideIgnored,
    /// It takes one that waits for one that is.
    BlockedTakenForInside,
    /// The release does not flush the data.
    DataNotFlushed,
    /// A reader's release begins its flush, and does not await it.
    FlushNotAwaited,
    /// U1 stores what a lone reader would leave instead of subtracting.
    StoreForSubtract,
    /// X3 never takes the stack of waiting readers.
    NoSweep,
    /// X3 comes after the next writer was registered, with X6; without a successor, after X4.
    SweepAfterRegistration,
    /// U3, X7 wake the writer that this rank registered last instead of the head.
    RememberedNext,
    /// X4 believes that the tail was still its own.
    TailIgnored,
    /// W6 does not see the mark of a writer that has gone.
    MarkIgnored,
    /// X4 leaves no mark for a successor on its way.
    NoMark,
    /// A node with the mark is used again before the successor has come.
    MarkNotAwaited,
    /// A waker takes one who gave up for woken, and does not act for him.
    AbandonedTakenForWoken,
    /// Who acts for one who gave up readies the node before it has read who comes next.
    ReadyTooEarly,
    /// What a dropped future owes is not done: its reader stays counted, its node blocked.
    DroppedAndForgotten,
}
