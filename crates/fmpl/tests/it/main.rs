//! The crate's guarantees, tested over threads and in virtual time.

mod any;
mod barriers;
mod basics;
mod central;
mod collectives;
mod direct;
mod full;
mod hardware;
mod harness;
mod incomplete;
mod late;
mod losses;
mod many;
mod misuse;
mod modes;
mod parts;
mod schedules;
mod spooled;
mod supplied;
mod wrap;
