//! The addresses of this host, by the names of its interfaces.
//!
//! They are requested from the kernel by an `RTM_GETADDR` message over a netlink socket: a header
//! of 16 bytes (length, type, flags, number, sender), then a byte for the address family and zeros.
//! The answers have the same header, then family, prefix length, flags, scope, the interface's
//! number, and attributes: length, type, bytes, each aligned to 4 bytes.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netdevice::index_to_name, recv, send, socket_with,
};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, Instant},
};

const GET_ADDRESS: u16 = 22;
const NEW_ADDRESS: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// A request for all existing entries.
const REQUEST_DUMP: u16 = 0x1 | 0x300;
const ADDRESS: u16 = 1;
/// The local address, where the two ends of a point-to-point link differ.
const LOCAL: u16 = 2;

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
}

/// Returns the addresses of all interfaces of this host, except link-local ones.
pub(crate) fn interfaces() -> io::Result<Vec<Interface>> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut request = Vec::new();
    request.extend_from_slice(&24_u32.to_ne_bytes());
    request.extend_from_slice(&GET_ADDRESS.to_ne_bytes());
    request.extend_from_slice(&REQUEST_DUMP.to_ne_bytes());
    request.resize(24, 0);
    send(&socket, &request, SendFlags::empty())?;
    let until = Instant::now() + Duration::from_secs(2);
    let (mut found, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        crate::inherited::wait_readable(&socket, until)?;
        let (_, count) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        let mut rest = &buffer[..count];
        while let Some((kind, message)) = next_message(&mut rest) {
            match kind {
                DONE => return Ok(found),
                ERROR => return Err(io::ErrorKind::InvalidData.into()),
                NEW_ADDRESS => {
                    if let Some((index, address)) = address_of(message) {
                        found.push(Interface { name: index_to_name(&socket, index)?, address });
                    }
                }
                _ => {}
            }
        }
    }
}

/// Takes a message off `rest`; returns its type and the bytes after its header.
fn next_message<'a>(rest: &mut &'a [u8]) -> Option<(u16, &'a [u8])> {
    let length = u32::from_ne_bytes(rest.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(rest.get(4..6)?.try_into().ok()?);
    let message = rest.get(16..length)?;
    *rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((kind, message))
}

/// Returns the interface's number and the address of a message, unless the address is link-local.
fn address_of(message: &[u8]) -> Option<(u32, IpAddr)> {
    let index = u32::from_ne_bytes(message.get(4..8)?.try_into().ok()?);
    let (mut rest, mut address, mut local) = (message.get(8..)?, None, None);
    while let Some(head) = rest.get(..4) {
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let value = rest.get(4..length)?;
        match u16::from_ne_bytes([head[2], head[3]]) {
            ADDRESS => address = ip(value),
            LOCAL => local = ip(value),
            _ => {}
        }
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    let address = local.or(address)?;
    let of_link = matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    (!of_link).then_some((index, address))
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).into());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_has_its_address() {
        let all = interfaces().unwrap();
        let lo = Interface { name: "lo".into(), address: Ipv4Addr::LOCALHOST.into() };
        assert!(all.contains(&lo), "{all:?}");
    }
}
