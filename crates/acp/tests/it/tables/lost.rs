//! Lost ranks, and cancelled calls.

use super::{begin, concurrent::shared};
use crate::harness::{everywhere, held_by, meet, survivors};
use acp::{AcpError, GlobalAddress, Map};
use core::time::Duration;
use rdma_fabric::{Amo, Fabric, FabricError, ProgramResult, Rank};
use std::collections::BTreeSet;

/// Rank 2 is lost while it holds a slot, whose lock is the slot's first word.
#[test]
fn a_lost_holder_is_an_error_for_its_slot_alone() {
    let ended = survivors(3, &async |fabric: Fabric| -> ProgramResult<bool> {
        let acp = begin(&fabric).await?;
        let home = Rank::new(0);
        let at =
            shared(&acp, async |ranks| Ok(Map::<u64, u64>::create(&acp, &ranks[..2], 1, home).await?.at())).await?;
        let map = Map::<u64, u64>::from_address(&acp, at).await?;
        // Finds the key in the only slot of each rank.
        let mut keys = [0; 2];
        for key in 1..20 {
            map.insert(&key, &key).await?;
            keys[map.find(&key).await?.expect("inserted").key.rank().index()] = key;
        }
        acp.sync().await?;
        if acp.rank().number() == 2 {
            let slots = acp.load::<u64>(map.address().offset_by(8)?).await?;
            let lock = GlobalAddress::from_bits(slots).expect("the directory's second word");
            assert_eq!(acp.fetch(lock, Amo::CompareSwap { expected: 0, new: held_by(2) }).await?, 0);
            meet(&acp, &fabric, &[0, 1, 2], 0).await?;
            return Err("lost".into());
        }
        meet(&acp, &fabric, &[0, 1, 2], 0).await?;
        let lost = || AcpError::from(FabricError::PeerLost { rank: Rank::new(2) });
        let [free, held] = keys;
        assert_eq!(map.insert(&held, &0).await, Err(lost()));
        assert_eq!(map.get(&held).await, Err(lost()));
        assert_eq!(map.remove(&held).await, Err(lost()));
        assert_eq!(map.clear().await, Err(lost()));
        assert_eq!(map.iter().collect::<Vec<_>>().await, Err(lost()));
        assert_eq!(map.insert(&free, &1).await.map(drop), Ok(()));
        // The memory of both must outlive their users.
        meet(&acp, &fabric, &[0, 1], 1).await?;
        Ok(true)
    });
    assert_eq!(ended, [Some(true), Some(true), None]);
}

/// Calls are cancelled after various times, while another rank uses the table.
#[test]
fn dropped_calls_leave_the_table_whole() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let home = Rank::new(1);
        let at = shared(&acp, async |_| Ok(Map::<u64, u64>::create(&acp, &[home], 1, home).await?.at())).await?;
        let map = Map::<u64, u64>::from_address(&acp, at).await?;
        let (me, mut sure) = (u64::from(acp.rank().number()), BTreeSet::new());
        for nanos in (0..60_000).step_by(1000) {
            let key = 100_000 * me + nanos % 7;
            let until = fabric.now() + Duration::from_nanos(nanos);
            match fabric.before(until, map.insert(&key, &nanos)).await {
                Some(inserted) => {
                    inserted?;
                    sure.insert(key);
                }
                None if sure.contains(&key) => {}
                None => drop(map.remove(&key).await?),
            }
            let until = fabric.now() + Duration::from_nanos(nanos);
            if nanos % 3000 == 0 && fabric.before(until, map.remove(&key)).await.is_none() {
                map.insert(&key, &nanos).await?;
                sure.insert(key);
            } else if nanos % 3000 == 0 {
                sure.remove(&key);
            }
        }
        acp.sync().await?;
        let mut mine = BTreeSet::new();
        for (key, _) in map.iter().collect::<Vec<_>>().await? {
            assert!(key / 100_000 != me || mine.insert(key), "{key} twice");
        }
        assert_eq!(mine, sure);
        assert_eq!(map.len().await?, map.iter().collect::<Vec<_>>().await?.len());
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}
