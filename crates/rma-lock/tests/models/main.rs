//! The locks in every order of delivery and under loom, within bounds. These tests search, so they are
//! optimised as the crate is; the facade package compiles `tests/it`, which is not.

mod delivery;
mod loom;
