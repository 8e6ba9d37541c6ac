//! Random schedules against a simulator that is as simple as can be: one list of events, to which what
//! can't start returns, and lists of receives and messages that are searched from the front.

use proptest::prelude::*;
use std::collections::VecDeque;
use tofu2_virt::goal::{Builder, LogGps, Operation, ReplayError, Work};

/// A rank's operations, and for each what it requires: the earlier one, whether only its start.
type Ranks = Vec<Vec<(Operation, Vec<(usize, bool)>)>>;

#[derive(Clone, Copy)]
struct Event {
    time: u64,
    stamp: u64,
    rank: usize,
    operation: usize,
    is_message: bool,
}

/// A message that arrived, or a posted receive: its rank, its operation, when it was received.
type Entry = (usize, usize, u64);

struct Naive<'a> {
    ranks: &'a Ranks,
    machine: LogGps,
    events: Vec<Event>,
    stamps: u64,
    missing: Vec<Vec<usize>>,
    cpu: Vec<u64>,
    sending: Vec<u64>,
    receiving: Vec<u64>,
    posted: Vec<VecDeque<Entry>>,
    arrived: Vec<VecDeque<Entry>>,
    freed: Vec<(usize, usize)>,
    open: usize,
}

impl Naive<'_> {
    /// Returns the finishing times, or nothing if something never finishes.
    fn run(mut self) -> Option<Vec<u64>> {
        for rank in 0..self.ranks.len() {
            let free = (0..self.ranks[rank].len()).filter(|index| self.missing[rank][*index] == 0);
            self.freed.extend(free.map(|index| (rank, index)));
            self.schedule_freed();
        }
        while let Some(first) = (0..self.events.len()).min_by_key(|at| (self.events[*at].time, self.events[*at].stamp))
        {
            let event = self.events.swap_remove(first);
            self.step(event);
            self.schedule_freed();
        }
        (self.open == 0).then_some(self.cpu)
    }

    fn step(&mut self, event: Event) {
        let Event { time: now, rank, operation, .. } = event;
        let LogGps { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager_bytes } = self.machine;
        let work = self.ranks[rank][operation].0.work;
        let host = match work {
            Work::Send { to, .. } if event.is_message => to as usize,
            _ => rank,
        };
        let free = match work {
            Work::Calc { .. } => self.cpu[host],
            Work::Recv { .. } => 0,
            Work::Send { .. } if event.is_message => self.cpu[host].max(self.receiving[host]),
            Work::Send { .. } => self.cpu[host].max(self.sending[host]),
        };
        if free > now {
            self.events.push(Event { time: free, ..event });
            return;
        }
        match work {
            Work::Calc { nanoseconds } => {
                self.cpu[host] = now + 1000 * nanoseconds;
                self.open -= 1;
                self.fire(rank, operation, true);
                self.fire(rank, operation, false);
            }
            Work::Send { bytes, .. } if event.is_message => {
                let more = bytes - 1;
                let end = now + overhead + more * overhead_per_byte.max(gap_per_byte);
                self.cpu[host] = end;
                self.receiving[host] = now + gap + more * gap_per_byte;
                let found = self.posted[host].iter().position(|entry| self.matches((rank, operation), entry));
                match found.and_then(|at| self.posted[host].remove(at)) {
                    Some(receive) => self.deliver((rank, operation), receive, now),
                    None => self.arrived[host].push_back((rank, operation, end)),
                }
            }
            Work::Send { bytes, .. } => {
                let more = bytes - 1;
                self.cpu[rank] = now + overhead + more * overhead_per_byte;
                self.sending[rank] = now + gap + more * gap_per_byte;
                let time = now + overhead + latency;
                self.events.push(Event { time, stamp: self.stamps, is_message: true, ..event });
                self.stamps += 1;
                self.fire(rank, operation, true);
                if bytes <= eager_bytes {
                    self.fire(rank, operation, false);
                }
            }
            Work::Recv { .. } => {
                self.fire(rank, operation, true);
                let receive = (rank, operation, now);
                let found = self.arrived[rank].iter().position(|entry| self.matches((entry.0, entry.1), &receive));
                match found.and_then(|at| self.arrived[rank].remove(at)) {
                    Some((source, send, _)) => self.deliver((source, send), receive, now),
                    None => self.posted[rank].push_back(receive),
                }
            }
        }
    }

    fn matches(&self, send: (usize, usize), receive: &Entry) -> bool {
        let (Work::Send { tag: sent, .. }, Work::Recv { from, tag, .. }) =
            (self.ranks[send.0][send.1].0.work, self.ranks[receive.0][receive.1].0.work)
        else {
            panic!("a send and a receive")
        };
        from.is_none_or(|from| from as usize == send.0) && tag.is_none_or(|tag| tag == sent)
    }

    fn deliver(&mut self, send: (usize, usize), receive: Entry, now: u64) {
        if let Work::Send { bytes, .. } = self.ranks[send.0][send.1].0.work
            && bytes > self.machine.eager_bytes
        {
            self.cpu[send.0] = self.cpu[send.0].max(now);
            self.sending[send.0] = self.sending[send.0].max(now);
            self.fire(send.0, send.1, false);
        }
        self.fire(receive.0, receive.1, false);
        self.open -= 2;
    }

    fn fire(&mut self, rank: usize, operation: usize, on_start: bool) {
        for (later, (_, requires)) in self.ranks[rank].iter().enumerate() {
            for _ in requires.iter().filter(|earlier| **earlier == (operation, on_start)) {
                self.missing[rank][later] -= 1;
                if self.missing[rank][later] == 0 {
                    self.freed.push((rank, later));
                }
            }
        }
    }

    fn schedule_freed(&mut self) {
        let mut freed = std::mem::take(&mut self.freed);
        freed.sort_by_key(|(rank, operation)| {
            let order = match self.ranks[*rank][*operation].0.work {
                Work::Send { .. } => 0,
                Work::Recv { .. } => 1,
                Work::Calc { .. } => 2,
            };
            (*rank, order)
        });
        for (rank, operation) in freed {
            let is_send = matches!(self.ranks[rank][operation].0.work, Work::Send { .. });
            let time = if is_send { self.cpu[rank].max(self.sending[rank]) } else { self.cpu[rank] };
            self.events.push(Event { time, stamp: self.stamps, rank, operation, is_message: false });
            self.stamps += 1;
        }
    }
}

