//! A rank is one process, once. No content of the variable about a process's job makes it lose one of
//! its own files. This program is the launcher (`launch-script <ranks>
//! <script>`), which has `sh -c <script>` run as all ranks, and these run `"$0" taken <scenario>`.

use crate::children::{REFUSED, end, open_files, start};
use process_tests::child::Child;
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, RemoteAddr};
use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create},
    io::fcntl_dupfd_cloexec,
};
use std::{
    ffi::OsString,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Command, ExitCode},
    time::Duration,
};
use tofu2_sim::shm::{JOB_VARIABLE, Launcher, run_rank};

/// Runs as the launcher.
pub(crate) fn launch_script(ranks: &str, script: &str) -> ExitCode {
    let program = std::env::current_exe().expect("own path").into_os_string();
    let command: [OsString; 3] = ["-c".into(), script.into(), program];
    let launcher = Launcher::new(ranks.parse().expect("a number"));
    let code = launcher.segment_bytes(64 << 20).command("sh", command).run().expect("a job");
    ExitCode::from(code as u8)
}

/// Returns a child's exit code and all its output.
fn end_of(child: Child) -> (Option<i32>, String) {
    let ended = end(child);
    (ended.code(), ended.printed())
}

/// Runs a script as all ranks. Returns the launcher's exit code and all output.
pub(crate) fn launch(ranks: &str, script: &str) -> (Option<i32>, String) {
    end_of(start(&["launch-script", ranks, script], &[]))
}

const REFUSAL: &str = "refused: rank 0 is another process of the job, or was one";

