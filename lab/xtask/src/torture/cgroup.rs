//! Control groups, version 1 or 2, below this process's own: they bound the resources of a case.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::Duration,
};

/// Groups of one case; removed when this is dropped.
pub(super) struct Groups(Vec<PathBuf>);

impl Groups {
    /// Creates groups that limit the total memory of their processes to `bytes`, and their number
    /// to `processes`.
    ///
    /// # Errors
    /// The reason why that is not possible here.
    pub(super) fn new(bytes: u64, processes: u64) -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| format!("/proc/self/cgroup: {error}"))?;
        let mut groups = Groups(Vec::new());
        let wanted =
            [("memory", "memory.limit_in_bytes", "memory.max", bytes), ("pids", "pids.max", "pids.max", processes)];
        for (controller, first, second, limit) in wanted {
            let (above, file) = match first_version(&own, controller) {
                Some(above) => (above, first),
                None => (second_version(&own).ok_or("this process is in no control group")?, second),
            };
            groups.make(&above, file, limit).map_err(|why| format!("no control group for {controller}: {why}"))?;
        }
        Ok(groups)
    }

    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    fn make(&mut self, above: &Path, file: &str, limit: u64) -> Result<(), String> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let group = above.join(format!("onesided-torture-{}-{}", process::id(), NEXT.fetch_add(1, Relaxed)));
        let told = |error| format!("{}: {error}", group.display());
        fs::create_dir(&group).map_err(told)?;
        self.0.push(group.clone());
        fs::write(group.join(file), limit.to_string()).map_err(told)
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for group in &self.0 {
            // Its processes have been waited for; the kernel may need more time.
            for _ in 0..100 {
                if fs::remove_dir(group).is_ok() {
                    break;
                }
                thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

/// Returns the directory of this process's group for a controller of version 1.
fn first_version(own: &str, controller: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| {
        let [_, controllers, path] = line.splitn(3, ':').collect::<Vec<_>>()[..] else { return None };
        controllers.split(',').any(|name| name == controller).then_some(path)
    })?;
    let group = Path::new("/sys/fs/cgroup").join(controller).join(path.trim_start_matches('/'));
    group.is_dir().then_some(group)
}

/// Returns the directory of this process's group of version 2.
fn second_version(own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group = Path::new("/sys/fs/cgroup").join(path.trim_start_matches('/'));
    group.join("cgroup.procs").exists().then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_found() {
        let own = "9:name=systemd:/\n4:memory:/nowhere/at/all\n0::/nowhere\n";
        assert_eq!((first_version(own, "memory"), first_version(own, "pids")), (None, None));
        assert_eq!(second_version(own), None);
    }
}
