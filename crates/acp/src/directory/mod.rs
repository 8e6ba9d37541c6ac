//! Translating addresses to memory: the owner of the region, and access to it.

mod cache;
mod own;
mod reading;
mod resolver;

pub(crate) use crate::address::RegionId;
use cache::Cache;
pub(crate) use own::{OwnRegion, OwnRegions, publish, withdraw};
pub(crate) use reading::{is_stale, read_entry};
pub(crate) use resolver::Resolver;
