//! The five papers.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The paper that contains a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// Hatanaka, Hori, Ishikawa: MPI RMA lock synchronisation on FX100.
    Lock,
    /// The base layer of the Advanced Communication Primitives, tuned for Tofu2.
    Acp,
    /// Messages with matching at the sender, and BLACS on top, on the SR8000.
    Fmpl,
    /// Persistent neighbourhood collectives on session-mode control queues, FX100.
    Prdma,
    /// The `reflect` construct of XcalableMP on the K computer.
    Xmp,
}

impl Paper {
    /// All five.
    pub const ALL: [Paper; 5] = [Paper::Lock, Paper::Acp, Paper::Fmpl, Paper::Prdma, Paper::Xmp];

    /// Returns the name used on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Paper::Lock => "lock",
            Paper::Acp => "acp",
            Paper::Fmpl => "fmpl",
            Paper::Prdma => "prdma",
            Paper::Xmp => "xmp",
        }
    }

    /// Returns the title, for display.
    pub const fn subject(self) -> &'static str {
        match self {
            Paper::Lock => "MPI RMA lock synchronisation on FX100",
            Paper::Acp => "ACP base layer on Tofu2",
            Paper::Fmpl => "FMPL and BLACS on SR8000",
            Paper::Prdma => "persistent neighbour exchange in session mode on FX100",
            Paper::Xmp => "XcalableMP reflect on the K computer",
        }
    }

    /// Returns what the model leaves open for this paper: choices that no figure and no source
    /// settles, for display.
    pub const fn free(self) -> &'static str {
        match self {
            Paper::Lock => {
                "The job's shape and the arbitration between a router's inputs are not published: rows of L8 and L9 name \
                 both. The shares of the node side in a put's latency are assumed."
            }
            Paper::Acp => {
                "What serving another rank's request costs (`acp.served`) is assumed to equal the cost of a command."
            }
            Paper::Fmpl => {
                "M6 is read as including the initial part of a call (`fmpl.init`). The times of the network's barrier and \
                 of its second crossbar are assumed. Combining two operands costs nothing. BLACS costs as much in each call \
                 with a matrix as in M4, and nothing in a barrier. How MPI broadcasts is assumed."
            }
            Paper::Prdma => {
                "A receive engine is assumed to accept packets in turn, at the rate of the payload. What MRC costs beyond \
                 its commands is assumed to pass in the network interface, once per chain of puts by which queues release \
                 themselves (`queue_chain`)."
            }
            Paper::Xmp => {
                "All constants of software, the time of a cell and the number of arrays are assumed, and were written down \
                 before any comparison. How the message layer handles derived datatypes is open: both readings are run."
            }
        }
    }

    /// Returns the paper with that [name](Paper::name).
    pub fn named(name: &str) -> Option<Paper> {
        Paper::ALL.into_iter().find(|paper| paper.name() == name)
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::of;

    #[test]
    fn papers_have_names_that_find_them() {
        for paper in Paper::ALL {
            assert_eq!(Paper::named(paper.name()), Some(paper));
            assert!(of(paper).iter().all(|figure| figure.paper == paper));
        }
        assert_eq!(Paper::named("mpi"), None);
    }
}
