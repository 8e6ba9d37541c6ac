//! The lock that goes on when its ranks die, in virtual time: a node stops at each of many moments of a run.

mod program;
mod simulated;
