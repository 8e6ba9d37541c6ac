//! Tests of the explorer itself: the outcomes that its fabric allows, its findings, the wording of
//! its findings, and its search.

mod acknowledged;
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
mod space;
mod timelines;
