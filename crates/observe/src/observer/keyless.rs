//! Memory without a key, which is observed as well.

use super::Observer;
use rdma_fabric::{Fabric, Pact, Result, provider::Keyless};

impl Keyless for Observer {
    fn open(&self, like: &Fabric, pact: Pact) -> Result<Fabric> {
        // What passes by reference would not be seen.
        let below = self.below.keyless(pact.without_references())?;
        Ok(like.beside(Observer::new(below, self.recorder.clone())))
    }
}
