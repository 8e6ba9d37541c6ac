//! The locks' pages: what each path posts (`docs/systems/rp-lock.md`,
//! `docs/systems/queued-locks.md`), and the table of all locks (`docs/systems/locks.md`).

mod counts;
mod play;
mod scenes;
mod table;
mod tally;
