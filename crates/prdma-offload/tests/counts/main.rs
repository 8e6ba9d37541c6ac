//! Counts as an oracle for what calls cost: charges for software layers, operations of making a request, looks at own words.

mod charges;
mod looks;
mod rounds;
