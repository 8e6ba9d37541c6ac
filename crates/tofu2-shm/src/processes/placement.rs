//! The CPUs, their distances to each other, and the CPUs that a rank may run on.
//!
//! Read from `/sys/devices/system`; information that the system doesn't report is left out.

use rdma_fabric::FabricError;
use std::{fs, path::Path, str::FromStr};

/// The CPUs that a job's ranks may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Bind {
    /// Ranks run wherever the system places them.
    #[default]
    None,
    /// Each rank runs on one CPU: one after another in [`Placement::order`], starting over if there
    /// are more ranks than CPUs.
    Core,
    /// Each rank runs on the CPUs of one NUMA node: that of the CPU that [`Bind::Core`] would
    /// assign to it.
    Numa,
}

/// The error for a name that is not that of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not one of none, core, numa")]
pub struct UnknownBind;

impl FromStr for Bind {
    type Err = UnknownBind;

    fn from_str(name: &str) -> Result<Self, UnknownBind> {
        match name {
            "none" => Ok(Bind::None),
            "core" => Ok(Bind::Core),
            "numa" => Ok(Bind::Numa),
            _ => Err(UnknownBind),
        }
    }
}

/// A CPU of the system: one hardware thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cpu {
    /// The system's number for the CPU.
    pub number: usize,
    /// The allowed CPUs of the same core, including this one, in order.
    pub siblings: Option<Vec<usize>>,
    /// Its NUMA node.
    pub numa: Option<usize>,
}

/// A cache, and the allowed CPUs that share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Cache {
    /// The level; 1 is closest to the core.
    pub level: usize,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Its size as the system writes it: `512K`.
    pub size: Option<String>,
    /// The allowed CPUs that share the cache; at least one.
    pub cpus: Vec<usize>,
}

/// The CPUs that this thread is allowed to use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// The CPUs in order of their numbers; at least one.
    pub cpus: Vec<Cpu>,
    /// The caches, by level.
    pub caches: Vec<Cache>,
}

impl Placement {
    /// Reads the placement of this machine and thread.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] on systems other than Linux; [`FabricError::System`].
    pub fn of_this_thread() -> Result<Self, FabricError> {
        Ok(Self::read(Path::new("/sys/devices/system"), &affinity::allowed()?))
    }

    fn read(root: &Path, allowed: &[usize]) -> Self {
        let text = |path: &str| fs::read_to_string(root.join(path)).ok();
        let list = |path: &str| {
            let cpus = parse_list(text(path)?.trim())?;
            Some(cpus.into_iter().filter(|cpu| allowed.contains(cpu)).collect::<Vec<_>>())
        };
        let nodes: Vec<(usize, Vec<usize>)> = fs::read_dir(root.join("node"))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_prefix("node")?.parse().ok())
            .filter_map(|node: usize| Some((node, list(&format!("node/node{node}/cpulist"))?)))
            .collect();
        let cpu = |&number: &usize| Cpu {
            number,
            siblings: list(&format!("cpu/cpu{number}/topology/core_cpus_list"))
                .or_else(|| list(&format!("cpu/cpu{number}/topology/thread_siblings_list")))
                .filter(|siblings| siblings.contains(&number)),
            numa: nodes.iter().find(|(_, cpus)| cpus.contains(&number)).map(|&(node, _)| node),
        };
        let cache = |number: usize, index: usize| {
            let field = |name: &str| text(&format!("cpu/cpu{number}/cache/index{index}/{name}"));
            Some(Cache {
                level: field("level")?.trim().parse().ok()?,
                kind: field("type")?.trim().to_owned(),
                size: field("size").map(|size| size.trim().to_owned()),
                cpus: list(&format!("cpu/cpu{number}/cache/index{index}/shared_cpu_list"))
                    .filter(|cpus| !cpus.is_empty())?,
            })
        };
        let of_cpu = |&number: &usize| (0..).map_while(move |index| cache(number, index));
        let mut caches: Vec<Cache> = allowed.iter().flat_map(of_cpu).collect();
        caches.sort_unstable();
        caches.dedup();
        Placement { cpus: allowed.iter().map(cpu).collect(), caches }
    }

    /// Returns the CPUs in the order in which ranks get them: first one of each core, then each
    /// core's second, and so on, with NUMA nodes one after another in each round.
    pub fn order(&self) -> Vec<usize> {
        let mut cpus: Vec<&Cpu> = self.cpus.iter().collect();
        let turn = |cpu: &Cpu| {
            let before = |siblings: &Vec<usize>| siblings.iter().filter(|&&sibling| sibling < cpu.number).count();
            cpu.siblings.as_ref().map_or(0, before)
        };
        cpus.sort_by_key(|cpu| (turn(cpu), cpu.numa, cpu.number));
        cpus.iter().map(|cpu| cpu.number).collect()
    }

    /// Returns the CPUs of each of `ranks` ranks, in rank order; `None` for those that are not
    /// bound.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] for [`Bind::Numa`] if the system doesn't report the node of
    /// every CPU.
    pub fn of_ranks(&self, bind: Bind, ranks: usize) -> Result<Option<Vec<Vec<usize>>>, FabricError> {
        let order = self.order();
        let turns = (0..ranks).filter_map(|rank| order.get(rank % order.len().max(1)).copied());
        match bind {
            Bind::None => Ok(None),
            Bind::Core => Ok(Some(turns.map(|cpu| vec![cpu]).collect())),
            Bind::Numa => {
                let unknown =
                    FabricError::Unsupported { feature: &"binding to NUMA nodes, which the system doesn't tell" };
                let node_of = |number: usize| self.cpus.iter().find(|cpu| cpu.number == number)?.numa;
                let of_node =
                    |node: usize| self.cpus.iter().filter(|cpu| cpu.numa == Some(node)).map(|cpu| cpu.number).collect();
                let bound: Option<Vec<_>> = turns.map(|cpu| node_of(cpu).map(of_node)).collect();
                bound.map(Some).ok_or(unknown)
            }
        }
    }
}

