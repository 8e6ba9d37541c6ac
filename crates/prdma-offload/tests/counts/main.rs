//! Counts as an oracle for what calls cost: charges for software layers, operations of making a request.

mod charges;
mod rounds;
