//! Control queues: room that is waited for, notices, and completions.

use crate::{parts, recorded};
use observe::{EventKind, WaitKind};
use rdma_fabric::{
    Deps, Refused,
    control_queue::{Command, Posting, QueueMode, QueueSpec},
    join::join,
};

#[test]
fn commands_wait_for_room_and_their_end() {
    let record = recorded(Clone::clone, async |fabric| {
        let queue = fabric.open_queue(QueueSpec::new(QueueMode::Session).depth(16))?;
        let sender = fabric.open_queue(QueueSpec::new(QueueMode::Normal))?;
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
    // Fifteen, the one that waited, and one more.
    assert_eq!(record.counts.nops, 17);
    let peer = record.counts.peers[&0];
    assert_eq!((peer.puts, record.counts.nobody.full), (2, 1), "who waits does not come back");
    let waits = |kind| record.counts.waits.get(&kind).map_or(0, |waits| waits.count);
    assert_eq!((waits(WaitKind::Room), waits(WaitKind::Notice)), (1, 1));
    assert_eq!(peer.waits.count, 1, "for its notice");
    let kinds: Vec<EventKind> = parts(&record).into_iter().map(|(kind, ..)| kind).collect();
    let waited = |kind: &&EventKind| matches!(kind, EventKind::WaitRoom | EventKind::WaitNotice);
    assert_eq!(kinds.iter().filter(waited).count(), 2, "{kinds:?}");
}
