//! Registered memory of a rank, as its program holds it.

use crate::{fabric::Seat, session::Session};
use rdma_fabric::{Region, RegionKey, provider::OneThread};
use std::rc::Rc;

/// Registered until it is dropped.
#[derive(Debug)]
struct Registered {
    session: Rc<Session>,
    key: RegionKey,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.session.drop_region(self.key.index);
    }
}

impl Seat {
    pub(crate) fn region(&self, key: RegionKey, len: usize) -> Region {
        let registered = Registered { session: self.session.clone(), key };
        Region::new(key, len, None, OneThread::new(registered))
    }
}
