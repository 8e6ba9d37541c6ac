//! Entry points for fuzzing: one function for each byte format that this crate reads. Each panics
//! if an invariant does not hold. The module is public only with `--cfg fuzzing`, for the targets in
//! `fuzz/`; tests run it with seeded bytes and with the seeds of those targets.

#![allow(unreachable_pub)]

use crate::{
    Cluster, Plan, Secret, Succession, coordinator,
    handshake::{self, ANSWER, GREETING, PROOF},
    node_list,
    pmi::{self, bytes_of},
    rendezvous,
    session::memory::Memory,
    wire::{Down, Inbox, UP_LIMIT, Up},
};
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// Bytes that arrive over a connection. The first byte selects the format.
pub fn frames(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    [up, down, inbox, proofs][usize::from(kind % 4)](rest);
}

/// Texts of launchers. The first byte selects the format.
pub fn texts(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    [slurm_nodes, pmi_line, variables][usize::from(kind % 3)](rest);
}

/// A message of a session to the coordinator, without its length: decoding and re-encoding it is
/// the identity.
pub fn up(bytes: &[u8]) {
    if let Some(up) = Up::read(bytes) {
        assert_eq!(Up::read(&up.frame()[4..]), Some(up));
    }
}

/// A message of the coordinator to a session.
pub fn down(bytes: &[u8]) {
    if let Some(down) = Down::read(bytes) {
        assert_eq!(Down::read(&down.frame()[4..]), Some(down));
    }
}

/// Bytes of a connection that arrive in two parts; the messages must not depend on the split.
pub fn inbox(bytes: &[u8]) {
    let messages = |parts: [&[u8]; 2]| {
        let mut inbox = Inbox::new(UP_LIMIT);
        let mut messages = Vec::new();
        for part in parts {
            inbox.push(part);
            while let Ok(Some(message)) = inbox.message() {
                messages.push(message);
            }
        }
        messages
    };
    let at = usize::from(bytes.first().copied().unwrap_or(0)).min(bytes.len());
    let whole = messages([bytes, &[]]);
    let total: usize = whole.iter().map(|message| message.len() + 4).sum();
    assert!(total <= bytes.len());
    let (one, other) = bytes.split_at(at);
    assert_eq!(messages([one, other]), whole);
}

/// The first messages of both sides of a connection: without the secret, no proof is accepted.
pub fn proofs(bytes: &[u8]) {
    let (secret, mine) = (Secret::from_hex(&"5a".repeat(32)).expect("64 digits"), [7; 16]);
    if let Some(greeting) = bytes.first_chunk::<GREETING>() {
        let _ = handshake::read_greeting(greeting);
    }
    if let Some(answer) = bytes.first_chunk::<ANSWER>() {
        assert!(handshake::read_answer(&secret, &mine, answer).is_err());
    }
    if let Some(proof) = bytes.first_chunk::<PROOF>() {
        assert!(!handshake::proves(&secret, &mine, &mine, proof));
    }
    let _ = handshake::may_be_answer(bytes);
}

/// Messages of sessions to a coordinator or to a standby: see [`steps`].
pub fn job(bytes: &[u8]) {
    let Some(([kind, ranks], rest)) = bytes.split_first_chunk() else { return };
    let ranks = 1 + usize::from(*ranks % 4);
    let second = Duration::from_secs(1);
    let succession = Succession::AfterAnyEnd;
    let plan = Plan { ranks, join_within: second, lease: second, segment: vec![1], succession };
    coordinator::fuzz(plan, kind % 2 == 1, Instant::now(), steps(rest));
}

/// Splits bytes into steps: a byte for the connection and the event, a byte for the length, and a
/// message of that length.
fn steps(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let ([kind, length], rest) = bytes.split_first_chunk()?;
        let (message, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = rest;
        Some((*kind, message))
    })
}

/// Messages of a coordinator to a session of four ranks: the vote derived from them is valid for
/// the job.
pub fn memory(bytes: &[u8]) {
    let mut memory = Memory::new(0, [0, 0, 1, 2].into());
    for (_, message) in steps(bytes) {
        if let Some(down) = Down::read(message).filter(|down| down.fits(4)) {
            let _ = memory.note(&down, message);
        }
    }
    assert!(memory.candidates().len() <= 4 && memory.running().count() <= 4);
    let up = Up::Vote(memory.vote(vec![1], 0));
    assert_eq!(Up::read(&up.frame()[4..]), Some(up));
}

/// A Slurm node list. The limits on names bound the size of an accepted list.
pub fn slurm_nodes(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(names) = node_list(text) {
        assert!((1..=1 << 16).contains(&names.len()));
        assert!(names.iter().all(|name| !name.is_empty() && name.len() <= 253 + text.len()));
        assert!(!names.iter().any(|name| name.contains([',', '[', ']'])));
    }
}

/// A line of a PMI-1 launcher, and a value of its store.
pub fn pmi_line(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    pmi::fuzz(text);
    if let Some(value) = bytes_of(text) {
        let back: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(back.eq_ignore_ascii_case(text));
    }
}

/// The variables and lines by which this crate's launchers describe the job to a process.
pub fn variables(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(cluster) = text.parse::<Cluster>() {
        assert_eq!(cluster.to_string().parse(), Ok(cluster));
    }
    if let Ok(secret) = Secret::from_hex(text) {
        assert!(Secret::from_hex(&secret.to_hex()) == Ok(secret));
    }
    rendezvous::fuzz(text);
    // Sets some of the launchers' variables to this text.
    let _ = crate::detect(&|name| (name.len() % 2 == text.len() % 2).then(|| text.into()));
}
