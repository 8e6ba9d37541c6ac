//! The text format of GOAL.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: send 8b to 1 tag 5 cpu 0 nic 0   // tag, cpu and nic are 0 if they are left out
//!   l2: calc 100 cpu 1                   /* nanoseconds */
//!   l2 requires l1                       // l2 starts when l1 has ended
//! }
//! rank 1 {
//!   recv 8b from -1 tag -1               // from any rank, with any tag
//! }
//! ```

mod read;
mod words;
mod write;
