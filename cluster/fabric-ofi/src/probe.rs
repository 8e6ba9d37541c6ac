//! The offers of libfabric on this machine, and whether they can be used.
//!
//! Capability bits are not trusted: libfabric 1.17's `net` lists atomics but refuses 64-bit
//! compare-and-swap. Each offer that claims all requirements is therefore opened, queried for each
//! operation on each kind of word, and tested with a put to itself.

use crate::{
    Atomics, Nic,
    error::{OfiError, Result},
    pinned,
    raw::{self, Facts, Hints, Info},
    trial::{Tried, try_out},
    verdict::{MODE, NEEDED, ORDER, OTHER_REGISTRATION, REGISTRATION, WRITES, broken, missing},
};
use fabric_ofi_sys as sys;
use std::{ffi::CString, sync::Arc};

pub use crate::verdict::Reason;

/// Selects offers; by default all reliable datagram endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    provider: Option<String>,
    domain: Option<String>,
    every_endpoint: bool,
    no_atomics: bool,
    provider_keys: bool,
}

impl Wanted {
    /// Selects a provider by name, including its layers: `tcp;ofi_rxm`.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// Selects a domain by name: a device, or for sockets an interface such as `lo`.
    #[must_use]
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.domain = Some(name.into());
        self
    }

    /// Also selects endpoints of other types, which are listed as unusable.
    #[must_use]
    pub fn every_endpoint(mut self) -> Self {
        self.every_endpoint = true;
        self
    }

    /// Does not require atomics of the provider.
    #[must_use]
    pub fn without_atomics(mut self) -> Self {
        self.no_atomics = true;
        self
    }

    /// Requests offers in which the provider chooses keys and peers pass addresses in the target's
    /// address space (`FI_MR_BASIC`), as many NICs require; software providers let callers choose.
    #[must_use]
    pub fn provider_keys(mut self) -> Self {
        self.provider_keys = true;
        self
    }

    /// Returns libfabric's bits of the required capabilities.
    fn needed(&self) -> u64 {
        if self.no_atomics { NEEDED & !u64::from(sys::FI_ATOMIC) } else { NEEDED }
    }

    fn hints(&self) -> Result<Hints> {
        let name = |name: &Option<String>| {
            let bytes = |name: &String| CString::new(&**name).map_err(|_| OfiError::Wanted { name: name.clone() });
            name.as_ref().map(bytes).transpose()
        };
        Ok(Hints {
            reliable_datagrams: !self.every_endpoint,
            mode: MODE,
            registration: if self.provider_keys { sys::FI_MR_BASIC } else { REGISTRATION | OTHER_REGISTRATION },
            provider: name(&self.provider)?,
            domain: name(&self.domain)?,
            ..Hints::default()
        })
    }
}

/// An offer of libfabric.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Offer {
    /// The provider, including its layers: `tcp;ofi_rxm`.
    pub provider: String,
    /// The fabric: for sockets, a network.
    pub fabric: String,
    /// The domain: a device, or for sockets an interface.
    pub domain: String,
    /// The format of addresses, as numbered by libfabric (`FI_SOCKADDR_IN`, …).
    pub address_format: u32,
    /// The version of the library's interface: major and minor.
    pub version: (u32, u32),
    /// libfabric's capability bits, as claimed by the provider.
    pub caps: u64,
    /// Whether local memory must be registered to be the source of a put.
    pub local_registration: bool,
    /// Whether peers pass addresses in the target's address space instead of offsets.
    pub virtual_addresses: bool,
    /// Whether the provider chooses keys.
    pub provider_keys: bool,
    /// Number of bytes of a key.
    pub key_bytes: usize,
    /// libfabric's bits of the guaranteed message orders.
    pub order: u64,
    /// Number of bytes that stay in order: of a read after a write, a write after a read, a write
    /// after a write.
    pub ordered_bytes: [usize; 3],
    /// Maximum number of bytes of a put or get.
    pub longest: usize,
    /// Maximum number of bytes that the provider copies when they are posted.
    pub inject: usize,
    /// Number of bytes of data that a put delivers to its target. A smaller number may be set before
    /// [`Domain::open`](crate::Domain::open), to try how a network with less behaves.
    pub data_bytes: usize,
    /// Whether a put completes only when its bytes are visible; otherwise when the target's NIC has
    /// acknowledged it ([`Limits::delivery`](crate::Limits::delivery)). `false` may be set before
    /// [`Domain::open`](crate::Domain::open), to try how such a network behaves.
    pub delivery: bool,
    /// Whether a put or get of an aligned word of 4 or 8 bytes is never torn, and coherent with
    /// instructions of the target's CPU. Another value may be set before
    /// [`Domain::open`](crate::Domain::open), to try how such a network behaves.
    pub words: bool,
    /// Number of bytes that this process may pin (`u64::MAX` without a limit); `None` if registered
    /// memory is not pinned. Another number may be set before [`Domain::open`](crate::Domain::open).
    pub pin_limit: Option<u64>,
    /// The atomics of its endpoints; empty if it was not opened.
    pub atomics: Atomics,
    /// The NIC; `None` for most software providers.
    pub nic: Option<Nic>,
    /// Why it can't be used; `None` if it can.
    pub verdict: Option<Reason>,
    pub(crate) info: Arc<Info>,
}

