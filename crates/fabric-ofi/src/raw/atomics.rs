//! Which atomics an endpoint has.

use super::{Endpoint, sys};
use crate::atomics::{AtomicKind, Atomics, WordKind};

impl Endpoint {
    /// Asks the provider for each operation on each kind of word.
    pub(crate) fn atomics(&self) -> Atomics {
        let mut all = Atomics::default();
        for word in WordKind::ALL {
            let datatype = match word {
                WordKind::U32 => sys::FI_UINT32,
                WordKind::I32 => sys::FI_INT32,
                WordKind::U64 => sys::FI_UINT64,
                WordKind::I64 => sys::FI_INT64,
            };
            for kind in AtomicKind::ALL {
                let operation = match kind {
                    AtomicKind::Sum => sys::FI_SUM,
                    AtomicKind::Swap => sys::FI_ATOMIC_WRITE,
                    AtomicKind::CompareSwap => sys::FI_CSWAP,
                    AtomicKind::Or => sys::FI_BOR,
                    AtomicKind::And => sys::FI_BAND,
                    AtomicKind::Xor => sys::FI_BXOR,
                };
                let (mut plain, mut fetching) = (0, 0);
                let endpoint = self.as_ptr();
                // SAFETY: the endpoint is open, was made from an offer with atomics, and its calls
                // write one count.
                let (plain_answer, answer) = unsafe {
                    if kind == AtomicKind::CompareSwap {
                        (-1, sys::fi_compare_atomicvalid(endpoint, datatype, operation, &mut fetching))
                    } else {
                        (
                            sys::fi_atomicvalid(endpoint, datatype, operation, &mut plain),
                            sys::fi_fetch_atomicvalid(endpoint, datatype, operation, &mut fetching),
                        )
                    }
                };
                all.set(word, kind, false, plain_answer == 0 && plain > 0);
                all.set(word, kind, true, answer == 0 && fetching > 0);
            }
        }
        all
    }
}
