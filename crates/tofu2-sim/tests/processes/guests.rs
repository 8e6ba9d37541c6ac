//! Guests: ranks in processes that own their `main`, as C programs do. They keep their fabric
//! forever and end by `exit`. Launchers run this program as `guest <part>`: by a script
//! (`launch-script <ranks> <script>`), or as a job that is aborted (`aborted-guests`).

mod parts;

use crate::{
    children::{REFUSED, end, start},
    rank_taken::launch,
};
pub(crate) use parts::guest;
use rustix::time::{ClockId, clock_gettime};
use std::{env, process::ExitCode, time::Duration};
use tofu2_sim::{
    JobError,
    shm::{DEFAULT_SEGMENT_BYTES, JOB_VARIABLE, Launcher, SEGMENT_VARIABLE},
};

/// The longest time that a part without a wait continues.
const HOURS: Duration = Duration::from_secs(3600);

pub(crate) fn a_attached_process_that_exits_with_0_has_left() {
    for part in ["exits", "returns"] {
        let (code, out) = launch("3", &format!(r#"exec "$0" guest {part}"#));
        assert_eq!((code, out.matches("left\n").count(), out.matches("ended").count()), (Some(0), 2, 0), "{out}");
    }
}

pub(crate) fn a_attached_process_that_ends_otherwise_is_lost() {
    for (part, code, how) in [
        ("fails", 3, "rank 0: exited with 3"),
        ("killed", 137, "rank 0: killed by signal 9"),
        ("crashes", 134, "rank 0: killed by signal 6"),
    ] {
        let (ended, out) = launch("3", &format!(r#"exec "$0" guest {part}"#));
        assert_eq!((ended, out.matches("lost\n").count(), out.contains(how)), (Some(code), 2, true), "{part}: {out}");
    }
}

/// The end of the command that was started as the rank determines the outcome, not that of its child.
pub(crate) fn the_exit_code_of_a_script_decides_for_its_guest() {
    for (part, rest, code, seen) in [
        ("exits", "; exit $?", 0, "left"),
        ("exits", "; true; exit 0", 0, "left"),
        ("exits", "; exit 4", 4, "lost"),
        ("killed", "; exit $?", 137, "lost"),
        ("killed", "; exit 0", 0, "left"),
        // It outlives its command, in the second case connected to the broker.
        ("stays", "& sleep 0.2; exit 0", 0, "left"),
        ("holds", "& sleep 0.2; exit 0", 0, "left"),
        ("stays", "& sleep 0.2; exit 4", 4, "lost"),
    ] {
        let script = format!(
            r#"case "$ONESIDED_JOB" in
                *rank=0*) "$0" guest {part} {rest};;
                *) exec "$0" guest {part};;
            esac"#
        );
        let (ended, out) = launch("3", &script);
        let seen = out.matches(&format!("{seen}\n")).count();
        assert_eq!((ended, seen), (Some(code), 2), "{part} {rest}: {out}");
    }
}

pub(crate) fn a_attached_process_that_makes_no_calls_does_not_block_the_others() {
    let (code, out) = launch("3", r#"exec "$0" guest computes"#);
    assert_eq!((code, out.matches("gave up\n").count()), (Some(0), 1), "{out}");
}

pub(crate) fn registered_memory_ends_with_its_process() {
    let (code, out) = launch("2", r#"exec "$0" guest registers"#);
    assert_eq!((code, out.matches("stale\n").count()), (Some(0), 1), "{out}");
}

pub(crate) fn a_guest_without_a_launcher_is_a_job_of_one() {
    for (variables, bytes) in [(&[][..], DEFAULT_SEGMENT_BYTES), (&[(SEGMENT_VARIABLE, "128K")], 128 << 10)] {
        let ended = end(start(&["guest", "alone"], variables));
        let printed = format!("{bytes} bytes\n");
        assert!(ended.code() == Some(0) && ended.out.ends_with(&printed), "{}", ended.printed());
    }
    let ended = end(start(&["guest", "aborts-alone"], &[]));
    assert_eq!(ended.code(), Some(7), "{}", ended.printed());
}

pub(crate) fn a_damaged_setting_is_refused() {
    for (name, value) in [
        (JOB_VARIABLE, ""),
        (JOB_VARIABLE, "nonsense"),
        (JOB_VARIABLE, "3 rank=0 ranks=1 segment_bytes=65536 memory=33 job=1"),
        (SEGMENT_VARIABLE, ""),
        (SEGMENT_VARIABLE, "0"),
        (SEGMENT_VARIABLE, "many"),
        (SEGMENT_VARIABLE, "8589934591G"),
    ] {
        let ended = end(start(&["guest", "alone"], &[(name, value)]));
        assert_eq!(ended.code(), Some(REFUSED.into()), "{name}={value}: {}", ended.err);
        let segment = ended.out.contains("refused: setting segment_bytes: ");
        assert!(segment || ended.out.contains(&format!("refused: setting {name}: ")), "{value}: {}", ended.out);
    }
}

/// The time for which the whole job continues after the abort is printed; the bound only guards
/// against hanging.
pub(crate) fn an_abort_ends_all_guests() {
    let ended = end(start(&["aborted-guests"], &[]));
    assert_eq!(ended.code(), Some(7), "{}", ended.err);
    assert!(ended.err.contains("error: rank 0 aborted the job with code 7: no more\n"), "{}", ended.err);
    // Waiting ranks receive the error, unless they were killed before.
    assert!(!ended.err.contains("panicked"), "{}", ended.err);
    let at = |what: &str| ended.out.lines().find_map(|line| line.strip_prefix(what)?.parse::<u64>().ok());
    let [Some(aborted), Some(end)] = ["aborts at ", "ended at "].map(at) else { panic!("{}", ended.out) };
    let took = Duration::from_nanos(end - aborted);
    println!("all have ended {took:.1?} after the abort");
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// Returns the clock that all processes share, in ns.
fn clock() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Runs as the launcher of a job that is aborted, which never looks for deadlocks, and would wait
/// for hours for ranks that only fail.
pub(crate) fn launch_aborted() -> ExitCode {
    let own = env::current_exe().expect("own path");
    let launcher = Launcher::new(5).segment_bytes(1 << 20).grace(HOURS).stuck_after(None);
    let ended = launcher.command(own, ["guest", "aborted"]).run();
    println!("ended at {}", clock());
    match ended {
        Err(error @ JobError::Aborted { .. }) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
        other => panic!("{other:?}"),
    }
}
