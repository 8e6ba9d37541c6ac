//! What libfabric offers on this machine, and whether it is enough.
//!
//! Capability bits are not believed: libfabric 1.17's `net` lists atomics and refuses 64-bit
//! compare-and-swap. So each offer that claims to have all is opened, asked for each operation on
//! each kind of word, and puts to itself.

use crate::{
    Atomics, Domain, Endpoint, EndpointOptions, Event, PutFrom,
    error::{OfiError, Result},
    raw::{self, Facts, Hints, Info},
    verdict::{MODE, NEEDED, ORDER, OTHER_REGISTRATION, REGISTRATION, WRITES, missing, missing_atomic},
};
use fabric_ofi_sys as sys;
use std::{
    ffi::CString,
    sync::Arc,
    time::{Duration, Instant},
};

pub use crate::verdict::Reason;

/// Which offers are wanted; all reliable datagram endpoints unless told otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    provider: Option<String>,
    domain: Option<String>,
    every_endpoint: bool,
    no_atomics: bool,
    provider_keys: bool,
}

impl Wanted {
    /// Asks for a provider by name, with its layers: `tcp;ofi_rxm`.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// Asks for a domain by name: a device, or for sockets an interface such as `lo`.
    #[must_use]
    pub fn domain(mut self, name: impl Into<String>) -> Self {
        self.domain = Some(name.into());
        self
    }

    /// Asks for endpoints of other types too, of which the verdict only says that they are no use.
    #[must_use]
    pub fn every_endpoint(mut self) -> Self {
        self.every_endpoint = true;
        self
    }

    /// Does without atomics of the provider: the verdict does not ask for them.
    #[must_use]
    pub fn without_atomics(mut self) -> Self {
        self.no_atomics = true;
        self
    }

    /// Asks for offers where the provider chooses keys and peers give addresses in the target's
    /// address space (`FI_MR_BASIC`), as many NICs have it; providers in software let callers choose.
    #[must_use]
    pub fn provider_keys(mut self) -> Self {
        self.provider_keys = true;
        self
    }

    /// Returns libfabric's bits of what is needed.
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

/// One offer of libfabric.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Offer {
    /// The provider, with its layers: `tcp;ofi_rxm`.
    pub provider: String,
    /// The fabric: a network, for sockets.
    pub fabric: String,
    /// The domain: a device, for sockets an interface.
    pub domain: String,
    /// How addresses look, as libfabric numbers it (`FI_SOCKADDR_IN`, …).
    pub address_format: u32,
    /// The library's version of its interface: major and minor.
    pub version: (u32, u32),
    /// libfabric's capability bits: what the provider claims.
    pub caps: u64,
    /// Whether own memory has to be registered to be the source of a put.
    pub local_registration: bool,
    /// Whether peers give addresses in the target's address space, instead of offsets.
    pub virtual_addresses: bool,
    /// Whether the provider chooses keys.
    pub provider_keys: bool,
    /// How many bytes a key has.
    pub key_bytes: usize,
    /// libfabric's bits of which messages stay in order.
    pub order: u64,
    /// How many bytes are in order: of a read after a write, a write after a read, a write after a
    /// write.
    pub ordered_bytes: [usize; 3],
    /// How many bytes one put or get may have.
    pub longest: usize,
    /// How many bytes a provider copies when they are posted.
    pub inject: usize,
    /// How many bytes of data a put tells its target.
    pub data_bytes: usize,
    /// The atomics that an endpoint has; none if it was not opened.
    pub atomics: Atomics,
    /// Why it is no use, if it is not.
    pub verdict: Option<Reason>,
    pub(crate) info: Arc<Info>,
}

/// How long a put of the probe may take: many times what it should, on a machine that is busy.
const TRY: Duration = Duration::from_secs(5);
/// What is asked for, one after the other: whether all that is needed, the order, and how resources
/// are managed.
const ATTEMPTS: [(bool, u64, u32); 4] =
    [(true, ORDER | WRITES, sys::FI_RM_ENABLED), (true, ORDER, sys::FI_RM_ENABLED), (true, 0, 0), (false, 0, 0)];

