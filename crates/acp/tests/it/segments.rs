//! Segmented buffers.

use crate::harness::everywhere;
use acp::{Acp, AcpError, GlobalAddress};
use core::time::Duration;
use fastrand::Rng;
use rdma_fabric::{Fabric, ProgramResult, Rank};

async fn buffer(acp: &Acp, bytes: usize) -> acp::Result<GlobalAddress> {
    let key = acp.allocate(bytes + 8, 0)?;
    acp.address(key, 8)
}

#[test]
fn segments_go_round() {
    const SEGMENTS: usize = 3;
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (me, peer) = (acp.rank().number(), Rank::new(1 - acp.rank().number()));
        let own = buffer(&acp, SEGMENTS * 800).await?;
        let mut random = Rng::with_seed(u64::from(me));
        if me == 0 {
            let mut source = acp.segment_source(peer, own, 800, SEGMENTS).await?;
            assert!(!source.is_connected()? && !source.is_ready()?);
            assert_eq!(source.ack(), Err(AcpError::NotConnected { peer }));
            source.connect().await?;
            for round in 0..40u64 {
                let segment = source.wait_ready().await?;
                assert_eq!(segment, source.next()?);
                acp.write(segment, &[round; 100]).await?;
                source.ack()?;
                let (head, sent, tail) = (source.head()?, source.sent()?, source.tail()?);
                assert!(head <= sent && sent <= tail && tail == round + 1, "{head} {sent} {tail}");
                assert!(tail <= source.head()? + SEGMENTS as u64);
                if random.usize(..3) == 0 {
                    fabric.sleep(Duration::from_micros(30)).await;
                }
            }
            source.wait_sent().await?;
            assert_eq!((source.sent()?, source.tail()?), (40, 40));
            acp.sync().await?;
            // The destination takes nothing from here on, so the source runs out of free segments.
            for _ in 0..SEGMENTS {
                source.wait_ready().await?;
                source.ack()?;
            }
            assert!(!source.is_ready()?);
            assert_eq!(source.ack(), Err(AcpError::NoSegment { peer }));
            acp.sync().await?;
            let (error, mut source) = source.free().expect_err("it is connected");
            assert_eq!(error, AcpError::StillConnected { peer });
            source.disconnect().await?;
            assert_eq!((source.sent()?, source.tail()?), (43, 43));
            assert_eq!(source.ack(), Err(AcpError::NotConnected { peer }));
            source.free().map_err(|(error, _)| error)?;
        } else {
            let mut destination = acp.segment_destination(peer, own, 800, SEGMENTS).await?;
            assert_eq!(destination.ready(), Err(AcpError::NotConnected { peer }));
            destination.connect().await?;
            for round in 0..40u64 {
                let segment = destination.wait_acked().await?;
                assert!(destination.is_acked()? && destination.head()? == round && destination.tail()? > round);
                let mut seen = [0u64; 100];
                acp.read(segment, &mut seen).await?;
                assert_eq!(seen, [round; 100]);
                destination.ready()?;
                if random.usize(..3) == 0 {
                    fabric.sleep(Duration::from_micros(30)).await;
                }
            }
            assert_eq!(destination.ready(), Err(AcpError::NoSegment { peer }));
            acp.sync().await?;
            acp.sync().await?;
            destination.disconnect().await?;
            // Segments that were handed over earlier are still available.
            assert_eq!((destination.head()?, destination.tail()?), (40, 43));
            assert!(destination.is_acked()?);
            let mut seen = [0u64; 1];
            acp.read(destination.wait_acked().await?, &mut seen).await?;
            assert_eq!(destination.ready(), Err(AcpError::NotConnected { peer }));
            destination.free().map_err(|(error, _)| error)?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn several_buffers_and_dropped_ones() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (me, ranks) = (acp.rank().number(), acp.ranks() as u32);
        let (next, before) = (Rank::new((me + 1) % ranks), Rank::new((me + ranks - 1) % ranks));
        let (mut sources, mut destinations) = (Vec::new(), Vec::new());
        for _ in 0..2 {
            sources.push(acp.segment_source(next, buffer(&acp, 64).await?, 16, 4).await?);
            destinations.push(acp.segment_destination(before, buffer(&acp, 64).await?, 16, 4).await?);
        }
        for (source, destination) in sources.iter_mut().zip(&mut destinations).rev() {
            let (one, other) = rdma_fabric::join::join(source.connect(), destination.connect()).await;
            one.and(other)?;
        }
        for round in 0..20u64 {
            for (number, source) in (0u64..).zip(&sources) {
                acp.write(source.wait_ready().await?, &[round, number]).await?;
                source.ack()?;
            }
            for (number, destination) in (0u64..).zip(&destinations) {
                let mut seen = [0u64; 2];
                acp.read(destination.wait_acked().await?, &mut seen).await?;
                assert_eq!(seen, [round, number]);
                destination.ready()?;
            }
        }
        // The first pair is dropped and the second one disconnected. Disconnecting requires both
        // sides, and these waits also make progress with the dropped pair.
        drop((sources.remove(0), destinations.remove(0)));
        let (one, other) = rdma_fabric::join::join(sources[0].disconnect(), destinations[0].disconnect()).await;
        one.and(other)?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn sides_that_differ_and_other_mistakes() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (me, peer) = (acp.rank(), Rank::new(1 - acp.rank().number()));
        let own = buffer(&acp, 100).await?;
        let starter = acp.starter(peer)?;
        let refused = acp.segment_source(peer, starter, 8, 1).await.err();
        assert_eq!(refused, Some(AcpError::NotOwn { address: starter }));
        assert!(matches!(acp.segment_source(peer, own, 8, 13).await.err(), Some(AcpError::OutOfBounds(_))));
        assert!(matches!(acp.segment_source(peer, own, 8, usize::MAX).await.err(), Some(AcpError::OutOfBounds(_))));
        assert!(matches!(acp.segment_source(peer, own, 8, 0).await.err(), Some(AcpError::Option(_))));
        assert_eq!(acp.segment_source(me, own, 8, 1).await.err(), Some(AcpError::SelfChannel { rank: me }));
        let differ = |error: Option<AcpError>, here, there| match error {
            Some(AcpError::SegmentsDiffer(differ)) => {
                assert_eq!((differ.peer, differ.here, differ.there), (peer, here, there));
            }
            other => panic!("{other:?}"),
        };
        if me.number() == 0 {
            let mut source = acp.segment_source(peer, own, 8, 4).await?;
            differ(source.connect().await.err(), (8, 4), (16, 2));
            source.free().map_err(|(error, _)| error)?;
        } else {
            let mut destination = acp.segment_destination(peer, own, 16, 2).await?;
            differ(destination.connect().await.err(), (16, 2), (8, 4));
            destination.free().map_err(|(error, _)| error)?;
        }
        acp.sync().await?;
        // Never connected: freed immediately.
        let unused = acp.segment_source(peer, own, 8, 4).await?;
        unused.free().map_err(|(error, _)| error)?;
        acp.finalize().await?;
        Ok(())
    });
}

