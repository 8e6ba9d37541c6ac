//! Determines the coordinator's address and the job's secret from a launcher's information.
//!
//! [`process`] runs the coordinator in a separate process, [`interface`] finds addresses.

mod error;
mod interface;
mod process;

pub use error::RendezvousError;
#[cfg(any(test, fuzzing))]
pub(crate) use process::fuzz;
pub use process::{COORDINATOR, serve_if_asked};

use crate::{
    Cluster, Found, Plan, SECRET_FILE, Secret, SecretAt, SecretFileError, Slurm, Succession,
    inherited::{duplicate, read_line},
    launcher::Bootstrap,
    pmi::Pmi1,
};
use std::{
    env,
    io::stdin,
    net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs},
    path::Path,
    time::Duration,
};

/// The options of a rendezvous.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct How {
    /// The coordinator's time limit for joining, which rank 0 sets: see [`Plan`].
    pub join_within: Duration,
    /// The lease: see [`Plan::lease`].
    pub lease: Duration,
    /// Bytes for all ranks: see [`Plan::segment`].
    pub segment: Vec<u8>,
    /// Where the coordinator listens. `None` means the first non-loopback address of rank 0's host
    /// if the launcher can pass it to the other ranks, and all addresses otherwise.
    pub interface: Option<Interface>,
    /// The time limit of each step: a call of the launcher, the start of the coordinator.
    pub within: Duration,
}

impl Default for How {
    /// A minute to join, a lease of 5 seconds, 30 seconds for each step.
    fn default() -> Self {
        let (join_within, lease, within) = (Duration::from_secs(60), Duration::from_secs(5), Duration::from_secs(30));
        Self { join_within, lease, segment: Vec::new(), interface: None, within }
    }
}

/// A network interface of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interface {
    /// By its address.
    Address(IpAddr),
    /// By its name, such as `ib0`.
    Named(String),
}

/// The arguments of a process for [`Session::join`](crate::Session::join).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendezvous {
    /// This process's rank.
    pub rank: u32,
    /// The number of ranks of the job.
    pub ranks: usize,
    /// The address at which the coordinator listens.
    pub address: SocketAddr,
    /// The job's secret.
    pub secret: Secret,
}

/// Finds the coordinator of a job. Rank 0 starts the coordinator in a separate process, unless a
/// launcher of this crate provides one. That process executes this program again: its `main` has to
/// call [`serve_if_asked`] first.
///
/// A launcher with a store passes the address and a new secret to the other ranks. With Slurm
/// without PMI, and with torchrun, the coordinator listens at an address that all ranks can derive,
/// and the secret is read from the file that the variable `ONESIDED_SECRET_FILE` names, the same on
/// all hosts; a job of one rank needs no such file.
///
/// For PMIx, open its store first and use [`rendezvous_over`].
pub fn rendezvous(found: &Found, how: &How) -> Result<Rendezvous, RendezvousError> {
    match found {
        Found::Cluster(cluster) => of_cluster(cluster, how),
        Found::Pmi1 { rank, ranks, fd } => rendezvous_over(&mut Pmi1::open(*rank, *ranks, *fd, how.within)?, how),
        Found::Slurm(slurm) => {
            let Slurm { rank, ranks, nodes, .. } = slurm;
            // A list of nodes is never empty.
            at_known_place(*rank, *ranks, nodes.first().map_or("", String::as_str), slurm.port(), how)
        }
        Found::Torchrun { rank, ranks, host, port } => at_known_place(*rank, *ranks, host, *port, how),
        Found::Pmix { .. } => Err(RendezvousError::NoStore { launcher: found.launcher() }),
    }
}

/// Finds the coordinator of a job over a launcher's store: rank 0 starts the coordinator and puts
/// its address and the secret into the store. It uses the key `onesided-coordinator`, and one
/// fence.
pub fn rendezvous_over(store: &mut dyn Bootstrap, how: &How) -> Result<Rendezvous, RendezvousError> {
    let key = "onesided-coordinator";
    let (rank, ranks) = (store.rank(), store.ranks());
    if rank == 0 {
        let secret = Secret::random().map_err(|cause| RendezvousError::System { call: "getrandom", cause })?;
        let listen = SocketAddr::new(listening_address(how.interface.as_ref())?, 0);
        let address = process::start(listen, &secret, &plan(ranks, how), how.within)?;
        store.put(key, format!("{address} {}", secret.to_hex()).as_bytes())?;
        store.fence()?;
        return Ok(Rendezvous { rank, ranks, address, secret });
    }
    store.fence()?;
    let value = store.get(0, key)?;
    let words = std::str::from_utf8(&value).ok().and_then(|text| text.split_once(' '));
    let found = words.and_then(|(address, secret)| Some((address.parse().ok()?, Secret::from_hex(secret).ok()?)));
    let (address, secret) = found.ok_or(RendezvousError::Published { launcher: store.launcher() })?;
    Ok(Rendezvous { rank, ranks, address, secret })
}

