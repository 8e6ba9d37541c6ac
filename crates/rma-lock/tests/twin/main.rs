//! The explicit-state models of the locks with queues (`onesided-twin`): searched, and checked against runs of the locks' own code.

#[path = "../delivery/cases.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod cases;
mod code;
mod mistakes;
#[path = "../mutant/mod.rs"]
mod mutant;
#[path = "../delivery/nodes_cases.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod nodes_cases;
#[path = "../delivery/program.rs"]
mod program;
mod reduction;
mod required;
mod traces;
mod words;
