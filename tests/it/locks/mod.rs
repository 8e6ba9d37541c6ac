//! The locks' pages: what each path posts (`docs/rp-lock.md`, `docs/queued-locks.md`), and the table of all locks (`docs/locks.md`).

mod counts;
mod play;
mod scenes;
mod table;
mod tally;
