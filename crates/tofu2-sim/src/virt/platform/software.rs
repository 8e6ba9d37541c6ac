//! Layers of software, looked up once.

use super::{Platform, SOFTWARE, Unit, timing::scaled};

/// What layers of software cost. They are few, so a list.
#[derive(Clone, Debug)]
pub(crate) struct Software(Vec<(&'static str, Layer)>);

/// What a software layer costs.
#[derive(Clone, Copy, Debug)]
enum Layer {
    /// Picoseconds for each pass.
    Pass(u64),
    /// Femtoseconds for each byte.
    Byte(u64),
}

impl Software {
    pub(super) fn new(platform: &Platform) -> Self {
        let layers = platform.constants().iter().filter_map(|constant| {
            let layer = match constant.unit {
                Unit::FemtosecondsPerByte => Layer::Byte(constant.value),
                _ => Layer::Pass(constant.value),
            };
            Some((constant.name.strip_prefix(SOFTWARE)?, layer))
        });
        Software(layers.collect())
    }

    /// Returns the picoseconds that one pass of `bytes` bytes takes through a layer; 0 if the layer is
    /// unknown.
    pub(crate) fn cost(&self, layer: &str, bytes: u64) -> u64 {
        match self.0.iter().find(|(name, _)| *name == layer) {
            Some((_, Layer::Pass(picos))) => *picos,
            Some((_, Layer::Byte(femtos))) => scaled(bytes, *femtos),
            None => 0,
        }
    }
}
