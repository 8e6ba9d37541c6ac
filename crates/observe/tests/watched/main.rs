//! The records of an observed program: operations and waits that complete immediately, take time,
//! or are abandoned.

mod late;
mod mixture;

use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Posting, QueueMode, QueueSpec},
};
use late::Late;
use observe::{Event, EventKind, RankRecord, Recorder, WaitKind, observed};
use rdma_fabric::{
    Amo, BlockPut, Blocks, Deps, Fabric, MulticastSpan, Program, ProgramResult, Rank, Refused,
    join::{Either, join, race},
    op::Nop,
};

/// A program that runs, observed, on a fabric that the function derives from the rank's, and
/// returns the record.
struct Recorded<P>(fn(&Fabric) -> Fabric, P);

impl<P: AsyncFn(Fabric) -> ProgramResult<()> + Sync> Program for Recorded<P> {
    type Out = RankRecord;

    async fn run(&self, fabric: Fabric) -> ProgramResult<RankRecord> {
        let recorder = Recorder::new(fabric.rank(), Some(100));
        (self.1)(observed(&(self.0)(&fabric), recorder.clone())).await?;
        Ok(recorder.record())
    }
}

/// Runs one rank, observed on the fabric that `over` derives from its own. Returns its record.
fn recorded(over: fn(&Fabric) -> Fabric, program: impl AsyncFn(Fabric) -> ProgramResult<()> + Sync) -> RankRecord {
    checks::jobs::threads(1).segment_bytes(1 << 20).run(&Recorded(over, program)).unwrap().remove(0)
}

/// Returns each event's kind, begin and end, with times in microseconds.
fn spans(record: &RankRecord) -> Vec<(EventKind, u64, u64)> {
    let events = record.events.as_ref().expect("a trace is wanted").iter();
    events.map(|event| (event.kind, event.begin_ps / 1_000_000, event.end_ps / 1_000_000)).collect()
}

#[test]
fn operations_last_until_their_end_is_known() {
    let record = recorded(Late::over, async |fabric| {
        let (region, me) = (fabric.alloc(64)?, fabric.rank());
        let span = fabric.remote_span::<u64>(region.at(me, 0), 2)?;
        let word = fabric.remote_word::<u64>(region.at(me, 8))?;
        let back = fabric.put(&span, vec![3, 4]).await?;
        assert_eq!(fabric.fetch_add(&word, 5).await?, 4);
        assert_eq!((back, fabric.get(&span, [0; 2]).await?), (vec![3, 4], [3, 9]));
        // The first posting finds no room.
        fabric.put_notify(&span, [7, 8], 1).await?;
        let mut tested = fabric.try_atomic(&word, Amo::Swap(1)).map_err(|refused| format!("{refused:?}"))?;
        while !tested.test() {}
        assert_eq!(tested.wait()?, 8);
        drop(fabric.try_post(Nop).map_err(|refused| format!("{refused:?}"))?);
        assert!(fabric.try_post(Nop).is_err());
        Ok(())
    });
    let expected = [
        (EventKind::Put, 0, 2),
        (EventKind::Add, 2, 4),
        (EventKind::Get, 4, 6),
        (EventKind::WaitRoom, 6, 7),
        (EventKind::PutNotify, 7, 9),
        (EventKind::Swap, 9, 9),
        (EventKind::Nop, 9, 9),
    ];
    assert_eq!(spans(&record), expected);
    let total = record.counts.total();
    assert_eq!((total.puts, total.put_bytes, total.gets, total.get_bytes), (2, 32, 1, 16));
    assert_eq!((total.atomics.add, total.atomics.swap, total.notices_sent, total.full), (1, 1, 1, 2));
    assert_eq!((record.counts.nops, record.counts.nobody.full), (1, 1));
    let waits = |kind| record.counts.waits.get(&kind).map(|waits| (waits.count, waits.total_ns));
    // The wait lasts from the first unsuccessful poll.
    assert_eq!((waits(WaitKind::Operation), waits(WaitKind::Room)), (Some((4, 4000)), Some((1, 1000))));
}

