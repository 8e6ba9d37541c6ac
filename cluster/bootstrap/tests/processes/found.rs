//! Processes that find each other by the information of their launcher.

use crate::{job::start_in, pmi::Launcher};
use bootstrap::{Bootstrap, Cluster, Coordinator, LauncherError, Plan, Pmi1, Secret, SecretAt, Succession};
use process_tests::child::Child;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::PermissionsExt,
    },
    process::{self, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// Starts rank `rank` of `ranks` under a launcher with PMI-1, with its descriptor as the standard
/// input.
fn start_under(launcher: &Launcher, rank: usize, ranks: usize, words: &[&str]) -> Child {
    let variables = [("PMI_RANK", rank.to_string()), ("PMI_SIZE", ranks.to_string()), ("PMI_FD", "0".into())];
    start_in(&variables, Stdio::from(OwnedFd::from(launcher.connect())), words)
}

/// Asserts that, within a few seconds, no process listens there any more.
fn expect_closed(address: SocketAddr) {
    let begun = Instant::now();
    while TcpStream::connect(address).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(8), "the coordinator still listens");
        sleep(Duration::from_millis(20));
    }
}

/// Kills the children of a process.
fn kill_children(parent: &Child) {
    let id = parent.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("its children");
    for child in children.split_whitespace() {
        let pid = child.parse().ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, Signal::KILL).expect("a signal");
    }
}

fn address_of(part: &mut Child) -> SocketAddr {
    part.after("coordinator ").parse().expect("an address")
}

pub(crate) fn ranks_find_each_other_by_pmi_1() {
    let launcher = Launcher::new(3);
    let mut parts: Vec<_> = (0..3).map(|rank| start_under(&launcher, rank, 3, &["found", "leave"])).collect();
    let address = address_of(&mut parts[0]);
    for part in &mut parts {
        assert_eq!(part.after("exchanged "), "[[0], [1], [2]] segment [7, 8]");
        assert_eq!(part.after("all "), "ended");
    }
    expect_closed(address);
}

