//! The resources that the control groups of this process leave available: groups of both versions,
//! each with all enclosing groups.

use super::{Left, system::spare};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The resource limited by a group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Controller {
    /// Memory, in bytes.
    Memory {
        /// Free swap space of the machine, in bytes.
        swap: u64,
    },
    /// Processes and threads.
    Pids,
}

/// In version 1, values from here on mean no limit: the kernel writes the largest multiple of the
/// page size.
const NO_LIMIT: u64 = 1 << 62;

/// A limit whose file can't be read.
struct Unreadable;

/// Returns the amount left in the most restrictive group, if any group has a limit.
pub(super) fn left(root: &Path, controller: Controller) -> Option<Left> {
    let text = |file: &str| fs::read_to_string(root.join(file)).unwrap_or_default();
    let (groups, mounts) = (text("proc/self/cgroup"), text("proc/self/mountinfo"));
    let mut least: Option<Left> = None;
    for hierarchy in mounts.lines().filter_map(|line| Hierarchy::of(line, &groups, controller)) {
        for group in hierarchy.groups() {
            let directory = root.join(hierarchy.at.trim_start_matches('/')).join(&group);
            let name = Path::new(&hierarchy.root).join(&group);
            let Some(left) = hierarchy.left(&directory, &name, controller) else { continue };
            if least.as_ref().is_none_or(|least| left.amount < least.amount) {
                least = Some(left);
            }
        }
    }
    least
}

/// A mounted hierarchy of groups.
struct Hierarchy {
    is_second_version: bool,
    /// The group that is visible at the mount point.
    root: String,
    /// The mount point.
    at: String,
    /// The process's group.
    group: String,
}

impl Hierarchy {
    /// Returns the hierarchy of a line of `mountinfo`, if it has this controller and the process is in
    /// one of its groups.
    ///
    /// `31 23 0:27 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`
    fn of(line: &str, groups: &str, controller: Controller) -> Option<Self> {
        let (mount, system) = line.split_once(" - ")?;
        let (mut mount, mut system) = (mount.split(' ').skip(3), system.split(' '));
        let (root, at) = (unescaped(mount.next()?), unescaped(mount.next()?));
        let name = match controller {
            Controller::Memory { .. } => "memory",
            Controller::Pids => "pids",
        };
        let is_second_version = match system.next()? {
            "cgroup2" => true,
            "cgroup" if system.nth(1)?.split(',').any(|option| option == name) => false,
            _ => return None,
        };
        // `4:cpu,memory:/path`, in version 2 `0::/path`.
        let group = groups.lines().find_map(|line| {
            let (_, line) = line.split_once(':')?;
            let (controllers, group) = line.split_once(':')?;
            let fits =
                if is_second_version { controllers.is_empty() } else { controllers.split(',').any(|c| c == name) };
            fits.then(|| group.to_owned())
        })?;
        Some(Hierarchy { is_second_version, root, at, group })
    }

    /// Returns the process's group and those around it, as paths below the mount point. For a group
    /// outside the mounted part, that is the outermost visible group.
    fn groups(&self) -> Vec<PathBuf> {
        let inside = Path::new(&self.group).strip_prefix(&self.root).ok();
        let inside = inside.filter(|path| path.components().all(|part| part.as_os_str() != ".."));
        inside.unwrap_or(Path::new("")).ancestors().map(Path::to_owned).collect()
    }

    /// Returns the amount left in one group, if it has a limit.
    fn left(&self, directory: &Path, name: &Path, controller: Controller) -> Option<Left> {
        let (file, left) = match (controller, self.is_second_version) {
            (Controller::Pids, _) => ("pids.max", pids(directory)),
            (Controller::Memory { swap }, true) => ("memory.max", memory_of_second(directory, swap)),
            (Controller::Memory { swap }, false) => ("memory.limit_in_bytes", memory_of_first(directory, swap)),
        };
        let limit = format!("{file} of the control group {}", name.display().to_string().trim_end_matches('/'));
        // The outermost group's name is `/`.
        let limit = if name == Path::new("/") { limit + "/" } else { limit };
        match left {
            Ok(None) => None,
            Ok(Some(amount)) => Some(Left { amount, limit: limit.into() }),
            Err(Unreadable) => Some(Left { amount: 0, limit: (limit + ", which can't be read").into() }),
        }
    }
}

fn pids(group: &Path) -> Result<Option<u64>, Unreadable> {
    let Some(most) = number(group, "pids.max")? else { return Ok(None) };
    Ok(Some(most.saturating_sub(needed(group, "pids.current")?)))
}

fn memory_of_second(group: &Path, swap: u64) -> Result<Option<u64>, Unreadable> {
    let Some(most) = number(group, "memory.max")? else { return Ok(None) };
    let used = needed(group, "memory.current")?;
    let swap = match number(group, "memory.swap.max")? {
        None => swap,
        Some(most) => swap.min(most.saturating_sub(number(group, "memory.swap.current")?.unwrap_or(0))),
    };
    Ok(Some(left_of(most, used, of_files(group, ["inactive_file", "active_file"])).saturating_add(swap)))
}

fn memory_of_first(group: &Path, swap: u64) -> Result<Option<u64>, Unreadable> {
    let files = of_files(group, ["total_inactive_file", "total_active_file"]);
    let of_memory = match number(group, "memory.limit_in_bytes")? {
        Some(most) => Some(left_of(most, needed(group, "memory.usage_in_bytes")?, files).saturating_add(swap)),
        None => None,
    };
    // Memory and swap together.
    let of_both = match number(group, "memory.memsw.limit_in_bytes")? {
        Some(most) => Some(left_of(most, needed(group, "memory.memsw.usage_in_bytes")?, files)),
        None => None,
    };
    Ok(of_memory.into_iter().chain(of_both).min())
}

/// Returns the amount left if `used` bytes are in use and `files` of them are pages of files, which
/// the system reclaims when it needs them.
fn left_of(most: u64, used: u64, files: u64) -> u64 {
    most.saturating_sub(used.saturating_sub(files)).saturating_sub(spare(most))
}

/// Returns the number in a file of a group; `None` if there is no such file, or no limit.
fn number(group: &Path, file: &str) -> Result<Option<u64>, Unreadable> {
    let text = match fs::read_to_string(group.join(file)) {
        Ok(text) => text,
        // The outermost group has no limits.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => return Err(Unreadable),
    };
    match text.trim() {
        "max" => Ok(None),
        text => text.parse().map(|number| Some(number).filter(|number| *number < NO_LIMIT)).map_err(|_| Unreadable),
    }
}

/// Returns the number in a file that a group with a limit must have.
fn needed(group: &Path, file: &str) -> Result<u64, Unreadable> {
    number(group, file)?.ok_or(Unreadable)
}

/// Returns the sum of some lines of `memory.stat`; missing lines count as 0.
fn of_files(group: &Path, names: [&str; 2]) -> u64 {
    let text = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let number = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        if names.contains(&name) { number.trim().parse::<u64>().ok() } else { None }
    };
    text.lines().filter_map(number).fold(0, u64::saturating_add)
}

/// Returns a path as `mountinfo` writes it, with `\040` for a space.
fn unescaped(text: &str) -> String {
    let mut pieces = text.split('\\');
    let mut all = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(3).unwrap_or((piece, ""));
        match u8::from_str_radix(code, 8) {
            Ok(byte) => all.push(byte.into()),
            Err(_) => all.extend(["\\", code]),
        }
        all.push_str(rest);
    }
    all
}