fn naive(ranks: &Ranks, machine: LogGps) -> Option<Vec<u64>> {
    let count = ranks.len();
    Naive {
        ranks,
        machine,
        events: Vec::new(),
        stamps: 0,
        missing: ranks.iter().map(|rank| rank.iter().map(|(_, requires)| requires.len()).collect()).collect(),
        cpu: vec![0; count],
        sending: vec![0; count],
        receiving: vec![0; count],
        posted: vec![VecDeque::new(); count],
        arrived: vec![VecDeque::new(); count],
        freed: Vec::new(),
        open: ranks.iter().map(Vec::len).sum(),
    }
    .run()
}

/// Messages between few ranks with few tags, so that many match; receives posted in any order, some
/// with wildcards; calculations, some of which take no time; dependencies on earlier operations.
fn ranks() -> impl Strategy<Value = Ranks> {
    let wildcard = || prop::bool::weighted(0.2);
    let message = (0..4u32, 0..4u32, 0..3u32, 0..4u64, wildcard(), wildcard());
    let calc = (0..4usize, prop::sample::select(vec![0, 0, 1, 7, 40]));
    let order = prop::collection::vec(any::<u16>(), 64);
    let requires = prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), prop::bool::weighted(0.4)), 64);
    (prop::collection::vec(message, 1..24), prop::collection::vec(calc, 0..6), order, requires).prop_map(
        |(messages, calcs, order, requires)| {
            let mut operations: Vec<Vec<Operation>> = vec![Vec::new(); 4];
            for (from, to, tag, size, any_source, any_tag) in messages {
                let bytes = [1, 5, 9, 100][size as usize];
                operations[from as usize].push(Operation::send(to, bytes, tag));
                let work = Work::Recv { from: (!any_source).then_some(from), bytes, tag: (!any_tag).then_some(tag) };
                operations[to as usize].push(work.into());
            }
            for (rank, nanoseconds) in calcs {
                operations[rank].push(Operation::calc(nanoseconds));
            }
            let (mut order, mut requires) = (order.into_iter().cycle(), requires.into_iter().cycle());
            let with_dependencies = |operations: Vec<Operation>| {
                let mut keyed: Vec<(u16, Operation)> =
                    order.by_ref().zip(operations.clone()).take(operations.len()).collect();
                keyed.sort_by_key(|(key, _)| *key);
                let of = |at: usize| match requires.next() {
                    Some((earlier, on_start, true)) if at > 0 => vec![(earlier.index(at), on_start)],
                    _ => Vec::new(),
                };
                let required: Vec<Vec<(usize, bool)>> = (0..keyed.len()).map(of).collect();
                keyed.into_iter().map(|(_, operation)| operation).zip(required).collect()
            };
            operations.into_iter().map(with_dependencies).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_schedules_finish_as_by_naive_simulation(
        ranks in ranks(),
        (latency, overhead, gap) in (0..30u64, 0..12u64, 0..20u64),
        (gap_per_byte, overhead_per_byte, eager_bytes) in (0..3u64, 0..3u64, prop::sample::select(vec![0, 5, 1000])),
    ) {
        let ns = |time: u64| 1000 * time;
        let machine = LogGps {
            latency: ns(latency),
            overhead: ns(overhead),
            gap: ns(gap),
            gap_per_byte: ns(gap_per_byte),
            overhead_per_byte: ns(overhead_per_byte),
            eager_bytes,
        };
        let mut builder = Builder::new(ranks.len() as u32)?;
        for rank in &ranks {
            let mut labels = Vec::new();
            for (operation, requires) in rank {
                let label = builder.add(*operation)?;
                for &(earlier, on_start) in requires {
                    if on_start { builder.irequires(label, labels[earlier])? } else { builder.requires(label, labels[earlier])? }
                }
                labels.push(label);
            }
            builder.end_rank()?;
        }
        let replay = match builder.finish()?.replay(&machine) {
            Ok(replay) => Some(replay.finish_times),
            Err(ReplayError::Unfinished { .. }) => None,
            Err(other) => panic!("{other}"),
        };
        prop_assert_eq!(replay, naive(&ranks, machine));
    }
}
