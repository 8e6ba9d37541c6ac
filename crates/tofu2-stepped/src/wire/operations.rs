//! Places, operations and notices of a fabric.

use super::{Reader, Wire, wire_enum, wire_struct};
use rdma_fabric::{
    Amo, Notice, RegionKey, RemoteAddr,
    provider::{Place, Sink, Source},
};

wire_struct!(RegionKey { index, generation });
wire_struct!(RemoteAddr { rank, region, offset });
wire_struct!(Notice { from, data, region, end });
wire_enum!(Amo<u64> {
    0 = Add { 0: value },
    1 = Swap { 0: value },
    2 = CompareSwap { expected: expected, new: new },
    3 = Or { 0: value },
    4 = And { 0: value },
    5 = Xor { 0: value },
});

/// A resolved place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) at: RemoteAddr,
    pub(crate) len: usize,
    /// Whether the operation was prepared.
    pub(crate) prepared: bool,
}

wire_struct!(Target { at, len, prepared });

impl From<&Place> for Target {
    fn from(place: &Place) -> Self {
        Target { at: place.addr(), len: place.len(), prepared: place.is_prepared() }
    }
}

/// The other end of a put or get: bytes of the process, which are accessed before the reply, or
/// registered memory of the rank.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Local {
    Bytes { start: u64, len: usize },
    Registered { target: Target },
}

wire_enum!(Local { 0 = Bytes { start: start, len: len }, 1 = Registered { target: target } });

impl From<Source<'_>> for Local {
    fn from(source: Source<'_>) -> Self {
        match source {
            Source::Bytes(bytes) => Local::Bytes { start: bytes.as_ptr().expose_provenance() as u64, len: bytes.len() },
            Source::Place(place) => Local::Registered { target: place.into() },
        }
    }
}

impl From<&mut Sink<'_>> for Local {
    fn from(sink: &mut Sink<'_>) -> Self {
        match sink {
            Sink::Bytes(bytes) => {
                Local::Bytes { start: bytes.as_mut_ptr().expose_provenance() as u64, len: bytes.len() }
            }
            Sink::Place(place) => Local::Registered { target: (*place).into() },
        }
    }
}

/// The outcome of posting an operation, unless it failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PostedOperation {
    Complete {
        word: u64,
    },
    /// Contains the number under which it is polled, which is not 0.
    Pending {
        number: u64,
    },
    Full {},
}

wire_enum!(PostedOperation {
    0 = Complete { word: word },
    1 = Pending { number: number },
    2 = Full {},
});
