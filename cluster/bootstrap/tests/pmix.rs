//! Jobs of four processes that a launcher with PMIx starts. With `role` this program is one of their
//! processes, under any launcher; otherwise it runs the cases, under Open MPI's `mpirun`.

use bootstrap::{
    Bootstrap, LauncherError,
    pmix::{self, Pmix, PmixError},
};
use process_tests::{
    Case,
    child::{Child, program},
};
use std::{
    env,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The number of ranks of a job.
const RANKS: usize = 4;
/// The time limit of a fence or a get that succeeds.
const AMPLE: Duration = Duration::from_secs(30);
/// The time limit of a job: a guard against hangs.
const GUARD: Duration = Duration::from_secs(90);

/// The part of each rank in a case.
const PARTS: &[(&str, fn())] = &process_tests::named![
    values_reach_all_ranks,
    rounds_follow_each_other,
    a_fence_without_one_of_the_ranks_times_out,
    a_get_of_a_missing_value_fails_in_time,
    unusable_libraries_keys_and_ranks_are_refused,
    a_process_has_one_client,
];

/// Returns the value of a rank: 0, 1, 1000 or 100 000 bytes that identify the rank.
fn value_of(rank: u32, round: u32) -> Vec<u8> {
    let len = [0, 1, 1_000, 100_000][(rank + round) as usize % 4];
    (0..len).map(|i: u32| (i.wrapping_mul(31) ^ (rank * 7 + round * 13)) as u8).collect()
}

fn compare_all(client: &mut Pmix, round: u32) {
    for of in 0..client.ranks() as u32 {
        let got = client.get(of, &format!("value.{round}")).expect("a value");
        assert!(got == value_of(of, round), "rank {of}, round {round}: other {} bytes", got.len());
    }
}

fn values_reach_all_ranks() {
    let mut client = Pmix::open(AMPLE).expect("a client");
    assert_eq!(client.ranks(), RANKS);
    assert!((client.rank() as usize) < RANKS);
    assert_eq!(client.launcher(), "PMIx");
    assert!(!client.namespace().is_empty() && !client.version().is_empty());
    let rank = client.rank();
    client.put("value.0", &value_of(rank, 0)).expect("a put");
    client.put("rank", &rank.to_le_bytes()).expect("a put");
    client.fence().expect("a fence");
    compare_all(&mut client, 0);
    for of in 0..RANKS as u32 {
        assert_eq!(client.get(of, "rank").expect("a value"), of.to_le_bytes());
    }
}

fn rounds_follow_each_other() {
    let mut client = Pmix::open(AMPLE).expect("a client");
    let rank = client.rank();
    for round in 0..20 {
        client.put(&format!("value.{round}"), &value_of(rank, round)).expect("a put");
        client.fence().expect("a fence");
        compare_all(&mut client, round);
    }
    compare_all(&mut client, 0);
}

fn a_fence_without_one_of_the_ranks_times_out() {
    let limit = Duration::from_secs(1);
    let mut client = Pmix::open(limit).expect("a client");
    if client.rank() == 3 {
        thread::sleep(limit * 4);
        return;
    }
    let begun = Instant::now();
    match client.fence() {
        Err(LauncherError::Pmix(PmixError::TimedOut { call: "PMIx_Fence", .. })) => {}
        other => panic!("a fence without rank 3: {other:?}"),
    }
    assert!(begun.elapsed() >= limit * 9 / 10, "too early: {:?}", begun.elapsed());
    assert!(begun.elapsed() < limit * 20, "too late: {:?}", begun.elapsed());
    // Launchers count the processes that end.
    thread::sleep(limit * 3);
}

fn a_get_of_a_missing_value_fails_in_time() {
    let limit = Duration::from_secs(1);
    let mut client = Pmix::open(AMPLE).expect("a client");
    client.put("here", b"x").expect("a put");
    client.fence().expect("a fence");
    drop(client);
    let mut client = Pmix::open(limit).expect("a second client");
    let of = (client.rank() + 1) % RANKS as u32;
    let begun = Instant::now();
    match client.get(of, "no such key") {
        Err(LauncherError::Pmix(PmixError::Silent { rank, ref key, .. } | PmixError::NotFound { rank, ref key })) => {
            assert_eq!((rank, key.as_str()), (of, "no such key"))
        }
        other => panic!("a missing value: {other:?}"),
    }
    assert!(begun.elapsed() < limit * 20, "too late: {:?}", begun.elapsed());
    thread::sleep(limit * 2);
}

fn unusable_libraries_keys_and_ranks_are_refused() {
    match Pmix::open_library("libpmix-that-is-not-there.so", AMPLE) {
        Err(PmixError::Missing { library, .. }) => assert_eq!(library, "libpmix-that-is-not-there.so"),
        other => panic!("a missing library: {other:?}"),
    }
    match Pmix::open_library("libc.so.6", AMPLE) {
        Err(PmixError::Symbol { symbol, .. }) => assert_eq!(symbol, "PMIx_Get_version"),
        other => panic!("another library: {other:?}"),
    }
    let mut client = Pmix::open(AMPLE).expect("a client");
    for key in ["", "pmix.job.size", "a\0b", &"k".repeat(512)] {
        let put = client.put(key, b"x");
        assert!(matches!(put, Err(LauncherError::Pmix(PmixError::BadKey { limit: 511, .. }))), "{put:?}");
    }
    client.put(&"k".repeat(511), b"x").expect("the longest key");
    client.fence().expect("a fence");
    match client.get(RANKS as u32, "rank") {
        Err(LauncherError::Pmix(PmixError::NoSuchRank { rank: 4, ranks: RANKS })) => {}
        other => panic!("a rank that does not exist: {other:?}"),
    }
    assert_eq!(client.get(0, &"k".repeat(511)).expect("a value"), b"x");
}

fn a_process_has_one_client() {
    let mut client = Pmix::open(AMPLE).expect("a client");
    match Pmix::open(AMPLE) {
        Err(PmixError::InUse) => {}
        other => panic!("a second client: {other:?}"),
    }
    client.fence().expect("the first client is unchanged");
}

/// This process was not started by a launcher, so this is an error immediately.
fn a_client_without_a_launcher_is_refused() {
    assert!(!pmix::is_launched());
    match Pmix::open(AMPLE) {
        Err(PmixError::NotLaunched { variable }) => assert_eq!(variable, "PMIX_NAMESPACE"),
        other => panic!("a client without a launcher: {other:?}"),
    }
}

/// Returns Open MPI's `mpirun`.
fn open_mpi() -> Option<&'static str> {
    ["mpirun.openmpi", "mpirun"].into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Open MPI"))
    })
}

/// Runs a part on four ranks, each of which must succeed.
fn run(name: &str) {
    let Some(mpirun) = open_mpi() else {
        return println!("SKIPPED: {name}: Open MPI's mpirun is not here");
    };
    let ranks = RANKS.to_string();
    let mut command = program(mpirun, ["--allow-run-as-root", "--oversubscribe", "-n", &ranks]);
    command.arg(env::current_exe().expect("the path of this program")).args(["role", name]).stdin(Stdio::null());
    let ended = Child::start(command).end_within(GUARD);
    let good = ended.out.lines().filter(|line| line.trim() == "good").count();
    assert!(ended.status.success() && good == RANKS, "{good} of {RANKS} ranks are good: {ended:?}");
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [role, name] = &words[..]
        && role == "role"
    {
        let (_, play) = PARTS.iter().find(|(known, _)| known == name).expect("a part");
        play();
        println!("good");
        return ExitCode::SUCCESS;
    }
    let mut cases = process_tests::cases![a_client_without_a_launcher_is_refused];
    cases.extend(PARTS.iter().map(|(name, _)| Case::new(*name, move || run(name))));
    process_tests::cases::run(cases)
}
