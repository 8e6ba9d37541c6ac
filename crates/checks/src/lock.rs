//! Locks: their programs, cases and mistakes.
