//! Process ranks over shared memory. This program plays three parts: without arguments it is the test, which runs
//! itself as `launch <ranks> <scenario>`, which has a launcher run it as all ranks of `rank <scenario>`.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["launch", ranks, scenario] => launch::main(ranks.parse().expect("a number"), scenario),
        ["rank", scenario] => ranks::main(scenario),
        _ => cases::main(&args),
    }
}

/// The launcher's part.
#[cfg(target_os = "linux")]
mod launch {
    use std::{process::ExitCode, time::Duration};
    use tofu2_sim::shm::Launcher;

    fn open_files() -> usize {
        std::fs::read_dir("/proc/self/fd").expect("procfs").count()
    }

    pub(super) fn main(ranks: usize, scenario: &str) -> ExitCode {
        let program = match scenario {
            "no-such-program" => "/nonexistent/program".into(),
            "echo" => "sh".into(),
            _ => std::env::current_exe().expect("own path").into_os_string(),
        };
        let args = match scenario {
            "echo" => ["-c", "cat"],
            _ => ["rank", scenario],
        };
        // Two jobs after each other leave as many files as one. The first only warms up.
        let launcher = Launcher::new(ranks).segment_bytes(64 << 20).grace(Duration::from_millis(400));
        if scenario == "leftovers" {
            for _ in 0..2 {
                let before = open_files();
                assert_eq!(launcher.clone().command("true", [""; 0]).run().expect("a job"), 0);
                assert!(open_files() <= before + 2, "files left open");
            }
            let before = open_files();
            launcher.clone().command("false", [""; 0]).run().expect("a job");
            launcher.clone().command("/nonexistent", [""; 0]).run().unwrap_err();
            assert_eq!(open_files(), before, "files left open");
            return ExitCode::SUCCESS;
        }
        let bound = scenario.starts_with("stuck-").then_some(Duration::from_millis(200));
        match launcher.stuck_after(bound).command(program, args).run() {
            Ok(code) => ExitCode::from(code as u8),
            Err(error) => {
                eprintln!("launcher: {error}");
                ExitCode::from(99)
            }
        }
    }
}

