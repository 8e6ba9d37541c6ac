//! The locks' pages: the operations of each path (`docs/evidence/lock-counts.md`), and the table of
//! all locks (`docs/evidence/lock-table.md`).

mod counts;
mod play;
mod scenes;
mod table;
mod tally;
