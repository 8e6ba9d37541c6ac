//! A model of partitioned jobs: real coordinators, standbys, seekers and rank memories, over
//! connections whose messages are delivered in any order of connections and arbitrarily late. Hosts
//! are partitioned and reconnected at any moment, and processes are killed. A run is determined by
//! its seed.

mod rank;
mod run;

use super::{Job, Order, Phase, mutant::Mutant};
use crate::{
    Plan, Succession,
    coordinator::connection::Broken,
    wire::{Down, Frame, Up},
};
use rank::Rank;
use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

const LEASE: Duration = Duration::from_millis(1600);

/// A mutant of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunMutant {
    /// A mutant of a coordinator.
    Job(Mutant),
    /// A rank that has changed to another coordinator still answers the old one.
    AnswersBoth,
    /// A rank that gives up a connection ends it.
    EndsConnections,
}

/// A coordinator or a standby.
struct Place {
    job: Job,
    node: u32,
    /// The rank whose process contains it; the first place has a separate process.
    rank: Option<u32>,
    open: bool,
}

/// A connection of a rank to a place. `None` is the end of the connection.
struct Link {
    place: usize,
    rank: u32,
    up: VecDeque<Option<Up>>,
    down: VecDeque<Option<Frame>>,
    /// The place has closed it.
    closed: bool,
}

/// The state of a job.
struct World {
    now: Instant,
    places: Vec<Place>,
    ranks: Vec<Rank>,
    links: BTreeMap<u64, Link>,
    /// The partition of each host.
    parts: Vec<u32>,
    /// The resumed epochs and their places, in the order of resumption.
    resumed: Vec<(usize, u64)>,
    mutant: Option<RunMutant>,
    succession: Succession,
}

impl World {
    /// Starts a job with these nodes of ranks. Its coordinator runs on one of them or on a host of
    /// its own.
    fn new(nodes: &[u32], host: u32, succession: Succession, mutant: Option<RunMutant>) -> Self {
        let now = Instant::now();
        let mut job = Job::new(plan(nodes.len(), succession), 7, now).with_mutant(of_job(mutant));
        job.phase = Phase::Running;
        job.next_beat = now;
        let mut links = BTreeMap::new();
        for (rank, node) in (0..).zip(nodes) {
            let token = u64::from(rank) + 1;
            (job.members[rank as usize].line, job.members[rank as usize].node) = (Some(token), *node);
            links.insert(token, Link { place: 0, rank, up: [].into(), down: [].into(), closed: false });
        }
        let ranks = (0..nodes.len() as u32).map(|rank| Rank::new(rank, nodes, now)).collect();
        let hosts = nodes.iter().copied().max().unwrap_or(0).max(host) + 1;
        let places = vec![Place { job, node: host, rank: None, open: true }];
        let parts = vec![0; hosts as usize];
        Self { now, places, ranks, links, parts, resumed: Vec::new(), mutant, succession }
    }

    fn reach(&self, one: u32, other: u32) -> bool {
        self.parts[one as usize] == self.parts[other as usize]
    }

    /// Opens a standby for a rank.
    fn start_standby(&mut self, rank: u32) {
        let nodes = self.ranks[rank as usize].memory.nodes.clone();
        let (node, roster) = (nodes[rank as usize], crate::coordinator::Roster { rank, number: 7, nodes });
        let plan = plan(roster.nodes.len(), self.succession);
        let job = Job::standby(plan, &roster, self.now).with_mutant(of_job(self.mutant));
        self.places.push(Place { job, node, rank: Some(rank), open: true });
    }

    /// Ends a coordinator or standby, and so its connections.
    fn shut(&mut self, place: usize) {
        if std::mem::take(&mut self.places[place].open) {
            for link in self.links.values_mut().filter(|link| link.place == place && !link.closed) {
                link.closed = true;
                link.down.push_back(None);
            }
        }
    }

    /// Ends a rank's process.
    fn kill(&mut self, rank: u32) {
        if !self.ranks[rank as usize].end() {
            return;
        }
        for place in 0..self.places.len() {
            if self.places[place].rank == Some(rank) {
                self.shut(place);
            }
        }
        self.links.values_mut().filter(|link| link.rank == rank).for_each(|link| link.up.push_back(None));
    }

