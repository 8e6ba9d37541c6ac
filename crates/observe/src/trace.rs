//! The trace-event format: `{"traceEvents": [...]}`, times in microseconds.
//!
//! Each rank is a process of the viewer. Its operations and waits are slices on a track. Slices of
//! one track must not overlap, so overlapping ones (joined futures, several operations in flight)
//! are placed on further tracks. A put with a notice and the taking of that notice are joined by an
//! arrow: notices from one poster arrive in order, so the n-th sent is the n-th taken.

use crate::{event::Event, observation::Observation, recorder::RankRecord};
use rdma_fabric::RegionKey;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    io::{self, BufWriter, Write},
};

/// Identifies a notice: sender, receiver, number.
type NoticeId = (u32, u32, u64);

pub(crate) fn write(observation: &Observation, out: impl Write) -> io::Result<()> {
    let mut list = List { out: BufWriter::new(out), empty: true };
    list.out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let notices = whole_notices(observation);
    for record in observation.records() {
        rank(record, &notices, &mut list)?;
    }
    let missing: Vec<u32> = observation.missing().collect();
    let about = json!({ "ranks": observation.ranks(), "missing": missing, "dropped": observation.dropped() });
    write!(list.out, "\n],\"otherData\":{about}}}\n")?;
    list.out.flush()
}

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

/// Returns the notice that an event is an end of, and whether it is the sending end.
fn notice_of(rank: u32, event: &Event) -> Option<(NoticeId, bool)> {
    let (number, peer) = (event.notice?, event.peer?);
    let sent = event.kind == crate::event::EventKind::PutNotify;
    Some((if sent { (rank, peer, number) } else { (peer, rank, number) }, sent))
}

/// Returns the notices with both ends in the trace, as required for an arrow.
fn whole_notices(observation: &Observation) -> HashSet<NoticeId> {
    let ends = |sending: bool| -> HashSet<NoticeId> {
        let events = |record: &'_ RankRecord| -> Vec<NoticeId> {
            let ends = record.events.iter().flat_map(|events| events.iter());
            ends.filter_map(|event| notice_of(record.rank, event))
                .filter(|&(_, sent)| sent == sending)
                .map(|(id, _)| id)
                .collect()
        };
        observation.records().iter().flat_map(events).collect()
    };
    let taken = ends(false);
    ends(true).intersection(&taken).copied().collect()
}

fn rank<W: Write>(record: &RankRecord, notices: &HashSet<NoticeId>, list: &mut List<W>) -> io::Result<()> {
    let Some(events) = &record.events else { return Ok(()) };
    let pid = record.rank;
    let about =
        |name: &str, tid: usize, args: Value| json!({ "ph": "M", "name": name, "pid": pid, "tid": tid, "args": args });
    list.push(&about("process_name", 0, json!({ "name": format!("rank {pid}") })))?;
    list.push(&about("process_sort_index", 0, json!({ "sort_index": pid })))?;

    let mut sorted: Vec<&Event> = events.iter().collect();
    sorted.sort_by_key(|event| (event.begin_ps, event.end_ps));
    // The time at which each track is free again.
    let mut tracks: Vec<u64> = Vec::new();
    for event in &sorted {
        let free = tracks.iter().position(|&until| until <= event.begin_ps);
        let tid = free.unwrap_or(tracks.len());
        if free.is_none() {
            let name = if tid == 0 { "operations and waits".into() } else { format!("overlapping {tid}") };
            list.push(&about("thread_name", tid, json!({ "name": name })))?;
            tracks.push(0);
        }
        tracks[tid] = event.end_ps;
        list.push(&slice(pid, tid, event))?;
        if let Some((id, sent)) = notice_of(pid, event)
            && notices.contains(&id)
        {
            list.push(&arrow(pid, tid, event, id, sent))?;
        }
    }
    if events.dropped() > 0 {
        let ts = sorted.first().map_or(0.0, |event| micros(event.begin_ps));
        let name = format!("dropped {} events before this", events.dropped());
        list.push(&json!({ "ph": "i", "s": "p", "name": name, "pid": pid, "tid": 0, "ts": ts }))?;
    }
    Ok(())
}