/// The queries, in order: whether to request all required capabilities, the message order, and the
/// resource management.
const ATTEMPTS: [(bool, u64, u32); 4] =
    [(true, ORDER | WRITES, sys::FI_RM_ENABLED), (true, ORDER, sys::FI_RM_ENABLED), (true, 0, 0), (false, 0, 0)];

impl Offer {
    /// Returns whether [`Domain::open`](crate::Domain::open) accepts it.
    pub fn is_usable(&self) -> bool {
        self.verdict.is_none()
    }

    fn new(info: Arc<Info>, facts: Facts, pin_limit: Option<u64>, (atomics, verdict): Tried) -> Self {
        Self {
            provider: facts.provider,
            fabric: facts.fabric,
            domain: facts.domain,
            address_format: facts.address_format,
            version: raw::version(),
            caps: facts.caps,
            local_registration: facts.registration & sys::FI_MR_LOCAL != 0,
            virtual_addresses: facts.registration & sys::FI_MR_VIRT_ADDR != 0,
            provider_keys: facts.registration & sys::FI_MR_PROV_KEY != 0,
            key_bytes: facts.key_bytes,
            order: facts.order,
            ordered_bytes: facts.ordered,
            longest: facts.longest,
            inject: facts.inject,
            data_bytes: facts.data_bytes,
            delivery: facts.delivery,
            words: facts.words,
            pin_limit,
            atomics,
            nic: facts.nic,
            verdict,
            info,
        }
    }
}

/// Returns the offers of libfabric with their verdicts: first those that claim all requirements,
/// then the others, each in libfabric's order.
///
/// Of several offers with the same provider, fabric, domain and address format, the best one is
/// returned. Offers that claim all requirements are opened, which takes some milliseconds each.
///
/// # Errors
/// [`OfiError::Wanted`], [`OfiError::Call`] if libfabric can't be queried. An empty result is not
/// an error.
pub fn providers(wanted: &Wanted) -> Result<Vec<Offer>> {
    let hints = wanted.hints()?;
    let mut found: Vec<(Info, Facts, bool)> = Vec::new();
    // Some providers, `ofi_rxm` among them, offer atomics only on request.
    for (together, order, resources) in ATTEMPTS {
        let caps = if together { wanted.needed() } else { 0 };
        let infos = Info::query(&Hints { caps, order, resources, ..hints.clone() });
        for info in infos.map_err(|failed| OfiError::call(failed, "any"))? {
            let facts = info.facts();
            // Layered providers ignore the requested name.
            let elsewhere = wanted.domain.as_ref().is_some_and(|name| *name != facts.domain);
            if !elsewhere && !found.iter().any(|(_, other, _)| is_same(&facts, other)) {
                found.push((info, facts, together));
            }
        }
    }
    Ok(found.into_iter().map(|(info, facts, together)| judge(wanted, info, facts, together)).collect())
}

fn is_same(one: &Facts, other: &Facts) -> bool {
    let place = |facts: &Facts| (facts.endpoint_type, facts.address_format);
    let names = |facts: &Facts| [facts.provider.clone(), facts.fabric.clone(), facts.domain.clone()];
    place(one) == place(other) && names(one) == names(other)
}

fn judge(wanted: &Wanted, info: Info, facts: Facts, together: bool) -> Offer {
    let info = Arc::new(info);
    let missing = missing(&facts, !wanted.no_atomics);
    let missing =
        missing.or_else(|| broken(&facts.provider, raw::version())).or((!together).then_some(Reason::NotTogether));
    let unusable = |reason| (Atomics::default(), Some(reason));
    let (pin_limit, unreadable) = match facts.pins.then(pinned::limit).transpose() {
        Ok(limit) => (limit, None),
        Err(error) => (None, Some(Reason::Open { error: OfiError::Pinned(error).to_string() })),
    };
    let tried = match missing.or(unreadable) {
        Some(reason) => unusable(reason),
        None => try_out(&info, pin_limit, !wanted.no_atomics),
    };
    Offer::new(info, facts, pin_limit, tried)
}
