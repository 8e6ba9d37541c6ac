//! Why an offer can't be used.

use crate::{AtomicKind, Atomics, Nic, WordKind, raw::Facts};
use core::fmt;
use fabric_ofi_sys as sys;

/// The modes of memory registration that this crate supports.
pub(crate) const REGISTRATION: u32 =
    sys::FI_MR_LOCAL | sys::FI_MR_VIRT_ADDR | sys::FI_MR_ALLOCATED | sys::FI_MR_PROV_KEY;
/// Other modes: offers that require them are listed with this as their verdict.
pub(crate) const OTHER_REGISTRATION: u32 = sys::FI_MR_RAW | sys::FI_MR_ENDPOINT;
/// The caller's obligations that this crate fulfils: memory for the provider's context of an
/// operation, and registration of local memory, which is always registered.
pub(crate) const MODE: u64 = sys::FI_CONTEXT | sys::FI_CONTEXT2 | sys::FI_LOCAL_MR;
/// The capabilities that the contract needs, if the provider's atomics are used.
pub(crate) const NEEDED: u64 = (sys::FI_MSG | sys::FI_RMA | sys::FI_ATOMIC) as u64;
/// The required order of messages.
pub(crate) const ORDER: u64 = sys::FI_ORDER_SAS as u64;
/// The ordering that is requested if it is offered. With it, `shm` lets the target check keys;
/// without it, the initiator writes the target's memory by address alone.
pub(crate) const WRITES: u64 = sys::FI_ORDER_WAW as u64;

/// Providers that move bytes by software at the target, which answers a put with
/// `FI_DELIVERY_COMPLETE` after it has written the bytes. Read in the source of libfabric 1.17:
/// `tcpx_progress.c`, `xnet_progress.c`, `smr_progress.c`, `sock_progress.c`, `rxd_cq.c`.
const DELIVERING: [&str; 5] = ["tcp", "net", "shm", "sockets", "udp"];

/// Returns whether puts that ask for it complete when their bytes are visible.
///
/// libfabric can't be asked: the layer `ofi_rxm` offers `FI_DELIVERY_COMPLETE` over every provider
/// (`RXM_TX_OP_FLAGS`), but passes puts on to it, and `verbs` completes them when the NIC of the
/// target has acknowledged them (`verbs_rma.c`, `VERBS_TX_OP_FLAGS`). An unknown provider is treated
/// in the same way.
pub(crate) fn delivers(provider: &str) -> bool {
    let inner = provider.split(';').next().unwrap_or_default();
    DELIVERING.contains(&inner)
}

/// Returns whether a put or get of an aligned word of 4 or 8 bytes is never torn, and coherent with
/// instructions of the target's CPU.
///
/// Neither libfabric nor InfiniBand promises it, so it rests on the machine: a PCI Express NIC moves
/// such a word in one transaction (`verbs` does not ask for relaxed ordering), and an x86-64 machine
/// executes one inside a cache line as a whole, coherent with its caches. Published systems rest on
/// it (Dragojević et al., FaRM, NSDI 2014). A `verbs` device that is not on the PCI bus is software,
/// such as Soft-RoCE, which copies bytes, as other software providers do.
pub(crate) fn keeps_words(provider: &str, nic: Option<&Nic>) -> bool {
    let is_verbs = provider.split(';').next() == Some("verbs");
    cfg!(target_arch = "x86_64") && is_verbs && nic.is_some_and(|nic| nic.pci.is_some())
}

