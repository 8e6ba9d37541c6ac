//! The network of a rank.

use super::{failed, nearest};
use crate::{AtomicsBy, Launch, report::LaunchError};
use fabric_ofi::{Domain, Offer, Wanted, providers};
use std::path::Path;

/// Opens the provider that the options name, on the interface that they name, or else on the
/// interface that is nearest to this process's CPUs.
///
/// # Errors
/// [`LaunchError::Cluster`], which names the available ones.
pub(crate) fn domain(launch: &Launch) -> Result<Domain, LaunchError> {
    // Offers are tried out, so only the acceptable ones are queried.
    let offers_of = |wanted: Wanted| -> Result<Vec<Offer>, LaunchError> {
        let offers = providers(&wanted).map_err(|error| failed(&error))?;
        Ok(offers.into_iter().filter(|offer| offer.provider == launch.ofi).collect())
    };
    let wanted = match launch.atomics {
        AtomicsBy::Cpu => Wanted::default().without_atomics(),
        AtomicsBy::Nic => Wanted::default(),
    };
    let wanted = wanted.provider(&launch.ofi);
    let offers = offers_of(launch.interface.iter().fold(wanted.clone(), Wanted::domain))?;
    if offers.is_empty() {
        return Err(not_offered(launch, &offers_of(wanted)?));
    }
    let usable: Vec<&Offer> = offers.iter().filter(|offer| offer.is_usable()).collect();
    let names: Vec<&str> = usable.iter().map(|offer| &*offer.domain).collect();
    match usable.get(nearest::nearest(&names, Path::new("/sys"), &nearest::own_cpus())) {
        Some(offer) => Domain::open(offer).map_err(|error| failed(&error)),
        None => {
            let why: Vec<String> = offers
                .iter()
                .filter_map(|offer| offer.verdict.as_ref().map(|reason| format!("{}: {reason}", offer.domain)))
                .collect();
            Err(failed(&format_args!("`{}` can't be used: {}", launch.ofi, why.join("; "))))
        }
    }
}

/// Returns why there is no offer: the provider is not available `elsewhere` either, or only there.
fn not_offered(launch: &Launch, elsewhere: &[Offer]) -> LaunchError {
    if let (Some(interface), false) = (&launch.interface, elsewhere.is_empty()) {
        let mut domains: Vec<&str> = elsewhere.iter().map(|offer| &*offer.domain).collect();
        domains.dedup();
        return failed(&format_args!("`{}` is not on `{interface}`, but on {}", launch.ofi, domains.join(", ")));
    }
    let known = match providers(&Wanted::default().without_atomics()) {
        Ok(known) => known,
        Err(error) => return failed(&error),
    };
    let mut names: Vec<String> = known.into_iter().map(|offer| offer.provider).collect();
    names.sort();
    names.dedup();
    failed(&format_args!("libfabric has no provider `{}` here; it has {}", launch.ofi, names.join(", ")))
}
