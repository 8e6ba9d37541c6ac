//! Messages by matching areas over a network that delivers in any order: small jobs, their
//! invariants, and mutants.
//!
//! In each job every message must arrive exactly once, in order within its index, with its own
//! bytes, and no rank may wait forever. If a rank dies, another rank's call may fail with an error
//! that names it.

mod cases;
mod collectives;
mod direct;
mod job;
mod mutants;

pub use cases::explorations;

use crate::{
    exploration::{Expected, Exploration, Run},
    loss::{mortal, told},
};
use ::fmpl::{Algorithm, Choice, Collective, Fmpl, FmplError, Options, Rule};
use explore::{Explorer, Probe, mutant::mutated};
use job::{Job, Member};
use mutants::{BoxesOf, FmplMutant, Mutated};
use rdma_fabric::{Caps, Fabric, Multicasts, ProgramResult, RemoteAddr};
use std::{cell::Cell, rc::Rc, time::Duration};

/// The first of a series of facts, one for each rank: whether its set-up has completed.
const SET_UP: u32 = 0;
/// The words of a message that fills its offer, and of one that is too long for it.
const SHORT: usize = 2;
const LONG: usize = 3;

/// A job, and its possible events.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    job: Job,
    ranks: usize,
    /// The bytes of the spool, and its time-out in microseconds.
    spool: Option<(usize, u64)>,
    /// The words of a message.
    words: usize,
    /// The rank that may die at any moment.
    mortal: Option<u32>,
    /// Whether puts arrive in the order posted.
    ordered: bool,
    /// Whether members synchronise before the exploration begins.
    met: bool,
    /// If barriers release their members by multicasts: the most members that one multicast reaches.
    boxes: Option<usize>,
    /// Whether members meet at a counter.
    central: bool,
    /// Whether ranks shut the library down: a rank that has spooled messages waits until they are
    /// received.
    ends: bool,
}

async fn play(
    fabric: Fabric,
    mutant_fabric: Fabric,
    case: Case,
    target: &Cell<Option<RemoteAddr>>,
) -> ProgramResult<()> {
    let (probe, me) = (Probe::of(&fabric), fabric.rank().number());
    let options = Options::default().indices(2).any_indices(1).peers(case.ranks).window(8);
    let options = match case.spool {
        Some((bytes, micros)) => options.spool(bytes, Duration::from_micros(micros)),
        None => options,
    };
    let rules: &[Rule] = match (case.boxes, case.central) {
        (Some(_), _) => &[Rule::new(Collective::Barrier, Algorithm::Mixed)],
        (None, true) => &[
            Rule::new(Collective::Barrier, Algorithm::Central),
            Rule::new(Collective::Broadcast, Algorithm::Central),
            Rule::new(Collective::Allreduce, Algorithm::Central),
        ],
        (None, false) => &[],
    };
    let options = options.collectives(Choice::By(rules.iter().cloned().collect()));
    let fmpl = Fmpl::init_with(&mutant_fabric, options).await?;
    let member = Member::new(&fabric, &fmpl, probe.clone(), case.words).await?;
    if case.met {
        member.meet().await?;
    }
    target.set(Some(member.target()));
    probe.set(SET_UP + me, 1);
    member.run(case.job).await?;
    drop(member);
    if case.ends { Ok(fmpl.finalize().await?) } else { Ok(()) }
}

impl Case {
    const fn new(name: &'static str, job: Job) -> Self {
        Case {
            name,
            job,
            ranks: 2,
            spool: None,
            words: 1,
            mortal: None,
            ordered: false,
            met: true,
            boxes: None,
            central: false,
            ends: false,
        }
    }

    const fn of(self, ranks: usize) -> Self {
        Case { ranks, ..self }
    }

    /// Returns the case with a spool of `bytes` bytes at every rank, and a time-out in microseconds, and
    /// messages that are too long for their offers.
    const fn spooled(self, name: &'static str, bytes: usize, micros: u64) -> Self {
        Case { name, spool: Some((bytes, micros)), words: LONG, ..self }
    }

    /// Returns the case with messages that travel in their offers, if they are offered in flags.
    const fn inline(self, name: &'static str) -> Self {
        Case { name, words: SHORT, ..self }
    }

    /// Returns the case with messages that are too long for their offers.
    const fn long(self, name: &'static str) -> Self {
        Case { name, words: LONG, ..self }
    }

    const fn dying(self, name: &'static str, rank: u32) -> Self {
        Case { name, mortal: Some(rank), ..self }
    }

    const fn ordered(self, name: &'static str) -> Self {
        Case { name, ordered: true, ..self }
    }

    const fn ending(self, name: &'static str) -> Self {
        Case { name, ends: true, ..self }
    }

    const fn unmet(self, name: &'static str) -> Self {
        Case { name, met: false, ..self }
    }

    /// Returns the case on a network whose multicasts reach up to `members` ranks, and release a barrier.
    const fn in_boxes(self, name: &'static str, members: usize) -> Self {
        Case { name, boxes: Some(members), ..self }
    }

    /// Returns the case with a counter at which members meet.
    const fn at_counter(self, name: &'static str) -> Self {
        Case { name, central: true, ..self }
    }

    fn explorer(self) -> Explorer<'static> {
        let mut caps = Caps::weakest();
        caps.puts_in_order = self.ordered;
        if self.boxes.is_some() {
            caps.multicasts = Multicasts::Software;
        }
        let mut explorer = Explorer::new(self.ranks).caps(caps).leave_together().set_up(SET_UP);
        if let Job::AnyTwice([first, second]) = self.job
            && first != second
        {
            explorer = explorer.possible("a message is overtaken", |view| view.fact(job::OVERTAKEN) > 0);
        }
        mortal(explorer, self.mortal)
    }

    fn exploration(self, expected: Expected, mutant: Option<FmplMutant>) -> Exploration {
        let name = match mutant {
            Some(mutant) => format!("fmpl: {mutant:?} ({})", self.name),
            None => format!("fmpl: {}", self.name),
        };
        let program = move |fabric: Fabric| {
            let (probe, target) = (Probe::of(&fabric), Rc::new(Cell::new(None)));
            let boxes = match self.boxes {
                Some(members) => mutated(fabric.clone(), BoxesOf(members)),
                None => fabric.clone(),
            };
            let mutant_fabric = match mutant {
                Some(mutant) => mutated(boxes, Mutated::new(mutant, target.clone(), fabric.rank())),
                None => boxes,
            };
            Box::pin(async move {
                let ended = play(fabric, mutant_fabric, self, &target).await;
                told::<FmplError>(&probe, ended, self.mortal)
            }) as Run
        };
        Exploration::new(name, expected, move || self.explorer(), program)
    }
}
