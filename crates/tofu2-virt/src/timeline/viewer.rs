//! The trace-event format: `{"traceEvents": [...]}`.
//!
//! Slices of one track must not overlap. Those that do (packets of several commands taken in turn)
//! go to an additional track of the same name.

use super::{Activity, CommandId, Slice, Timeline, Track};
use crate::operation::Opcode;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashMap},
    io::{self, BufWriter, Write},
};

/// The maximum number of lanes of one place. A place's first track is its number times this.
const LANES: u64 = 64;

/// Writes the timeline. `labels` has names for commands, which precede a slice's own text.
pub(super) fn write(timeline: &Timeline, labels: &Labels, out: impl Write) -> io::Result<()> {
    let mut list = List { out: BufWriter::new(out), empty: true };
    list.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let tracks = Tracks::lay_out(timeline);
    tracks.name(timeline, &mut list)?;
    let spans = spans(timeline);
    for (slice, lane) in timeline.slices.iter().zip(&tracks.lanes) {
        let track = tracks.of(slice.node, slice.track) + u64::from(*lane);
        list.push(&shown(slice, track, labels))?;
        if let Some(id) = slice.id
            && let Some(&(first, last)) = spans.get(&id)
        {
            list.push(&arrow(slice, track, id, slice.begin == first, slice.end == last))?;
        }
    }
    for moment in &timeline.moments {
        let track = tracks.of(moment.node, moment.track);
        list.push(&json!({
            "ph": "i", "s": "t", "name": named(&moment.activity), "cat": category(&moment.activity), "pid": moment.node, "tid": track,
            "ts": micros(moment.time),
        }))?;
    }
    for sample in &timeline.samples {
        let name = format!("CQ {}.{} pointers", sample.engine, sample.number);
        let args = json!({ "read": sample.read, "write": sample.write, "session offset": sample.scheduled });
        list.push(&json!({ "ph": "C", "name": name, "pid": sample.node, "ts": micros(sample.time), "args": args }))?;
    }
    let about = json!({ "time": "virtual", "dropped": timeline.dropped() });
    write!(list.out, "\n],\"otherData\":{about}}}\n")?;
    list.out.flush()
}

/// Names by command.
pub(super) type Labels = HashMap<CommandId, String>;

struct List<W: Write> {
    out: BufWriter<W>,
    empty: bool,
}

impl<W: Write> List<W> {
    fn push(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if std::mem::take(&mut self.empty) { b"\n" } else { b",\n" })?;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }
}

/// Converts to microseconds.
fn micros(ps: u64) -> f64 {
    ps as f64 / 1e6
}

/// The track on which each slice is drawn.
struct Tracks {
    /// The first track by node and place, in the order in which they are shown.
    first: BTreeMap<(u32, Track), u64>,
    /// The lane of each slice: the offset from the first track.
    lanes: Vec<u8>,
    /// The number of lanes that each place needs.
    needed: HashMap<(u32, Track), u8>,
}

impl Tracks {
    fn lay_out(timeline: &Timeline) -> Self {
        let mut first = BTreeMap::new();
        for slice in &timeline.slices {
            first.insert((slice.node, slice.track), 0);
        }
        for moment in &timeline.moments {
            first.insert((moment.node, moment.track), 0);
        }
        let (mut node, mut number) = (None, 0);
        for (&(of, _), track) in &mut first {
            number = if node == Some(of) { number + 1 } else { 0 };
            node = Some(of);
            *track = number * LANES;
        }
        let mut order: Vec<usize> = (0..timeline.slices.len()).collect();
        order.sort_by_key(|&i| (timeline.slices[i].begin, timeline.slices[i].end, i));
        let mut busy: HashMap<(u32, Track), Vec<u64>> = HashMap::new();
        let mut lanes = vec![0; timeline.slices.len()];
        for i in order {
            let slice = &timeline.slices[i];
            let until = busy.entry((slice.node, slice.track)).or_default();
            let free = until.iter().position(|&until| until <= slice.begin);
            let lane = free.unwrap_or(until.len()).min(LANES as usize - 1);
            match until.get_mut(lane) {
                Some(until) => *until = slice.end,
                None => until.push(slice.end),
            }
            lanes[i] = lane as u8;
        }
        let needed = busy.into_iter().map(|(place, until)| (place, until.len() as u8)).collect();
        Tracks { first, lanes, needed }
    }

