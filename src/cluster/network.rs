//! The network of a rank.

use super::{failed, interface, nearest};
use crate::{AtomicsBy, Launch, report::LaunchError};
use bootstrap::interface_name;
use fabric_ofi::{Domain, Offer, Wanted, providers};
use std::{fs, path::Path};

const SYS: &str = "/sys";

/// Opens the provider that the options name, on the domain that they name. Without one, on that of
/// the interface that they name, if the provider's domains are interfaces, or NICs of the interface;
/// of several, on the domain that is nearest to this process's CPUs.
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
    let interface = match (&launch.domain, interface(launch)) {
        (None, Some(interface)) => Some(interface_name(&interface).map_err(|error| failed(&error))?),
        _ => None,
    };
    let named = launch.domain.as_ref().or(interface.as_ref());
    let mut offers = offers_of(named.into_iter().fold(wanted.clone(), Wanted::domain))?;
    if let (true, Some(named)) = (offers.is_empty(), named) {
        offers = offers_of(wanted)?;
        let are_interfaces = offers.iter().any(|offer| is_interface(&offer.domain, Path::new(SYS)));
        match &interface {
            Some(interface) if !are_interfaces => keep_attached(&mut offers, interface, Path::new(SYS)),
            _ => return Err(not_offered(launch, named, &offers)),
        }
    }
    if offers.is_empty() {
        return Err(unknown_provider(launch));
    }
    let usable: Vec<&Offer> = offers.iter().filter(|offer| offer.is_usable()).collect();
    let names: Vec<&str> = usable.iter().map(|offer| &*offer.domain).collect();
    match usable.get(nearest::nearest(&names, Path::new(SYS), &nearest::own_cpus())) {
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

fn is_interface(domain: &str, sys: &Path) -> bool {
    sys.join("class/net").join(domain).exists()
}

/// Keeps the offers whose NIC belongs to a network interface; all if there are none, because the
/// coordinator may be reached by another network than NICs.
fn keep_attached(offers: &mut Vec<Offer>, interface: &str, sys: &Path) {
    if offers.iter().any(|offer| is_attached(&offer.domain, interface, sys)) {
        offers.retain(|offer| is_attached(&offer.domain, interface, sys));
    }
}

/// Returns whether a port of a NIC is that of a network interface, according to `sys`, a tree like
/// `/sys`: by RoCE, or as the IP interface of an InfiniBand port.
fn is_attached(domain: &str, interface: &str, sys: &Path) -> bool {
    let nic = sys.join("class/infiniband").join(nearest::device_of(domain));
    let ports = fs::read_dir(nic.join("ports")).into_iter().flatten().flatten();
    // Each entry of the table of addresses (GIDs) has the name of its interface.
    let tables = ports.filter_map(|port| fs::read_dir(port.path().join("gid_attrs/ndevs")).ok());
    let mut names = tables.flatten().flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    names.any(|name| name.trim() == interface) || nic.join("device/net").join(interface).exists()
}

/// Returns the error for a domain that the provider does not have.
fn not_offered(launch: &Launch, named: &str, elsewhere: &[Offer]) -> LaunchError {
    if elsewhere.is_empty() {
        return unknown_provider(launch);
    }
    let mut domains: Vec<&str> = elsewhere.iter().map(|offer| &*offer.domain).collect();
    domains.dedup();
    failed(&format_args!("`{}` is not on `{named}`, but on {}", launch.ofi, domains.join(", ")))
}

fn unknown_provider(launch: &Launch) -> LaunchError {
    let known = match providers(&Wanted::default().without_atomics()) {
        Ok(known) => known,
        Err(error) => return failed(&error),
    };
    let mut names: Vec<String> = known.into_iter().map(|offer| offer.provider).collect();
    names.sort();
    names.dedup();
    failed(&format_args!("libfabric has no provider `{}` here; it has {}", launch.ofi, names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nic_belongs_to_the_interfaces_of_its_ports() {
        let tree = std::env::temp_dir().join(format!("onesided-nics-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = tree.join("class/infiniband").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
        write("rxe0/ports/1/gid_attrs/ndevs/1", "eth0.5\n");
        write("mlx5_0/device/net/ib0/mtu", "2044\n");
        let attached = |domain, interface| is_attached(domain, interface, &tree);
        assert!(attached("rxe0", "eth0") && attached("rxe0", "eth0.5") && attached("mlx5_0-rdm", "ib0"));
        assert!(!attached("rxe0", "eth1") && !attached("mlx5_0", "eth0") && !attached("none", "eth0"));
        fs::remove_dir_all(&tree).unwrap();
    }
}
