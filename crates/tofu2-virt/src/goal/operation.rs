//! Operations of ranks.

/// An operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The work.
    pub work: Work,
    /// The CPU of the rank that executes it.
    pub cpu: u8,
    /// The network interface that a send uses. A received message uses the interface, and the CPU,
    /// with the numbers of its send.
    pub nic: u8,
}

/// The work of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Sends a message.
    Send {
        /// The receiving rank.
        to: u32,
        /// The length in bytes; one of 0 bytes takes as long as one of 1.
        bytes: u64,
        /// The tag, less than `u32::MAX`.
        tag: u32,
    },
    /// Receives a message.
    Recv {
        /// The sending rank, or any.
        from: Option<u32>,
        /// The length of the receive buffer in bytes. Times depend on the message's length only.
        bytes: u64,
        /// The tag, or any.
        tag: Option<u32>,
    },
    /// Computes.
    Calc {
        /// The duration.
        nanoseconds: u64,
    },
}

impl Operation {
    /// Sends a message from CPU 0 through interface 0.
    pub fn send(to: u32, bytes: u64, tag: u32) -> Self {
        Work::Send { to, bytes, tag }.into()
    }

    /// Receives the message of a rank with a tag, on CPU 0.
    pub fn recv(from: u32, bytes: u64, tag: u32) -> Self {
        Work::Recv { from: Some(from), bytes, tag: Some(tag) }.into()
    }

    /// Computes on CPU 0.
    pub fn calc(nanoseconds: u64) -> Self {
        Work::Calc { nanoseconds }.into()
    }
}

impl From<Work> for Operation {
    /// On CPU 0, by interface 0.
    fn from(work: Work) -> Self {
        Operation { work, cpu: 0, nic: 0 }
    }
}
