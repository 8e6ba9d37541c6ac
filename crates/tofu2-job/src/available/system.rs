//! The resources left according to the files of `/proc` and the resource limits of this process.

use super::{
    Left,
    control_groups::{self, Controller},
};
use rustix::process::{Resource, geteuid, getrlimit};
use std::{fs, path::Path};

/// The sources of the numbers.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// The directory that contains `proc`, and the mount points listed in `proc/self/mountinfo`.
    root: &'a Path,
    /// Returns the soft limit of a resource, if it has one.
    limit: fn(Resource) -> Option<u64>,
    /// Whether the number of this user's processes has no limit.
    is_privileged: fn() -> bool,
}

/// User space of a 64-bit process: that of x86-64 without five-level page tables.
const ADDRESS_SPACE: u64 = 1 << 47;

impl System<'_> {
    /// Returns the system on which this process runs.
    pub fn here() -> System<'static> {
        System {
            root: Path::new("/"),
            limit: |resource| getrlimit(resource).current,
            is_privileged: || geteuid().is_root(),
        }
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.root.join(file)).ok()
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.trim().parse().ok()
    }

    /// Returns the number of bytes of memory left.
    pub fn memory(&self) -> Left {
        let swap = self.text("proc/meminfo").and_then(|text| kilobytes(&text, "SwapFree")).unwrap_or(0);
        let of_groups = control_groups::left(self.root, Controller::Memory { swap });
        least(of_groups, self.memory_of_machine())
    }

    fn memory_of_machine(&self) -> Left {
        let text = self.text("proc/meminfo").unwrap_or_default();
        let known = kilobytes(&text, "MemAvailable").zip(kilobytes(&text, "MemTotal"));
        let Some((available, total)) = known else {
            let info = rustix::system::sysinfo();
            let unit = u64::from(info.mem_unit.max(1));
            let free = (info.freeram as u64 + info.bufferram as u64).saturating_mul(unit);
            return Left { amount: free, limit: "sysinfo(2)".into() };
        };
        let swap = kilobytes(&text, "SwapFree").unwrap_or(0);
        let amount = available.saturating_add(swap).saturating_sub(spare(total));
        Left { amount, limit: "MemAvailable in /proc/meminfo".into() }
    }

    /// Returns the number of bytes of memory left that this process can map and touch by itself.
    pub fn private_memory(&self) -> Left {
        let data = self.under_limit(Resource::Data, "RLIMIT_DATA", "VmData");
        least([self.address_space()].into_iter().chain(data), self.memory())
    }

    /// Returns the number of bytes that this process can still map.
    pub fn address_space(&self) -> Left {
        let used = self.of_this_process("VmSize").unwrap_or(0);
        let whole = Left { amount: ADDRESS_SPACE.saturating_sub(used), limit: "the address space of a process".into() };
        least(self.under_limit(Resource::As, "RLIMIT_AS", "VmSize"), whole)
    }

    /// Returns the amount that a limit of this process leaves available: the whole limit if the
    /// current use is unknown.
    fn under_limit(&self, resource: Resource, name: &'static str, used: &str) -> Option<Left> {
        let most = (self.limit)(resource)?;
        Some(Left { amount: most.saturating_sub(self.of_this_process(used).unwrap_or(0)), limit: name.into() })
    }

    fn of_this_process(&self, name: &str) -> Option<u64> {
        kilobytes(&self.text("proc/self/status")?, name)
    }

    /// Returns the maximum length of a file, if it is limited.
    pub fn file_size(&self) -> Option<Left> {
        Some(Left { amount: (self.limit)(Resource::Fsize)?, limit: "RLIMIT_FSIZE".into() })
    }

    /// Returns the number of descriptors that this process can still open, if it is limited.
    pub fn descriptors(&self) -> Option<Left> {
        let most = (self.limit)(Resource::Nofile)?;
        // The directory itself is among the open ones while it is read.
        let open = fs::read_dir(self.root.join("proc/self/fd")).map_or(0, |open| open.count().saturating_sub(1));
        Some(Left { amount: most.saturating_sub(open as u64), limit: "RLIMIT_NOFILE".into() })
    }

    /// Returns the number of processes, or threads, that can still be started, if it is limited.
    pub fn processes(&self) -> Option<Left> {
        // "0.20 0.18 0.12 1/80 11206": of 80 processes and threads one is running.
        let all = self
            .text("proc/loadavg")
            .and_then(|text| text.split_whitespace().nth(3)?.split_once('/')?.1.parse::<u64>().ok());
        let of_kernel = |file: &str, limit: &'static str| {
            let amount = self.number(file)?.saturating_sub(all.unwrap_or(0));
            Some(Left { amount, limit: limit.into() })
        };
        // The number of the user's processes is not known, so this is an upper bound.
        let of_user = if (self.is_privileged)() { None } else { (self.limit)(Resource::Nproc) };
        control_groups::left(self.root, Controller::Pids)
            .into_iter()
            .chain(of_kernel("proc/sys/kernel/pid_max", "kernel.pid_max"))
            .chain(of_kernel("proc/sys/kernel/threads-max", "kernel.threads-max"))
            .chain(of_user.map(|amount| Left { amount, limit: "RLIMIT_NPROC".into() }))
            .min_by_key(|left| left.amount)
    }

    /// Returns the maximum number of mappings of a process, if the system reports it.
    pub fn mappings(&self) -> Option<Left> {
        Some(Left { amount: self.number("proc/sys/vm/max_map_count")?, limit: "vm.max_map_count".into() })
    }
}