/// Returns the CPUs of each rank of a job that this thread starts; empty if ranks are not bound.
pub(crate) fn of_job(bind: Bind, ranks: usize) -> Result<Vec<Vec<usize>>, FabricError> {
    if bind == Bind::None {
        return Ok(Vec::new());
    }
    Ok(Placement::of_this_thread()?.of_ranks(bind, ranks)?.unwrap_or_default())
}

/// Reads lists of numbers such as `0-3,8`.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        // No system has more CPUs; a damaged list must not exhaust memory.
        if last >= 1 << 20 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Getting and setting the CPUs that the system allows a thread.
pub(crate) mod affinity {
    use rdma_fabric::FabricError;

    #[cfg(target_os = "linux")]
    pub(crate) use linux::{Set, allowed, bind_this_thread, set_of};

    #[cfg(target_os = "linux")]
    mod linux {
        use super::FabricError;
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

        /// A set of CPUs in the system's form.
        pub(crate) type Set = CpuSet;

        fn refused(call: rdma_fabric::error::Literal) -> impl Fn(rustix::io::Errno) -> FabricError {
            move |error| FabricError::System { call, errno: error.raw_os_error() }
        }

        /// Returns the CPUs of this thread, in order.
        pub(crate) fn allowed() -> Result<Vec<usize>, FabricError> {
            let set = sched_getaffinity(None).map_err(refused(&"sched_getaffinity"))?;
            Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
        }

        /// Creates a set of `cpus`, which come from [`allowed`].
        pub(crate) fn set_of(cpus: &[usize]) -> Set {
            let mut set = CpuSet::new();
            cpus.iter().filter(|&&cpu| cpu < CpuSet::MAX_CPU).for_each(|&cpu| set.set(cpu));
            set
        }

        /// Restricts this thread, and the threads and processes that it starts, to `cpus`.
        pub(crate) fn bind_this_thread(cpus: &[usize]) -> Result<(), FabricError> {
            sched_setaffinity(None, &set_of(cpus)).map_err(refused(&"sched_setaffinity"))
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn allowed() -> Result<Vec<usize>, FabricError> {
        Err(FabricError::Unsupported { feature: &"CPU affinity" })
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn bind_this_thread(_: &[usize]) -> Result<(), FabricError> {
        Err(FabricError::Unsupported { feature: &"CPU affinity" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with two nodes of two cores with two threads each, numbered as usual: the second
    /// threads last.
    fn machine(numa: bool) -> Placement {
        let cpu = |number: usize| Cpu {
            number,
            siblings: Some(vec![number % 4, number % 4 + 4]),
            numa: numa.then_some(number % 4 / 2),
        };
        Placement { cpus: (0..8).map(cpu).collect(), caches: Vec::new() }
    }

    #[test]
    fn each_core_has_a_rank_before_any_has_two() {
        let ranks = machine(true).of_ranks(Bind::Core, 10).unwrap().unwrap();
        assert_eq!(ranks.concat(), [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        let mut neighbours = machine(true);
        neighbours
            .cpus
            .iter_mut()
            .for_each(|cpu| cpu.siblings = Some(vec![cpu.number / 2 * 2, cpu.number / 2 * 2 + 1]));
        neighbours.cpus.iter_mut().for_each(|cpu| cpu.numa = Some(cpu.number / 4));
        assert_eq!(neighbours.order(), [0, 2, 4, 6, 1, 3, 5, 7]);
    }

    #[test]
    fn a_node_gets_as_many_ranks_as_it_has_cores() {
        let ranks = machine(true).of_ranks(Bind::Numa, 5).unwrap().unwrap();
        let (first, second) = (vec![0, 1, 4, 5], vec![2, 3, 6, 7]);
        assert_eq!(ranks, [first.clone(), first.clone(), second.clone(), second, first]);
        assert!(matches!(machine(false).of_ranks(Bind::Numa, 1), Err(FabricError::Unsupported { .. })));
        assert_eq!(machine(false).of_ranks(Bind::None, 3), Ok(None));
    }

    #[test]
    fn lists_are_read_and_nonsense_is_not() {
        assert_eq!(parse_list("0-2,8,10-11"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(parse_list(""), Some(vec![]));
        for text in ["a", "1-", "0-99999999999", "-1"] {
            assert_eq!(parse_list(text), None, "{text}");
        }
    }

    #[test]
    fn what_the_system_does_not_tell_is_left_out() {
        let root = std::env::temp_dir().join(format!("onesided-placement-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("node/node1/cpulist", "1-3\n");
        write("node/has_cpu", "1\n");
        write("cpu/cpu1/topology/thread_siblings_list", "1,5\n");
        for cpu in [1, 2] {
            write(&format!("cpu/cpu{cpu}/cache/index0/level"), "3\n");
            write(&format!("cpu/cpu{cpu}/cache/index0/type"), "Unified\n");
            write(&format!("cpu/cpu{cpu}/cache/index0/shared_cpu_list"), "0-7\n");
        }
        let placement = Placement::read(&root, &[1, 2, 4]);
        fs::remove_dir_all(&root).unwrap();
        let cpu = |number, siblings, numa| Cpu { number, siblings, numa };
        assert_eq!(placement.cpus, [cpu(1, Some(vec![1]), Some(1)), cpu(2, None, Some(1)), cpu(4, None, None)]);
        let shared = Cache { level: 3, kind: "Unified".into(), size: None, cpus: vec![1, 2, 4] };
        assert_eq!(placement.caches, [shared]);
    }
}