    /// Returns the deliverable messages: a connection, and whether the message goes to the
    /// coordinator.
    fn deliverable(&self) -> Vec<(u64, bool)> {
        let reachable = self.links.iter().filter(|(_, link)| {
            let node = self.ranks[0].memory.nodes[link.rank as usize];
            self.reach(self.places[link.place].node, node)
        });
        let both = reachable
            .flat_map(|(token, link)| [(*token, true, link.up.is_empty()), (*token, false, link.down.is_empty())]);
        both.filter(|(.., empty)| !empty).map(|(token, up, _)| (token, up)).collect()
    }

    fn deliver(&mut self, token: u64, up: bool) {
        let Some(link) = self.links.get_mut(&token) else { return };
        let (place, rank) = (link.place, link.rank);
        if !up {
            let frame = link.down.pop_front().flatten();
            let down = frame.map(|frame| (Down::read(&frame[4..]).expect("a message"), frame));
            return self.on_message(rank, token, down);
        }
        let up = link.up.pop_front().flatten();
        if link.closed || !self.places[place].open {
            return;
        }
        let now = self.now;
        let job = &mut self.places[place].job;
        let is_member = job.members[rank as usize].line == Some(token);
        match up {
            None if is_member => job.broke(now, rank, token, Broken { why: "ended".into(), may_live: false }),
            Some(up) if is_member => job.on_message(now, rank, up).expect("a good message"),
            Some(up @ Up::Vote(_)) => _ = job.receive(now, token, up),
            _ => {}
        }
        self.carry_out(place);
    }

    /// Executes the orders of a coordinator.
    fn carry_out(&mut self, place: usize) {
        while let Some(order) = self.places[place].job.next_order() {
            let (token, frame) = match order {
                Order::Send(token, frame) => (token, Some(frame)),
                Order::Close(token) | Order::CloseGently(token) => (token, None),
            };
            if let Some(frame) = &frame
                && let Some(Down::Resume { epoch, .. }) = Down::read(&frame[4..])
                && !self.resumed.iter().any(|(_, resumed)| *resumed == epoch)
            {
                self.resumed.push((place, epoch));
            }
            let Some(link) = self.links.get_mut(&token).filter(|link| !link.closed) else { continue };
            link.closed = frame.is_none();
            link.down.push_back(frame);
        }
    }

    /// Lets `time` pass.
    fn pass(&mut self, time: Duration) {
        self.now += time;
        for place in 0..self.places.len() {
            if self.places[place].open {
                self.places[place].job.tick(self.now);
                self.carry_out(place);
            }
        }
        (0..self.ranks.len() as u32).for_each(|rank| self.tick(rank));
    }

    /// Returns the coordinators that have running ranks.
    fn going_on(&self) -> Vec<usize> {
        let runs = |place: &Place| {
            place.open
                && place.job.phase == Phase::Running
                && place.job.members.iter().any(|member| member.line.is_some() && member.end.is_none())
        };
        (0..self.places.len()).filter(|place| runs(&self.places[*place])).collect()
    }

    /// Returns a violation, if there is one: a coordinator resumes an epoch after another one has
    /// resumed one since its own last, or two coordinators have resumed the same epoch.
    fn contradiction(&self) -> Option<String> {
        let mut places: Vec<usize> = self.resumed.iter().map(|(place, _)| *place).collect();
        places.dedup();
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let rises = self.resumed.is_sorted_by_key(|(_, epoch)| *epoch);
        (sorted.len() < places.len() || !rises).then(|| format!("both have resumed: {:?}", self.resumed))
    }
}

fn plan(ranks: usize, succession: Succession) -> Plan {
    Plan { ranks, join_within: LEASE, lease: LEASE, segment: Vec::new(), succession }
}

fn of_job(mutant: Option<RunMutant>) -> Option<Mutant> {
    match mutant {
        Some(RunMutant::Job(mutant)) => Some(mutant),
        _ => None,
    }
}
