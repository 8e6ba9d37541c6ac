//! Regions of this node's memory that ranks of other nodes may have looked up.

use super::net::Net;
use core::fmt;
use rdma_fabric::{Region, RegionKey};
use std::sync::Arc;

/// A region of this node's memory. Before it is dropped, the ranks of other nodes that have looked
/// it up stop using it.
pub(super) struct SharedRegion {
    net: Arc<Net>,
    /// `None` once taken.
    below: Option<Region>,
}

impl SharedRegion {
    /// Wraps a region of the node's provider as the region that programs receive.
    pub(super) fn over(net: &Arc<Net>, below: Region) -> Region {
        let (key, len, existing) = (below.key(), below.len(), below.existing());
        Region::new(key, len, existing, SharedRegion { net: net.clone(), below: Some(below) })
    }

    /// Returns the region of the node's provider.
    pub(super) fn below(&self) -> Option<&Region> {
        self.below.as_ref()
    }

    /// Stops its use by other nodes. Returns the region of the node's provider, and a guard to be
    /// dropped after it.
    pub(super) fn take(mut self) -> Option<(Region, Closing)> {
        let below = self.below.take()?;
        let closing = Closing::begin(&self.net, below.key());
        Some((below, closing))
    }
}

impl fmt::Debug for SharedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.below)
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        if let Some(below) = self.below.take() {
            let _closing = Closing::begin(&self.net, below.key());
            drop(below);
        }
    }
}

/// A region that can no longer be looked up, but is still registered.
#[derive(Debug)]
pub(super) struct Closing {
    net: Arc<Net>,
    key: RegionKey,
}

impl Closing {
    fn begin(net: &Arc<Net>, key: RegionKey) -> Self {
        net.revoke(key);
        Closing { net: net.clone(), key }
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.net.lock().core.directory.closed(self.key);
    }
}