/// Neither side waits for the other until it frees its memory.
#[test]
fn connections_are_started_and_ended_without_waiting() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (me, peer) = (acp.rank().number(), Rank::new(1 - acp.rank().number()));
        let own = buffer(&acp, 64).await?;
        if me == 0 {
            let mut source = acp.segment_source(peer, own, 16, 4).await?;
            source.start_connect()?;
            while !source.is_connected()? {
                fabric.sleep(Duration::from_micros(10)).await;
            }
            for segment in 0..2u64 {
                acp.write(source.next()?, &[7u64, segment]).await?;
                source.ack()?;
            }
            source.start_disconnect()?;
            assert_eq!(source.ack(), Err(AcpError::NotConnected { peer }));
            source.wait_sent().await?;
            acp.sync().await?;
            source.disconnect().await?;
            assert_eq!(source.connect().await, Ok(()));
            source.free().map_err(|(error, _)| error)?;
        } else {
            let mut destination = acp.segment_destination(peer, own, 16, 4).await?;
            destination.start_connect()?;
            acp.sync().await?;
            destination.connect().await?;
            assert!(destination.was_connected()? && !destination.is_connected()?);
            for segment in 0..2u64 {
                assert_eq!(acp.read_vec::<u64>(destination.wait_acked().await?, 2).await?, [7, segment]);
                destination.ready()?;
            }
            destination.start_disconnect()?;
            destination.disconnect().await?;
            destination.free().map_err(|(error, _)| error)?;
            let mut unused = acp.segment_destination(peer, own, 16, 4).await?;
            unused.start_disconnect()?;
            assert_eq!(unused.connect().await, Err(AcpError::NotConnected { peer }));
        }
        acp.finalize().await?;
        Ok(())
    });
}
