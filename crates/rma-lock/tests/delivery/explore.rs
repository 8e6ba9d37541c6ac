//! Running a job over all delivery orders, or over many random ones.

use crate::{
    fabric::NetFabric,
    net::{Action, Net, mix},
};
use rdma_fabric::Rank;
use std::{
    cell::RefCell,
    collections::HashSet,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

/// A rank's program, ready to run.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A job to be run many times, each time from the start.
pub(crate) struct Case<'a> {
    pub(crate) ranks: usize,
    pub(crate) cells_per_rank: usize,
    /// Starts the ranks' programs of one run.
    pub(crate) start: &'a dyn Fn(&[NetFabric]) -> Vec<Task>,
    /// Looks at the memory after a run that ended well.
    pub(crate) end: &'a dyn Fn(&Net),
}

/// How a run chooses among what may happen.
trait Choose {
    fn choose(&mut self, net: &Net, actions: &[Action]) -> usize;
}

impl Case<'_> {
    /// One run. Panics on deadlock, and wherever the programs do.
    fn run(&self, choose: &mut impl Choose) {
        let net = Rc::new(RefCell::new(Net::new(self.ranks, self.cells_per_rank)));
        let fabrics: Vec<_> = (0..self.ranks as u32).map(|r| NetFabric::new(net.clone(), Rank::new(r))).collect();
        let mut tasks: Vec<Option<Task>> = (self.start)(&fabrics).into_iter().map(Some).collect();
        let detached = net.borrow().detached.clone();
        let mut ended = vec![false; self.ranks];
        let mut actions = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            net.borrow().actions(&mut actions);
            if actions.is_empty() {
                break;
            }
            let chosen = if actions.len() == 1 { 0 } else { choose.choose(&net.borrow(), &actions) };
            net.borrow_mut().act(actions[chosen]);
            let Action::Step(rank) = actions[chosen] else { continue };
            if let Some(task) = &mut tasks[rank]
                && let Poll::Ready(()) = task.as_mut().poll(&mut cx)
            {
                tasks[rank] = None;
            }
            // A rank has left when what it detached is over.
            let over = detached.poll(Rank::new(rank as u32), &mut cx);
            if !ended[rank] && tasks[rank].is_none() && over {
                ended[rank] = true;
                net.borrow_mut().leave(rank);
            }
        }
        let waiting: Vec<_> = (0..self.ranks).filter(|rank| !ended[*rank]).collect();
        assert!(waiting.is_empty(), "deadlock: nothing is on its way and ranks {waiting:?} wait");
        (self.end)(&net.borrow());
    }

    /// Every state that any order of delivery leads to. Returns how many there are, or what went wrong first. `limit` guards
    /// against a case that has grown too large.
    pub(crate) fn exhaust(&self, limit: usize) -> Result<usize, String> {
        let mut walk =
            Walk { visited: HashSet::new(), todo: vec![Vec::new()], path: Vec::new(), given: 0, at: 0, new: true };
        while let Some(prefix) = walk.todo.pop() {
            (walk.given, walk.at, walk.new) = (prefix.len(), 0, true);
            walk.path = prefix;
            caught(|| self.run(&mut walk)).map_err(|message| {
                format!("{message}, after {} states, by choices {:?}", walk.visited.len(), &walk.path[..walk.at])
            })?;
            if walk.visited.len() > limit {
                return Err(format!("more than {limit} states"));
            }
        }
        Ok(walk.visited.len())
    }

    /// `runs` runs at random from `seed` on. The error tells the seed of the run that failed.
    pub(crate) fn sample(&self, seed: u64, runs: u64) -> Result<(), String> {
        for seed in seed..seed + runs {
            let mut dice = Dice::new(seed, self.ranks);
            caught(|| self.run(&mut dice)).map_err(|message| format!("{message}, with seed {seed}"))?;
        }
        Ok(())
    }
}

fn caught(run: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default()
    })
}

/// Depth first. A state is known by its hash; coming to a known one, the run goes on to some end without
/// branching, so that programs are never left half-way.
struct Walk {
    visited: HashSet<u64>,
    /// Choices that lead to the states not gone to yet.
    todo: Vec<Vec<u16>>,
    path: Vec<u16>,
    /// How many choices of `path` were given.
    given: usize,
    /// How many choices were made.
    at: usize,
    /// Whether the run is in new states.
    new: bool,
}

impl Choose for Walk {
    fn choose(&mut self, net: &Net, actions: &[Action]) -> usize {
        self.at += 1;
        if self.at <= self.given {
            return self.path[self.at - 1] as usize;
        }
        self.new = self.new && self.visited.insert(net.hash());
        if self.new {
            for other in 1..actions.len() as u16 {
                let mut path = Vec::with_capacity(self.path.len() + 1);
                path.extend_from_slice(&self.path);
                path.push(other);
                self.todo.push(path);
            }
        }
        self.path.push(0);
        0
    }
}

/// Random, with lasting likes and dislikes: in each run every rank's steps, operations and puts are fast or slow as
/// a whole, which finds the rare orders sooner than fair dice.
struct Dice {
    state: u64,
    /// Per rank: step, execute, deliver, expire.
    weights: Vec<[u64; 4]>,
}

impl Dice {
    fn new(seed: u64, ranks: usize) -> Self {
        let mut dice = Dice { state: mix(seed, 0x6a09_e667), weights: Vec::new() };
        dice.weights = (0..ranks).map(|_| [(); 4].map(|()| [1, 4, 16, 64][dice.below(4) as usize])).collect();
        dice
    }

    fn below(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state, 0x3c6e_f372) % n
    }
}

impl Choose for Dice {
    fn choose(&mut self, net: &Net, actions: &[Action]) -> usize {
        let weight = |dice: &Dice, action: &Action| {
            let kind = match action {
                Action::Step(_) => 0,
                Action::Execute(_) => 1,
                Action::Deliver(_) => 2,
                Action::Expire(_) => 3,
            };
            dice.weights[net.actor(*action)][kind]
        };
        let sum = actions.iter().map(|action| weight(self, action)).sum();
        let mut left = self.below(sum);
        for (i, action) in actions.iter().enumerate() {
            let weight = weight(self, action);
            if left < weight {
                return i;
            }
            left -= weight;
        }
        actions.len() - 1
    }
}
