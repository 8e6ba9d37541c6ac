//! Workloads of the FMPL paper (section 6): messages between two ranks, many posted receives,
//! barriers, broadcasts and reductions, each by the libraries that the paper compares.
//!
//! FMPL and BLACS on it are this project's crates. The libraries with which they are compared are
//! software terms: the messages that such a library sends, over the same machine, with the library's
//! layers charged.

mod between_two;
mod blacs;
mod collective;
mod mpi;

pub use between_two::{Posted, ping_pong, posted_receives};
pub use collective::{Collectives, Done, collectives};

use fmpl::{Choice, Options};
use std::fmt;

/// The library that sends the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// A put whose descriptor (TCW) is reused. It is not a message, since no receive is posted.
    Tcw,
    /// FMPL. Collectives use hardware where it is available to their members, as measured.
    Fmpl,
    /// FMPL with collectives in software.
    FmplSoftware,
    /// BLACS on FMPL: this project's crate, for contiguous matrices, which it does not pack.
    BlacsFmpl,
    /// MPI.
    Mpi(Memory),
    /// BLACS on MPI, which creates a derived datatype for each message and packs it.
    BlacsMpi(Memory),
}

/// The kind of memory of MPI's messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// All of the program's static memory is open to remote access (`-rdma`), so messages are not
    /// copied.
    Rdma,
    /// Messages are copied at both ends.
    Copied,
}

impl Library {
    /// The libraries of the paper's figure 7.
    pub const BETWEEN_TWO: [Library; 7] = [
        Library::Tcw,
        Library::Fmpl,
        Library::BlacsFmpl,
        Library::Mpi(Memory::Rdma),
        Library::Mpi(Memory::Copied),
        Library::BlacsMpi(Memory::Rdma),
        Library::BlacsMpi(Memory::Copied),
    ];

    /// The libraries of the paper's figures 8 to 11. MPI's broadcasts take as long with either memory
    /// (section 6.3).
    pub const COLLECTIVE: [Library; 6] = [
        Library::Fmpl,
        Library::FmplSoftware,
        Library::BlacsFmpl,
        Library::Mpi(Memory::Rdma),
        Library::Mpi(Memory::Copied),
        Library::BlacsMpi(Memory::Rdma),
    ];

    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Library::Tcw => "reused TCW",
            Library::Fmpl => "FMPL",
            Library::FmplSoftware => "FMPL (SW)",
            Library::BlacsFmpl => "BLACS-FMPL",
            Library::Mpi(Memory::Rdma) => "MPI (rdma)",
            Library::Mpi(Memory::Copied) => "MPI (nordma)",
            Library::BlacsMpi(Memory::Rdma) => "BLACS on MPI (rdma)",
            Library::BlacsMpi(Memory::Copied) => "BLACS on MPI (nordma)",
        }
    }

    /// Returns FMPL's options for these ranks; `None` if it is another library.
    fn options(self, ranks: usize) -> Option<Options> {
        let choice = match self {
            Library::Fmpl => Choice::Measured,
            Library::FmplSoftware => Choice::Software,
            Library::Tcw | Library::BlacsFmpl | Library::Mpi(_) | Library::BlacsMpi(_) => return None,
        };
        Some(Options::default().indices(1).any_indices(0).peers(ranks).collectives(choice))
    }
}

impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
