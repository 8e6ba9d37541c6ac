//! The trial of an offer: its endpoint is opened, and puts to itself.

use crate::{
    Atomics, Domain, Endpoint, EndpointOptions, Event, GetInto, PutFrom,
    error::Result,
    raw::Info,
    verdict::{Reason, missing_atomic},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The time limit for the operations of a probe: a multiple of the usual time, to allow for a busy
/// machine.
const TRY: Duration = Duration::from_secs(5);
/// The atomics of an offer's endpoints, and why it can't be used.
pub(crate) type Tried = (Atomics, Option<Reason>);

/// Opens an offer and tries its endpoints.
pub(crate) fn try_out(info: &Arc<Info>, pin_limit: Option<u64>, with_atomics: bool) -> Tried {
    let open = || {
        let domain = Domain::open_untried(info.clone(), pin_limit)?;
        Endpoint::open(&domain, EndpointOptions { depth: 1, receives: 1, ..EndpointOptions::default() })
    };
    let (atomics, verdict) = match open() {
        Err(error) => (Atomics::default(), Some(Reason::Open { error: error.to_string() })),
        Ok(mut endpoint) => {
            let atomics = endpoint.atomics();
            let missing = if with_atomics { missing_atomic(atomics) } else { None };
            (atomics, missing.or_else(|| no_delivery(&mut endpoint)))
        }
    };
    (atomics, verdict.map(|reason| for_lack_of_pins(reason, pin_limit)))
}

/// Returns the reason why the put of a probe failed, or the limit of pinned memory, if there is one:
/// layers of libfabric pin buffers when they first need them. Over `verbs;ofi_rxm` of 1.17, a put
/// then fails, or never completes (observed with limits of 1 and 8 MiB; 16 MiB are enough).
fn for_lack_of_pins(reason: Reason, pin_limit: Option<u64>) -> Reason {
    match (reason, pin_limit) {
        (Reason::NoDelivery { error }, Some(limit)) if limit < u64::MAX => Reason::PinLimit { limit, error },
        (reason, _) => reason,
    }
}

/// Puts to the endpoint itself; returns an error unless the bytes are visible when the put has
/// completed, and then also a get where puts are only acknowledged.
fn no_delivery(endpoint: &mut Endpoint) -> Option<Reason> {
    let put = |endpoint: &mut Endpoint| -> Result<Option<String>> {
        let peer = endpoint.insert(&endpoint.name())?;
        let region = endpoint.domain().region(8)?;
        let begun = Instant::now();
        let failed = complete(endpoint, begun, |endpoint| {
            endpoint.put(peer, PutFrom::Bytes(&[1; 8]), region.key(), 0, None, 0)
        })?;
        let failed = match failed {
            None if !endpoint.limits().delivery => {
                complete(endpoint, begun, |endpoint| endpoint.get(peer, GetInto::Own(1), region.key(), 0, 0))?
            }
            failed => failed,
        };
        let seen = region.load(0)? == u64::from_ne_bytes([1; 8]);
        Ok(failed.or_else(|| (!seen).then(|| "over, and not visible".to_owned())))
    };
    let error = put(endpoint).unwrap_or_else(|error| Some(error.to_string()))?;
    Some(Reason::NoDelivery { error })
}

/// Posts an operation and waits until it has completed; returns why it failed.
fn complete(
    endpoint: &mut Endpoint,
    begun: Instant,
    post: impl Fn(&mut Endpoint) -> Result<bool>,
) -> Result<Option<String>> {
    let (mut posted, mut over) = (false, None);
    while over.is_none() {
        posted = posted || post(endpoint)?;
        endpoint.progress(&mut |event| match event {
            Event::Complete { outcome, .. } => over = Some(outcome.err().map(|failure| failure.to_string())),
            Event::Fault(reply) => over = Some(Some(reply.to_string())),
            _ => {}
        })?;
        if begun.elapsed() > TRY {
            return Ok(Some(format!("not over within {TRY:?}")));
        }
    }
    Ok(over.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_put_may_be_for_lack_of_pinned_memory() {
        let failed = || Reason::NoDelivery { error: "no memory".to_owned() };
        let limited = for_lack_of_pins(failed(), Some(1 << 20));
        assert_eq!(limited, Reason::PinLimit { limit: 1 << 20, error: "no memory".to_owned() });
        assert!(limited.to_string().contains("1048576 bytes") && limited.to_string().contains("`ulimit -l`"));
        for limit in [None, Some(u64::MAX)] {
            assert_eq!(for_lack_of_pins(failed(), limit), failed());
        }
        assert_eq!(for_lack_of_pins(Reason::AtomicsCrash, Some(1)), Reason::AtomicsCrash);
    }
}
