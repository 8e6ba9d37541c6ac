//! Sampling: every form of a case in turn, each sample preceded by a raw ping-pong and discarded if
//! a rank was switched out during it.
//!
//! The forms of a case (over the fabric, and bare) alternate, so that a change in the machine's
//! speed affects both. Each timed run follows a shorter one that is not timed.

use super::cases::Case;
use crate::outside::{
    bare::Bare,
    lines,
    placement::{PingPong, Switches, is_same},
    rendezvous::Rendezvous,
};
use core::{
    future::Future,
    pin::Pin,
    sync::atomic::Ordering::{Acquire, Release},
    time::Duration,
};
use rdma_fabric::ProgramResult;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// One timed run of many repetitions.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    /// Nanoseconds per operation.
    pub(crate) ns: f64,
    /// The one-way time of the ping-pong right before it, in nanoseconds.
    pub(crate) ping_pong: f64,
    /// Whether no rank was switched out involuntarily, and the ping-pong takes as long right after it.
    pub(crate) clean: bool,
}

/// One form of a case, as measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Form {
    pub(crate) name: String,
    pub(crate) samples: Vec<Sample>,
}

/// A case, as measured in one job. The first form is the one that is judged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) name: String,
    /// Bytes of a transfer; 0 if there is none.
    pub(crate) bytes: usize,
    pub(crate) forms: Vec<Form>,
}

/// The length and number of samples to take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// The time that a sample should take.
    pub(super) sample: Duration,
    /// The number of clean samples wanted.
    pub(super) clean: usize,
    /// The maximum number of samples of a form.
    pub(super) tries: usize,
    /// The maximum time for a form.
    pub(super) time: Duration,
}

impl Effort {
    pub(super) const FULL: Effort =
        Effort { sample: Duration::from_micros(250), clean: 31, tries: 400, time: Duration::from_millis(1200) };
    /// Enough to see that the harness works.
    pub(super) const QUICK: Effort =
        Effort { sample: Duration::from_micros(50), clean: 7, tries: 14, time: Duration::from_millis(40) };
}

impl Effort {
    /// Returns this effort with longer or shorter samples; as many of them, if they are clean.
    pub(super) fn with_sample(self, sample: Duration) -> Self {
        Effort { sample, time: self.time.max(sample * self.clean as u32 * 2), ..self }
    }
}

/// The ranks that take part in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Rank 0; rank 1 sleeps outside the fabric.
    Origin,
    /// Both; the time reported is that of the slower one.
    Both,
}

/// The time that a run of a shape reports.
#[derive(Clone, Copy, Debug)]
pub(super) enum Took {
    /// The whole call.
    Wall,
    /// Only this part of it.
    Part(Duration),
}

/// The code that is repeated: runs a number of times, on each rank that takes part.
pub(super) trait Shape {
    fn run(&mut self, times: u64) -> Pin<Box<dyn Future<Output = ProgramResult<Took>> + '_>>;
}

impl<T: AsyncFnMut(u64) -> ProgramResult<Took>> Shape for T {
    fn run(&mut self, times: u64) -> Pin<Box<dyn Future<Output = ProgramResult<Took>> + '_>> {
        Box::pin(self(times))
    }
}

/// A form to be measured.
pub(super) type Named<'a> = (&'static str, Box<dyn Shape + 'a>);

/// Gives a shape its name.
pub(super) fn form<'a>(name: &'static str, shape: impl AsyncFnMut(u64) -> ProgramResult<Took> + 'a) -> Named<'a> {
    (name, Box::new(shape))
}

/// A form that repeats one operation: `repeat!("put", i => …)` is just the loop around it.
macro_rules! repeat {
    ($name:literal, $i:pat => $body:expr) => {
        $crate::operations::sampling::form($name, async |times| {
            for $i in 0..times {
                $body;
            }
            Ok($crate::operations::sampling::Took::Wall)
        })
    };
}

/// A form that has its own loop: `run!("store", times => …)`.
macro_rules! run {
    ($name:literal, $times:ident => $body:expr) => {
        $crate::operations::sampling::form($name, async |$times| {
            $body;
            Ok($crate::operations::sampling::Took::Wall)
        })
    };
}
pub(super) use {repeat, run};

/// Takes the samples of ranks 0 and 1.
#[derive(Debug)]
pub(super) struct Sampler<'a> {
    pub(super) bare: &'a Bare,
    pub(super) me: usize,
    pub(super) rendezvous: Rendezvous<'a>,
    effort: Effort,
    /// Whether every rank has a core to itself.
    own_core: bool,
    switches: Switches,
    ping_pong: PingPong,
    /// The results; empty on rank 1.
    pub(super) done: Vec<Measured>,
}

impl<'a> Sampler<'a> {
    pub(super) fn new(bare: &'a Bare, me: usize, effort: Effort, own_core: bool) -> ProgramResult<Self> {
        let switches = Switches::of_this_thread()?;
        let (rendezvous, ping_pong) = (Rendezvous::new(bare, me, 2), PingPong::default());
        Ok(Sampler { bare, me, rendezvous, effort, own_core, switches, ping_pong, done: Vec::new() })
    }

