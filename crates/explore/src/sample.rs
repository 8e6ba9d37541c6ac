//! Many runs with random orders, for jobs that are too large for exhaustive exploration.

use crate::{
    checks::Checks,
    live::{Event, LiveJob},
    mix::Mix,
};
use rdma_fabric::Rank;
use std::{collections::HashMap, fmt};

/// The result of random runs. A run can be repeated from its seed.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Runs that went well.
    pub runs: u64,
    /// The number of events in all runs.
    pub events: u64,
    /// The run that went wrong, if one did.
    pub failure: Option<Failure>,
}

/// A random run that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The violated condition.
    pub what: String,
    /// The seed that repeats the run.
    pub seed: u64,
    /// The events, one per line, as in a [counter-example](crate::CounterExample::timeline).
    pub timeline: Vec<String>,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Failure { what, seed, timeline }) = &self.failure {
            writeln!(f, "{what}, with seed {seed}")?;
            for line in timeline {
                writeln!(f, "  {line}")?;
            }
        }
        write!(f, "{} random runs, {} events", self.runs, self.events)
    }
}

/// Random choices with a lasting bias: within a run, each rank's steps, operations and deadlines
/// are fast or slow as a whole, which finds rare orders sooner than uniform choices.
struct Dice {
    seed: u64,
    drawn: u64,
    /// The weights of each rank's CPU, atomics and gets, puts, and clock.
    weights: Vec<[u64; 4]>,
    /// For each rank that may die, the one-in-n chance that it does so at an event; 0 means never.
    deaths: HashMap<Rank, u64>,
}

impl Dice {
    fn new(seed: u64, ranks: usize) -> Self {
        let mut dice = Dice { seed, drawn: 0, weights: Vec::new(), deaths: HashMap::new() };
        dice.weights = (0..ranks).map(|_| [(); 4].map(|()| [1, 4, 16, 64][dice.below(4) as usize])).collect();
        dice
    }

    fn below(&mut self, n: u64) -> u64 {
        self.drawn += 1;
        let mut mix = Mix::new();
        mix.add(self.seed);
        mix.add(self.drawn);
        mix.end() as u64 % n
    }

    fn choose(&mut self, job: &LiveJob, events: &[Event]) -> Event {
        let weight = |dice: &Dice, event: &Event| {
            let kind = match event {
                Event::Go(_) | Event::Learn { .. } => 0,
                Event::Happen(place) | Event::Begin(place) => 1 + usize::from(job.is_put(*place)),
                Event::Write(_) => 2,
                Event::Tick(_) => 3,
                Event::Die(_) => return 0,
            };
            dice.weights[job.actor(*event).index()][kind]
        };
        for event in events {
            if let Event::Die(rank) = event {
                let of = match self.deaths.get(rank) {
                    Some(of) => *of,
                    None => [0, 8, 40, 200][self.below(4) as usize],
                };
                self.deaths.insert(*rank, of);
                if of > 0 && self.below(of) == 0 {
                    return *event;
                }
            }
        }
        let mut left = self.below(events.iter().map(|event| weight(self, event)).sum());
        for event in events {
            let weight = weight(self, event);
            if left < weight {
                return *event;
            }
            left -= weight;
        }
        events[events.len() - 1]
    }
}

/// Does one run. Returns its number of events.
pub(crate) fn run(job: &mut LiveJob, ranks: usize, checks: &Checks<'_>, seed: u64) -> Result<u64, String> {
    /// A bound on the number of events that no run reaches.
    const MOST: u64 = 1_000_000;
    let mut dice = Dice::new(seed, ranks);
    let mut events = Vec::new();
    for count in 0..MOST {
        job.with_state(|state, cells| checks.always(state, cells))?;
        job.events(&mut events);
        // A death may happen, but need not.
        if events.iter().all(|event| matches!(event, Event::Die(_))) {
            let waiting: Vec<_> =
                (0..ranks as u32).map(Rank::new).filter(|rank| !job.has_ended(*rank)).map(|r| r.to_string()).collect();
            if !waiting.is_empty() {
                return Err(format!("deadlock: nothing is on its way, and {} wait", waiting.join(", ")));
            }
            job.with_state(|state, cells| checks.at_end(state, cells))?;
            return Ok(count);
        }
        let event = dice.choose(job, &events);
        job.act(event)?;
    }
    Err(format!("no end after {MOST} events"))
}
