//! The network interface of a host that is nearest to a process: one of the process's own NUMA node
//! is cheaper to access than one of another node.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Returns the index of the interface (`eth0`, `mlx5_0`) that is nearest to these CPUs according to
/// `sys`, a tree like `/sys`: the first of those at the same distance, and the first one if `sys`
/// has no information.
pub(crate) fn nearest(interfaces: &[&str], sys: &Path, cpus: &BTreeSet<usize>) -> usize {
    let Some(own) = node_of(sys, cpus) else { return 0 };
    let distances = distances(sys, own);
    let far = |interface: &&str| {
        let node = node_of_interface(sys, interface)?;
        distances.get(node).copied()
    };
    // Interfaces without a node, such as `lo`, follow those with a node.
    let all = interfaces.iter().enumerate();
    all.min_by_key(|(_, interface)| far(interface).unwrap_or(usize::MAX)).map_or(0, |(index, _)| index)
}

/// Returns the CPUs that this thread may use.
pub(crate) fn own_cpus() -> BTreeSet<usize> {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.map(|list| cpus_of(list.trim())).unwrap_or_default()
}

/// Reads a list of CPUs such as `0-3,8`.
fn cpus_of(list: &str) -> BTreeSet<usize> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = first.parse::<usize>().ok().zip(last.parse::<usize>().ok());
        range.filter(|(_, last)| *last < 1 << 20).map(|(first, last)| first..=last)
    };
    list.split(',').filter_map(part).flatten().collect()
}

/// Returns the node that has most of these CPUs, if there are several nodes.
fn node_of(sys: &Path, cpus: &BTreeSet<usize>) -> Option<usize> {
    let nodes = fs::read_dir(sys.join("devices/system/node")).ok()?;
    let number = |name: &str| name.strip_prefix("node")?.parse::<usize>().ok();
    let mut nodes: Vec<(usize, PathBuf)> =
        nodes.flatten().filter_map(|node| Some((number(node.file_name().to_str()?)?, node.path()))).collect();
    nodes.sort();
    let shared = |path: &Path| {
        let list = fs::read_to_string(path.join("cpulist")).unwrap_or_default();
        cpus_of(list.trim()).intersection(cpus).count()
    };
    let most = nodes.iter().map(|(node, path)| (shared(path), core::cmp::Reverse(*node))).max()?;
    (nodes.len() > 1 && most.0 > 0).then_some(most.1.0)
}

/// Returns the distance of each node from this one.
fn distances(sys: &Path, node: usize) -> Vec<usize> {
    let path = sys.join(format!("devices/system/node/node{node}/distance"));
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().map(|number| number.parse().unwrap_or(usize::MAX)).collect()
}

/// Returns the device of a domain of libfabric, whose name may have a suffix: `mlx5_0-rdm`.
pub(crate) fn device_of(domain: &str) -> &str {
    domain.split('-').next().unwrap_or(domain)
}

/// Returns the node of an interface, if it has one.
fn node_of_interface(sys: &Path, interface: &str) -> Option<usize> {
    let name = device_of(interface);
    let known = |class: &str| fs::read_to_string(sys.join(format!("class/{class}/{name}/device/numa_node"))).ok();
    known("infiniband").or_else(|| known("net"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A test tree of two nodes, with an interface at each and one without a node.
    struct Sys(PathBuf);

    impl Sys {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("onesided-sys-{}-{name}", std::process::id()));
            let files = [
                ("devices/system/node/node0/cpulist", "0-3,8\n"),
                ("devices/system/node/node1/cpulist", "4-7\n"),
                ("devices/system/node/node0/distance", "10 21\n"),
                ("devices/system/node/node1/distance", "21 10\n"),
                ("class/net/eth0/device/numa_node", "0\n"),
                ("class/infiniband/mlx5_0/device/numa_node", "1\n"),
                ("class/net/dummy/device/numa_node", "-1\n"),
            ];
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Sys(root)
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_interface_of_the_own_node_is_nearest() {
        let sys = Sys::new("own");
        let all = ["lo", "dummy", "eth0", "mlx5_0-rdm"];
        let of = |cpus: &[usize]| all[nearest(&all, &sys.0, &cpus.iter().copied().collect())];
        assert_eq!((of(&[0, 1]), of(&[5]), of(&[8, 4, 0])), ("eth0", "mlx5_0-rdm", "eth0"));
    }

    #[test]
    fn the_first_is_taken_where_nothing_is_known() {
        let sys = Sys::new("nothing");
        assert_eq!(nearest(&["b", "a"], &sys.0, &BTreeSet::from([1])), 0);
        assert_eq!(nearest(&["mlx5_0", "eth0"], &sys.0, &BTreeSet::new()), 0);
        assert_eq!(nearest(&["mlx5_0", "eth0"], Path::new("/nowhere"), &BTreeSet::from([1])), 0);
        assert_eq!(nearest(&[], &sys.0, &BTreeSet::from([1])), 0);
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus_of("0-2,5"), BTreeSet::from([0, 1, 2, 5]));
        assert!(cpus_of("").is_empty() && cpus_of("x-3,-,9999999999").is_empty());
        assert!(!own_cpus().is_empty());
    }
}
