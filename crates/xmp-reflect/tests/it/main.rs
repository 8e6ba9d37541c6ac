//! Mappings and plans, compared with a serial oracle: all nodes are simulated one after another,
//! and every cell of every node is compared with the value that the specification requires.

mod arrays;
mod asynchronous;
mod calls;
mod delivery;
mod directives;
mod expected;
mod issue;
mod loops;
mod mutants;
mod on_nodes;
mod packing;
mod published;
mod random;
mod reduces;
mod reflects;
mod simulated;
mod splits;
