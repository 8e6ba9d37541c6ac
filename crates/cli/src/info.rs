//! `onesided info`.

use crate::{
    arguments::Info,
    nics::{Network, network},
    placement,
};
use rdma_fabric::{Atomics, Caps, Existing, Fabric, Multicasts, ProgramResult, PutOrder};
use repro::platforms;
use serde::Serialize;
use std::{error::Error, fmt::Write as _, process::ExitCode};
use tofu2_sim::shm::Threads;

/// Returns the fabric's capabilities.
async fn caps_of(fabric: Fabric) -> ProgramResult<Caps> {
    Ok(fabric.caps())
}

#[derive(Debug, Serialize)]
struct MachineReport {
    machine: Machine,
    /// Missing where the system does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<placement::PlacementReport>,
    network: Network,
    shared_memory: SharedMemory,
    platforms: Vec<Platform>,
}

/// This machine. Values that the system does not report are `None`.
#[derive(Debug, Serialize)]
struct Machine {
    cores: Option<usize>,
    page_bytes: Option<usize>,
    cache_line_bytes: Option<usize>,
    kernel: Option<String>,
    architecture: &'static str,
}

/// The guarantees of the shared-memory provider on this machine.
#[derive(Debug, Serialize)]
struct SharedMemory {
    put_ordered_before_atomics: &'static str,
    puts_in_order: bool,
    third_party_copy: bool,
    multicasts: &'static str,
    coherent_atomics: bool,
    atomics: &'static str,
    notice_bits: u32,
    session_queues: bool,
    strong_progress: bool,
    /// Between threads.
    register_existing: &'static str,
    /// Between processes, as determined by a probe on this machine.
    register_existing_of_processes: &'static str,
    blocking_wait: bool,
    max_transfer_bytes: u64,
}

#[derive(Debug, Serialize)]
struct Platform {
    name: String,
    constants: Vec<Constant>,
}

#[derive(Debug, Serialize)]
struct Constant {
    name: &'static str,
    /// The table's integer.
    value: u64,
    /// Its unit, as printed in the table.
    unit: String,
    /// The value with a unit, for human readers.
    readable: String,
    set_by: Vec<&'static str>,
    source: String,
}

/// Prints a description of this machine and the modelled ones.
pub(crate) fn info(options: &Info) -> Result<ExitCode, Box<dyn Error>> {
    let placement = placement::report(options.ranks.map(usize::from));
    let report = MachineReport {
        machine: machine(),
        placement,
        network: network(),
        shared_memory: shared_memory()?,
        platforms: modelled(),
    };
    let text = if options.json { serde_json::to_string_pretty(&report)? + "\n" } else { readable(&report)? };
    observe::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn machine() -> Machine {
    let line = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size");
    let (page_bytes, kernel) = system();
    Machine {
        cores: std::thread::available_parallelism().map(usize::from).ok(),
        page_bytes,
        cache_line_bytes: line.ok().and_then(|text| text.trim().parse().ok()),
        kernel,
        architecture: std::env::consts::ARCH,
    }
}

/// Returns the bytes of a page, and the kernel's name and release.
#[cfg(unix)]
fn system() -> (Option<usize>, Option<String>) {
    let system = rustix::system::uname();
    let kernel = format!("{} {}", system.sysname().to_string_lossy(), system.release().to_string_lossy());
    (Some(rustix::param::page_size()), Some(kernel))
}

/// Returns nothing: other systems do not report this.
#[cfg(not(unix))]
fn system() -> (Option<usize>, Option<String>) {
    (None, None)
}

fn shared_memory() -> Result<SharedMemory, Box<dyn Error>> {
    let caps = Threads::new(1).run(&caps_of)?.pop().ok_or("the job of one rank had no result")?;
    Ok(SharedMemory {
        put_ordered_before_atomics: match caps.put_order {
            PutOrder::None => "no",
            PutOrder::SameTarget => "same target",
            PutOrder::AllTargets => "all targets",
        },
        puts_in_order: caps.puts_in_order,
        third_party_copy: caps.third_party_copy,
        multicasts: match caps.multicasts {
            Multicasts::None => "no",
            Multicasts::Software => "by software",
            Multicasts::Hardware => "in hardware",
        },
        coherent_atomics: caps.coherent_atomics,
        atomics: match caps.atomics {
            Atomics::None => "none",
            Atomics::Software => "by software",
            Atomics::Hardware => "in hardware",
        },
        notice_bits: caps.notice_bits,
        session_queues: caps.session_queues,
        strong_progress: caps.strong_progress,
        register_existing: way(caps.register_existing),
        register_existing_of_processes: way(tofu2_sim::shm::existing_of_processes()),
        blocking_wait: caps.blocking_wait,
        max_transfer_bytes: caps.max_transfer,
    })
}

fn way(existing: Existing) -> &'static str {
    match existing {
        Existing::None => "no",
        Existing::Staged => "staged",
        Existing::CrossCopy => "cross-memory copy",
        Existing::Direct => "direct",
    }
}