    fn of(&self, node: u32, place: Track) -> u64 {
        self.first.get(&(node, place)).copied().unwrap_or(0)
    }

    fn name<W: Write>(&self, timeline: &Timeline, list: &mut List<W>) -> io::Result<()> {
        let mut last = None;
        for (&(node, place), &track) in &self.first {
            if last.replace(node) != Some(node) {
                let first = node * timeline.ranks_per_node;
                let name = match timeline.ranks_per_node {
                    1 => format!("node {node} (rank {first})"),
                    many => format!("node {node} (ranks {first} to {})", first + many - 1),
                };
                list.push(&about("process_name", node, 0, json!({ "name": name })))?;
                list.push(&about("process_sort_index", node, 0, json!({ "sort_index": node })))?;
            }
            for lane in 0..u64::from(self.needed.get(&(node, place)).copied().unwrap_or(1)) {
                list.push(&about("thread_name", node, track + lane, json!({ "name": title(timeline, place) })))?;
                list.push(&about("thread_sort_index", node, track + lane, json!({ "sort_index": track + lane })))?;
            }
        }
        Ok(())
    }
}

fn about(what: &str, node: u32, track: u64, args: Value) -> Value {
    json!({ "ph": "M", "name": what, "pid": node, "tid": track, "args": args })
}

fn title(timeline: &Timeline, place: Track) -> String {
    match place {
        Track::Cpu(lane) => match timeline.helper_at(lane) {
            Some((rank, name)) => format!("rank {rank}: {name}"),
            None => format!("rank {lane}: CPU"),
        },
        Track::Queue(engine, number) => format!("CQ {engine}.{number}"),
        Track::Send(engine) => format!("TNI {engine}: send"),
        Track::Receive(engine) => format!("TNI {engine}: receive"),
        Track::Atomics => "atomic unit".to_owned(),
    }
}

fn verb(opcode: Opcode) -> &'static str {
    match opcode {
        Opcode::Put => "put",
        Opcode::Get => "get",
        Opcode::Copy => "copy",
        Opcode::Nop => "nop",
        Opcode::Add => "fetch-add",
        Opcode::Swap => "swap",
        Opcode::CompareSwap => "compare-swap",
        Opcode::Or => "fetch-or",
        Opcode::And => "fetch-and",
        Opcode::Xor => "fetch-xor",
    }
}

fn named(what: &Activity) -> String {
    match what {
        Activity::Command { opcode: Opcode::Nop, .. } => "nop".to_owned(),
        Activity::Command { opcode, bytes, poster, target } => {
            format!("{} {bytes} B, {poster} → {target}", verb(*opcode))
        }
        Activity::Compute => "compute".to_owned(),
        Activity::Advance(slots) => format!("session offset + {slots}"),
        Activity::Fault(fault) => (*fault).to_owned(),
    }
}

fn category(what: &Activity) -> &'static str {
    match what {
        Activity::Command { .. } => "command",
        Activity::Compute => "program",
        Activity::Advance(_) => "session",
        Activity::Fault(_) => "fault",
    }
}

fn shown(slice: &Slice, track: u64, labels: &Labels) -> Value {
    let mut args = json!({});
    if let Activity::Command { bytes, poster, target, .. } = slice.activity {
        args = json!({ "bytes": bytes, "from rank": poster, "to rank": target });
    }
    if let Some(id) = slice.id {
        args["command"] = id.into();
    }
    let name = match (slice.track, slice.activity) {
        (Track::Cpu(_), Activity::Command { opcode, .. }) => format!("post {}", verb(opcode)),
        (_, what) => named(&what),
    };
    let name = match slice.id.and_then(|id| labels.get(&id)) {
        Some(label) => format!("{label}: {name}"),
        None => name,
    };
    json!({
        "ph": "X", "name": name, "cat": category(&slice.activity), "pid": slice.node, "tid": track, "ts": micros(slice.begin),
        "dur": micros(slice.end - slice.begin), "args": args,
    })
}

