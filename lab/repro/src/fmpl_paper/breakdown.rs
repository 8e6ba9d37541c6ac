//! Table 1: the parts of a send and of a receive, derived from a timeline.

use tofu2_sim::virt::{Busy, Work};

/// The parts of one call, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phases {
    /// The initial part.
    pub init: f64,
    /// For a send: until it sees the header. For a receive: sending the header.
    pub header: f64,
    /// For a send: sending the data. For a receive: until it sees the data.
    pub data: f64,
}

/// The parts of a send and of a receive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breakdown {
    /// `fmpl_send`.
    pub send: Phases,
    /// `fmpl_recv`.
    pub receive: Phases,
}

/// The size of the message and of a header in bytes; a flag has the size of the message, and
/// follows it.
pub(super) const BODY: u64 = 8;
const HEADER: u64 = 32;

impl Breakdown {
    /// Derives the parts of the last receive, and of the last send before it, from the activity of
    /// a CPU in a ping-pong of 8-byte messages:
    /// ```text
    /// send     init | nothing | TCW, post of body | post of flag | layer
    /// receive  init | post of header | layer | nothing
    /// ```
    ///
    /// `None` if there is no such pattern.
    pub(super) fn read(cpu: &[Busy]) -> Option<Self> {
        let bytes = |busy: &Busy| match busy.with {
            Work::Posting { bytes, .. } => Some(bytes),
            _ => None,
        };
        // An entry has to follow a receive: the beginning of the next send ends its wait.
        let windows = cpu.windows(8).rev();
        windows
            .filter_map(|window| {
                let kinds: Vec<_> = window.iter().map(bytes).collect();
                let wanted = [None, Some(BODY), Some(BODY), None, None, Some(HEADER), None, None];
                if kinds != wanted {
                    return None;
                }
                let seconds = |from, to: rdma_fabric::Time| to.picos_since(from) as f64 * 1e-12;
                let [init, body, _, data, receive, header, layer, next] = [0, 1, 2, 3, 4, 5, 6, 7].map(|at| window[at]);
                let send = Phases {
                    init: seconds(init.begin, init.end),
                    header: seconds(init.end, body.begin),
                    data: seconds(body.begin, data.end),
                };
                let receive = Phases {
                    init: seconds(receive.begin, receive.end),
                    header: seconds(header.begin, layer.end),
                    data: seconds(layer.end, next.begin),
                };
                Some(Breakdown { send, receive })
            })
            .next()
    }
}
