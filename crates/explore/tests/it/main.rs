//! Tests of the explorer itself: what its fabric lets happen, outcome by outcome, what it finds,
//! and how it words its findings.

mod bounds;
mod coherence;
mod copies;
mod effects;
mod findings;
mod helpers;
mod litmus;
mod losses;
mod multicast;
mod outcomes;
mod reduction;
mod regions;
mod timelines;
