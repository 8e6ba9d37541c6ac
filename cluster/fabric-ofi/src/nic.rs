//! The NICs of offers, and reports of both for users.

use crate::{Offer, Result, Wanted, providers};
use serde::Serialize;

/// The state of a NIC's link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkState {
    /// The provider does not report it.
    #[default]
    Unknown,
    /// No link.
    Down,
    /// Connected.
    Up,
}

/// A NIC as an offer's provider describes it (`fi_nic(3)`); `None` and 0 where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Nic {
    /// The name of the device, such as `mlx5_0`.
    pub name: Option<String>,
    /// The vendor's identifier of the device's model.
    pub device_id: Option<String>,
    /// The version of the device.
    pub device_version: Option<String>,
    /// The identifier of the vendor.
    pub vendor_id: Option<String>,
    /// The driver of the operating system.
    pub driver: Option<String>,
    /// The version of the firmware.
    pub firmware: Option<String>,
    /// Domain, bus, device and function on the PCI bus.
    pub pci: Option<String>,
    /// The address on the network.
    pub address: Option<String>,
    /// The longest packet in bytes.
    pub mtu: usize,
    /// Bits per second.
    pub speed: usize,
    /// The state of the link.
    pub link: LinkState,
    /// The kind of network, such as `InfiniBand` or `Ethernet`.
    pub network: Option<String>,
}

/// An offer and its NIC, without libfabric's own structure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OfferReport {
    /// The provider, including its layers.
    pub provider: String,
    /// The fabric.
    pub fabric: String,
    /// The domain.
    pub domain: String,
    /// The NIC; `None` for most software providers.
    pub nic: Option<Nic>,
    /// Whether ranks can use it.
    pub usable: bool,
    /// Why they can't.
    pub reason: Option<String>,
    /// Whether a put completes only when its bytes are visible.
    pub delivery: bool,
    /// Whether puts and gets keep aligned words of 4 and 8 bytes whole.
    pub words: bool,
    /// Number of bytes of data that a put delivers to its target.
    pub data_bytes: usize,
    /// Maximum number of bytes of a put or get.
    pub longest: usize,
    /// Number of bytes that this process may pin (`u64::MAX` without a limit); `None` if registered
    /// memory is not pinned.
    pub pin_limit: Option<u64>,
}

impl From<&Offer> for OfferReport {
    fn from(offer: &Offer) -> Self {
        Self {
            provider: offer.provider.clone(),
            fabric: offer.fabric.clone(),
            domain: offer.domain.clone(),
            nic: offer.nic.clone(),
            usable: offer.is_usable(),
            reason: offer.verdict.as_ref().map(ToString::to_string),
            delivery: offer.delivery,
            words: offer.words,
            data_bytes: offer.data_bytes,
            longest: offer.longest,
            pin_limit: offer.pin_limit,
        }
    }
}

/// Returns the offers of [`providers`] as reports, in the same order.
///
/// # Errors
/// Those of [`providers`].
pub fn reports(wanted: &Wanted) -> Result<Vec<OfferReport>> {
    Ok(providers(wanted)?.iter().map(OfferReport::from).collect())
}
