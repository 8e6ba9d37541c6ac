//! Persistent exchanges: their programs, cases and mistakes.
