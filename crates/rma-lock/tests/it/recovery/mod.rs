//! The lock that goes on when its ranks die, in virtual time: a node stops at each of many moments
//! of a run, nodes stop at drawn moments, in a job of 4096 ranks, and in the midst of a recovery;
//! what panics do; and what is not survived.

mod limits;
mod many_ranks;
mod panics;
mod stops;