/// The ranks' part.
#[cfg(target_os = "linux")]
mod ranks {
    use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, RemoteAddr};
    use std::{
        process::ExitCode,
        time::{Duration, Instant},
    };
    use tofu2_sim::shm::{JOB_VARIABLE, block_on, run_rank, run_rank_with};

    /// Ten times what it takes until a loss is told on a busy machine.
    const SOON: Duration = Duration::from_secs(10);

    pub(super) fn main(scenario: &str) -> ExitCode {
        // For the test to see that nobody is left.
        println!("pid {}", std::process::id());
        if scenario == "absent" && std::env::var(JOB_VARIABLE).is_ok_and(|text| text.contains(" rank=0 ")) {
            return ExitCode::SUCCESS;
        }
        let endpoint = match tofu2_sim::shm::from_env() {
            Ok(Some(endpoint)) => endpoint,
            Ok(None) => {
                println!("no job");
                return ExitCode::SUCCESS;
            }
            Err(error) => {
                println!("refused: {error}");
                return ExitCode::from(88);
            }
        };
        assert!(matches!(tofu2_sim::shm::from_env(), Err(FabricError::RankTaken { .. })), "attached twice");
        if scenario == "leave" && endpoint.rank() == Rank::new(0) {
            std::process::exit(0);
        }
        if let Some(helped) = scenario.strip_prefix("stuck-") {
            // Not as a program: what else the rank has can't be known. It is one thread, or has another.
            if helped == "helped" {
                std::thread::spawn(|| std::thread::sleep(Duration::from_secs(60)));
            }
            let ended = run_rank_with(endpoint, |endpoint| {
                let memory = endpoint.alloc(8)?;
                let word = memory.word::<u64>(&endpoint, 0)?;
                let soon = Instant::now() + Duration::from_millis(1500);
                let wait = endpoint.wait_until(&word, Deps::One(endpoint.rank()), |_| Instant::now() > soon);
                Ok(block_on(wait).map(drop)?)
            });
            return ended.map_or(ExitCode::from(1), |()| ExitCode::SUCCESS);
        }
        match run_rank(endpoint, &async |fabric| scenes(fabric, scenario.to_owned()).await) {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                eprintln!("{error}");
                ExitCode::from(1)
            }
        }
    }

    async fn scenes(fabric: Fabric, scenario: String) -> ProgramResult<u8> {
        let me = fabric.rank().number();
        match scenario.as_str() {
            "work" => work(&fabric).await?,
            "stderr" => eprint!("first of {me}\nsecond\n\nlast, without an end"),
            "code" => return Ok(if me == 1 { 7 } else { 0 }),
            "kill" if me == 2 => {
                std::thread::sleep(Duration::from_millis(50));
                rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)?;
            }
            "panic" if me == 0 => panic!("on purpose"),
            "fail" if me == 1 => return Err("on purpose".into()),
            "kill" | "panic" | "fail" | "leave" | "absent" => return outlive(&fabric, &scenario).await,
            "midway" if me == 0 => std::process::exit(0),
            "midway" => std::thread::sleep(Duration::from_secs(60)),
            "flood" if me == 1 => {
                std::thread::sleep(Duration::from_millis(200));
                return Ok(7);
            }
            "flood" | "flood-on" => loop {
                eprintln!("{:1000}", "nobody reads this");
            },
            "stubborn" if me == 0 => return Ok(3),
            "stubborn" => std::thread::sleep(Duration::from_secs(60)),
            "sleep" => fabric.sleep(Duration::from_secs(60)).await,
            "deaf" => loop {
                std::thread::sleep(Duration::from_secs(60));
            },
            "memory" => memory(&fabric).await?,
            "inside" => return existing::killed_inside(&fabric).await,
            "dead-owner" => return existing::dead_owner(&fabric).await,
            "stopped" => existing::stopped_inside(&fabric).await?,
            _ => return Err(format!("no scenario {scenario}").into()),
        }
        Ok(0)
    }

    /// Wait for the rank that goes wrong: its loss is told soon.
    async fn outlive(fabric: &Fabric, scenario: &str) -> ProgramResult<u8> {
        let region = fabric.alloc(8)?;
        let start = Instant::now();
        let lost = Rank::new(match scenario {
            "kill" => 2,
            "panic" | "leave" | "absent" => 0,
            _ => 1,
        });
        let error = fabric.wait_until(&region.word::<u64>(fabric, 0)?, Deps::One(lost), |_| false).await.unwrap_err();
        assert_eq!(error, FabricError::PeerLost { rank: lost });
        assert!(start.elapsed() < SOON);
        println!("saw {error}");
        Ok(if ["leave", "absent"].contains(&scenario) { 0 } else { 5 })
    }

    /// Atomics by all on all, a ring of puts with notices, collectives, in a loop.
    async fn work(fabric: &Fabric) -> ProgramResult<()> {
        let mut world = Group::world(fabric).await?;
        let region = fabric.alloc_symmetric(1 << 20).await?;
        let (me, n) = (fabric.rank().number(), fabric.ranks() as u32);
        let at = |rank: u32, offset| RemoteAddr { rank: Rank::new(rank), region: region.key(), offset };
        let words = (0..n).map(|rank| fabric.remote_word::<u64>(at(rank, 0))).collect::<Result<Vec<_>, _>>()?;
        for _ in 0..1000 {
            for word in &words {
                fabric.fetch_add(word, 1).await?;
            }
        }
        world.barrier().await?;
        assert_eq!(fabric.load(&region.word::<u64>(fabric, 0)?)?, 1000 * u64::from(n));
        let next = fabric.remote_span::<u64>(at((me + 1) % n, 4096), 5000)?;
        let here = region.span::<u64>(fabric, 4096, 5000)?;
        let mut got = vec![0; 5000];
        for round in 0..200 {
            let data = vec![u64::from(me) << 32 | round; 5000];
            fabric.put_notify(&next, data, round).await?;
            let notice = fabric.next_notice(Deps::All).await?;
            let from = (me + n - 1) % n;
            assert_eq!((notice.from, notice.data, notice.end), (Rank::new(from), round, 4096 + 40_000));
            fabric.read(&here, &mut got)?;
            assert!(got.iter().all(|&word| word == u64::from(from) << 32 | round));
            world.barrier().await?;
        }
        let times = world.allgather(fabric.now().as_picos()).await?;
        let spread = times.iter().max().unwrap_or(&0) - times.iter().min().unwrap_or(&0);
        assert!(spread < 5_000_000_000_000, "clocks differ: {times:?}");
        println!("done {me}");
        Ok(())
    }

    /// Memory that existed before it was registered, and ranks that end or stand still inside.
    mod existing {
        use super::*;
        use rdma_fabric::{Existing, Registered};
        use rustix::process::{Pid, Signal, getpid, kill_process};

        /// Bytes of a copy that takes some milliseconds.
        const BYTES: usize = 16 << 20;
        const OWNER: Rank = Rank::new(0);

        /// Everybody's process id, the owner's memory, and its key.
        async fn begin(fabric: &Fabric) -> ProgramResult<(Vec<Pid>, Option<Registered<u8>>, RegionKey)> {
            let mut world = Group::world(fabric).await?;
            let pids = world.allgather(getpid().as_raw_nonzero().get()).await?;
            let mine = (fabric.rank() == OWNER).then(|| fabric.register(vec![1u8; BYTES])).transpose()?;
            let key = mine.as_ref().map_or(RegionKey { index: 0, generation: 0 }, |mine| mine.key());
            let key = world.broadcast(0, key).await?;
            Ok((pids.into_iter().filter_map(Pid::from_raw).collect(), mine, key))
        }

        /// Put until that fails, or for ever.
        async fn put_on(fabric: &Fabric, key: RegionKey, mut each: impl FnMut(u8)) -> FabricError {
            let mut bytes = vec![0u8; BYTES];
            for round in 2.. {
                let whole = match fabric.remote_span::<u8>(RemoteAddr { rank: OWNER, region: key, offset: 0 }, BYTES) {
                    Ok(whole) => whole,
                    Err(error) => return error,
                };
                bytes.fill(round);
                bytes = match fabric.put(&whole, bytes).await {
                    Ok(bytes) => bytes,
                    Err(error) => return error,
                };
                each(round);
                if round == u8::MAX {
                    break;
                }
            }
            FabricError::PeersLeft
        }

        /// A rank that was killed inside is not waited for, and its last copy stopped with it.
        pub(super) async fn killed_inside(fabric: &Fabric) -> ProgramResult<u8> {
            let (pids, mine, key) = begin(fabric).await?;
            let Some(mine) = mine else {
                let error = put_on(fabric, key, |_| ()).await;
                return Err(format!("not killed: {error}").into());
            };
            let bytes = mine.all()?.slice(0..1)?;
            let mut first = [1u8];
            while first == [1] {
                fabric.read(&bytes, &mut first)?;
            }
            kill_process(pids[1], Signal::KILL)?;
            let taken = mine.take().await?;
            let before = taken.clone();
            std::thread::sleep(Duration::from_millis(100));
            assert!(taken == before, "written after it was taken");
            println!("taken");
            Ok(0)
        }

        /// A dead rank's memory is an error, at resolving and in the midst of copies. Its peer, which sees it before the launcher can,
        /// fails of it and may end first.
        pub(super) async fn dead_owner(fabric: &Fabric) -> ProgramResult<u8> {
            let (_, mine, key) = begin(fabric).await?;
            if let Some(mine) = mine {
                let bytes = mine.all()?.slice(0..1)?;
                let mut first = [1u8];
                while first == [1] {
                    fabric.read(&bytes, &mut first)?;
                }
                kill_process(getpid(), Signal::KILL)?;
            }
            let error = put_on(fabric, key, |_| ()).await;
            assert_eq!(error, FabricError::PeerLost { rank: OWNER });
            println!("saw {error}");
            Err(error.into())
        }

        /// The memory is not given back while a living rank stands still inside.
        pub(super) async fn stopped_inside(fabric: &Fabric) -> ProgramResult<()> {
            let (pids, mine, key) = begin(fabric).await?;
            let staged = fabric.caps().register_existing == Existing::Staged;
            let Some(mine) = mine else {
                let mut last = 0;
                let error = put_on(fabric, key, |round| last = round).await;
                assert!(matches!(error, FabricError::StaleRegion { .. }), "{error}");
                let last = if last == 0 { 1 } else { last };
                Group::world(fabric).await?.allgather(last).await?;
                return Ok(());
            };
            let bytes = mine.all()?.slice(0..1)?;
            let mut first = [1u8];
            while first == [1] {
                fabric.read(&bytes, &mut first)?;
            }
            kill_process(pids[1], Signal::STOP)?;
            let goes_on = std::thread::spawn({
                let pid = pids[1];
                move || {
                    std::thread::sleep(Duration::from_millis(100));
                    kill_process(pid, Signal::CONT)
                }
            });
            let taken = mine.take().await?;
            // What is written from now on would be written too late.
            let at_once = taken.clone();
            goes_on.join().expect("no panic")?;
            let last = Group::world(fabric).await?.allgather(0u8).await?[1];
            let wrong = at_once.iter().position(|byte| *byte != last);
            assert_eq!(wrong, None, "{last} was put last (staged: {staged})");
            assert!(taken == at_once, "written after it was taken");
            println!("whole");
            Ok(())
        }
    }

    /// Registering takes and gives back memory; limits are errors.
    async fn memory(fabric: &Fabric) -> ProgramResult<()> {
        let big = fabric.alloc(40 << 20)?;
        let last = big.word::<u64>(fabric, (40 << 20) - 8)?;
        fabric.store(&last, 1)?;
        let error = fabric.alloc(40 << 20).map(drop).unwrap_err();
        assert!(matches!(&error, FabricError::OutOfMemory(none) if none.segment == 64 << 20), "{error}");
        drop(big);
        let again = fabric.alloc(40 << 20)?;
        assert_eq!(fabric.load(&again.word::<u64>(fabric, (40 << 20) - 8)?)?, 0, "zeroed again");
        let peer = Rank::new(1 - fabric.rank().number());
        let symmetric = fabric.alloc_symmetric(20 << 20).await?;
        let addr = RemoteAddr { rank: peer, region: symmetric.key(), offset: (20 << 20) - 8 };
        fabric.fetch_add(&fabric.remote_word::<u64>(addr)?, 1).await?;
        let nothing = RemoteAddr { rank: peer, region: RegionKey { index: 4000, generation: 1 }, offset: 0 };
        assert!(matches!(fabric.remote_word::<u64>(nothing), Err(FabricError::NoSuchRegion { .. })));
        Group::world(fabric).await?.barrier().await?;
        Ok(())
    }
}

