//! Checks of the locks against a network that delivers in any order.
//!
//! What loom is to memory orders this is to delivery: `onesided-explore` lets puts stay on their way as long as the contract allows and
//! arrive in any order, and each rank's CPU comes to its next act whenever it likes. Memory is sequentially consistent. Small cases
//! are explored to the last state, larger ones at random.

mod accesses;
mod back_off;
mod cases;
mod crowded;
mod ends;
mod indicator;
mod locked;
mod mortal;
mod mortal_nodes;
#[path = "../mutant/mod.rs"]
mod mutant;
mod nodes;
mod nodes_cases;
mod oracle;
mod program;
mod queued;
mod recoverable;
mod recovery_steps;
mod window;
