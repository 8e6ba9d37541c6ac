//! Faults that tests inject, to check that they are detected.

/// An injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(super) enum Mutant {
    /// A revoke request is answered while an operation in the region is in flight.
    AnswersAtOnce,
    /// A notice is sent before the bytes of its put have arrived.
    NoticeFirst,
    /// A drain is reported while operations are in flight.
    DrainedAtOnce,
    /// A message to a rank without known contact data is dropped.
    DropsUnmet,
    /// A command that keeps the order starts while bytes of an earlier one are being moved.
    OvertakesMoves,
    /// Setting gates returns before ranks of other nodes have been notified.
    SetsUnconfirmed,
}
