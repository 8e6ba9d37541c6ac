//! The operations of each path of the locks with queues (`tests/golden/lock_counts.txt`), and the
//! table of all locks (`docs/evidence/lock-table.md`).

mod counts;
mod run;
mod scenarios;
mod table;
mod tally;