/// Why an offer can't be used: the first missing requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Its endpoints are not reliable datagram endpoints.
    EndpointType,
    /// It does not claim messages.
    NoMessages,
    /// Messages of a peer may overtake each other.
    MessageOrder,
    /// It may lose messages for which there is no buffer.
    Resources,
    /// It does not claim puts and gets.
    NoRma,
    /// It does not claim atomics.
    NoAtomics,
    /// Keys have no bytes, or more than 8.
    KeyBytes {
        /// Number of bytes of a key.
        bytes: usize,
    },
    /// It requires a mode of memory registration that this crate does not support.
    Registration {
        /// libfabric's bits of these modes.
        bits: u32,
    },
    /// It imposes an obligation on callers that this crate does not fulfil.
    Mode {
        /// libfabric's bits.
        bits: u64,
    },
    /// The initiator writes the target's memory, and keys are not checked.
    UncheckedKeys,
    /// Operations with wrong keys complete as if they had succeeded.
    WrongKeysSucceed,
    /// It claims all requirements, but does not offer them together.
    NotTogether,
    /// It can't be opened.
    Open {
        /// The failed call and its error.
        error: String,
    },
    /// It has atomics, but lacks this one on words of 64 bits.
    NoAtomic {
        /// The operation.
        kind: AtomicKind,
    },
    /// If the first operation to a peer is an atomic, the process is known to crash.
    AtomicsCrash,
    /// It pins memory, and could not be tried within the limit of this process.
    PinLimit {
        /// RLIMIT_MEMLOCK in bytes.
        limit: u64,
        /// A description of the failure.
        error: String,
    },
    /// A put to itself was refused, failed, or completed before its bytes were visible.
    NoDelivery {
        /// A description of the failure.
        error: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EndpointType => f.write_str("no reliable datagram endpoint"),
            Self::NoMessages => f.write_str("no messages"),
            Self::MessageOrder => f.write_str("messages may overtake each other"),
            Self::Resources => f.write_str("messages that find no buffer may be lost"),
            Self::NoRma => f.write_str("no puts and gets"),
            Self::NoAtomics => f.write_str("no atomics"),
            Self::KeyBytes { bytes } => write!(f, "keys of {bytes} bytes, 1 to 8 are possible"),
            Self::Registration { bits } => write!(f, "registers memory in a way that is not supported ({bits:#x})"),
            Self::Mode { bits } => write!(f, "asks for a mode that is not supported ({bits:#x})"),
            Self::UncheckedKeys => f.write_str("keys are not checked"),
            Self::WrongKeysSucceed => f.write_str("operations with wrong keys complete without an error"),
            Self::NotTogether => f.write_str("does not offer puts, gets and atomics together"),
            Self::Open { error } => write!(f, "can't be opened: {error}"),
            Self::NoAtomic { kind } => write!(f, "claims atomics, has no fetching {} on u64", kind.name()),
            Self::AtomicsCrash => f.write_str("an atomic that is the first operation to a peer ends the process"),
            Self::PinLimit { limit, error } => write!(
                f,
                "needs more pinned memory than {limit} bytes, the limit of this process (`ulimit -l` sets it, in \
                 KiB): {error}"
            ),
            Self::NoDelivery { error } => write!(f, "does not tell when a put is visible: {error}"),
        }
    }
}

/// Returns the first requirement that an offer does not claim, with or without the use of its
/// atomics.
pub(crate) fn missing(facts: &Facts, with_atomics: bool) -> Option<Reason> {
    let claims = |bits: u32| facts.caps & u64::from(bits) == u64::from(bits);
    let (registration, mode) = (facts.registration & !REGISTRATION, facts.mode & !MODE);
    if facts.endpoint_type != sys::FI_EP_RDM {
        Some(Reason::EndpointType)
    } else if !claims(sys::FI_MSG) {
        Some(Reason::NoMessages)
    } else if facts.order & ORDER == 0 {
        Some(Reason::MessageOrder)
    } else if facts.resources != sys::FI_RM_ENABLED {
        Some(Reason::Resources)
    } else if !claims(sys::FI_RMA) {
        Some(Reason::NoRma)
    } else if with_atomics && !claims(sys::FI_ATOMIC) {
        Some(Reason::NoAtomics)
    } else if !(1..=8).contains(&facts.key_bytes) {
        Some(Reason::KeyBytes { bytes: facts.key_bytes })
    } else if registration != 0 {
        Some(Reason::Registration { bits: registration })
    } else if mode != 0 {
        Some(Reason::Mode { bits: mode })
    } else if facts.provider == "shm" && facts.registration & sys::FI_MR_VIRT_ADDR != 0 && facts.order & WRITES == 0 {
        Some(Reason::UncheckedKeys)
    } else if with_atomics && facts.provider.ends_with("ofi_rxd") {
        // Observed with direct calls of libfabric 1.17.
        Some(Reason::AtomicsCrash)
    } else {
        None
    }
}

/// Returns why the provider can't be used in this version of the library: major and minor.
///
/// With `shm` of 2.6.0, tried by the tests `wrong` of this crate, gets with a wrong key, with the key
/// of a dropped region, and outside a region complete without an error. It also crashes if a process
/// has several endpoints.
pub(crate) fn broken(provider: &str, (major, _): (u32, u32)) -> Option<Reason> {
    (provider == "shm" && major >= 2).then_some(Reason::WrongKeysSucceed)
}