/// Returns the part of `whole` bytes that is kept free for memory that is not counted: page tables,
/// stacks, the system's own structures, and memory that other processes allocate in the meantime.
pub(super) fn spare(whole: u64) -> u64 {
    (whole / 16).min(64 << 20)
}

fn least(of: impl IntoIterator<Item = Left>, first: Left) -> Left {
    of.into_iter().fold(first, |least, next| if next.amount < least.amount { next } else { least })
}

/// Returns the number after `name` in a file of lines like `MemFree:  123 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_some_memory_and_not_all() {
        let left = System::here().memory();
        assert!(left.amount > 1 << 20 && left.amount < 1 << 50, "{left:?}");
        assert!(System::here().processes().is_some_and(|left| left.amount > 0));
        assert!(System::here().mappings().is_some());
        assert!(System::here().address_space().amount <= ADDRESS_SPACE);
        assert_eq!(kilobytes("MemTotal: 7 kB\nMemFree:      12 kB\n", "MemFree"), Some(12 << 10));
        for text in ["MemFreed: 1 kB", "MemFree: x kB", "MemFree:", "MemFree: 99999999999999999999 kB"] {
            assert_eq!(kilobytes(text, "MemFree"), None, "{text}");
        }
    }

    /// A directory in place of `/`.
    struct Root(tempfile::TempDir);

    impl Root {
        fn new(files: &[(&str, &str)]) -> Self {
            let root = tempfile::tempdir().unwrap();
            for (file, text) in files {
                let path = root.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Root(root)
        }

        fn system(&self) -> System<'_> {
            System { root: self.0.path(), limit: |_| None, is_privileged: || true }
        }
    }

    const MEMINFO: &str = "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 4194304 kB\nSwapFree: 1024 kB\n";
    const GIB: u64 = 1 << 30;
    const MIB: u64 = 1 << 20;

    #[test]
    fn the_smallest_limit_counts_and_is_named() {
        let v2 = "30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n";
        // Version 1, in a container that sees its own group as the root of the hierarchy.
        let v1 = "31 23 0:27 /docker/1 /cg1 rw - cgroup cgroup rw,memory\n";
        let of_machine = (4 * GIB + MIB - 64 * MIB, "MemAvailable in /proc/meminfo");
        for (files, (amount, limit)) in [
            (vec![], of_machine),
            // A group without limits, and an outer one with one: 1 GiB, of which half is in use, but
            // 100 MiB of that are pages of files.
            (
                vec![
                    ("proc/self/cgroup", "0::/outer/inner\n"),
                    ("proc/self/mountinfo", v2),
                    ("cg/outer/inner/memory.max", "max\n"),
                    ("cg/outer/inner/memory.current", "1000\n"),
                    ("cg/outer/memory.max", "1073741824\n"),
                    ("cg/outer/memory.current", "536870912\n"),
                    ("cg/outer/memory.stat", "anon 7\ninactive_file 73400320\nactive_file 31457280\n"),
                    ("cg/outer/memory.swap.max", "0\n"),
                ],
                (612 * MIB - 64 * MIB, "memory.max of the control group /outer"),
            ),
            // The same with swap, of which the machine has less than the group may use.
            (
                vec![
                    ("proc/self/cgroup", "0::/one\n"),
                    ("proc/self/mountinfo", v2),
                    ("cg/one/memory.max", "268435456"),
                    ("cg/one/memory.current", "0"),
                    ("cg/one/memory.swap.max", "max"),
                ],
                (256 * MIB - 16 * MIB + MIB, "memory.max of the control group /one"),
            ),
            (
                vec![
                    ("proc/self/cgroup", "4:memory:/docker/1/job\n3:cpu:/\n"),
                    ("proc/self/mountinfo", v1),
                    ("cg1/job/memory.limit_in_bytes", "9223372036854771712"),
                    ("cg1/job/memory.usage_in_bytes", "5"),
                    ("cg1/memory.limit_in_bytes", "268435456"),
                    ("cg1/memory.usage_in_bytes", "1048576"),
                    ("cg1/memory.stat", "inactive_file 5\ntotal_inactive_file 1048576\n"),
                    ("cg1/memory.memsw.limit_in_bytes", "268435456"),
                    ("cg1/memory.memsw.usage_in_bytes", "1048576"),
                ],
                (256 * MIB - 16 * MIB, "memory.limit_in_bytes of the control group /docker/1"),
            ),
            // A group outside the mounted part: the outermost visible group counts.
            (
                vec![
                    ("proc/self/cgroup", "4:memory:/elsewhere\n"),
                    ("proc/self/mountinfo", v1),
                    ("cg1/memory.limit_in_bytes", "16777216"),
                    ("cg1/memory.usage_in_bytes", "16777216"),
                ],
                (MIB, "memory.limit_in_bytes of the control group /docker/1"),
            ),
            // No such hierarchy.
            (vec![("proc/self/cgroup", "4:memory:/a\n"), ("proc/self/mountinfo", "nonsense\n")], of_machine),
            // If a value can't be read, nothing counts as available.
            (
                vec![
                    ("proc/self/cgroup", "0::/one\n"),
                    ("proc/self/mountinfo", v2),
                    ("cg/one/memory.max", "12 monkeys"),
                    ("cg/one/memory.current", "0"),
                ],
                (0, "memory.max of the control group /one, which can't be read"),
            ),
        ] {
            let root = Root::new(&[&files[..], &[("proc/meminfo", MEMINFO)]].concat());
            assert_eq!(root.system().memory(), Left { amount, limit: limit.into() }, "{files:?}");
        }
        // Without `/proc`.
        assert_eq!(Root::new(&[]).system().memory().limit, "sysinfo(2)");
    }

    #[test]
    fn limits_of_the_process_count_too() {
        let status = ("proc/self/status", "VmSize:\t 1024 kB\nVmData: 512 kB\n");
        let root = Root::new(&[("proc/meminfo", MEMINFO), status]);
        let mut system = root.system();
        assert_eq!(system.address_space().amount, ADDRESS_SPACE - MIB);
        system.limit = |resource| match resource {
            Resource::As => Some(16 << 20),
            Resource::Data => Some(8 << 20),
            _ => None,
        };
        assert_eq!(system.address_space(), Left { amount: 15 * MIB, limit: "RLIMIT_AS".into() });
        let data = Left { amount: 8 * MIB - MIB / 2, limit: "RLIMIT_DATA".into() };
        assert_eq!(system.private_memory(), data);
    }

    #[test]
    fn processes_are_limited_by_many() {
        let groups = [
            ("proc/self/cgroup", "8:pids:/a\n0::/\n"),
            ("proc/self/mountinfo", "40 31 0:37 / /my\\040pids rw shared:1 - cgroup cgroup rw,pids\n"),
            ("proc/loadavg", "0.20 0.18 0.12 1/80 11206\n"),
            ("my pids/a/pids.max", "max\n"),
            ("my pids/a/pids.current", "3\n"),
        ];
        let root = Root::new(&groups);
        assert_eq!(root.system().processes(), None);
        let root = Root::new(&[&groups[..], &[("proc/sys/kernel/pid_max", "4194304\n")]].concat());
        assert_eq!(root.system().processes().unwrap().limit, "kernel.pid_max");
        let kernel = [("proc/sys/kernel/threads-max", "1080\n"), ("proc/sys/kernel/pid_max", "4194304\n")];
        let root = Root::new(&[&groups[..], &kernel].concat());
        assert_eq!(root.system().processes(), Some(Left { amount: 1000, limit: "kernel.threads-max".into() }));
        let mut system = root.system();
        (system.is_privileged, system.limit) = (|| false, |_| Some(100));
        assert_eq!(system.processes(), Some(Left { amount: 100, limit: "RLIMIT_NPROC".into() }));
        let tight = [("my pids/pids.max", "64\n"), ("my pids/pids.current", "60\n")];
        let root = Root::new(&[&groups[..], &kernel, &tight].concat());
        let of_group = Left { amount: 4, limit: "pids.max of the control group /".into() };
        assert_eq!(root.system().processes(), Some(of_group));
    }
}
