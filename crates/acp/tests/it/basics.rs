//! The basic layer: addresses, registration, copies, atomics, order.

use crate::harness::everywhere;
use acp::{Acp, AcpError, GlobalAddress, Handle, Options, Order};
use checks::jobs::threads;
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};
use tofu2_sim::JobError;

#[test]
fn starter_memory_is_where_it_is_computed_to_be() {
    let outs = everywhere(3, &async |fabric: Fabric| -> ProgramResult<Vec<u64>> {
        let acp = Acp::init(&fabric).await?;
        let me = acp.rank().number();
        for rank in 0..3 {
            let word = acp.starter(Rank::new(rank))?.offset_by(8 * u64::from(me))?;
            acp.write(word, &[u64::from(me) * 10 + u64::from(rank)]).await?;
        }
        acp.sync().await?;
        let mut seen = [0u64; 4];
        acp.read(acp.starter(acp.rank())?, &mut seen).await?;
        assert!(acp.starter(Rank::new(3)).is_err());
        acp.finalize().await?;
        Ok(seen.to_vec())
    });
    for (rank, seen) in (0u64..).zip(outs) {
        assert_eq!(seen, [rank, 10 + rank, 20 + rank, 0]);
    }
}

/// The paper's figure 3, with copies from or to local memory: rank 0 sends to 1, and then fetches
/// the data back.
#[test]
fn copies_follow_their_order() {
    let outs = everywhere(2, &async |fabric: Fabric| -> ProgramResult<Vec<u32>> {
        let acp = Acp::init_with(&fabric, Options::default().starter_bytes(4096)).await?;
        let [own, peer] = [acp.rank(), Rank::new(1 - acp.rank().number())].map(|rank| acp.starter(rank));
        let (own, peer) = (own?, peer?);
        if acp.rank().number() == 0 {
            let values: Vec<u32> = (1..=256).collect();
            acp.write(own, &values).await?;
            for round in 0..20u64 {
                let there = acp.copy(peer, own, 1024, Order::None).await?;
                let back = acp.copy(own.offset_by(2048)?, peer, 1024, there).await?;
                let old = acp.atomic(own.offset_by(1024)?, peer, Amo::Add(1u32), Order::All).await?;
                acp.copy(own.offset_by(1032)?, peer, 4, Order::Continue).await?;
                assert!(there < back && back < old);
                acp.complete_all().await?;
                assert!(acp.is_complete(old)? && acp.is_complete(Handle::from_number(1000))?);
                let mut word = [0u32; 3];
                acp.read(own.offset_by(1024)?, &mut word).await?;
                assert_eq!(word, [1, 0, 2], "round {round}");
            }
            let mut seen = vec![0u32; 256];
            acp.read(own.offset_by(2048)?, &mut seen).await?;
            assert_eq!(seen, values);
        }
        acp.sync().await?;
        let mut seen = vec![0u32; 2];
        acp.read(own, &mut seen).await?;
        acp.finalize().await?;
        Ok(seen)
    });
    assert_eq!(outs, [[1, 2], [2, 2]]);
}

