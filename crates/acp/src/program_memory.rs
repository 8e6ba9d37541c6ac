//! For bindings to other languages: memory that was registered with the fabric by other means, the
//! start of reserved memory, and the bytes behind a rank's own addresses.

#![deny(clippy::arithmetic_side_effects)]

use crate::{
    Acp, AcpError, GlobalAddress, Key, Result,
    address::{MAX_REGION_BYTES, Tag},
    directory::OwnRegion,
};
use rdma_fabric::{LocalSpan, Rank, Region};

impl Acp {
    /// Gives addresses to a region of this rank that the caller has registered with
    /// [the fabric](Acp::fabric). It ends with [`Acp::unregister`]. Local.
    ///
    /// # Errors
    /// [`AcpError::NoSuchColour`]; [`AcpError::DirectoryFull`]; [`AcpError::OutOfBounds`] beyond
    /// [`MAX_REGION_BYTES`]. In each case the region is dropped.
    pub fn adopt(&self, region: Region, colour: usize) -> Result<Key> {
        let colour = self.checked_colour(colour)?;
        self.try_with(|state| {
            let tag = state.own.take_tag(state.memory.layout(), state.me)?;
            let bytes = region.len() as u64;
            let registered = if bytes <= MAX_REGION_BYTES {
                self.registered(state, tag, OwnRegion { region, colour, element: None })
            } else {
                let start = GlobalAddress::new(state.me, 0, tag, 0);
                Err(AcpError::out_of_bounds(start, bytes, MAX_REGION_BYTES))
            };
            if registered.is_err() {
                state.own.give_back(tag);
            }
            registered
        })
    }

    /// Returns the bytes of this rank's memory from an address to the end of its region, reserved
    /// memory included.
    ///
    /// # Errors
    /// [`AcpError::NotOwn`]; [`AcpError::NoSuchRegion`]; [`AcpError::OutOfBounds`];
    /// [`AcpError::Fabric`].
    pub fn own_bytes(&self, address: GlobalAddress) -> Result<LocalSpan<u8>> {
        self.try_with(|state| {
            if address.rank() != state.me {
                return Err(AcpError::NotOwn { address });
            }
            let (region, start, bytes) = match state.memory.layout().area(address.tag()) {
                Some((start, bytes)) => (&*state.world, start, bytes),
                None => {
                    let own = state.own.get(address.tag()).ok_or(AcpError::NoSuchRegion { address })?;
                    (&own.region, 0, own.region.len() as u64)
                }
            };
            let offset = address.offset();
            let len = bytes.checked_sub(offset).ok_or_else(|| AcpError::out_of_bounds(address, 0, bytes))?;
            Ok(region.span(self.fabric(), start.saturating_add(offset) as usize, len as usize)?)
        })
    }

    /// Returns the address of the first byte of a rank's memory for the connection requests of
    /// channels, [`Options::channel_bytes`](crate::Options::channel_bytes) long.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`].
    pub fn channel_memory(&self, rank: Rank) -> Result<GlobalAddress> {
        self.reserved(rank, Tag::CHANNELS)
    }

    /// Returns the address of the first byte of a rank's heap,
    /// [`Options::heap_bytes`](crate::Options::heap_bytes) long.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`].
    pub fn heap_memory(&self, rank: Rank) -> Result<GlobalAddress> {
        self.reserved(rank, Tag::HEAP)
    }
}