/// Returns the first missing fetching atomic on words of 64 bits.
pub(crate) fn missing_atomic(atomics: Atomics) -> Option<Reason> {
    let there = |kind: &AtomicKind| atomics.has(WordKind::U64, *kind, true);
    AtomicKind::ALL.into_iter().find(|kind| !there(kind)).map(|kind| Reason::NoAtomic { kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Facts {
        Facts {
            provider: "tcp;ofi_rxm".to_owned(),
            fabric: "127.0.0.1/32".to_owned(),
            domain: "lo".to_owned(),
            endpoint_type: sys::FI_EP_RDM,
            protocol: 0,
            address_format: sys::FI_SOCKADDR_IN,
            caps: NEEDED,
            mode: 0,
            registration: sys::FI_MR_LOCAL,
            pins: false,
            delivery: true,
            words: false,
            key_bytes: 8,
            data_bytes: 8,
            order: ORDER | WRITES,
            ordered: [0; 3],
            longest: 1 << 30,
            inject: 64,
            depth: 256,
            receives: 256,
            resources: sys::FI_RM_ENABLED,
            nic: None,
        }
    }

    #[test]
    fn the_first_thing_that_is_missing_is_told() {
        assert_eq!(missing(&good(), true), None);
        // Verbs has 4; without any, a message follows the put.
        assert_eq!([4, 0].map(|data_bytes| missing(&Facts { data_bytes, ..good() }, true)), [None, None]);
        let without = |bits: u32| NEEDED & !u64::from(bits);
        for (facts, reason) in [
            (Facts { endpoint_type: sys::FI_EP_MSG, ..good() }, Reason::EndpointType),
            (Facts { caps: without(sys::FI_MSG), ..good() }, Reason::NoMessages),
            (Facts { order: WRITES, ..good() }, Reason::MessageOrder),
            (Facts { resources: sys::FI_RM_DISABLED, ..good() }, Reason::Resources),
            (Facts { caps: without(sys::FI_RMA | sys::FI_ATOMIC), ..good() }, Reason::NoRma),
            (Facts { caps: without(sys::FI_ATOMIC), ..good() }, Reason::NoAtomics),
            (Facts { key_bytes: 0, ..good() }, Reason::KeyBytes { bytes: 0 }),
            (Facts { key_bytes: 16, ..good() }, Reason::KeyBytes { bytes: 16 }),
            (
                Facts { registration: sys::FI_MR_LOCAL | sys::FI_MR_ENDPOINT, ..good() },
                Reason::Registration { bits: sys::FI_MR_ENDPOINT },
            ),
            (Facts { mode: sys::FI_CONTEXT | sys::FI_RX_CQ_DATA, ..good() }, Reason::Mode { bits: sys::FI_RX_CQ_DATA }),
        ] {
            assert_eq!(missing(&facts, true), Some(reason));
        }
    }

    #[test]
    fn shared_memory_is_refused_where_nobody_looks_at_keys() {
        let shm = |registration, order| Facts { provider: "shm".to_owned(), registration, order, ..good() };
        assert_eq!(missing(&shm(sys::FI_MR_VIRT_ADDR, ORDER), true), Some(Reason::UncheckedKeys));
        assert_eq!(missing(&shm(sys::FI_MR_VIRT_ADDR, ORDER | WRITES), true), None);
        assert_eq!(missing(&shm(0, ORDER), true), None);
    }

    #[test]
    fn nics_acknowledge_puts_and_software_delivers_them() {
        assert!(["tcp;ofi_rxm", "tcp", "udp;ofi_rxd", "shm", "sockets", "net"].into_iter().all(delivers));
        assert!(!["verbs;ofi_rxm", "verbs", "efa", "psm3", "cxi", ""].into_iter().any(delivers));
    }

    #[test]
    fn words_are_whole_over_nics_on_the_bus_of_the_right_machines() {
        let here = cfg!(target_arch = "x86_64");
        let on_bus = Nic { pci: Some("0000:c1:00.0".to_owned()), ..Nic::default() };
        let soft = Nic { name: Some("rxe0".to_owned()), ..Nic::default() };
        assert_eq!(keeps_words("verbs;ofi_rxm", Some(&on_bus)), here);
        assert!(!keeps_words("verbs;ofi_rxm", Some(&soft)) && !keeps_words("verbs;ofi_rxm", None));
        assert!(!keeps_words("tcp;ofi_rxm", Some(&on_bus)) && !keeps_words("efa", Some(&on_bus)));
    }

    #[test]
    fn shared_memory_of_later_versions_is_refused() {
        assert_eq!(broken("shm", (2, 6)), Some(Reason::WrongKeysSucceed));
        assert_eq!([broken("shm", (1, 17)), broken("tcp;ofi_rxm", (2, 6))], [None, None]);
    }

    #[test]
    fn providers_whose_atomics_crash_are_refused() {
        let rxd = Facts { provider: "udp;ofi_rxd".to_owned(), ..good() };
        assert_eq!(missing(&rxd, true), Some(Reason::AtomicsCrash));
        assert_eq!(missing(&rxd, false), None, "who uses none is not concerned");
        let none = Facts { caps: NEEDED & !u64::from(sys::FI_ATOMIC), ..good() };
        assert_eq!((missing(&none, true), missing(&none, false)), (Some(Reason::NoAtomics), None));
    }

    #[test]
    fn only_fetching_atomics_on_64_bits_count() {
        let mut atomics = Atomics::default();
        for kind in AtomicKind::ALL {
            assert_eq!(missing_atomic(atomics), Some(Reason::NoAtomic { kind }));
            atomics.set(WordKind::I64, kind, true, true);
            atomics.set(WordKind::U64, kind, false, true);
            assert_eq!(missing_atomic(atomics), Some(Reason::NoAtomic { kind }));
            atomics.set(WordKind::U64, kind, true, true);
        }
        assert_eq!(missing_atomic(atomics), None);
    }
}
