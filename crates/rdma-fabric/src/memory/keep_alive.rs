//! The values that places keep, by which providers recognise their own places.

use core::{any::Any, fmt};
use std::sync::Arc;

/// A value that a provider keeps for places, such as a mapping or a registration with the network,
/// and the seal by which it recognises its own places. Dropped with the last place.
///
/// A place returns [a reference to the kept value](super::Place::keep_alive), to callers that can name
/// its type, but never its keep-alive. A provider therefore keeps a private type, or compares
/// keep-alives ([`Place::has_keep_alive`](super::Place::has_keep_alive)), and exposes neither the type
/// nor the keep-alive: then it created every place that passes the check, and address, length and
/// kept value belong together.
///
/// Safe code cannot attach the seal of one place to the address of another:
///
/// ```compile_fail,E0599
/// use rdma_fabric::{Fabric, RegionKey, RemoteAddr, provider::{Place, Posted, Source}};
///
/// /// Would write the memory of `genuine` and announce an operation in region `other`.
/// fn forge(fabric: &Fabric, genuine: &Place, other: RegionKey) -> Posted {
///     let addr = RemoteAddr { region: other, ..genuine.addr() };
///     let forged = Place::remote(addr, genuine.len(), genuine.keep_alive().cloned());
///     fabric.provider().put(&forged, Source::Bytes(&vec![0; genuine.len()]), None)
/// }
/// ```
#[derive(Clone)]
pub struct KeepAlive(Arc<Box<dyn Any + Send + Sync>>);

impl KeepAlive {
    /// Keeps `kept`. Places that share it cost one count each.
    pub fn new(kept: impl Any + Send + Sync) -> Self {
        KeepAlive(Arc::new(Box::new(kept)))
    }

    /// Returns the value that the keep-alive keeps, if it is a `T`.
    #[inline]
    pub fn get<T: Any>(&self) -> Option<&T> {
        (**self.0).downcast_ref()
    }

    /// Returns whether this is a clone of `other`.
    #[inline]
    pub(super) fn is(&self, other: &KeepAlive) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeepAlive")
    }
}
