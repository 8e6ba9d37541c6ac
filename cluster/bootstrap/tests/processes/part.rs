//! The processes of a job. They print the events that they receive, a line for each.

use bootstrap::{Coordinator, Event, Hello, Plan, Secret, Session, Speaker, Succession};
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    time::{ClockId, clock_gettime},
};
use std::{
    io::{Read, stdin},
    thread::sleep,
    time::Duration,
};

/// The time after which a hanging process ends.
pub(crate) const LONG: Duration = Duration::from_secs(30);

/// Runs the role given by the words: `coordinator RANKS LEASE_MS SUCCESSION [starved]`, or
/// `rank RANK RANKS NODE ADDRESS HOLD`. The process first reads the secret from its standard input,
/// whose end ends the process.
pub(crate) fn play(words: &[String]) {
    let mut secret = [0; 64];
    stdin().read_exact(&mut secret).expect("a secret");
    let secret = Secret::from_hex(std::str::from_utf8(&secret).expect("text")).expect("a secret");
    let number = |index: usize| words[index].parse::<usize>().expect("a number");
    if words[0] == "coordinator" {
        let lease = Duration::from_millis(number(2) as u64);
        let succession = [Succession::Never, Succession::AfterSilence, Succession::AfterAnyEnd][number(3)];
        let plan = Plan { ranks: number(1), join_within: LONG, lease, segment: Vec::new(), succession };
        let coordinator = Coordinator::start("127.0.0.1:0".parse().expect("an address"), secret, plan).expect("start");
        println!("{}", coordinator.address());
        if words.get(4).is_some_and(|word| word == "starved") {
            starve();
        }
        let _ = stdin().read(&mut [0]);
        return;
    }
    let rank = number(1) as u32;
    // The epoch whose drain it does not answer.
    let hold = number(5) as u64;
    let (address, hello) = (words[4].parse().expect("an address"), hello(rank, number(2), &words[3]));
    let session = Session::join(address, &secret, hello, LONG, print_and_answer(rank, hold));
    match session {
        Ok(session) => {
            println!("joined");
            let _ = stdin().read(&mut [0]);
            drop(session);
        }
        Err(error) => println!("error {error}"),
    }
}

/// Leaves no descriptor for a connection while it is pending, and prints the CPU time that this process
/// uses then, in ms.
fn starve() {
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), ..before }).expect("lower");
    println!("starved");
    let _ = stdin().read(&mut [0]);
    let used = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("a time");
    let begun = used();
    sleep(Duration::from_millis(500));
    println!("used {}", (used() - begun).as_millis());
    setrlimit(Resource::Nofile, before).expect("raise");
}

pub(crate) fn hello(rank: u32, ranks: usize, node: &str) -> Hello {
    let (build, provider, host) = ("1".into(), "tests".into(), "here".into());
    Hello { rank, ranks, build, provider, host, node: node.into() }
}

/// Prints events and answers them, except the drain of the epoch `hold`.
pub(crate) fn print_and_answer(rank: u32, hold: u64) -> impl FnMut(&Speaker, Event) + Send + 'static {
    move |speaker, event| match &event {
        Event::Drain { epoch, lost } => {
            println!("drain {epoch} {lost:?}");
            if *epoch != hold {
                speaker.drained(*epoch).expect("drained");
            }
        }
        Event::Reopen { epoch } => {
            println!("reopen {epoch}");
            speaker.reopened(*epoch, vec![rank as u8]).expect("reopened");
        }
        Event::Resume { epoch, contacts, lost } => println!("resume {epoch} {contacts:?} {lost:?}"),
        Event::Aborted { code, text, .. } => println!("aborted {code} {text}"),
        Event::CoordinatorLost => println!("coordinator lost"),
        Event::CutOff { text } => println!("cut off: {text}"),
        Event::Dismissed { text } => println!("dismissed: {text}"),
        other => println!("{other:?}"),
    }
}
