//! The lock that continues when its ranks die, in virtual time: a node stops at each of many
//! moments of a run, nodes stop at random moments, in a job of 4096 ranks, and in the middle of a
//! recovery; the effects of panics; and the limits of recovery.

mod late;
mod limits;
mod many_ranks;
mod panics;
mod stops;
