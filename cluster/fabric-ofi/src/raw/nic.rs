//! The description of an offer's NIC.

use super::{sys, text};
use crate::nic::{LinkState, Nic};

/// Copies the description of a NIC; missing attributes stay empty.
///
/// # Safety
/// The attributes that the structure points to exist and do not change during the call; their texts
/// end with zeros.
pub(super) unsafe fn describe(nic: &sys::fid_nic) -> Nic {
    let mut found = Nic::default();
    // SAFETY: guaranteed by the caller. The union has the attributes of the bus that its type names.
    unsafe {
        if let Some(device) = nic.device_attr.as_ref() {
            found.name = text(device.name);
            found.device_id = text(device.device_id);
            found.device_version = text(device.device_version);
            found.vendor_id = text(device.vendor_id);
            found.driver = text(device.driver);
            found.firmware = text(device.firmware);
        }
        if let Some(bus) = nic.bus_attr.as_ref().filter(|bus| bus.bus_type == sys::FI_BUS_PCI) {
            let pci = bus.attr.pci;
            found.pci =
                Some(format!("{:04x}:{:02x}:{:02x}.{:x}", pci.domain_id, pci.bus_id, pci.device_id, pci.function_id));
        }
        if let Some(link) = nic.link_attr.as_ref() {
            found.address = text(link.address);
            (found.mtu, found.speed) = (link.mtu, link.speed);
            found.network = text(link.network_type);
            found.link = match link.state {
                sys::FI_LINK_UP => LinkState::Up,
                sys::FI_LINK_DOWN => LinkState::Down,
                _ => LinkState::Unknown,
            };
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn a_description_is_copied_as_far_as_it_goes() {
        // SAFETY: zeros are values of these structures.
        let (mut nic, mut device, mut bus, mut link) = unsafe {
            (
                std::mem::zeroed::<sys::fid_nic>(),
                std::mem::zeroed::<sys::fi_device_attr>(),
                std::mem::zeroed::<sys::fi_bus_attr>(),
                std::mem::zeroed::<sys::fi_link_attr>(),
            )
        };
        // SAFETY: no attributes exist.
        assert_eq!(unsafe { describe(&nic) }, Nic::default());
        device.name = c"mlx5_0".as_ptr().cast_mut();
        device.firmware = c"20.31".as_ptr().cast_mut();
        bus.bus_type = sys::FI_BUS_PCI;
        bus.attr.pci = sys::fi_pci_attr { domain_id: 0, bus_id: 0xc1, device_id: 0, function_id: 1 };
        (link.mtu, link.speed, link.state) = (4096, 200_000_000_000, sys::FI_LINK_UP);
        link.network_type = c"InfiniBand".as_ptr().cast_mut();
        (nic.device_attr, nic.bus_attr, nic.link_attr) = (&mut device, &mut bus, &mut link);
        let expected = Nic {
            name: Some("mlx5_0".to_owned()),
            firmware: Some("20.31".to_owned()),
            pci: Some("0000:c1:00.1".to_owned()),
            mtu: 4096,
            speed: 200_000_000_000,
            link: LinkState::Up,
            network: Some("InfiniBand".to_owned()),
            ..Nic::default()
        };
        // SAFETY: the attributes are alive, and their texts end with zeros.
        assert_eq!(unsafe { describe(&nic) }, expected);
        nic.device_attr = null_mut();
        // SAFETY: as above.
        let less = unsafe {
            (*nic.link_attr).state = sys::FI_LINK_DOWN;
            (*nic.bus_attr).bus_type = sys::FI_BUS_UNSPEC;
            describe(&nic)
        };
        assert_eq!((less.name, less.pci, less.link), (None, None, LinkState::Down));
    }
}
