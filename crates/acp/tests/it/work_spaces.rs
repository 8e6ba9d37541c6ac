//! Work spaces against an array.

use crate::harness::everywhere;
use acp::{Acp, AcpError, Options, Striping, WorkSpace};
use fastrand::Rng;
use rdma_fabric::{Amo, Fabric, ProgramResult, Rank};

fn striping(first_rank: u32, bytes_per_rank: usize) -> Striping {
    Striping { first_rank: Rank::new(first_rank), bytes_per_rank }
}

/// All ranks in turn read and write all of it, with each of the calls.
#[test]
fn a_work_space_is_an_array() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        for (seed, bytes, per_rank) in [(1u64, 500, 48), (2, 500, 1000), (3, 64, 1), (4, 301, 100)] {
            let space = WorkSpace::create_with(&acp, bytes, striping(seed as u32 % 3, per_rank)).await?;
            assert_eq!((space.len(), space.is_empty()), (bytes, false));
            let mut oracle = vec![0u8; bytes];
            for turn in 0..30u64 {
                // All draw the same random numbers; one rank acts, and all check.
                let mut random = Rng::with_seed(seed << 8 | turn);
                let (at, how, actor) = (random.usize(..bytes), random.usize(..2), random.usize(..3));
                let count = random.usize(..bytes - at + 1);
                let new: Vec<u8> = (0..count).map(|_| random.usize(..256) as u8).collect();
                let there = acp.starter(Rank::new(random.usize(..3) as u32))?;
                oracle[at..at + count].copy_from_slice(&new);
                if acp.rank().index() == actor {
                    if how == 0 {
                        space.write(at, &new).await?;
                    } else {
                        acp.write(there, &new).await?;
                        space.copy_from(at, there, count).await?;
                    }
                }
                acp.sync().await?;
                let mut seen = vec![0u8; bytes];
                space.read(0, &mut seen).await?;
                assert_eq!(seen, oracle, "seed {seed}, turn {turn}");
                let own = acp.starter(acp.rank())?.offset_by(1024)?;
                space.copy_to(at, own, count).await?;
                acp.read(own, &mut seen[..count]).await?;
                assert_eq!(seen[..count], new[..]);
                acp.sync().await?;
            }
            space.destroy().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn all_write_at_once_and_add_by_address() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let space = WorkSpace::create_with(&acp, 24 * 8, striping(1, 16)).await?;
        let me = acp.rank().index();
        for word in (me..24).step_by(3) {
            space.write(8 * word, &[word as u64]).await?;
        }
        acp.sync().await?;
        for word in 0..24 {
            let (address, follow) = space.address(8 * word)?;
            assert_eq!((address.rank().index(), follow), ((1 + word / 2) % 3, 16 - word % 2 * 8));
            acp.fetch(address, Amo::Add(100u64)).await?;
        }
        acp.sync().await?;
        let mut words = [0u64; 24];
        space.read(0, &mut words).await?;
        assert!((300..).zip(words).all(|(expected, word)| word == expected), "{words:?}");
        space.destroy().await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn wrong_work_spaces_are_refused_by_all() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, Options::default().regions(1)).await?;
        let me = acp.rank().index();
        let none = WorkSpace::create_with(&acp, 8, striping(2, 8)).await.map(drop);
        assert_eq!(none, Err(AcpError::NoSuchRank { rank: Rank::new(2), ranks: 2 }));
        assert!(matches!(WorkSpace::create_with(&acp, 8, striping(0, 0)).await, Err(AcpError::Option(_))));
        // One rank requests more than the other.
        let none = WorkSpace::create(&acp, 8 + me).await.map(drop);
        assert_eq!(none, Err(AcpError::NoPart { rank: Rank::new(1 - me as u32) }));
        // One has no region left.
        let taken = if me == 1 { Some(acp.allocate(8, 0)?) } else { None };
        let none = WorkSpace::create_with(&acp, 16, striping(0, 8)).await.map(drop);
        match me {
            0 => assert_eq!(none, Err(AcpError::NoPart { rank: Rank::new(1) })),
            _ => assert_eq!(none, Err(AcpError::DirectoryFull { rank: Rank::new(1), limit: 1 })),
        }
        taken.map_or(Ok(()), |key| acp.unregister(key))?;
        // Nothing was kept: there is room for this work space on both ranks, and then for the next.
        for bytes in [16, 0, 9] {
            let space = WorkSpace::create_with(&acp, bytes, striping(0, 8)).await?;
            let outside = |end: usize| Err(AcpError::OutOfRange { position: end as u64, len: bytes as u64 });
            assert_eq!(space.read(bytes, &mut [0u8]).await, outside(bytes + 1));
            assert_eq!(space.write(bytes, &[1u64]).await, outside(bytes + 8));
            assert_eq!(space.copy_to(1, acp.starter(acp.rank())?, bytes).await, outside(bytes + 1));
            assert_eq!(space.copy_from(usize::MAX, acp.starter(acp.rank())?, 2).await, outside(usize::MAX));
            assert_eq!(space.address(bytes).map(drop), outside(bytes + 1));
            let mut seen = vec![1u8; bytes];
            space.read(0, &mut seen).await?;
            assert_eq!(seen, vec![0; bytes]);
            space.destroy().await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

/// The owner of each part depends on the ranks' numbers, also after a reset.
#[test]
fn a_reset_moves_the_parts() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        acp.reset(Rank::new((acp.rank().number() + 1) % 3)).await?;
        let space = WorkSpace::create_with(&acp, 12, striping(0, 4)).await?;
        let me = acp.rank().number();
        space.write(4 * me as usize, &[me]).await?;
        acp.sync().await?;
        let mut seen = [9u32; 3];
        space.read(0, &mut seen).await?;
        assert_eq!((seen, space.address(4)?.0.rank()), ([0, 1, 2], Rank::new(1)));
        space.destroy().await?;
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn a_part_is_released_alone() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init_with(&fabric, Options::default().regions(1)).await?;
        let space = WorkSpace::create_with(&acp, 16, striping(0, 8)).await?;
        let mut seen = [1u64; 2];
        space.read(0, &mut seen).await?;
        assert_eq!(seen, [0, 0]);
        acp.sync().await?;
        if acp.rank().number() == 1 {
            space.release()?;
            acp.sync().await?;
            acp.unregister(acp.allocate(8, 0)?)?;
        } else {
            acp.sync().await?;
            space.write(0, &[3u64]).await?;
            assert!(matches!(space.read(8, &mut seen[..1]).await, Err(AcpError::NoSuchRegion { .. })));
            space.release()?;
        }
        acp.finalize().await?;
        Ok(())
    });
}
