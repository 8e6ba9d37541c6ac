//! The transports of cells between nodes.

use crate::{Result, XmpError};
use core::{fmt, str::FromStr};
use prdma_offload::{Form, Options};
use rdma_fabric::{Fabric, LockedMemory};

/// The transport of the cells of a reflect to the shadows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// The fastest one, by measured thresholds; [`crate::Explanation`] states the choice and the
    /// reason.
    #[default]
    Auto,
    /// The owner's CPU puts blocks directly into the neighbour's shadow, after its READY and before
    /// END: synchronised between neighbours, without packing. The paper describes this as future
    /// work.
    Blocks,
    /// As [`Transport::Blocks`], but a start waits for the neighbours' READYs and puts all blocks, so
    /// that they leave while the program computes. Nodes wait for each other in starts, too, and
    /// must start their schedules in the same order. The paper's version with derived datatypes
    /// (section 4.3), over a message layer that sends the blocks of a vector one by one.
    Datatypes,
    /// As [`Transport::Blocks`], with blocks packed by the owner and unpacked by the neighbour.
    Packed,
    /// A session queue for each neighbour executes [`Transport::Blocks`], without the CPU between
    /// start and wait.
    Fast,
    /// One session queue for all neighbours.
    Mrc,
    /// Puts between two barriers of all nodes: the paper's version with RDMA.
    Barriers,
    /// Puts into windows, between two fences of all nodes.
    Fence,
    /// Puts into windows that stay locked by all, each followed by a flush and a notice.
    Flush,
}

/// The number of blocks up to which the network interface gathers them faster than the CPU packs
/// them.
const FEW: u32 = 12;

/// The sizes of a block, in bytes, from which a command of a session queue, and a message,
/// respectively, take no longer than packing it. `cargo xtask transports` measures all thresholds.
const LONG: u32 = 512;
const LONG_MESSAGE: u32 = 1024;

/// The transport that executes a schedule.
pub(super) struct Choice {
    pub(super) transport: Transport,
    pub(super) why: &'static str,
    /// The options of its persistent exchange; `None` if it doesn't use one.
    pub(super) options: Option<Options>,
}

impl Transport {
    /// All transports.
    pub const ALL: [Transport; 9] = [
        Transport::Auto,
        Transport::Blocks,
        Transport::Datatypes,
        Transport::Packed,
        Transport::Fast,
        Transport::Mrc,
        Transport::Barriers,
        Transport::Fence,
        Transport::Flush,
    ];

    /// The environment variable that sets the transport of reflects without an explicit one.
    pub const VARIABLE: &str = "ONESIDED_REFLECT";

    /// Returns the transport that the environment specifies.
    ///
    /// # Errors
    /// [`XmpError::NoTransport`].
    pub(crate) fn of_environment() -> Result<Self> {
        std::env::var(Transport::VARIABLE).map_or(Ok(Transport::Auto), |name| name.parse())
    }

    /// Returns whether it puts blocks by remote memory access, in the paper's terms: neither by
    /// messages nor through windows.
    pub(super) fn is_rdma(self) -> bool {
        matches!(self, Transport::Blocks | Transport::Fast | Transport::Mrc | Transport::Barriers)
    }

    /// Returns the transport that is used if this one is requested.
    pub(super) fn chosen(self, fabric: &Fabric) -> Choice {
        let caps = fabric.caps();
        let (transport, why) = match self {
            Transport::Auto if caps.locked_memory == LockedMemory::Mapped => {
                (Transport::Blocks, "this CPU writes the neighbour's memory: one copy, without packing")
            }
            Transport::Auto if caps.session_queues => {
                (Transport::Fast, "the network interface waits for READYs by itself")
            }
            Transport::Auto => (
                Transport::Packed,
                "the network has no session queues, and each block is a message: short ones are packed",
            ),
            asked => (asked, "asked for"),
        };
        let (form, direct_blocks, direct_bytes) = match transport {
            Transport::Blocks | Transport::Datatypes => (Form::Cpu, u32::MAX, 0),
            Transport::Packed if self == Transport::Auto => (Form::Cpu, 1, LONG_MESSAGE),
            Transport::Packed => (Form::Cpu, 1, u32::MAX),
            Transport::Fast => (Form::Fast, FEW, LONG),
            Transport::Mrc => (Form::Mrc, FEW, LONG),
            Transport::Auto | Transport::Barriers | Transport::Fence | Transport::Flush => {
                return Choice { transport, why, options: None };
            }
        };
        Choice { transport, why, options: Some(Options { direct_blocks, direct_bytes, ..Options::form(form) }) }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Transport::Auto => "auto",
            Transport::Blocks => "blocks",
            Transport::Datatypes => "datatypes",
            Transport::Packed => "packed",
            Transport::Fast => "fast",
            Transport::Mrc => "mrc",
            Transport::Barriers => "barriers",
            Transport::Fence => "fence",
            Transport::Flush => "flush",
        })
    }
}

impl FromStr for Transport {
    type Err = XmpError;

    fn from_str(name: &str) -> Result<Self> {
        Transport::ALL.into_iter().find(|transport| transport.to_string() == name).ok_or_else(|| {
            let known = Transport::ALL.map(|transport| transport.to_string()).join(", ");
            XmpError::NoTransport { name: name.into(), known }
        })
    }
}
