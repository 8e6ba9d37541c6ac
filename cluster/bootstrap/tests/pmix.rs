//! Jobs of four processes that a launcher with PMIx starts.
//!
//! Without arguments, or with parts of the names of cases, this program runs the cases: it starts
//! itself under Open MPI's `mpirun`. With `rank` it is one of their processes, under any launcher.

use bootstrap::{
    Bootstrap, LauncherError,
    pmix::{self, Pmix, PmixError},
};
use std::{
    env,
    io::Read,
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

/// Cases of a job: what each rank does.
const JOBS: &[(&str, fn())] = &[
    ("values_reach_all_ranks", values_reach_all_ranks),
    ("rounds_follow_each_other", rounds_follow_each_other),
    ("an_absent_rank_is_told_in_time", an_absent_rank_is_told_in_time),
    ("a_missing_value_is_told_in_time", a_missing_value_is_told_in_time),
    ("what_is_no_use_is_refused", what_is_no_use_is_refused),
    ("a_process_has_one_client", a_process_has_one_client),
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

fn an_absent_rank_is_told_in_time() {
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

fn a_missing_value_is_told_in_time() {
    let limit = Duration::from_secs(1);
    let mut client = Pmix::open(AMPLE).expect("a client");
    client.put("here", b"x").expect("a put");
    client.fence().expect("a fence");
    drop(client);
    let mut client = Pmix::open(limit).expect("a second client");
    let of = (client.rank() + 1) % RANKS as u32;
    let begun = Instant::now();
    match client.get(of, "nobody put this") {
        Err(LauncherError::Pmix(PmixError::Silent { rank, ref key, .. } | PmixError::NotFound { rank, ref key })) => {
            assert_eq!((rank, key.as_str()), (of, "nobody put this"))
        }
        other => panic!("a value that nobody put: {other:?}"),
    }
    assert!(begun.elapsed() < limit * 20, "too late: {:?}", begun.elapsed());
    thread::sleep(limit * 2);
}

fn what_is_no_use_is_refused() {
    match Pmix::open_library("libpmix-that-is-not-there.so", AMPLE) {
        Err(PmixError::Missing { library, .. }) => assert_eq!(library, "libpmix-that-is-not-there.so"),
        other => panic!("a library that is not there: {other:?}"),
    }
    match Pmix::open_library("libc.so.6", AMPLE) {
        Err(PmixError::Symbol { symbol, .. }) => assert_eq!(symbol, "PMIx_Get_version"),
        other => panic!("a library that is another one: {other:?}"),
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
        other => panic!("a rank that is not there: {other:?}"),
    }
    assert_eq!(client.get(0, &"k".repeat(511)).expect("a value"), b"x");
}

fn a_process_has_one_client() {
    let mut client = Pmix::open(AMPLE).expect("a client");
    match Pmix::open(AMPLE) {
        Err(PmixError::InUse) => {}
        other => panic!("a second client: {other:?}"),
    }
    client.fence().expect("the first client is as it was");
}

/// This process was not started by a launcher, so this is an error immediately.
fn without_a_launcher() {
    assert!(!pmix::is_launched());
    match Pmix::open(AMPLE) {
        Err(PmixError::NotLaunched { variable }) => assert_eq!(variable, "PMIX_NAMESPACE"),
        other => panic!("a client of nobody: {other:?}"),
    }
}

/// Returns Open MPI's `mpirun`.
fn open_mpi() -> Option<&'static str> {
    ["mpirun.openmpi", "mpirun"].into_iter().find(|name| {
        let said = Command::new(name).arg("--version").output();
        said.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("Open MPI"))
    })
}

/// Runs a case on four ranks, and returns whether each reported success.
fn run(mpirun: &str, case: &str) -> bool {
    let mut job = Command::new(mpirun)
        .args(["--allow-run-as-root", "--oversubscribe", "-n", &RANKS.to_string()])
        .arg(env::current_exe().expect("this program's path"))
        .args(["rank", case])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("mpirun starts");
    let mut output = job.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let begun = Instant::now();
    let status = loop {
        match job.try_wait().expect("mpirun can be waited for") {
            Some(status) => break status,
            None if begun.elapsed() > GUARD => {
                println!("{case}: the job is still there after {GUARD:?}");
                job.kill().expect("mpirun can be killed");
                return false;
            }
            None => thread::sleep(Duration::from_millis(10)),
        }
    };
    let text = reader.join().expect("the reader ends").expect("the ranks write text");
    let good = text.lines().filter(|line| line.trim() == "good").count();
    if !status.success() || good != RANKS {
        println!("{case}: {status}; {good} of {RANKS} ranks are good\n{text}");
    }
    status.success() && good == RANKS
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if let [role, case] = &words[..]
        && role == "rank"
    {
        let (_, play) = JOBS.iter().find(|(name, _)| name == case).expect("a case");
        play();
        println!("good");
        return ExitCode::SUCCESS;
    }
    let asked = |name: &str| {
        let filters: Vec<_> = words.iter().filter(|word| !word.starts_with('-')).collect();
        let ignored = words.iter().any(|word| word == "--ignored");
        !ignored && (filters.is_empty() || filters.iter().any(|filter| name.contains(*filter)))
    };
    let list = words.iter().any(|word| word == "--list");
    if asked("without_a_launcher") && !list {
        without_a_launcher();
        println!("test without_a_launcher ... ok");
    }
    let mpirun = open_mpi();
    let mut failed = 0;
    for (name, _) in JOBS.iter().filter(|(name, _)| asked(name)) {
        if list {
            println!("{name}: test");
            continue;
        }
        let Some(mpirun) = mpirun else {
            println!("SKIPPED: {name}: Open MPI's mpirun is not here");
            continue;
        };
        let begun = Instant::now();
        let good = run(mpirun, name);
        failed += u32::from(!good);
        println!("test {name} ... {} ({} ms)", if good { "ok" } else { "FAILED" }, begun.elapsed().as_millis());
    }
    println!("{failed} failed");
    ExitCode::from(u8::from(failed > 0))
}