#[test]
fn atomics_of_all_kinds_and_widths() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let (me, own) = (u64::from(acp.rank().number()), acp.starter(acp.rank())?);
        // Each rank has its own words at rank 0.
        let word = acp.starter(Rank::new(0))?.offset_by(256 + 64 * me)?;
        let narrow = word.offset_by(8)?;
        let ops = [
            Amo::Add(5u64),
            Amo::Or(0x70),
            Amo::And(0xff),
            Amo::Xor(0x0f),
            Amo::Swap(77),
            Amo::CompareSwap { expected: 77, new: u64::MAX },
            Amo::CompareSwap { expected: 77, new: 1 },
            Amo::Add(2),
        ];
        let (mut wide_oracle, mut narrow_oracle) = (0u64, 0u32);
        for op in ops {
            let handle = acp.atomic(own, word, op, Order::None).await?;
            acp.complete(handle).await?;
            assert_eq!(acp.load::<u64>(own).await?, wide_oracle);
            wide_oracle = op.apply(wide_oracle);
            let op = op.map(|v| v as u32);
            let handle = acp.atomic(own.offset_by(8)?, narrow, op, Order::None).await?;
            acp.complete(handle).await?;
            assert_eq!(acp.load::<u32>(own.offset_by(8)?).await?, narrow_oracle);
            narrow_oracle = op.apply(narrow_oracle);
        }
        assert_eq!(
            (acp.fetch(word, Amo::Add(0u64)).await?, acp.load::<u32>(narrow).await?),
            (wide_oracle, narrow_oracle)
        );
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn regions_come_and_go() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, Options::default().regions(2)).await?;
        let [mine, theirs] = [acp.rank(), Rank::new(1 - acp.rank().number())].map(|rank| acp.starter(rank));
        let (mine, theirs) = (mine?, theirs?);
        for round in 0..5u64 {
            let lent = acp.register(vec![round; 100], 0)?;
            let whole = acp.address(lent, 0)?;
            assert_eq!(acp.query(whole.offset_by(8)?), Some((lent, 8)));
            acp.store(mine, whole.to_bits()).await?;
            acp.sync().await?;
            let there = GlobalAddress::from_bits(acp.load::<u64>(theirs).await?).expect("an address");
            assert_eq!(acp.query(there), None);
            acp.fetch(there.offset_by(800 - 8)?, Amo::Add(7u64)).await?;
            let beyond = acp.fetch(there.offset_by(800)?, Amo::Add(7u64)).await;
            assert!(matches!(beyond, Err(AcpError::OutOfBounds(_))), "{beyond:?}");
            let beyond = acp.copy(mine, there.offset_by(793)?, 8, Order::None).await;
            assert!(matches!(beyond, Err(AcpError::OutOfBounds(_))), "{beyond:?}");
            acp.sync().await?;
            let vector = acp.take::<u64>(lent).await?;
            assert_eq!((vector[0], vector[99]), (round, round + 7));
            acp.sync().await?;
            let gone = acp.load::<u64>(there).await;
            assert_eq!(gone, Err(AcpError::NoSuchRegion { address: there }));
            let gone = acp.copy(mine, there, 8, Order::None).await;
            assert_eq!(gone, Err(AcpError::NoSuchRegion { address: there }));
            acp.sync().await?;
        }
        let keys = [acp.allocate(8, 0)?, acp.allocate(8, 0)?];
        assert!(matches!(acp.allocate(8, 0), Err(AcpError::DirectoryFull { limit: 2, .. })));
        let refused = acp.register(vec![1u8; 3], 0).expect_err("the directory is full");
        assert_eq!(refused.memory, [1; 3]);
        acp.unregister(keys[0])?;
        assert!(acp.unregister(keys[0]).is_err() && acp.address(keys[0], 0).is_err());
        assert!(matches!(acp.allocate(8, 4), Err(AcpError::NoSuchColour { colour: 4, .. })));
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn a_reset_numbers_the_ranks_anew() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let place = acp.rank().number();
        acp.store(acp.starter(acp.rank())?, 9u64).await?;
        acp.sync().await?;
        let twice = acp.reset(Rank::new(place / 2)).await;
        assert_eq!(twice, Err(AcpError::NoPermutation { rank: Rank::new(2) }));
        assert_eq!(acp.load::<u64>(acp.starter(acp.rank())?).await?, 9);
        acp.sync().await?;
        acp.reset(Rank::new((place + 1) % 3)).await?;
        assert_eq!(acp.rank().number(), (place + 1) % 3);
        let own = acp.starter(acp.rank())?;
        assert_eq!(acp.load::<u64>(own).await?, 0);
        acp.sync().await?;
        let next = acp.starter(Rank::new((acp.rank().number() + 1) % 3))?;
        acp.store(next, u64::from(acp.rank().number())).await?;
        acp.sync().await?;
        assert_eq!(acp.load::<u64>(own).await?, u64::from((acp.rank().number() + 2) % 3));
        let foreign = acp.atomic(next, own, Amo::Add(1u64), Order::None).await;
        assert_eq!(foreign, Err(AcpError::NotOwn { address: next }));
        let crooked = acp.atomic(own.offset_by(4)?, own, Amo::Add(1u64), Order::None).await;
        assert_eq!(crooked, Err(AcpError::Misaligned { address: own.offset_by(4)?, align: 8 }));
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn options_out_of_range_are_refused() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let good = Options::default();
        for (options, name) in [
            (good.regions(0), "regions"),
            (good.regions(254), "regions"),
            (good.depth(0), "depth"),
            (good.delegation_slots(0), "delegation_slots"),
            (good.delegation_slots(65), "delegation_slots"),
            (good.heap_bytes((4 << 30) + 1), "heap_bytes"),
        ] {
            let refused = Acp::init_with(&fabric, options).await;
            assert!(matches!(&refused, Err(AcpError::Option(error)) if error.option == name), "{name}: {refused:?}");
        }
        Ok(())
    });
}

#[test]
fn a_rank_ends_the_job() {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        if acp.rank().number() == 1 {
            acp.abort("as planned")?;
        }
        acp.sync().await?;
        Ok(())
    };
    let ended = threads(3).run(&program).expect_err("the job was ended");
    assert!(matches!(&ended, JobError::Aborted { rank, text, code: 1 } if rank.number() == 1 && text == "as planned"));
}