fn plan(ranks: usize, how: &How) -> Plan {
    let succession = Succession::AfterAnyEnd;
    Plan { ranks, join_within: how.join_within, lease: how.lease, segment: how.segment.clone(), succession }
}

fn of_cluster(cluster: &Cluster, how: &How) -> Result<Rendezvous, RendezvousError> {
    let limit = 128;
    let line = match cluster.secret {
        SecretAt::Stdin => read_line(stdin(), limit, how.within),
        SecretAt::Fd(fd) => duplicate(fd).and_then(|fd| read_line(fd, limit, how.within)),
    };
    let line = line.map_err(|cause| RendezvousError::System { call: "read the secret", cause })?;
    let (rank, ranks, address) = (cluster.rank, cluster.ranks, cluster.coordinator);
    Ok(Rendezvous { rank, ranks, address, secret: Secret::from_hex(&line)? })
}

fn at_known_place(rank: u32, ranks: usize, host: &str, port: u16, how: &How) -> Result<Rendezvous, RendezvousError> {
    let secret = match env::var_os(SECRET_FILE) {
        Some(path) => Secret::from_file(Path::new(&path))?,
        None if ranks == 1 => Secret::random().map_err(|cause| RendezvousError::System { call: "getrandom", cause })?,
        None => return Err(SecretFileError::Unnamed.into()),
    };
    if rank == 0 {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let listen = if how.interface.is_none() { any } else { listening_address(how.interface.as_ref())? };
        let mut address = process::start(SocketAddr::new(listen, port), &secret, &plan(ranks, how), how.within)?;
        if address.ip().is_unspecified() {
            // Use an address that others can reach too, if there is one: a standby listens on the
            // same interface.
            address.set_ip(listening_address(None)?);
        }
        return Ok(Rendezvous { rank, ranks, address, secret });
    }
    let unknown = |cause| RendezvousError::UnknownHost { host: host.into(), cause };
    let all: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(|cause| unknown(Some(cause)))?.collect();
    // Rank 0 listens at its IPv4 addresses unless configured otherwise.
    let address = all.iter().find(|address| address.is_ipv4()).or(all.first()).ok_or_else(|| unknown(None))?;
    Ok(Rendezvous { rank, ranks, address: *address, secret })
}

/// Returns the address by which other hosts reach this one: that of `interface`, IPv4 if it has
/// one; if no interface is given, the first non-loopback address, or else the loopback address.
///
/// # Errors
/// [`RendezvousError::UnknownInterface`], [`RendezvousError::System`].
pub fn listening_address(interface: Option<&Interface>) -> Result<IpAddr, RendezvousError> {
    let wanted = match interface {
        None => known_interfaces()?.into_iter().filter(|it| !it.address.is_loopback()).collect(),
        Some(interface) => addresses_of(interface)?,
    };
    let of_version_4 = wanted.iter().find(|it| it.address.is_ipv4());
    Ok(of_version_4.or(wanted.first()).map_or(Ipv4Addr::LOCALHOST.into(), |it| it.address))
}

/// Returns the name of an interface of this host.
///
/// # Errors
/// [`RendezvousError::UnknownInterface`], [`RendezvousError::System`].
pub fn interface_name(interface: &Interface) -> Result<String, RendezvousError> {
    Ok(addresses_of(interface)?.swap_remove(0).name)
}

fn known_interfaces() -> Result<Vec<interface::Interface>, RendezvousError> {
    interface::interfaces().map_err(|cause| RendezvousError::System { call: "netlink", cause })
}

/// Returns the addresses of an interface: at least one.
fn addresses_of(interface: &Interface) -> Result<Vec<interface::Interface>, RendezvousError> {
    let all = known_interfaces()?;
    let is_it = |it: &&interface::Interface| match interface {
        Interface::Named(name) => it.name == *name,
        Interface::Address(address) => it.address == *address,
    };
    let found: Vec<_> = all.iter().filter(is_it).cloned().collect();
    if found.is_empty() {
        let wanted = match interface {
            Interface::Named(name) => name.clone(),
            Interface::Address(address) => address.to_string(),
        };
        let known = all.into_iter().map(|it| (it.name, it.address)).collect();
        return Err(RendezvousError::UnknownInterface { wanted, known });
    }
    Ok(found)
}