#[test]
fn copies_are_counted_as_what_they_are() {
    let program = Recorded(Fabric::clone, async |fabric: Fabric| {
        let region = fabric.alloc_symmetric(64).await?;
        if fabric.rank().index() == 0 {
            let part = |rank, at| fabric.remote_span::<u64>(region.at(Rank::new(rank), at), 2);
            let pairs = [(part(0, 0)?, part(1, 0)?), (part(1, 0)?, part(0, 0)?), (part(2, 0)?, part(1, 0)?)];
            for (to, from) in &pairs {
                fabric.copy(to, from).await?;
            }
        }
        drop(fabric.alloc_symmetric(8).await?);
        Ok(())
    });
    let record = checks::jobs::threads(3).segment_bytes(1 << 20).run(&program).unwrap().remove(0);
    let [one, two] = [1, 2].map(|peer| record.counts.peers[&peer]);
    assert_eq!((one.puts, one.gets, one.copies, one.put_bytes, one.get_bytes), (1, 1, 0, 16, 16));
    assert_eq!((two.puts, two.gets, two.copies, two.copy_bytes), (0, 0, 1, 16));
}

#[test]
fn a_put_of_blocks_counts_as_one_put_of_their_bytes() {
    let record = recorded(Fabric::clone, async |fabric| {
        let region = fabric.alloc(128)?;
        let to = fabric.remote_span::<u64>(region.at(fabric.rank(), 64), 7)?;
        let blocks = Blocks { count: 3, stride: 24 };
        Ok(BlockPut::new(&to, &region.span(&fabric, 0, 7)?, 1, blocks)?.put(&fabric).await?)
    });
    let (total, kinds) = (record.counts.total(), spans(&record).into_iter().map(|(kind, ..)| kind));
    assert_eq!((total.puts, total.put_bytes, kinds.collect::<Vec<_>>()), (1, 24, vec![EventKind::Put]));
}

#[test]
fn a_multicast_counts_as_a_put_to_each_member() {
    let program = Recorded(Fabric::clone, async |fabric: Fabric| {
        let region = fabric.alloc_symmetric(64).await?;
        if fabric.rank().index() == 0 {
            let all = [1, 0, 2].map(|rank| region.at(Rank::new(rank), 8));
            MulticastSpan::<u64>::new(&fabric, &all, 3)?.put(&fabric, [1, 2, 3]).await?;
        }
        drop(fabric.alloc_symmetric(8).await?);
        Ok(())
    });
    let record = checks::jobs::threads(3).segment_bytes(1 << 20).run(&program).unwrap().remove(0);
    for peer in 0..3 {
        let counts = record.counts.peers[&peer];
        assert_eq!((counts.puts, counts.put_bytes), (1, 24), "to {peer}");
    }
}

