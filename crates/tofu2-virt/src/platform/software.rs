//! Layers of software, looked up once.

use super::{Platform, SOFTWARE, Unit, timing::scaled};
use rdma_fabric::Result;

/// The costs of software layers.
#[derive(Clone, Debug)]
pub(crate) struct Software {
    /// A list, since there are only a few.
    layers: Vec<(&'static str, Layer)>,
    /// The number of threads that share work whose time is per byte.
    threads: u64,
}

/// The cost of a software layer.
#[derive(Clone, Copy, Debug)]
enum Layer {
    /// Picoseconds for each pass.
    Pass(u64),
    /// Femtoseconds for each byte, if one thread does all the work.
    Byte(u64),
}

impl Software {
    pub(super) fn new(platform: &Platform) -> Result<Self> {
        let layers = platform.constants().iter().filter_map(|constant| {
            let layer = match constant.unit {
                Unit::FemtosecondsPerByte => Layer::Byte(constant.value),
                _ => Layer::Pass(constant.value),
            };
            Some((constant.name.strip_prefix(SOFTWARE)?, layer))
        });
        Ok(Software { layers: layers.collect(), threads: platform.need("copy_threads")?.max(1) })
    }

    /// Returns the picoseconds that one pass of `bytes` bytes takes through a layer; 0 if the layer is
    /// unknown.
    pub(crate) fn cost(&self, layer: &str, bytes: u64) -> u64 {
        match self.layers.iter().find(|(name, _)| *name == layer) {
            Some((_, Layer::Pass(picos))) => *picos,
            Some((_, Layer::Byte(femtos))) => scaled(bytes, *femtos).div_ceil(self.threads),
            None => 0,
        }
    }
}
