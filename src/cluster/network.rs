//! Which network a rank uses.

use super::{failed, nearest};
use crate::{Launch, report::LaunchError};
use fabric_ofi::{Domain, Offer, Wanted, providers};
use std::path::Path;

/// Opens the provider that the options name, on the interface that they name, or else on the one
/// that is nearest to this process's CPUs.
///
/// # Errors
/// [`LaunchError::Cluster`], which names what there is.
pub(crate) fn domain(launch: &Launch) -> Result<Domain, LaunchError> {
    let wanted = |name: &str| Wanted::default().provider(name);
    let offers = providers(&wanted(&launch.ofi)).map_err(|error| failed(&error))?;
    let offers: Vec<Offer> = offers.into_iter().filter(|offer| offer.provider == launch.ofi).collect();
    if offers.is_empty() {
        let known = providers(&Wanted::default()).map_err(|error| failed(&error))?;
        let mut names: Vec<String> = known.into_iter().map(|offer| offer.provider).collect();
        names.sort();
        names.dedup();
        return Err(failed(&format_args!(
            "libfabric has no provider `{}` here; it has {}",
            launch.ofi,
            names.join(", ")
        )));
    }
    let fits = |offer: &&Offer| launch.interface.as_ref().is_none_or(|name| offer.domain == *name);
    let mut on_interface = offers.iter().filter(fits).peekable();
    if on_interface.peek().is_none() {
        let domains: Vec<&str> = offers.iter().map(|offer| &*offer.domain).collect();
        let wanted = launch.interface.as_deref().unwrap_or_default();
        return Err(failed(&format_args!("`{}` is not on `{wanted}`, but on {}", launch.ofi, domains.join(", "))));
    }
    let usable: Vec<&Offer> = on_interface.filter(|offer| offer.is_usable()).collect();
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
