//! The RDMA NICs of this machine, as the kernel lists them, and with the feature `ofi` what libfabric
//! offers and why an offer can't be used.

use serde::Serialize;
use std::{fs, path::Path};

/// A NIC. Values that the kernel does not report are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Nic {
    /// The device: the value of `--domain`.
    name: String,
    guid: Option<String>,
    firmware: Option<String>,
    /// The NUMA node.
    numa: Option<i32>,
    ports: Vec<Port>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Port {
    number: String,
    /// Such as `ACTIVE`.
    state: Option<String>,
    /// The speed, as the kernel prints it.
    rate: Option<String>,
    /// `InfiniBand` or `Ethernet`.
    link: Option<String>,
    /// The port's network interfaces, and the longest packets of each in bytes.
    interfaces: Vec<(String, Option<u32>)>,
}

/// What this machine has for jobs on several nodes.
#[derive(Debug, Serialize)]
pub(crate) struct Network {
    nics: Vec<Nic>,
    /// Bytes of memory that a process may pin for NICs; `None` without a limit.
    pin_limit: Option<u64>,
    /// libfabric's offers, in a build with the feature `ofi`.
    #[cfg(feature = "ofi")]
    offers: Vec<fabric_ofi::OfferReport>,
    /// Why libfabric can't be asked.
    #[cfg(feature = "ofi")]
    #[serde(skip_serializing_if = "Option::is_none")]
    libfabric_error: Option<String>,
}

/// Returns the NICs and offers of this machine.
pub(crate) fn network() -> Network {
    #[cfg(feature = "ofi")]
    let (offers, libfabric_error) = match fabric_ofi::reports(&fabric_ofi::Wanted::default().without_atomics()) {
        Ok(offers) => (offers, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Network {
        nics: nics_in(Path::new("/sys/class")),
        pin_limit: pin_limit(),
        #[cfg(feature = "ofi")]
        offers,
        #[cfg(feature = "ofi")]
        libfabric_error,
    }
}

#[cfg(unix)]
fn pin_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Memlock).current
}

#[cfg(not(unix))]
fn pin_limit() -> Option<u64> {
    None
}

/// Returns the NICs in `class`, a tree like `/sys/class`.
fn nics_in(class: &Path) -> Vec<Nic> {
    let nics = names(&class.join("infiniband")).into_iter().map(|name| {
        let device = class.join("infiniband").join(&name);
        let text = |file: &str| text_of(&device.join(file));
        let numa = text("device/numa_node").and_then(|text| text.parse().ok());
        let ports = names(&device.join("ports")).into_iter().map(|number| port(class, &device, number)).collect();
        Nic { guid: text("node_guid"), firmware: text("fw_ver"), numa, ports, name }
    });
    nics.collect()
}

fn port(class: &Path, device: &Path, number: String) -> Port {
    let folder = device.join("ports").join(&number);
    // `4: ACTIVE`
    let state = text_of(&folder.join("state")).map(|text| text.rsplit(": ").next().unwrap_or(&text).to_owned());
    // Each entry of the table of addresses has the name of its interface; unused ones can't be read.
    let table = folder.join("gid_attrs/ndevs");
    let mut interfaces: Vec<String> = names(&table).iter().filter_map(|entry| text_of(&table.join(entry))).collect();
    interfaces.extend(names(&device.join("device/net")));
    interfaces.sort();
    interfaces.dedup();
    let mtu = |name: &String| text_of(&class.join("net").join(name).join("mtu")).and_then(|text| text.parse().ok());
    let interfaces = interfaces.into_iter().map(|name| (name.clone(), mtu(&name))).collect();
    Port { state, rate: text_of(&folder.join("rate")), link: text_of(&folder.join("link_layer")), interfaces, number }
}

/// Returns the names in a folder, sorted; none if it is not there.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn text_of(file: &Path) -> Option<String> {
    fs::read_to_string(file).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl Network {
    /// Returns a name and a value for each line of the readable form.
    pub(crate) fn lines(&self) -> Vec<(String, String)> {
        let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
        let mut lines = Vec::new();
        if self.nics.is_empty() {
            lines.push(("RDMA NICs".to_owned(), "none in /sys/class/infiniband".to_owned()));
        }
        for nic in &self.nics {
            let numa = nic.numa.filter(|node| *node >= 0).map_or(String::new(), |node| format!(", NUMA node {node}"));
            let value = format!("GUID {}, firmware {}{numa}", or_unknown(&nic.guid), or_unknown(&nic.firmware));
            lines.push((nic.name.clone(), value));
            for port in &nic.ports {
                let mtu = |bytes: Option<u32>| bytes.map_or(String::new(), |bytes| format!(" (MTU {bytes})"));
                let interfaces: Vec<String> =
                    port.interfaces.iter().map(|(name, bytes)| format!("{name}{}", mtu(*bytes))).collect();
                let of = if interfaces.is_empty() { String::new() } else { format!(", {}", interfaces.join(", ")) };
                let [state, rate, link] = [&port.state, &port.rate, &port.link].map(or_unknown);
                lines.push((format!("  port {}", port.number), format!("{state}, {link}, {rate}{of}")));
            }
        }
        let limit = self.pin_limit.map_or("no limit".to_owned(), |bytes| format!("{bytes} B (ulimit -l)"));
        lines.push(("memory that may be pinned".to_owned(), limit));
        self.add_offers(&mut lines);
        lines
    }

    #[cfg(feature = "ofi")]
    fn add_offers(&self, lines: &mut Vec<(String, String)>) {
        lines.extend(self.libfabric_error.iter().map(|error| ("libfabric".to_owned(), error.clone())));
        lines.extend(self.offers.iter().map(|offer| {
            let verdict = match &offer.reason {
                None => "usable".to_owned(),
                Some(reason) => format!("can't be used: {reason}"),
            };
            (offer.provider.clone(), format!("on {}: {verdict}", offer.domain))
        }));
    }

    #[cfg(not(feature = "ofi"))]
    #[allow(clippy::unused_self)]
    fn add_offers(&self, lines: &mut Vec<(String, String)>) {
        lines.push(("libfabric".to_owned(), "not asked: built without the feature `ofi`".to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nics_are_read_with_their_ports_and_interfaces() {
        let class = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = class.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("infiniband/rxe0/node_guid", "5054:00ff:fe88:0000\n");
        write("infiniband/rxe0/ports/1/state", "4: ACTIVE\n");
        write("infiniband/rxe0/ports/1/rate", "2.5 Gb/sec (1X SDR)\n");
        write("infiniband/rxe0/ports/1/link_layer", "Ethernet\n");
        write("infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0\n");
        write("infiniband/rxe0/ports/1/gid_attrs/ndevs/1", "eth0\n");
        write("net/eth0/mtu", "9000\n");
        let network = Network {
            nics: nics_in(class.path()),
            pin_limit: Some(65536),
            #[cfg(feature = "ofi")]
            offers: Vec::new(),
            #[cfg(feature = "ofi")]
            libfabric_error: None,
        };
        let lines: Vec<String> = network.lines().into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(lines[0], "rxe0: GUID 5054:00ff:fe88:0000, firmware unknown");
        assert_eq!(lines[1], "  port 1: ACTIVE, Ethernet, 2.5 Gb/sec (1X SDR), eth0 (MTU 9000)");
        assert_eq!(lines[2], "memory that may be pinned: 65536 B (ulimit -l)");
        assert_eq!(nics_in(Path::new("/nowhere")), []);
    }
}