fn modelled() -> Vec<Platform> {
    let constants = |platform: &tofu2_sim::virt::Platform| {
        let one = |constant: &tofu2_sim::virt::Constant| Constant {
            name: constant.name,
            value: constant.value,
            unit: format!("{:?}", constant.unit),
            readable: platforms::readable(constant),
            set_by: constant.from.to_vec(),
            source: constant.note.to_string(),
        };
        platform.constants().iter().map(one).collect()
    };
    platforms::all().iter().map(|p| Platform { name: p.name().to_owned(), constants: constants(p) }).collect()
}

fn readable(report: &MachineReport) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let known = |number: Option<usize>| number.map_or("unknown".into(), |n| n.to_string());
    let bytes = |number: Option<usize>| number.map_or("unknown".into(), |n| format!("{n} B"));
    let yes = |is: bool| if is { "yes" } else { "no" };
    let machine = &report.machine;
    let shm = &report.shared_memory;
    let mut section = |title: &str, lines: &[(&str, String)]| -> std::fmt::Result {
        writeln!(text, "{title}")?;
        for (name, value) in lines {
            writeln!(text, "  {name:<28}{value}")?;
        }
        writeln!(text)
    };
    section(
        "This machine",
        &[
            ("cores", known(machine.cores)),
            ("page", bytes(machine.page_bytes)),
            ("cache line", bytes(machine.cache_line_bytes)),
            ("kernel", format!("{}, {}", machine.kernel.as_deref().unwrap_or("unknown"), machine.architecture)),
        ],
    )?;
    let placement = report.placement.as_ref().map(|placement| ("Placement", placement.lines()));
    for (title, lines) in placement.into_iter().chain([("Network", report.network.lines())]) {
        section(title, &lines.iter().map(|(name, value)| (name.as_str(), value.clone())).collect::<Vec<_>>())?;
    }
    section(
        "Shared-memory provider",
        &[
            ("puts ordered before atomics", shm.put_ordered_before_atomics.into()),
            ("puts in the order posted", yes(shm.puts_in_order).into()),
            ("third-party copies", yes(shm.third_party_copy).into()),
            ("multicasts", shm.multicasts.into()),
            ("coherent atomics", yes(shm.coherent_atomics).into()),
            ("notice data", format!("{} bit", shm.notice_bits)),
            ("session queues", yes(shm.session_queues).into()),
            ("strong progress", yes(shm.strong_progress).into()),
            ("existing memory, threads", shm.register_existing.into()),
            ("existing memory, processes", shm.register_existing_of_processes.into()),
            ("blocking wait", yes(shm.blocking_wait).into()),
            (
                "longest transfer",
                match shm.max_transfer_bytes {
                    u64::MAX => "no limit".to_owned(),
                    bytes => format!("{bytes} B"),
                },
            ),
        ],
    )?;
    for platform in &report.platforms {
        writeln!(text, "Modelled: {}", platform.name)?;
        for constant in &platform.constants {
            let figures =
                if constant.set_by.is_empty() { String::new() } else { format!("{}: ", constant.set_by.join(", ")) };
            writeln!(text, "  {:<28}{:>16}  {figures}{}", constant.name, constant.readable, constant.source)?;
        }
        writeln!(text)?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_machine_has_pages_and_a_kernel() {
        let machine = machine();
        assert!(machine.page_bytes.is_some_and(|bytes| bytes.is_power_of_two() && bytes >= 4096));
        assert!(machine.kernel.is_some_and(|kernel| kernel.len() > 3));
    }

    #[test]
    fn both_forms_name_every_constant_and_capability() {
        let shared_memory = shared_memory().expect("threads can be ranks");
        let report = MachineReport {
            machine: machine(),
            placement: placement::report(None),
            network: network(),
            shared_memory,
            platforms: modelled(),
        };
        let (text, json) = (readable(&report).expect("text"), serde_json::to_string(&report).expect("plain data"));
        for constant in report.platforms.iter().flat_map(|platform| &platform.constants) {
            assert!(text.contains(constant.name) && json.contains(constant.name), "{}", constant.name);
        }
        assert!(json.contains("\"coherent_atomics\":") && text.contains("coherent atomics"));
    }
}