impl Offer {
    /// Returns whether [`Domain::open`] takes it.
    pub fn is_usable(&self) -> bool {
        self.verdict.is_none()
    }

    fn new(info: Arc<Info>, facts: Facts, atomics: Atomics, verdict: Option<Reason>) -> Self {
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
            atomics,
            verdict,
            info,
        }
    }
}

/// Returns what libfabric offers, each offer with its verdict: first what claims to have all that
/// is needed, then the rest, each in libfabric's order.
///
/// Of offers with the same provider, fabric, domain and form of addresses there is the best one.
/// Those that claim to have all are opened, which takes some milliseconds each.
///
/// # Errors
/// [`OfiError::Wanted`], [`OfiError::Call`] if libfabric can't be asked. No offer is no error.
pub fn providers(wanted: &Wanted) -> Result<Vec<Offer>> {
    let hints = wanted.hints()?;
    let mut found: Vec<(Info, Facts, bool)> = Vec::new();
    // Some providers, `ofi_rxm` among them, have atomics only for those who ask.
    for (together, order, resources) in ATTEMPTS {
        let caps = if together { wanted.needed() } else { 0 };
        let infos = Info::query(&Hints { caps, order, resources, ..hints.clone() });
        for info in infos.map_err(|failed| OfiError::call(failed, "any"))? {
            let facts = info.facts();
            // Layered providers pass over the name that was asked for.
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
    let missing = missing(&facts, !wanted.no_atomics).or((!together).then_some(Reason::NotTogether));
    let (atomics, verdict) = match missing {
        Some(reason) => (Atomics::default(), Some(reason)),
        None => try_out(&info, !wanted.no_atomics),
    };
    Offer::new(info, facts, atomics, verdict)
}

/// Opens an offer, and returns the atomics that its endpoints have, and why they are no use.
fn try_out(info: &Arc<Info>, with_atomics: bool) -> (Atomics, Option<Reason>) {
    let open = || {
        let domain = Domain::open_untried(info.clone())?;
        Endpoint::open(&domain, EndpointOptions { depth: 1, receives: 1, ..EndpointOptions::default() })
    };
    match open() {
        Err(error) => (Atomics::default(), Some(Reason::Open { error: error.to_string() })),
        Ok(mut endpoint) => {
            let atomics = endpoint.atomics();
            let missing = if with_atomics { missing_atomic(atomics) } else { None };
            (atomics, missing.or_else(|| no_delivery(&mut endpoint)))
        }
    }
}

/// Puts to the endpoint itself; returns why the put does not tell that its bytes are visible.
fn no_delivery(endpoint: &mut Endpoint) -> Option<Reason> {
    let put = |endpoint: &mut Endpoint| -> Result<Option<String>> {
        let peer = endpoint.insert(&endpoint.name())?;
        let region = endpoint.domain().region(8)?;
        let begun = Instant::now();
        let (mut posted, mut over) = (false, None);
        while over.is_none() {
            posted = posted || endpoint.put(peer, PutFrom::Bytes(&[1; 8]), region.key(), 0, None, 0)?;
            endpoint.progress(&mut |event| match event {
                Event::Over { outcome, .. } => over = Some(outcome.err().map(|failure| failure.to_string())),
                Event::Fault(reply) => over = Some(Some(reply.to_string())),
                _ => {}
            })?;
            if begun.elapsed() > TRY {
                return Ok(Some(format!("not over within {TRY:?}")));
            }
        }
        let seen = region.load(0)? == u64::from_ne_bytes([1; 8]);
        Ok(over.flatten().or_else(|| (!seen).then(|| "over, and not visible".to_owned())))
    };
    let error = put(endpoint).unwrap_or_else(|error| Some(error.to_string()))?;
    Some(Reason::NoDelivery { error })
}
