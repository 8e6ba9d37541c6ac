//! Counts as an oracle for what calls cost: charges for software layers.

mod charges;
