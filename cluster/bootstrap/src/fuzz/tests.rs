//! Runs the entry points with seeded bytes: random ones, and messages with some bytes changed.

mod samples;

use super::*;
use fabric_conformance::seeds::replay;
use samples::{DOWNS, Random, UPS, any_down, any_up, hello};

/// The number of cases of each of the ten targets.
const CASES: u64 = 20_000;

/// Prints the seed of a case that fails.
struct Case(u64);

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the case of seed {} failed", self.0);
        }
    }
}

/// Calls `target` with random bytes, and with samples in which some bytes are changed.
fn run(target: fn(&[u8]), mut sample: impl FnMut(&mut Random) -> Vec<u8>) {
    for seed in 0..CASES {
        let _case = Case(seed);
        let mut random = Random::of(seed);
        let mut bytes = if seed % 4 == 0 { random.bytes(64) } else { sample(&mut random) };
        random.mutate(&mut bytes);
        target(&bytes);
    }
}

/// Returns steps with these messages.
fn steps_of(random: &mut Random, mut message: impl FnMut(&mut Random) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = random.bytes(2);
    bytes.resize(2, 0);
    for _ in 0..random.below(12) {
        // Most steps send a message, over few connections.
        let kind = if random.below(4) == 0 { random.below(32) } else { 24 + random.below(4) };
        let message = message(random);
        bytes.extend([kind as u8, message.len().min(255) as u8]);
        bytes.extend(message.iter().take(255));
    }
    bytes
}

#[test]
fn messages_come_back() {
    for seed in 0..CASES {
        let _case = Case(seed);
        let mut random = Random::of(seed);
        let up = any_up(&mut random);
        assert_eq!(Up::read(&up.frame()[4..]), Some(up));
        let down = any_down(&mut random);
        assert_eq!(Down::read(&down.frame()[4..]), Some(down));
    }
}

#[test]
fn every_kind_of_message_is_a_sample() {
    let mut random = Random::of(1);
    let kinds = |frames: Vec<u8>| frames.into_iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
    assert_eq!(kinds((0..1000).map(|_| any_up(&mut random).frame()[4]).collect()), UPS);
    assert_eq!(kinds((0..1000).map(|_| any_down(&mut random).frame()[4]).collect()), DOWNS);
}

#[test]
fn any_bytes_are_messages_or_none() {
    run(up, |random| any_up(random).frame()[4..].to_vec());
    run(down, |random| any_down(random).frame()[4..].to_vec());
    run(inbox, |random| (0..3).flat_map(|_| any_up(random).frame().to_vec()).collect());
}

#[test]
fn any_bytes_prove_nothing() {
    run(proofs, |_| handshake::greeting(&[3; 16]).iter().copied().chain([0; 16]).collect());
}

#[test]
fn a_coordinator_withstands_any_messages() {
    run(job, |random| {
        steps_of(random, |random| match random.below(3) {
            0 => Up::Hello(hello(random.below(4) as u32, 1 + random.below(4) as usize), None).frame()[4..].to_vec(),
            _ => any_up(random).frame()[4..].to_vec(),
        })
    });
}

#[test]
fn a_session_withstands_any_messages() {
    run(memory, |random| steps_of(random, |random| any_down(random).frame()[4..].to_vec()).split_off(2));
}

#[test]
fn any_text_is_what_launchers_tell_or_none() {
    let text = |random: &mut Random, words: &[&str]| -> Vec<u8> {
        let count = 1 + random.below(12);
        (0..count).flat_map(|_| words[random.below(words.len() as u64) as usize].bytes()).collect()
    };
    let nodes = ["n", "gpu", "[", "]", "[1-3]", "[01-40]", ",", "-", "9", "0-", "x.y"];
    run(slurm_nodes, |random| text(random, &nodes));
    let lines = ["cmd=get_result ", "rc=0 ", "value=", "2x00ff", "4097x", "keylen_max=64 ", "=", "\n", "1x", "ff"];
    run(pmi_line, |random| text(random, &lines));
    let own = ["v1;rank=1;ranks=4;coordinator=1.2.3.4:5;secret=stdin", "v1;[::]:0;4;5;6", ";", "fd:1", "9"];
    run(variables, |random| text(random, &own));
    run(variables, |random| samples::hex(random).into_bytes());
}

#[test]
fn seeds_of_fuzz_targets_are_withstood() {
    replay(env!("CARGO_MANIFEST_DIR"), "coordinator_frames", frames);
    replay(env!("CARGO_MANIFEST_DIR"), "coordinator_job", job);
    replay(env!("CARGO_MANIFEST_DIR"), "session_memory", memory);
    replay(env!("CARGO_MANIFEST_DIR"), "launcher_texts", texts);
}

/// A short list does not allocate gigabytes.
#[test]
fn a_long_name_of_many_nodes_is_refused() {
    let list = format!("{}[1-65536]", "n".repeat(100_000));
    assert_eq!(node_list(&list).unwrap_err().why, "a name has more than 253 bytes");
    assert_eq!(node_list(&format!("{}[1-65536]", "n".repeat(253))).map(|names| names.len()), Ok(65536));
}

/// Numbers so large that computing the next one would overflow; no job reaches them.
#[test]
fn votes_that_no_job_has_are_refused() {
    let vote = samples::vote(2, u64::MAX, u64::MAX);
    assert!(!vote.fits(4));
    assert!(samples::vote(2, 0, 5).fits(4));
    assert!(!samples::vote(4, 0, 5).fits(4));
    let frame = Up::Vote(vote).frame();
    let message = &frame[4..];
    // A standby of four ranks, a vote over connection 1, then an item of the last exchange.
    let item = Up::Item { round: u64::MAX, within: Duration::MAX, bytes: vec![] }.frame();
    let mut bytes = vec![1, 3];
    for message in [message, &item[4..]] {
        bytes.extend([25, message.len() as u8]);
        bytes.extend(message);
    }
    job(&bytes);
}