fn slice(pid: u32, tid: usize, event: &Event) -> Value {
    let mut args = json!({ "kind": event.kind });
    if let Some(peer) = event.peer {
        args["peer"] = peer.into();
    }
    if let Some(region) = event.region {
        args["region"] = format!("{:?}", RegionKey::from_bits(region)).into();
        args["offset"] = event.offset.into();
    }
    if event.bytes > 0 {
        args["bytes"] = event.bytes.into();
    }
    json!({
        "ph": "X", "name": event.kind.name(), "cat": event.kind.category(), "pid": pid, "tid": tid,
        "ts": micros(event.begin_ps), "dur": micros(event.end_ps.saturating_sub(event.begin_ps)), "args": args,
    })
}

/// Returns one end of an arrow, which must be inside the slice to which it belongs.
fn arrow(pid: u32, tid: usize, event: &Event, (from, to, number): NoticeId, sent: bool) -> Value {
    let id = format!("{from}>{to}:{number}");
    let duration = event.end_ps.saturating_sub(event.begin_ps);
    if sent {
        json!({ "ph": "s", "id": id, "name": "notice", "cat": "notice", "pid": pid, "tid": tid, "ts": micros(event.begin_ps) })
    } else {
        let at = event.end_ps - (duration / 2).min(1000);
        json!({ "ph": "f", "bp": "e", "id": id, "name": "notice", "cat": "notice", "pid": pid, "tid": tid, "ts": micros(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{event::EventKind, recorder::Recorder};
    use rdma_fabric::Rank;

    fn event(kind: EventKind, peer: u32, from: u64, to: u64, notice: Option<u64>) -> Event {
        Event { end_ps: to, notice, ..Event::new(kind, Some(peer), from) }
    }

    fn recorded(rank: u32, limit: usize, events: &[Event]) -> RankRecord {
        let recorder = Recorder::new(Rank::new(rank), Some(limit));
        events.iter().for_each(|&event| recorder.lock().happened(event));
        recorder.record()
    }

    fn parsed(observation: &Observation) -> (Vec<Value>, Value) {
        let mut text = Vec::new();
        observation.trace(&mut text).unwrap();
        let document: Value = serde_json::from_slice(&text).expect("JSON");
        (document["traceEvents"].as_array().expect("an array").clone(), document["otherData"].clone())
    }

    #[test]
    fn slices_of_one_track_never_overlap() {
        let at = |from, to| event(EventKind::Get, 1, from, to, None);
        let (events, _) =
            parsed(&Observation::new(1, vec![recorded(0, 9, &[at(5, 9), at(0, 10), at(10, 12), at(9, 11)])]));
        let mut slices: Vec<_> = (events.iter().filter(|event| event["ph"] == "X"))
            .map(|e| (e["tid"].as_u64().unwrap(), e["ts"].as_f64().unwrap(), e["dur"].as_f64().unwrap()))
            .collect();
        slices.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert_eq!(slices.len(), 4);
        for pair in slices.windows(2) {
            assert!(pair[0].0 != pair[1].0 || pair[0].1 + pair[0].2 <= pair[1].1 + 1e-9, "{pair:?}");
        }
        assert_eq!(events.iter().filter(|event| event["name"] == "thread_name").count(), 2);
    }

    #[test]
    fn arrows_have_two_ends_or_none() {
        let puts = [event(EventKind::PutNotify, 1, 0, 10, Some(0)), event(EventKind::PutNotify, 1, 20, 30, Some(1))];
        let taken = [event(EventKind::Notice, 0, 0, 4_000_000, Some(0))];
        let (events, about) = parsed(&Observation::new(3, vec![recorded(0, 9, &puts), recorded(1, 9, &taken)]));
        let ends: Vec<_> = events.iter().filter(|event| event["cat"] == "notice").collect();
        assert_eq!(ends.len(), 2, "{ends:?}");
        assert!(ends.iter().all(|end| end["id"] == "0>1:0"));
        assert_eq!((&ends[0]["ph"], &ends[1]["ph"], ends[1]["ts"].as_f64()), (&json!("s"), &json!("f"), Some(3.999)));
        assert_eq!(about["missing"], json!([2]));
    }

    #[test]
    fn dropped_records_are_reported() {
        let events: Vec<_> = (0..5).map(|at| event(EventKind::Put, 1, at, at, None)).collect();
        let (events, about) = parsed(&Observation::new(2, vec![recorded(0, 2, &events)]));
        assert_eq!(about["dropped"], 3);
        assert!(events.iter().any(|event| event["name"] == "dropped 3 events before this"));
        assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 2);
    }
}