    /// Measures a case. Both ranks call it with the same forms.
    pub(super) async fn measure(&mut self, case: &Case, bytes: usize, mut forms: Vec<Named<'_>>) -> ProgramResult<()> {
        let mut times = Vec::new();
        for (_, shape) in &mut forms {
            times.push(self.calibrate(case.takes, &mut **shape).await?);
        }
        let mut samples: Vec<Vec<Sample>> = forms.iter().map(|_| Vec::new()).collect();
        let begun = Instant::now();
        loop {
            for (((_, shape), samples), &times) in forms.iter_mut().zip(&mut samples).zip(&times) {
                let mut sample = self.sample(case.takes, &mut **shape, times).await?;
                sample.ns /= case.operations as f64;
                samples.push(sample);
            }
            let enough = |samples: &Vec<Sample>| {
                samples.len() >= self.effort.tries
                    || samples.iter().filter(|sample| sample.clean).count() >= self.effort.clean
            };
            let over = samples.iter().all(enough) || begun.elapsed() > self.effort.time * forms.len() as u32;
            if self.decide(over.into())? == 1 {
                break;
            }
        }
        if self.me == 0 {
            let forms = forms.iter().zip(samples);
            let forms = forms.map(|((name, _), samples)| Form { name: (*name).to_owned(), samples }).collect();
            self.done.push(Measured { name: case.name.to_owned(), bytes, forms });
        }
        Ok(())
    }

    /// Returns the number of repetitions of a shape for a sample, by the fastest of three.
    async fn calibrate(&mut self, takes: Takes, shape: &mut dyn Shape) -> ProgramResult<u64> {
        const MOST: u64 = 1 << 40;
        let mut times = 1;
        loop {
            let mut best = Duration::MAX;
            for _ in 0..3 {
                self.rendezvous.meet()?;
                best = best.min(self.turn(takes, shape, times).await?);
            }
            // Rank 1 may have slept: rank 0 decides for both.
            let done = best > self.effort.sample / 3 || times >= MOST;
            let scale = self.effort.sample.as_secs_f64() / best.as_secs_f64().max(1e-9);
            let next = if done { (times as f64 * scale).round().clamp(1.0, MOST as f64) as u64 } else { times * 4 };
            let decided = self.decide(next << 1 | u64::from(done))?;
            times = decided >> 1;
            if decided & 1 == 1 {
                return Ok(times);
            }
        }
    }

    async fn sample(&mut self, takes: Takes, shape: &mut dyn Shape, times: u64) -> ProgramResult<Sample> {
        self.rendezvous.meet()?;
        let ping_pong = self.ping_pong.measure(self.bare, self.me)?;
        let before = self.switches.count()?;
        let took = self.turn(takes, shape, times).await?;
        let switched = self.switches.count()? - before;
        let line = |line: usize, rank: usize| self.bare.word(line + rank);
        line(lines::SWITCHED, self.me).store(switched, Release);
        line(lines::TOOK, self.me).store(took.as_nanos() as u64, Release);
        self.rendezvous.meet()?;
        let undisturbed = self.own_core && (0..2).all(|rank| line(lines::SWITCHED, rank).load(Acquire) == 0);
        let slowest = (0..2).map(|rank| line(lines::TOOK, rank).load(Acquire)).max().unwrap_or(0);
        let after = self.ping_pong.measure(self.bare, self.me)?;
        Ok(Sample { ns: slowest as f64 / times as f64, ping_pong, clean: undisturbed && is_same(ping_pong, after) })
    }

    /// Runs this rank's part of one run. Returns its time, 0 on a rank that slept.
    async fn turn(&mut self, takes: Takes, shape: &mut dyn Shape, times: u64) -> ProgramResult<Duration> {
        if takes == Takes::Origin && self.me == 1 {
            self.rendezvous.sleep_a_turn()?;
            return Ok(Duration::ZERO);
        }
        // The forms of a case use different memory and evict each other's from the caches; this
        // brings the form's own memory back.
        let warm_up = (times / 8).max(1);
        match takes {
            Takes::Origin => {
                self.rendezvous.begin_turn()?;
                shape.run(warm_up).await?;
            }
            Takes::Both => {
                self.rendezvous.meet()?;
                shape.run(warm_up).await?;
                self.rendezvous.meet()?;
            }
        }
        let begun = Instant::now();
        let took = shape.run(times).await?;
        let wall = begun.elapsed();
        if takes == Takes::Origin {
            self.rendezvous.end_turn();
        }
        Ok(match took {
            Took::Wall => wall,
            Took::Part(part) => part,
        })
    }

    /// Returns rank 0's value, on both ranks.
    fn decide(&mut self, value: u64) -> ProgramResult<u64> {
        let word = self.bare.word(lines::DECISION);
        self.rendezvous.meet()?;
        if self.me == 0 {
            word.store(value, Release);
        }
        self.rendezvous.meet()?;
        Ok(word.load(Acquire))
    }

    /// Announces the current case, for the progress display.
    pub(super) fn announce(&self, number: usize) {
        self.bare.word(lines::PROGRESS).store(number as u64 + 1, Release);
    }
}
