//! The CPUs of this machine and the placement of ranks by `run --bind`: a part of `onesided info`.

use serde::Serialize;
use tofu2_sim::shm::{Bind, Placement};

/// The CPUs of this machine and the CPUs to which ranks would be bound. Values that the system does
/// not report are left out.
#[derive(Debug, Serialize)]
pub(crate) struct PlacementReport {
    cpus: Vec<Cpu>,
    caches: Vec<Cache>,
    /// The number of ranks assumed in the lists below.
    ranks: usize,
    /// One CPU per rank.
    bind_core: Vec<usize>,
    /// CPUs per rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    bind_numa: Option<Vec<Vec<usize>>>,
}

#[derive(Debug, Serialize)]
struct Cpu {
    number: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    siblings: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    numa: Option<usize>,
}

#[derive(Debug, Serialize)]
struct Cache {
    level: usize,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
    cpus: Vec<usize>,
}

/// Returns the placement of `ranks` ranks, by default as many as there are CPUs; `None` if the
/// system does not report which CPUs this process may use.
pub(crate) fn report(ranks: Option<usize>) -> Option<PlacementReport> {
    Placement::of_this_thread().ok().map(|placement| PlacementReport::of(&placement, ranks))
}

impl PlacementReport {
    fn of(placement: &Placement, ranks: Option<usize>) -> Self {
        let ranks = ranks.unwrap_or(placement.cpus.len());
        let bound = |bind| placement.of_ranks(bind, ranks).ok().flatten();
        let cpu =
            |cpu: &tofu2_sim::shm::Cpu| Cpu { number: cpu.number, siblings: cpu.siblings.clone(), numa: cpu.numa };
        let cache = |cache: &tofu2_sim::shm::Cache| Cache {
            level: cache.level,
            kind: cache.kind.clone(),
            size: cache.size.clone(),
            cpus: cache.cpus.clone(),
        };
        PlacementReport {
            cpus: placement.cpus.iter().map(cpu).collect(),
            caches: placement.caches.iter().map(cache).collect(),
            ranks,
            bind_core: bound(Bind::Core).unwrap_or_default().concat(),
            bind_numa: bound(Bind::Numa),
        }
    }

    /// Returns names and values, for human readers.
    pub(crate) fn lines(&self) -> Vec<(String, String)> {
        let numbers = || self.cpus.iter().map(|cpu| cpu.number).collect::<Vec<_>>();
        let mut lines = vec![("CPUs allowed".to_owned(), list(&numbers()))];
        let mut cores: Vec<&Vec<usize>> = self.cpus.iter().filter_map(|cpu| cpu.siblings.as_ref()).collect();
        cores.sort();
        cores.dedup();
        if !cores.is_empty() {
            lines.push(("cores".into(), sets(cores.iter().map(|core| core.as_slice()))));
        }
        let mut nodes: Vec<usize> = self.cpus.iter().filter_map(|cpu| cpu.numa).collect();
        nodes.sort_unstable();
        nodes.dedup();
        for node in nodes {
            let cpus = self.cpus.iter().filter(|cpu| cpu.numa == Some(node)).map(|cpu| cpu.number);
            lines.push((format!("NUMA node {node}"), list(&cpus.collect::<Vec<_>>())));
        }
        let mut kinds: Vec<(usize, &str)> =
            self.caches.iter().map(|cache| (cache.level, cache.kind.as_str())).collect();
        kinds.dedup();
        for (level, kind) in kinds {
            let of_kind = || self.caches.iter().filter(|cache| (cache.level, cache.kind.as_str()) == (level, kind));
            let size =
                of_kind().find_map(|cache| cache.size.as_deref()).map_or(String::new(), |size| format!("{size}: "));
            let value = format!("{size}{}", sets(of_kind().map(|cache| cache.cpus.as_slice())));
            lines.push((format!("L{level} {}", kind.to_lowercase()), value));
        }
        let ranks: Vec<String> = self.bind_core.iter().map(usize::to_string).collect();
        lines.push((format!("--bind core, {} ranks", self.ranks), shortened(&ranks)));
        let numa = match &self.bind_numa {
            Some(ranks) => shortened(&ranks.iter().map(|cpus| list(cpus)).collect::<Vec<_>>()),
            None => "refused: the system does not tell the NUMA nodes".into(),
        };
        lines.push((format!("--bind numa, {} ranks", self.ranks), numa));
        lines
    }
}

/// Writes a list of CPUs as `0-3,8`.
fn list(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

fn sets<'a>(sets: impl Iterator<Item = &'a [usize]>) -> String {
    shortened(&sets.map(list).collect::<Vec<_>>())
}

/// Writes the first items of a long list, and the number of the remaining ones.
fn shortened(items: &[String]) -> String {
    const SHOWN: usize = 16;
    let shown = items.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(" | ");
    if items.len() > SHOWN { format!("{shown} | … {} more", items.len() - SHOWN) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_short() {
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(list(&[]), "");
        assert_eq!(sets([&[0usize, 4][..], &[1, 2]].into_iter()), "0,4 | 1-2");
        let many: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        assert!(shortened(&many).ends_with("| 15 | … 4 more"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn every_rank_has_a_place() {
        let report = report(Some(5)).expect("Linux tells");
        assert_eq!((report.ranks, report.bind_core.len()), (5, 5));
        let lines = report.lines();
        assert!(lines.iter().any(|(name, value)| name == "--bind core, 5 ranks" && value.matches('|').count() == 4));
    }
}
