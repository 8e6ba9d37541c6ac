//! The forms of a request: the executor of its iterations, and the number of control queues.

use crate::Aggregation;
use core::fmt;
use rdma_fabric::Caps;

/// The way in which the iterations of a request are executed. All members of a request have the
/// same form; they agree on it when the request is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// A session queue for each neighbour, spread over the engines: the data that a neighbour's
    /// READY releases leave at once (PRDMA-SMCQ-FAST).
    Fast,
    /// At most this many session queues per member, 2 or more, with neighbours distributed over
    /// them. A queue with several neighbours works as under [`Form::Mrc`], a queue with one as
    /// under [`Form::Fast`].
    Queues(u32),
    /// One session queue for all neighbours: no data leaves before all are ready (PRDMA-SMCQ-MRC,
    /// *minimal resource consumption*).
    Mrc,
    /// No control queue. The CPU checks for READYs, and puts the data followed by END. Data move
    /// only in calls, in any wait of this rank, including waits for another request or in a
    /// collective of a group ([`fabric_offload::triggered`]).
    Cpu,
}

impl Form {
    /// Returns the number of session queues that a member needs to send to this many neighbours.
    pub fn queues(self, neighbours: u32) -> u32 {
        match self {
            Form::Fast => neighbours,
            Form::Queues(most) => neighbours.min(most),
            Form::Mrc => neighbours.min(1),
            Form::Cpu => 0,
        }
    }

    /// Returns the maximum number of session queues of a member.
    pub(crate) fn most(self) -> u32 {
        match self {
            Form::Fast => u32::MAX,
            Form::Queues(most) => most,
            Form::Mrc => 1,
            Form::Cpu => 0,
        }
    }

    /// Returns the form with at most `most` queues per member, where no member sends to more than
    /// `degree`.
    pub(crate) fn with_most(most: u32, degree: u32) -> Form {
        match most {
            0 => Form::Cpu,
            most if most >= degree.max(2) => Form::Fast,
            1 => Form::Mrc,
            most => Form::Queues(most),
        }
    }

    /// Returns the next form with fewer queues; [`Form::Cpu`] is the last.
    pub(crate) fn thriftier(self, degree: u32) -> Form {
        Form::with_most(self.most().min(degree.max(1)) / 2, u32::MAX)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Form::Fast => f.write_str("fast"),
            Form::Queues(most) => write!(f, "{most} queues"),
            Form::Mrc => f.write_str("mrc"),
            Form::Cpu => f.write_str("cpu"),
        }
    }
}

/// The way in which a receiver is notified that a block has arrived, where queues send it
/// ([`Form::Cpu`] always puts the iteration's number into a word).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EndOfData {
    /// The last put of the block leaves a notice: one command for data and end (SD/EOD in figure 8
    /// of the paper).
    #[default]
    WithData,
    /// A command behind the data puts the iteration's number into a word of the receiver, which
    /// polls that word (SD, EOD and `rsync` in figures 5 to 7). Each block takes one more slot of its
    /// queue, and no notice.
    Separate,
}

/// A member's options for making a request. Where members differ, the most restrictive options
/// apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The first form to try; if any member runs out of queues, all fall back to the next form with
    /// fewer queues.
    pub form: Form,
    /// The maximum number of control queues that this member spends on the request, whatever its
    /// form.
    pub budget: u32,
    /// The maximum number of blocks of an edge for the network to gather and scatter them itself.
    /// With more blocks, the CPU packs them at start and unpacks them at wait.
    pub direct_blocks: u32,
    /// The average number of bytes from which blocks are sent one by one, regardless of their
    /// number: each block costs a command, whereas packing costs time per byte. By default, this
    /// never applies.
    pub direct_bytes: u32,
    /// How blocks of a neighbourhood or of points end. [`EndOfData::Separate`] applies to an edge if
    /// one of its ends requests it, and only if its block travels alone. Partitions always have a
    /// separate end, collectives none.
    pub end: EndOfData,
    /// Whether blocks between the same two nodes travel together. Only exchanges of a neighbourhood
    /// aggregate; points, partitions and collectives do not.
    pub aggregation: Aggregation,
}

impl Default for Options {
    /// [`Form::Fast`] as long as there are queues, and packing above 12 blocks: 12 go with a single
    /// READY. No aggregation.
    fn default() -> Self {
        Options {
            form: Form::Fast,
            budget: u32::MAX,
            direct_blocks: 12,
            direct_bytes: u32::MAX,
            end: EndOfData::WithData,
            aggregation: Aggregation::None,
        }
    }
}

impl Options {
    /// Returns the options that are fastest on a provider: [`Form::Fast`] where the network
    /// interface runs session queues; [`Form::Cpu`] where CPUs would have to run them (shared
    /// memory), because a queue's command then costs many times the work that it does. Data then
    /// move only in calls: a program that computes for a long time between start and wait, and
    /// whose neighbours should make progress in the meantime, should use [`Form::Fast`].
    pub fn auto(caps: &Caps) -> Self {
        Options::form(if caps.session_queues { Form::Fast } else { Form::Cpu })
    }

    /// Returns whether `blocks` blocks with a total of `bytes` bytes are packed.
    pub fn packs(&self, blocks: u64, bytes: u64) -> bool {
        blocks > u64::from(self.direct_blocks.max(1)) && bytes / blocks < u64::from(self.direct_bytes)
    }

    /// Returns options that start with `form` and are otherwise the default.
    pub fn form(form: Form) -> Self {
        Options { form, ..Options::default() }
    }
}
