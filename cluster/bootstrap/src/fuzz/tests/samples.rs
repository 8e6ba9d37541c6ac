//! Random values and messages of every kind, determined by a seed.

use crate::{
    Hello, Refusal, Succession,
    wire::{Down, Up, Vote},
};
use fastrand::Rng;
use std::{net::SocketAddr, time::Duration};

/// The number of kinds of messages to the coordinator.
pub(super) const UPS: u64 = 12;
/// The number of kinds of messages to a session.
pub(super) const DOWNS: u64 = 18;
/// The number of kinds of refusals.
const REFUSALS: u64 = 8;

pub(super) struct Random(Rng);

impl Random {
    pub(super) fn of(seed: u64) -> Self {
        Self(Rng::with_seed(seed))
    }

    fn next(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Returns a number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0.u64(..limit)
    }

    /// Returns up to `most` bytes.
    pub(super) fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most + 1)).map(|_| self.next() as u8).collect()
    }

    /// Changes some bytes, or none.
    pub(super) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len() as u64 + 1) as usize;
            match self.below(5) {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, self.next() as u8),
                // A length or a number at its limits.
                2 => {
                    let value = [0, 1, 0x7fff_ffff, u32::MAX][self.below(4) as usize];
                    for (byte, new) in bytes.iter_mut().skip(at).zip(value.to_le_bytes()) {
                        *byte = new;
                    }
                }
                3 if at < bytes.len() => _ = bytes.remove(at),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << self.below(8)),
            }
        }
    }

    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => self.next(),
            1 => u64::MAX - self.below(3),
            _ => self.below(5),
        }
    }

    fn rank(&mut self) -> u32 {
        if self.below(8) == 0 { self.number() as u32 } else { self.below(4) as u32 }
    }

    fn text(&mut self) -> String {
        ["", "killed", "host.example", "ünï©ode", "0"][self.below(5) as usize].to_owned()
    }

    fn time(&mut self) -> Duration {
        Duration::from_nanos(self.number())
    }

    fn many<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(5)).map(|_| one(self)).collect()
    }

    fn maybe<T>(&mut self, one: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| one(self))
    }

    fn address(&mut self) -> SocketAddr {
        let port = self.next() as u16;
        match self.below(2) {
            0 => (self.next().to_le_bytes().first_chunk::<4>().copied().unwrap_or_default(), port).into(),
            _ => ([self.next().to_le_bytes(), self.next().to_le_bytes()].concat().try_into().unwrap_or([0; 16]), port)
                .into(),
        }
    }
}

pub(super) fn hello(rank: u32, ranks: usize) -> Hello {
    let (build, provider, host, node) = ("b".into(), "p".into(), "h".into(), format!("n{}", rank / 2));
    Hello { rank, ranks, build, provider, host, node }
}

pub(super) fn hex(random: &mut Random) -> String {
    (0..64).map(|_| char::from(b"0123456789abcdefABCDEF"[random.below(22) as usize])).collect()
}

/// Returns a vote whose last resume belongs to a job of four ranks.
pub(super) fn vote(rank: u32, epoch: u64, round: u64) -> Vote {
    let resume = Down::Resume { epoch, contacts: vec![None; 4], lost: vec![] }.frame();
    let resume = if epoch > 0 { resume[4..].to_vec() } else { Vec::new() };
    Vote { rank, epoch, resume, round, ..Vote::default() }
}

fn any_vote(random: &mut Random) -> Vote {
    Vote {
        ended: random.many(|random| (random.rank(), random.maybe(Random::text))),
        pending: random.many(|random| (random.number(), random.many(Random::rank))),
        dead: random.many(Random::rank),
        ..vote(random.rank(), random.number(), random.number())
    }
}

pub(super) fn any_up(random: &mut Random) -> Up {
    match random.below(UPS) {
        0 => {
            let (rank, ranks) = (random.rank(), random.number() as usize);
            Up::Hello(hello(rank, ranks), random.maybe(Random::address))
        }
        1 => Up::Beat,
        2 => Up::Item { round: random.number(), within: random.time(), bytes: random.bytes(9) },
        3 => Up::Drained { epoch: random.number() },
        4 => Up::Reopened { epoch: random.number(), contact: random.bytes(9) },
        5 => Up::Left,
        6 => Up::Lost { text: random.text() },
        7 => Up::Abort { code: random.number() as i32, text: random.text() },
        8 => Up::Waits { stamp: random.maybe(Random::number) },
        9 => Up::Still { wave: random.number(), stamp: random.maybe(Random::number) },
        10 => Up::Vote(any_vote(random)),
        _ => Up::Deserts,
    }
}

pub(super) fn any_down(random: &mut Random) -> Down {
    let end = |random: &mut Random| (random.rank(), random.text());
    match random.below(DOWNS) {
        0 => Down::Noted { ranks: random.number() as usize, segment: random.number() as usize },
        1 => Down::Refused(any_refusal(random)),
        2 => Down::Welcome {
            nodes: random.many(Random::rank),
            hosts: random.many(Random::text),
            age: random.time(),
            job: random.number(),
            lease: random.time(),
            segment: random.bytes(9),
            succession: [Succession::Never, Succession::AfterSilence, Succession::AfterAnyEnd]
                [random.below(3) as usize],
            standbys: random.many(|random| random.maybe(Random::address)),
        },
        3 => Down::Beat,
        4 => Down::Gathered { round: random.number(), items: random.many(|random| random.bytes(9)) },
        5 => Down::Incomplete { round: random.number(), absent: random.many(Random::rank), ended: random.many(end) },
        6 => Down::Drain { epoch: random.number(), lost: random.many(Random::rank) },
        7 => Down::Reopen { epoch: random.number() },
        8 => Down::Resume {
            epoch: random.number(),
            contacts: random.many(|random| random.maybe(|random| random.bytes(9))),
            lost: random.many(end),
        },
        9 => Down::Left { rank: random.rank() },
        10 => Down::Lost { rank: random.rank(), text: random.text() },
        11 => {
            let rank = random.maybe(Random::rank);
            Down::Aborted { rank, code: random.number() as i32, text: random.text() }
        }
        12 => Down::AllEnded,
        13 => Down::Confirm { wave: random.number() },
        14 => Down::Deadlock { waiting: random.number() as usize },
        15 => Down::Dismissed { text: random.text() },
        16 => Down::Elected,
        _ => Down::NotElected { text: random.text() },
    }
}

fn any_refusal(random: &mut Random) -> Refusal {
    let (rank, host, other, other_host) = (random.rank(), random.text(), random.rank(), random.text());
    match random.below(REFUSALS) {
        0 => Refusal::RankOutOfRange { rank, host, ranks: random.number() as usize },
        1 => Refusal::RankTaken { rank, first: host, second: other_host },
        2 => Refusal::OtherRanks { rank, host, theirs: random.number() as usize, ours: random.number() as usize },
        3 => Refusal::OtherBuild { rank, host, build: random.text(), other, other_host, other_build: random.text() },
        4 => {
            let (provider, other_provider) = (random.text(), random.text());
            Refusal::OtherProvider { rank, host, provider, other, other_host, other_provider }
        }
        5 => {
            let (first, within) = (random.many(Random::rank), random.time());
            Refusal::Missing { first, count: random.number() as usize, ranks: random.number() as usize, within }
        }
        6 => Refusal::Died { rank, host, text: random.text() },
        _ => Refusal::Aborted { text: random.text() },
    }
}