/// The test's part.
#[cfg(target_os = "linux")]
mod cases {
    use rustix::process::{Pid, Signal, kill_process, test_kill_process};
    use std::{
        io::{Read, Write},
        process::{Child, Command, ExitCode, Output, Stdio},
        time::{Duration, Instant},
    };
    use tofu2_sim::shm::JOB_VARIABLE;

    /// Ten times what the slowest case takes.
    const HANG: Duration = Duration::from_secs(30);

    fn start(args: &[&str], env: Option<&str>) -> Child {
        let mut command = Command::new(std::env::current_exe().expect("own path"));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("RUST_BACKTRACE", "0").env_remove(JOB_VARIABLE);
        if let Some(value) = env {
            command.env(JOB_VARIABLE, value);
        }
        command.spawn().expect("to run myself")
    }

    fn launch(ranks: &str, scenario: &str) -> Child {
        start(&["launch", ranks, scenario], None)
    }

    /// What a run left behind.
    struct Ended {
        code: Option<i32>,
        out: String,
        err: String,
        took: Duration,
    }

    fn end(mut child: Child) -> Ended {
        let started = Instant::now();
        drop(child.stdin.take());
        while child.try_wait().expect("a child").is_none() {
            if started.elapsed() > HANG {
                child.kill().expect("to end it");
                let output = child.wait_with_output().expect("a child");
                panic!("hangs: {output:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let took = started.elapsed();
        let Output { status, stdout, stderr } = child.wait_with_output().expect("a child");
        let ended = Ended {
            code: status.code(),
            out: String::from_utf8_lossy(&stdout).into_owned(),
            err: String::from_utf8_lossy(&stderr).into_owned(),
            took,
        };
        nobody_left(&ended.out);
        ended
    }

    fn pids(out: &str) -> Vec<Pid> {
        let numbers = out.lines().filter_map(|line| line.strip_prefix("pid ")?.parse().ok());
        numbers.filter_map(Pid::from_raw).collect()
    }

    fn nobody_left(out: &str) {
        let deadline = Instant::now() + Duration::from_secs(5);
        for pid in pids(out) {
            while test_kill_process(pid).is_ok() {
                assert!(Instant::now() < deadline, "{pid:?} is left over");
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    }

    /// Read until all ranks have told their process ids.
    fn wait_for_ranks(child: &mut Child, ranks: usize) -> String {
        let out = child.stdout.as_mut().expect("a pipe");
        let (mut text, mut byte) = (String::new(), [0]);
        while pids(&text).len() < ranks || !text.ends_with('\n') {
            assert_eq!(out.read(&mut byte).expect("a pipe"), 1, "ended early: {text}");
            text.push(byte[0].into());
        }
        text
    }

    fn all_work_together() {
        for ranks in ["1", "2", "4"] {
            let ended = end(launch(ranks, "work"));
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            assert_eq!(ended.out.matches("done").count().to_string(), ranks);
        }
    }

    fn more_ranks_than_cpus() {
        let ended = end(launch("16", "work"));
        assert_eq!((ended.code, ended.out.matches("done").count()), (Some(0), 16), "{}", ended.err);
    }

    fn memory_is_reserved_and_freed() {
        let ended = end(launch("2", "memory"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }

    fn existing_memory_outlives_its_users() {
        let ended = end(launch("2", "inside"));
        assert_eq!((ended.code, ended.out.matches("taken").count()), (Some(137), 1), "{}", ended.err);
        for _ in 0..20 {
            let ended = end(launch("2", "dead-owner"));
            assert_eq!((ended.code, ended.out.matches("was lost").count()), (Some(137), 1), "{}", ended.err);
            assert!(
                ended.err.ends_with("rank 0: killed by signal 9 (SIGKILL)\nrank 1: exited with 1\n"),
                "{}",
                ended.err
            );
        }
        for _ in 0..3 {
            let ended = end(launch("2", "stopped"));
            assert_eq!((ended.code, ended.out.matches("whole").count()), (Some(0), 1), "{}", ended.err);
        }
    }

    fn stderr_lines_carry_their_rank() {
        let ended = end(launch("2", "stderr"));
        assert_eq!(ended.code, Some(0));
        for rank in 0..2 {
            let lines: Vec<_> =
                ended.err.lines().filter_map(|line| line.strip_prefix(&format!("[rank {rank}] "))).collect();
            assert_eq!(lines, [&format!("first of {rank}"), "second", "", "last, without an end"]);
        }
        assert!(!ended.out.contains("[rank"));
    }

    fn stdin_goes_to_rank_0() {
        let mut child = launch("3", "echo");
        child.stdin.as_mut().expect("a pipe").write_all(b"hello").expect("a pipe");
        let ended = end(child);
        assert_eq!((ended.code, ended.out.as_str()), (Some(0), "hello"));
    }

    fn the_exit_code_is_that_of_the_first_failure() {
        for (scenario, code, seen, how) in [
            ("code", 7, 0, ["rank 1: exited with 7", "ranks 0 and 2: ended well"]),
            ("fail", 1, 2, ["rank 1: exited with 1", "ranks 0 and 2: exited with 5"]),
            ("panic", 1, 2, ["rank 0: exited with 1", "ranks 1 and 2: exited with 5"]),
            ("kill", 137, 2, ["rank 2: killed by signal 9 (SIGKILL)", "ranks 0 and 1: exited with 5"]),
            ("leave", 1, 2, ["rank 0: exited with 0 before its end", "ranks 1 and 2: ended well"]),
            ("absent", 1, 2, ["rank 0: exited with 0 before its end", "ranks 1 and 2: ended well"]),
        ] {
            let ended = end(launch("3", scenario));
            assert_eq!(ended.code, Some(code), "{scenario}: {}", ended.err);
            assert_eq!(ended.out.matches("was lost").count(), seen, "{scenario}: {}", ended.out);
            assert!(ended.took < Duration::from_secs(5), "{scenario}: {:?}", ended.took);
            let said: Vec<&str> = ended.err.lines().filter(|line| !line.starts_with('[')).collect();
            assert_eq!(said, how, "{scenario}: {}", ended.err);
        }
    }

    fn others_are_killed_after_a_grace_period() {
        let ended = end(launch("2", "stubborn"));
        assert_eq!(ended.code, Some(3));
        let killed = "rank 0: exited with 3\nrank 1: killed by signal 9 (SIGKILL), which the launcher sent\n";
        assert!(ended.err.ends_with(killed), "{}", ended.err);
        assert!(ended.took > Duration::from_millis(300) && ended.took < Duration::from_secs(5), "{:?}", ended.took);
    }

    fn a_rank_that_ends_midway_with_code_0_has_failed() {
        let ended = end(launch("2", "midway"));
        assert_eq!(ended.code, Some(1));
        assert!(ended.took > Duration::from_millis(300) && ended.took < Duration::from_secs(5), "{:?}", ended.took);
    }

    /// `end` reads nothing before the launcher has ended.
    fn nobody_needs_to_read_stderr() {
        let ended = end(launch("2", "flood"));
        assert_eq!(ended.code, Some(7));
        assert!(ended.err.len() > 32 << 10 && ended.took < Duration::from_secs(5), "{:?}", ended.took);
        let mut child = launch("2", "flood-on");
        let out = wait_for_ranks(&mut child, 2);
        std::thread::sleep(Duration::from_millis(200));
        kill_process(Pid::from_child(&child), Signal::TERM).expect("a child");
        let ended = end(child);
        assert_eq!(ended.code, Some(143));
        assert!(ended.took < Duration::from_secs(5), "{:?}", ended.took);
        nobody_left(&out);
    }

    fn signals_to_the_launcher_end_all() {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            for scenario in ["sleep", "deaf"] {
                let mut child = launch("3", scenario);
                let out = wait_for_ranks(&mut child, 3);
                kill_process(Pid::from_child(&child), signal).expect("a child");
                let ended = end(child);
                assert_eq!(ended.code, Some(code), "{scenario}");
                assert!(ended.took < Duration::from_secs(3), "{:?}", ended.took);
                nobody_left(&out);
            }
        }
    }

    fn ranks_die_with_the_launcher() {
        let mut child = launch("3", "deaf");
        let out = wait_for_ranks(&mut child, 3);
        child.kill().expect("a child");
        child.wait().expect("a child");
        nobody_left(&out);
    }

    fn what_cannot_be_run_is_an_error() {
        let ended = end(launch("2", "no-such-program"));
        assert_eq!(ended.code, Some(99));
        assert!(ended.err.contains("/nonexistent/program can't be run as rank 0"), "{}", ended.err);
        assert_eq!(end(launch("0", "work")).code, Some(99));
    }

    fn nothing_is_left_open() {
        let ended = end(launch("2", "leftovers"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }

    fn a_damaged_variable_is_no_job_of_one() {
        let ended = end(start(&["rank", "work"], None));
        assert!(ended.out.contains("no job"));
        let wrong = [
            "",
            "3",
            "nonsense",
            "3 rank=0 ranks=1 segment_bytes=65536 memory=33 job=1",
            "3 rank=0 ranks=1 segment_bytes=65536 memory=0 job=1",
            "3 rank=1 ranks=1 segment_bytes=65536 memory=33 job=1",
        ];
        for variable in wrong {
            let ended = end(start(&["rank", "work"], Some(variable)));
            assert_eq!(ended.code, Some(88), "{variable:?}");
            assert!(ended.out.contains("refused: setting ONESIDED_JOB: "), "{variable:?}: {}", ended.out);
        }
    }

    /// Ranks that are no programs can be stuck if nobody else is in their processes.
    fn a_rank_of_one_thread_can_be_stuck() {
        let ended = end(launch("2", "stuck-alone"));
        assert_eq!(ended.code, Some(99), "{}", ended.err);
        assert!(ended.err.contains("rank 1 waits for the word at byte 0 of its region 1024.1"), "{}", ended.err);
        let ended = end(launch("2", "stuck-helped"));
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    }

    const CASES: &[(&str, fn())] = &[
        ("all_work_together", all_work_together),
        ("more_ranks_than_cpus", more_ranks_than_cpus),
        ("memory_is_reserved_and_freed", memory_is_reserved_and_freed),
        ("existing_memory_outlives_its_users", existing_memory_outlives_its_users),
        ("stderr_lines_carry_their_rank", stderr_lines_carry_their_rank),
        ("stdin_goes_to_rank_0", stdin_goes_to_rank_0),
        ("the_exit_code_is_that_of_the_first_failure", the_exit_code_is_that_of_the_first_failure),
        ("others_are_killed_after_a_grace_period", others_are_killed_after_a_grace_period),
        ("a_rank_that_ends_midway_with_code_0_has_failed", a_rank_that_ends_midway_with_code_0_has_failed),
        ("nobody_needs_to_read_stderr", nobody_needs_to_read_stderr),
        ("signals_to_the_launcher_end_all", signals_to_the_launcher_end_all),
        ("ranks_die_with_the_launcher", ranks_die_with_the_launcher),
        ("what_cannot_be_run_is_an_error", what_cannot_be_run_is_an_error),
        ("nothing_is_left_open", nothing_is_left_open),
        ("a_damaged_variable_is_no_job_of_one", a_damaged_variable_is_no_job_of_one),
        ("a_rank_of_one_thread_can_be_stuck", a_rank_of_one_thread_can_be_stuck),
    ];

    /// As much of the usual harness as `cargo test` users expect: names as filters, `--list`.
    pub(super) fn main(args: &[&str]) -> ExitCode {
        let filters: Vec<_> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
        let chosen =
            CASES.iter().filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(**filter)));
        let mut failed = 0;
        for (name, case) in chosen {
            if args.contains(&"--list") {
                println!("{name}: test");
                continue;
            }
            let start = Instant::now();
            let result = std::panic::catch_unwind(case);
            println!("test {name} ... {} ({:.2?})", if result.is_ok() { "ok" } else { "FAILED" }, start.elapsed());
            failed += u32::from(result.is_err());
        }
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
    }
}