/// For each command with several slices, the time at which the first begins and the last ends.
fn spans(timeline: &Timeline) -> HashMap<u64, (u64, u64)> {
    let mut spans: HashMap<u64, (u64, u64, u32)> = HashMap::new();
    for slice in &timeline.slices {
        let Some(id) = slice.id else { continue };
        let seen = spans.entry(id).or_insert((u64::MAX, 0, 0));
        *seen = (seen.0.min(slice.begin), seen.1.max(slice.end), seen.2 + 1);
    }
    spans.retain(|_, seen| seen.2 > 1);
    spans.into_iter().map(|(id, (first, last, _))| (id, (first, last))).collect()
}

/// Returns a point on a command's arrow, inside the slice it belongs to: start, step or end.
fn arrow(slice: &Slice, track: u64, id: CommandId, first: bool, last: bool) -> Value {
    let (phase, at) = match (first, last) {
        (true, _) => ("s", slice.begin),
        (_, true) => ("f", slice.end - ((slice.end - slice.begin) / 2).min(1000)),
        _ => ("t", slice.begin),
    };
    json!({
        "ph": phase, "bp": "e", "id": id, "name": "post to visible", "cat": "flight", "pid": slice.node, "tid": track,
        "ts": micros(at),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUT: Activity = Activity::Command { opcode: Opcode::Put, bytes: 8, poster: 0, target: 1 };

    fn parsed(timeline: &Timeline) -> (Vec<Value>, Value) {
        let mut text = Vec::new();
        timeline.write(&mut text).unwrap();
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        (document["traceEvents"].as_array().expect("an array").clone(), document["otherData"].clone())
    }

    #[test]
    fn a_command_is_one_line_from_posting_to_visibility() {
        let mut timeline = Timeline::new(100, 0, 4, 1);
        let id = timeline.next_command();
        timeline.slice(0, Track::Cpu(0), 0, 150, PUT, Some(id));
        timeline.slice(0, Track::Send(2), 150, 300, PUT, Some(id));
        timeline.slice(1, Track::Receive(0), 560, 710, PUT, Some(id));
        let (events, _) = parsed(&timeline);
        let phases: Vec<_> =
            events.iter().filter(|event| event["cat"] == "flight").map(|event| event["ph"].clone()).collect();
        assert_eq!(phases, ["s", "t", "f"]);
        let names: Vec<_> = events.iter().filter(|event| event["name"] == "thread_name").collect();
        assert_eq!(names.len(), 3, "{names:?}");
    }

    #[test]
    fn slices_of_one_track_never_overlap() {
        let mut timeline = Timeline::new(100, 0, 4, 1);
        for (begin, end) in [(5, 9), (0, 10), (10, 12), (9, 11)] {
            timeline.slice(3, Track::Receive(1), begin, end, PUT, None);
        }
        let (events, _) = parsed(&timeline);
        let mut slices: Vec<_> = (events.iter().filter(|event| event["ph"] == "X"))
            .map(|e| (e["tid"].as_u64().unwrap(), e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap()))
            .collect();
        slices.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(slices.len(), 4);
        for pair in slices.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].1 + pair[0].2 <= pair[1].1 + 1e-12, "{pair:?}");
        }
    }

    #[test]
    fn pointers_are_counters_and_what_there_was_no_room_for_is_told() {
        let mut timeline = Timeline::new(2, 0, 8, 4);
        for slot in 0..5 {
            timeline.pointers(1, (0, 3), slot, [slot, 9, slot + 1]);
        }
        assert_eq!((timeline.len(), timeline.dropped()), (2, 3));
        let (events, about) = parsed(&timeline);
        let counters: Vec<_> = events.iter().filter(|event| event["ph"] == "C").collect();
        assert_eq!(counters[1]["args"], json!({ "read": 1, "write": 9, "session offset": 2 }));
        assert_eq!(about["dropped"], 3);
    }
}
