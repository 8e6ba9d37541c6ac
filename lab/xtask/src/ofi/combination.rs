//! The environment of an example: a provider of libfabric, nodes, a launcher.

use super::launcher::{LAUNCHERS, Launcher};
use core::fmt;

/// A provider of libfabric.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    /// The interface that connects the nodes, if the provider has interfaces.
    pub(crate) interface: Option<&'static str>,
}

const fn over_loopback(name: &'static str) -> Provider {
    Provider { name, interface: Some("lo") }
}

/// The providers that work between processes of one machine without hardware.
pub(crate) const PROVIDERS: [Provider; 4] = [
    over_loopback("tcp;ofi_rxm"),
    Provider { name: "shm", interface: None },
    over_loopback("sockets"),
    over_loopback("udp;ofi_rxd"),
];

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Combination {
    pub(crate) provider: Provider,
    pub(crate) ranks_per_node: usize,
    pub(crate) launcher: Launcher,
}

/// Returns all combinations, in the order of the table.
pub(crate) fn all() -> Vec<Combination> {
    let mut all = Vec::new();
    for provider in PROVIDERS {
        for ranks_per_node in [1, 2] {
            all.extend(LAUNCHERS.map(|launcher| Combination { provider, ranks_per_node, launcher }));
        }
    }
    all
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} a node, {}", self.provider.name, self.ranks_per_node, self.launcher.name())
    }
}
