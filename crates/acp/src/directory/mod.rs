//! From an address to memory: whose region it is, and how it is reached.

mod cache;
mod own;

pub(crate) use crate::address::RegionId;
pub(crate) use cache::Cache;
pub(crate) use own::{OwnRegion, OwnRegions, publish, withdraw};