/// A script starts two processes as one rank: one of them becomes the rank.
pub(crate) fn at_once() {
    for _ in 0..3 {
        let (code, out) = launch("1", r#""$0" taken hold & "$0" taken hold; a=$?; wait $!; echo codes $((a + $?))"#);
        assert_eq!(code, Some(0), "{out}");
        assert_eq!(out.matches("held").count(), 1, "{out}");
        assert!(out.contains(REFUSAL) && out.contains("codes 88"), "{out}");
    }
}

pub(crate) fn one_after_the_other() {
    let (code, out) = launch("1", r#""$0" taken hold; echo first $?; "$0" taken hold"#);
    assert_eq!((code, out.matches("held").count()), (Some(88), 1), "{out}");
    assert!(out.contains("first 0") && out.contains(REFUSAL), "{out}");
}

/// A process that was the rank executes another program.
pub(crate) fn executed() {
    let (code, out) = launch("1", r#"exec "$0" taken exec"#);
    assert_eq!((code, out.contains(REFUSAL)), (Some(88), true), "{out}");
}

/// A process attaches after the command that was to be the rank has ended.
pub(crate) fn late() {
    let (code, out) = launch("1", r#"(sleep 0.3; "$0" taken hold) & exit 0"#);
    assert_eq!((code, out.contains(REFUSAL), out.contains("held")), (Some(0), true, false), "{out}");
}

/// The variable names the number of a file that the program owns.
pub(crate) fn forged() {
    for (variable, problem) in [
        ("3 rank=0 ranks=1 segment_bytes=65536 memory=33 job=1", "names file 33, which has another size"),
        ("3 rank=0 ranks=1 segment_bytes=65536 memory=34 job=0", "names file 34, which has another size"),
    ] {
        let (code, out) = end_of(start(&["taken", "forged"], &[(JOB_VARIABLE, variable)]));
        assert_eq!((code, out.contains(problem), out.contains("is still there")), (Some(88), true, true), "{out}");
    }
}

/// The files that a rank has open and the length of its variable do not grow with the number of
/// ranks; two hundred ranks start and meet.
pub(crate) fn many_ranks() {
    let two = output_of_each("2");
    assert_eq!(output_of_each("200"), two);
    println!("each rank: {two}");
}

/// Returns the output of each of `ranks` ranks, which must be the same.
fn output_of_each(ranks: &str) -> String {
    let (code, out) = launch(ranks, r#"exec "$0" taken meet"#);
    assert_eq!(code, Some(0), "{out}");
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len().to_string(), ranks, "{out}");
    assert!(lines.iter().all(|line| *line == lines[0]), "{out}");
    lines[0].to_owned()
}

pub(crate) fn orphaned() {
    let script = r#"case "$ONESIDED_JOB" in
        *rank=0*) exec "$0" taken orphan;;
        *) "$0" taken orphan & sleep 0.3;;
    esac"#;
    for _ in 0..3 {
        let (_, out) = launch("2", script);
        assert!(out.lines().any(|line| line == "taken"), "{out}");
    }
}

/// Runs as a rank.
pub(crate) fn rank(scenario: &str) -> ExitCode {
    let owned = (scenario == "forged").then(own_file);
    let files = open_files();
    let endpoint = match tofu2_sim::shm::from_env() {
        Ok(endpoint) => endpoint.expect("the variable is there"),
        Err(error) => {
            println!("refused: {error}");
            assert_eq!(open_files(), files, "opened or closed: {error}");
            if let Some((file, inode)) = owned {
                assert_eq!(fstat(&file).map(|stat| stat.st_ino), Ok(inode), "taken away: {error}");
                println!("{} is still there", file.as_raw_fd());
            }
            return ExitCode::from(REFUSED);
        }
    };
    if scenario == "exec" {
        let error = Command::new(std::env::current_exe().expect("own path")).args(["taken", "hold"]).exec();
        panic!("not executed: {error}");
    }
    let code = run_rank(endpoint, &async |fabric| run_scenario(fabric, scenario.to_owned()).await).expect("a good end");
    // The library must not close the file that the process inherited.
    assert_eq!(open_files(), files, "opened or closed");
    ExitCode::from(code)
}

/// Makes a file of this program's own, of the kind and number that the variable names. Returns it
/// and its inode.
fn own_file() -> (OwnedFd, u64) {
    let variable = std::env::var(JOB_VARIABLE).expect("the variable is there");
    let number = |name: &str| variable.split(' ').find_map(|word| word.strip_prefix(name)?.parse().ok());
    let memory = number("memory=").expect("a number");
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = memfd_create("onesided-job", flags).expect("a file");
    // The file is as long as the variable requires.
    ftruncate(&file, number("file_bytes=").unwrap_or(1 << 20) as u64).expect("a length");
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL).expect("seals");
    let file = fcntl_dupfd_cloexec(&file, memory).expect("a number");
    assert_eq!(file.as_raw_fd(), memory, "taken already");
    let inode = fstat(&file).expect("open").st_ino;
    (file, inode)
}

async fn run_scenario(fabric: Fabric, scenario: String) -> ProgramResult<u8> {
    match scenario.as_str() {
        "hold" => hold(&fabric)?,
        "meet" => {
            let mut world = Group::world(&fabric).await?;
            let region = fabric.alloc_symmetric(8).await?;
            let next = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
            let word = fabric.remote_word::<u64>(RemoteAddr { rank: next, region: region.key(), offset: 0 })?;
            fabric.fetch_add(&word, 1).await?;
            world.barrier().await?;
            assert_eq!(fabric.load(&region.word::<u64>(&fabric, 0)?)?, 1);
            let variable = std::env::var(JOB_VARIABLE)?;
            println!("{} files, {} bytes", open_files(), variable.len() / 32);
            world.barrier().await?;
        }
        "orphan" => orphan(&fabric).await?,
        _ => return Err(format!("no scenario {scenario}").into()),
    }
    Ok(0)
}

/// The memory is zero at first, and no other process writes it.
fn hold(fabric: &Fabric) -> ProgramResult<()> {
    let region = fabric.alloc(1 << 16)?;
    let words = region.span::<u64>(fabric, 0, 1 << 13)?;
    let mut seen = vec![1u64; 1 << 13];
    fabric.read(&words, &mut seen)?;
    assert!(seen.iter().all(|&word| word == 0), "dirty memory");
    let mine = vec![u64::from(std::process::id()); 1 << 13];
    fabric.write(&words, &mine)?;
    std::thread::sleep(Duration::from_millis(300));
    fabric.read(&words, &mut seen)?;
    assert!(seen == mine, "another process wrote");
    println!("held");
    Ok(())
}

/// Rank 1's command ends before its process, which continues to copy into memory of rank 0.
async fn orphan(fabric: &Fabric) -> ProgramResult<()> {
    const BYTES: usize = 32 << 20;
    const OWNER: Rank = Rank::new(0);
    let mut world = Group::world(fabric).await?;
    let mine = (fabric.rank() == OWNER).then(|| fabric.register(vec![0u8; BYTES])).transpose()?;
    let key = mine.as_ref().map_or(RegionKey { index: 0, generation: 0 }, |mine| mine.key());
    let key = world.broadcast(0, key).await?;
    let Some(mine) = mine else {
        let mut bytes = vec![0u8; BYTES];
        for round in 1u64.. {
            bytes.fill(round as u8);
            let addr = RemoteAddr { rank: OWNER, region: key, offset: 0 };
            let Ok(whole) = fabric.remote_span::<u8>(addr, BYTES) else { break };
            let Ok(back) = fabric.put(&whole, bytes).await else { break };
            bytes = back;
        }
        std::process::exit(0);
    };
    let region = fabric.alloc(8)?;
    let lost = fabric.wait_until(&region.word::<u64>(fabric, 0)?, Deps::One(Rank::new(1)), |_| false).await;
    assert_eq!(lost, Err(FabricError::PeerLost { rank: Rank::new(1) }));
    let taken = mine.take().await?;
    // Samples single bytes all over the memory: a copy in progress has not passed all of them.
    let some = || taken.iter().step_by(BYTES / 64).copied().collect::<Vec<_>>();
    let before = some();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(some(), before, "written after it was taken");
    println!("taken");
    Ok(())
}