pub(crate) fn ranks_find_each_other_under_mpiexec() {
    let program = std::env::current_exe().expect("this program");
    let mut command = std::process::Command::new("mpiexec.hydra");
    let output = match command.args(["-n", "4"]).arg(program).args(["role", "found", "leave"]).output() {
        Ok(output) => output,
        Err(cause) => return println!("SKIPPED: mpiexec.hydra, MPICH's launcher: {cause}"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let exchanged = text.matches("exchanged [[0], [1], [2], [3]] segment [7, 8]").count();
    assert!(output.status.success() && exchanged == 4, "{output:?}");
}

pub(crate) fn a_coordinator_of_rank_0_outlives_it() {
    let launcher = Launcher::new(3);
    let mut parts: Vec<_> = (0..3).map(|rank| start_under(&launcher, rank, 3, &["found", "stay"])).collect();
    let address = address_of(&mut parts[0]);
    parts.iter_mut().for_each(|part| drop(part.after("exchanged")));
    parts.remove(0).kill();
    for part in &mut parts {
        assert!(part.after("resume").contains("[(0, "));
    }
    parts.iter().for_each(Child::kill);
    expect_closed(address);
}

pub(crate) fn a_coordinator_of_rank_0_is_succeeded() {
    let launcher = Launcher::new(3);
    let mut parts: Vec<_> = (0..3).map(|rank| start_under(&launcher, rank, 3, &["found", "stay"])).collect();
    let address = address_of(&mut parts[0]);
    parts.iter_mut().for_each(|part| drop(part.after("exchanged")));
    kill_children(&parts[0]);
    parts.iter_mut().for_each(|part| assert!(part.after("resume").ends_with(" []")));
    expect_closed(address);
    parts.remove(0).kill();
    parts.iter_mut().for_each(|part| assert!(part.after("resume").contains("[(0, ")));
}

pub(crate) fn a_rank_0_that_ends_before_it_joins_is_named() {
    let launcher = Launcher::new(2);
    let mut first = start_under(&launcher, 0, 2, &["found", "go"]);
    let mut second = start_under(&launcher, 1, 2, &["found", "stay"]);
    let error = second.after("error");
    assert!(error.contains("rank 0 ended before all ranks had come"), "{error}");
    expect_closed(address_of(&mut first));
}

pub(crate) fn an_error_about_an_unknown_interface_lists_the_existing_ones() {
    let mut part = start_under(&Launcher::new(2), 0, 2, &["found", "stay", "nowhere0"]);
    let error = part.after("error");
    assert!(error.contains("nowhere0") && error.contains("lo (127.0.0.1)"), "{error}");
}

pub(crate) fn ranks_find_each_other_by_torchruns_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    fs::write(&file, Secret::random().expect("random numbers").to_hex()).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
    // Below the ephemeral ports.
    let mut ports = (15_000..20_000).cycle().skip(process::id() as usize % 5_000).take(5_000);
    let port = ports.find(|port| TcpListener::bind(("0.0.0.0", *port)).is_ok()).expect("a free port");
    let start = |rank: usize, file: &str| {
        let variables = [
            ("RANK", rank.to_string()),
            ("WORLD_SIZE", "2".into()),
            ("MASTER_ADDR", "127.0.0.1".into()),
            ("MASTER_PORT", port.to_string()),
            ("ONESIDED_SECRET_FILE", file.to_owned()),
        ];
        start_in(&variables, Stdio::null(), &["found", "leave"])
    };
    let file = file.to_str().expect("text");
    let mut parts = [start(0, file), start(1, file)];
    for part in &mut parts {
        assert_eq!(part.after("exchanged "), "[[0], [1]] segment [7, 8]");
        assert_eq!(part.after("all "), "ended");
    }
    fs::set_permissions(file, fs::Permissions::from_mode(0o640)).expect("a mode");
    let error = start(0, file).after("error");
    assert!(error.contains("has mode 640"), "{error}");
}

pub(crate) fn ranks_of_this_crates_launcher_get_the_secret_through_a_pipe() {
    let secret = Secret::random().expect("random numbers");
    let second = Duration::from_secs(1);
    let plan = Plan {
        ranks: 2,
        join_within: 20 * second,
        lease: 20 * second,
        segment: vec![7, 8],
        succession: Succession::Never,
    };
    let listen = "127.0.0.1:0".parse().expect("an address");
    let launcher = Coordinator::start(listen, secret.clone(), plan).expect("a coordinator");
    let mut parts = [0, 1].map(|rank| {
        let cluster = Cluster { rank, ranks: 2, coordinator: launcher.address(), secret: SecretAt::Stdin };
        let mut part = start_in(&[(bootstrap::CLUSTER, cluster.to_string())], Stdio::piped(), &["found", "leave"]);
        part.write(&format!("{}\n", secret.to_hex()));
        part
    });
    for part in &mut parts {
        assert_eq!(part.after("exchanged "), "[[0], [1]] segment [7, 8]");
    }
    assert!(launcher.wait(20 * second).expect("an outcome").is_good());
}

pub(crate) fn a_pmi_client_keeps_its_limits_and_reports_errors() {
    let within = Duration::from_millis(200);
    let launcher = Launcher::new(1);
    let line = launcher.connect();
    let mut pmi = Pmi1::open(0, 1, line.as_raw_fd(), within).expect("a launcher");
    for (key, length) in [("empty", 0), ("short", 1), ("one-part", 15), ("parts", 1000)] {
        let value: Vec<u8> = (0..length).map(|byte| (byte * 7) as u8).collect();
        pmi.put(key, &value).expect("put");
        pmi.fence().expect("a fence");
        assert_eq!(pmi.get(0, key).expect("get"), value);
    }
    let error = pmi.put("short", b"again").expect_err("a key that is used");
    assert!(matches!(&error, LauncherError::Refused { answer, .. } if answer.contains("duplicate")), "{error}");
    assert!(matches!(pmi.get(0, "unknown"), Err(LauncherError::Refused { .. })));
    assert!(matches!(pmi.put(&"k".repeat(40), b""), Err(LauncherError::TooLong { what: "key", .. })));
    let (silent, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let error = Pmi1::open(0, 1, silent.as_raw_fd(), within).expect_err("no answer");
    assert!(matches!(error, LauncherError::Silent { call: "init", .. }), "{error}");
    let error = Pmi1::open(0, 1, 999, within).expect_err("no such descriptor");
    assert!(matches!(error, LauncherError::System { .. }), "{error}");
    // The rank's fence waits for another rank, which does not join.
    let launcher = Launcher::new(2);
    let line = launcher.connect();
    let mut pmi = Pmi1::open(0, 2, line.as_raw_fd(), within).expect("a launcher");
    assert!(matches!(pmi.fence(), Err(LauncherError::Silent { call: "barrier_in", .. })));
}
