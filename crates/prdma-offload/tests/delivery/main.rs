//! Exchanges without control queues against a network that delivers in any order, and against ranks that die at any moment.
//!
//! `onesided-explore` lets puts stay on their way as long as the contract allows and arrive in any order, and each rank's CPU comes to its next act
//! whenever it likes. Small jobs are explored to the last state, larger ones at random.

mod cases;
mod exchange;
mod forms;
mod losses;
mod member;
mod mutations;
mod sampled;
mod small;
mod spoiled;
mod tasks;
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod wrong;
