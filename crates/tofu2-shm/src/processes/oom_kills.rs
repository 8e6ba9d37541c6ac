//! Processes that the kernel kills because memory is exhausted.

use std::fs;

/// The number of processes of this machine that the kernel had killed because memory was exhausted, its own
/// or that of a control group, when this was made. Such a process ends by SIGKILL without a word, so a
/// launcher compares the number at the start of a job with that at its end.
#[derive(Clone, Copy, Debug)]
pub struct OomKills(Option<u64>);

impl OomKills {
    /// Reads the number.
    pub fn now() -> Self {
        OomKills(fs::read_to_string("/proc/vmstat").ok().and_then(|text| counted(&text)))
    }

    /// Returns a line about the processes that were killed since this was made, if there are any. They need
    /// not be ranks. `None` also where the system does not report the number.
    pub fn since(self) -> Option<String> {
        in_words(self.0?, OomKills::now().0?)
    }
}

fn counted(vmstat: &str) -> Option<u64> {
    vmstat.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

fn in_words(before: u64, now: u64) -> Option<String> {
    let killed = now.checked_sub(before).filter(|killed| *killed > 0)?;
    let processes = if killed == 1 { "process" } else { "processes" };
    Some(format!(
        "out of memory: the kernel killed {killed} {processes} of this machine meanwhile (oom_kill in /proc/vmstat)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kills_are_counted_and_reported() {
        let text = "pgfault 7\noom_kill 41\noom_kill_x 3\n";
        assert_eq!(counted(text), Some(41));
        assert_eq!(counted("pgfault 7\n"), None);
        assert_eq!(in_words(41, 41), None);
        assert!(in_words(41, 42).is_some_and(|line| line.contains("killed 1 process of")));
        assert!(in_words(41, 44).is_some_and(|line| line.contains("killed 3 processes of")));
        assert_eq!(OomKills(None).since(), None);
    }
}