#[test]
fn waits_last_until_they_are_over_or_given_up() {
    let record = recorded(Late::over, async |fabric| {
        let (region, me) = (fabric.alloc(64)?, fabric.rank());
        let word = region.word::<u64>(&fabric, 0)?;
        let there = fabric.remote_word::<u64>(region.at(me, 0))?;
        fabric.wait_until(&word, Deps::All, |value| value == 0).await?;
        let (waited, put) = join(fabric.wait_until(&word, Deps::One(me), |value| value == 6), async {
            fabric.put_word(&there, 6).await?;
            fabric.flush(me).await
        })
        .await;
        assert_eq!((waited, put), (Ok(6), Ok(())));
        let never = fabric.wait_until(&word, Deps::All, |value| value == 7);
        assert!(matches!(race(never, fabric.flush_all()).await, Either::Second(Ok(()))));
        let span = fabric.remote_span::<u64>(region.at(me, 8), 1)?;
        let (notice, put) = join(fabric.next_notice(Deps::All), fabric.put_notify(&span, [1], 9)).await;
        assert_eq!((notice?.data, put?), (9, [1]));
        fabric.put_notify(&span, [1], 10).await?;
        fabric.put_notify(&span, [1], 11).await?;
        assert_eq!(fabric.next_notice(Deps::All).await?.data, 10);
        assert_eq!(fabric.try_notice()?.map(|notice| notice.data), Some(11));
        drop(fabric.alloc_symmetric(8).await?);
        fabric.sleep_until(fabric.now()).await;
        Ok(())
    });
    let kinds: Vec<EventKind> = spans(&record).into_iter().map(|(kind, ..)| kind).collect();
    let expected = [
        EventKind::WaitWord,
        EventKind::WaitWord,
        EventKind::Put,
        EventKind::Flush,
        EventKind::Flush,
        EventKind::WaitWord,
        EventKind::Notice,
        EventKind::PutNotify,
        EventKind::PutNotify,
        EventKind::WaitRoom,
        EventKind::PutNotify,
        EventKind::Notice,
        EventKind::Notice,
        EventKind::Registration,
        EventKind::Sleep,
    ];
    assert_eq!(kinds, expected);
    let events: Vec<Event> = record.events.as_ref().unwrap().iter().copied().collect();
    let notices: Vec<_> = events.iter().filter(|event| event.kind == EventKind::Notice).collect();
    assert_eq!(notices.iter().map(|event| event.notice).collect::<Vec<_>>(), [Some(0), Some(1), Some(2)]);
    assert_eq!((notices[0].peer, notices[0].offset, notices[0].region.is_some()), (Some(0), Some(16), true));
    let total = record.counts.total();
    assert_eq!((record.counts.word_waits, total.flushes, total.notices_sent, total.notices_taken), (3, 2, 3, 3));
    let counts = |kind| record.counts.waits.get(&kind).map_or(0, |waits| waits.count);
    let waited = [WaitKind::Word, WaitKind::Flush, WaitKind::Notice, WaitKind::Registration].map(counts);
    assert_eq!(waited, [2, 2, 1, 0]);
}

/// Control queues: waits for room, notices, and completions.
#[test]
fn commands_wait_for_room_and_their_end() {
    let record = recorded(Clone::clone, async |fabric| {
        let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session).depth(16))?;
        let sender = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
        let region = fabric.alloc(64)?;
        let (at, from) = (queue.register_fixed(&region, 1)?, sender.register(&region)?);
        let nop = Posting::new(Command::Nop);
        queue.post_all(&[nop; 15], Deps::All).await?;
        assert!(matches!(queue.try_post(nop), Err(Refused::Full(()))));
        let credit = Posting::new(Command::put(queue.id(), from, at, 0)).sps(3).local(5);
        let (posted, credited) = join(queue.post(nop, Deps::All), async {
            sender.post(credit, Deps::All).await?;
            let peer = sender.next_notice(Deps::All).await?.peer;
            sender.post(Posting::new(Command::Nop).tcq(0), Deps::All).await?;
            sender.next_completion(Deps::All).await?;
            Ok::<_, rdma_fabric::FabricError>(peer)
        })
        .await;
        posted?;
        assert_eq!(credited?, queue.id());
        let (next, posted) = join(sender.next_notice(Deps::All), sender.post(credit, Deps::All)).await;
        posted?;
        assert_eq!(next?.peer, queue.id());
        Ok(())
    });
    // Fifteen commands, the one that waited, and one more.
    assert_eq!(record.counts.nops, 17);
    let peer = record.counts.peers[&0];
    assert_eq!((peer.puts, record.counts.nobody.full), (2, 1), "who waits does not come back");
    let waits = |kind| record.counts.waits.get(&kind).map_or(0, |waits| waits.count);
    assert_eq!((waits(WaitKind::Room), waits(WaitKind::Notice)), (1, 1));
    assert_eq!(peer.waits.count, 1, "for its notice");
    let kinds: Vec<EventKind> = spans(&record).into_iter().map(|(kind, ..)| kind).collect();
    let waited = |kind: &&EventKind| matches!(kind, EventKind::WaitRoom | EventKind::WaitNotice);
    assert_eq!(kinds.iter().filter(waited).count(), 2, "{kinds:?}");
}
