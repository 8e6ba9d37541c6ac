//! Locks with a wrong step: the counts must notice.

use crate::{
    mutant::{Mutation, Rp, Step, Subject},
    play::{FIRST_SYMMETRIC, simulate},
    scene::Scene,
    scenes::{ALONE, GIVES_UP, LOOKS_AGAIN, scenes},
};
use onesided::{Amo, Rank, RegionKey, RemoteAddr};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// A step done wrong.
    Step(Step),
    /// W4, X6 and X2 as printed: an or, an and. Same lock, same number of operations.
    FlagsAsPrinted,
    /// X3 as printed: the stack is taken though no reader is counted. Same lock, an operation more.
    SweepAsPrinted,
}

/// Offsets of the lock's words at the home.
const COUNT: u64 = 0;
const READERS: u64 = 8;
const TAIL: u64 = 16;
const INTERESTED: u64 = 1;
const ACTIVE: u64 = 2;

/// A [`Fault`] at one rank, in virtual time.
#[derive(Debug)]
pub(crate) struct Faulty {
    fault: Fault,
    rp: Rp,
}

impl Faulty {
    pub(crate) fn new(fault: Fault) -> Self {
        let step = if let Fault::Step(step) = fault { step } else { Step::Right };
        Faulty { fault, rp: Rp::new(step) }
    }
}

/// [`Rp`] counts symmetric regions from zero.
fn to_rp(addr: RemoteAddr) -> RemoteAddr {
    RemoteAddr { region: RegionKey { index: addr.region.index ^ FIRST_SYMMETRIC, ..addr.region }, ..addr }
}

fn is(addr: RemoteAddr, offset: u64) -> bool {
    addr.region.index == FIRST_SYMMETRIC && addr.offset == offset
}

impl Mutation for Faulty {
    fn flushes(&self, target: Option<Rank>) -> bool {
        self.rp.flushes(target)
    }

    fn got(&self, addr: RemoteAddr, bits: u64) -> u64 {
        self.rp.got(to_rp(addr), bits)
    }

    fn atomic(&self, addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        const LEAVE: u64 = ACTIVE.wrapping_neg();
        match (self.fault, amo) {
            (Fault::FlagsAsPrinted, Amo::Add(INTERESTED)) if is(addr, COUNT) => Amo::Or(INTERESTED),
            (Fault::FlagsAsPrinted, Amo::Add(LEAVE)) if is(addr, COUNT) => Amo::And(!ACTIVE),
            _ => self.rp.atomic(to_rp(addr), amo),
        }
    }

    fn result(&self, addr: RemoteAddr, amo: Amo<u64>, old: u64) -> u64 {
        self.rp.result(to_rp(addr), amo, old)
    }

    fn first(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        if self.fault == Fault::SweepAsPrinted {
            let ends_queue = is(addr, TAIL) && matches!(amo, Amo::CompareSwap { new: 0, .. });
            return ends_queue.then_some((RemoteAddr { offset: READERS, ..addr }, Amo::Swap(0)));
        }
        self.rp.first(to_rp(addr), amo).map(|(to, amo)| (to_rp(to), amo))
    }

    fn puts(&self, addr: RemoteAddr, amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        self.rp.puts(to_rp(addr), amo).map(|(to, bits)| (to_rp(to), bits))
    }

    fn late(&self, addr: RemoteAddr, bits: u64) -> bool {
        self.rp.late(to_rp(addr), bits)
    }

    fn sees_put(&self, addr: RemoteAddr, bits: u64) {
        self.rp.sees_put(to_rp(addr), bits);
    }

    fn detaches(&self) -> bool {
        self.rp.detaches()
    }
}

/// What the counts of the reader-preference lock's scene called `name` say of `fault`.
fn verdict(name: &str, fault: Fault) -> Result<(), String> {
    let scenes = scenes();
    let flat = |scene: &&Scene| scene.lock == Subject::Flat && scene.name == name;
    let scene = scenes.iter().find(flat).unwrap_or_else(|| panic!("no scene {name:?}"));
    differences(scene, fault)
}

fn differences(scene: &Scene, fault: Fault) -> Result<(), String> {
    let differences = simulate(scene, fault)?.differences();
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}

/// Counts, and nothing else, give `fault` away.
fn is_noticed(name: &str, fault: Fault) {
    let found = verdict(name, fault).expect_err("the counts are those of the lock as it is");
    println!("{fault:?}: {found}");
    assert!(found.contains("; expected "), "not by its counts: {found}");
}

#[test]
fn the_wrapper_itself_does_not_matter() {
    for scene in scenes() {
        differences(&scene, Fault::Step(Step::Right)).unwrap_or_else(|found| panic!("{found}"));
    }
}

#[test]
fn a_head_that_is_not_flushed_is_noticed() {
    is_noticed(ALONE, Fault::Step(Step::HeadNotFlushed));
}

#[test]
fn data_that_is_not_flushed_is_noticed() {
    is_noticed(ALONE, Fault::Step(Step::DataNotFlushed));
}

#[test]
fn a_head_that_is_cleared_is_noticed() {
    is_noticed(ALONE, Fault::Step(Step::HeadClearedUnflushed));
}

#[test]
fn a_needless_sweep_is_noticed() {
    is_noticed(ALONE, Fault::SweepAsPrinted);
}

#[test]
fn flags_that_are_or_ed_are_noticed() {
    is_noticed(ALONE, Fault::FlagsAsPrinted);
}

#[test]
fn an_absent_reader_that_nobody_acts_for_is_noticed() {
    is_noticed(GIVES_UP, Fault::Step(Step::AbandonedTakenForWoken));
}

#[test]
fn a_second_look_that_sees_nothing_is_noticed() {
    is_noticed(LOOKS_AGAIN, Fault::Step(Step::NoSecondLook));
}
