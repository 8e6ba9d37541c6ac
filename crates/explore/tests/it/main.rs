//! Tests of the explorer itself: the outcomes that its fabric allows, its findings, and the wording
//! of its findings.

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
