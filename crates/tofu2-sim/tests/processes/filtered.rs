//! Launchers to which the filter of a container refuses system calls. This program is the launcher
//! (`refuse-signals <error>`).

use crate::{
    children::{command, expect_all_gone, wait_for_ranks},
    exhaustion::no_children,
};
use process_tests::{child::Child, filter::refuse_call};
use rustix::{
    io::Errno,
    process::{PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal},
};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};
use tofu2_sim::shm::Launcher;

const ERRORS: [(&str, Errno); 2] = [("EPERM", Errno::PERM), ("ENOSYS", Errno::NOSYS)];
const GRACE: Duration = Duration::from_millis(200);
/// Rank 0 fails once its standard input has ended; the other would run much longer than the test.
const SCRIPT: &str = r#"echo "pid $$"
case "$ONESIDED_JOB" in
    *" rank=0 "*) read line; exit 3;;
    *) exec sleep 1000;;
esac"#;

pub(crate) fn ranks_are_killed_without_pidfd_send_signal() {
    for (name, _) in ERRORS {
        let mut child = Child::start(command(&["refuse-signals", name]));
        let ranks = wait_for_ranks(&mut child, 2);
        let began = Instant::now();
        let ended = child.end_within(Duration::from_secs(10));
        assert_eq!(ended.code(), Some(3), "{name}: {}", ended.err);
        let killed = "rank 0: exited with 3\nrank 1: killed by signal 9 (SIGKILL), which the launcher sent\n";
        assert!(ended.err.ends_with(killed), "{name}: {}", ended.err);
        assert!(began.elapsed() > GRACE, "{name}: {:?}", began.elapsed());
        expect_all_gone(ranks);
    }
}

/// Runs as the launcher.
pub(crate) fn launch(error: &str) -> ExitCode {
    let (_, errno) = ERRORS.into_iter().find(|(name, _)| *name == error).expect("an error");
    refuse_call(libc::SYS_pidfd_send_signal, errno);
    let this = pidfd_open(getpid(), PidfdFlags::empty()).expect("its own");
    assert_eq!(pidfd_send_signal(&this, Signal::CONT), Err(errno));
    let launcher = Launcher::new(2).segment_bytes(1 << 20).grace(GRACE).command("sh", ["-c", SCRIPT]);
    let code = launcher.run().expect("a job");
    no_children();
    ExitCode::from(code as u8)
}
