//! Timelines.

use rdma_fabric::{Deps, Fabric, Group, ProgramResult, Rank, Time};
use serde_json::Value;
use tofu2_virt::{Busy, Platform, Work};

async fn there_and_back(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(64).await?;
    let peer = Rank::new(1 - fabric.rank().number());
    let to = fabric.remote_span::<u64>(region.at(peer, 0), 1)?;
    if fabric.rank() == Rank::new(0) {
        fabric.put_notify(&to, [1], 7).await?;
        fabric.next_notice(Deps::All).await?;
        fabric.fetch_add(&fabric.remote_word::<u64>(region.at(peer, 8))?, 1).await?;
    } else {
        fabric.next_notice(Deps::All).await?;
        fabric.compute(std::time::Duration::from_micros(2)).await;
        fabric.put_notify(&to, [fabric.load(&region.word::<u64>(&fabric, 0)?)?], 7).await?;
    }
    Ok(world.barrier().await?)
}

fn events(limit: usize, from: Time) -> (Vec<Value>, Value, u64) {
    let job = checks::jobs::virtual_time(&Platform::fx100(), 2).timeline(limit, from);
    let run = job.run(&there_and_back).expect("a run");
    let mut text = Vec::new();
    run.timeline.expect("a timeline").write(&mut text).expect("written");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    (document["traceEvents"].as_array().expect("an array").clone(), document["otherData"].clone(), run.stats.trace_hash)
}

#[test]
fn a_put_is_seen_at_every_station() {
    let (events, about, _) = events(10_000, Time::ZERO);
    assert_eq!(about["dropped"], 0);
    let puts: Vec<_> = events.iter().filter(|event| event["args"]["command"] == 1 && event["ph"] == "X").collect();
    // Posted for 150 ns, sent for 150 ns, 260 ns on the wire, received for 150 ns: as in the
    // module's documentation.
    let times: Vec<_> =
        puts.iter().map(|event| (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap())).collect();
    let [posted, sent, received] = times[..] else { panic!("{puts:#?}") };
    assert_eq!((posted, sent.0, received), ((0.0, 0.15), 0.15, (0.56, 0.15)), "{puts:#?}");
    assert_eq!(puts.iter().map(|event| event["pid"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 0, 1]);
    let compute: Vec<_> = events.iter().filter(|event| event["name"] == "compute").collect();
    assert_eq!((compute.len(), compute[0]["dur"].as_f64()), (1, Some(2.0)));
    assert!(events.iter().any(|event| event["args"]["name"] == "atomic unit"), "the fetch-add has a track");
}

#[test]
fn recording_changes_nothing() {
    let plain = checks::jobs::virtual_time(&Platform::fx100(), 2).run(&there_and_back).expect("a run");
    assert!(plain.timeline.is_none());
    let (_, about, hash) = events(10_000, Time::ZERO);
    assert_eq!((hash, about["dropped"].as_u64()), (plain.stats.trace_hash, Some(0)));
    let (few, about, hash) = events(5, Time::ZERO);
    assert_eq!(hash, plain.stats.trace_hash);
    assert!(about["dropped"].as_u64().unwrap() > 0);
    assert_eq!(few.iter().filter(|event| event["ph"] == "X").count(), 5);
}

#[test]
fn what_was_over_before_is_left_out() {
    let late = Time::from_picos(700_000);
    let (events, about, _) = events(10_000, late);
    assert_eq!(about["dropped"], 0);
    let slices: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    let ends = |event: &&Value| event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap();
    assert!(!slices.is_empty() && slices.iter().all(|event| ends(event) > 0.6999), "{slices:#?}");
}

#[test]
fn what_a_cpu_did_is_data() {
    let run = checks::jobs::virtual_time(&Platform::fx100(), 2)
        .timeline(10_000, Time::ZERO)
        .run(&there_and_back)
        .expect("a run");
    let busy = run.timeline.expect("a timeline").cpu(Rank::new(1));
    let lasted = |busy: &Busy| busy.end.picos_since(busy.begin);
    let at = busy.iter().position(|busy| busy.with == Work::Computing).expect("it computed");
    assert_eq!(lasted(&busy[at]), 2_000_000);
    // The put is next, and takes the posting time.
    assert_eq!(busy[at + 1].with, Work::Posting { target: Rank::new(0), bytes: 8 });
    assert_eq!((busy[at].end, lasted(&busy[at + 1])), (busy[at + 1].begin, 150_000));
    assert!(busy.windows(2).all(|pair| pair[0].end <= pair[1].begin), "{busy:?}");
}
