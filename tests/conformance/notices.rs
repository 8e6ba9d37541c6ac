//! Notices: sentences N1–N4, O9.

use crate::verdict::{ensure, ensure_eq};
use rdma_fabric::{Deps, FabricError, Group, Rank, Region, RegionAccess, program};

program! {
    pub async fn arrive_in_order_with_data<F>(fabric: F) -> () {
        // More than a notice queue of moderate depth holds while nobody looks.
        const EACH: u64 = 120;
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(4096).await?;
        let target = Rank::new(0);
        let part = |rank: usize| 1024 * rank as u64;
        if fabric.rank() == target {
            world.barrier().await?;
            let mut next = [0u64; 3];
            for _ in 0..2 * EACH {
                let notice = fabric.next_notice(Deps::All).await?;
                let from = notice.from.index();
                ensure!(from == 1 || from == 2, "N1: a notice from {}", notice.from);
                let i = next[from];
                ensure_eq!(notice.data, i % 200, "N3: data of notice {i} of {}", notice.from);
                let (offset, len) = (part(from) + 8 * (i % 100), 1 + (i % 8) as usize);
                ensure_eq!((notice.region, notice.end), (region.key(), offset + len as u64), "N1: notice {i}");
                // The bytes of this put; a later round of the same place may have followed.
                let mut bytes = vec![0u8; len];
                fabric.read(&region.span(&fabric, offset as usize, len)?, &mut bytes)?;
                ensure!(bytes.iter().all(|b| *b as u64 % 100 == i % 100 && *b > 0 || i % 100 == 0), "N2: {bytes:?}");
                next[from] += 1;
            }
            ensure_eq!(fabric.try_notice()?, None, "N3: a notice too many");
        } else {
            let me = fabric.rank().index();
            world.barrier().await?;
            for i in 0..EACH {
                let (offset, len) = (part(me) + 8 * (i % 100), 1 + (i % 8) as usize);
                let to = fabric.remote_span::<u8>(region.at(target, offset), len)?;
                fabric.put_notify(&to, vec![(i % 100 + if i >= 100 { 100 } else { 0 }) as u8; len], i % 200).await?;
            }
        }
        world.barrier().await?;
        Ok(())
    }
}

program! {
    pub async fn an_empty_put_notifies<F>(fabric: F) -> () {
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(64).await?;
        if fabric.rank() == Rank::new(1) {
            let to = fabric.remote_span::<u64>(region.at(Rank::new(0), 16), 0)?;
            fabric.put(&to, Vec::new()).await?;
            fabric.put_notify(&to, Vec::new(), 77).await?;
        } else {
            let notice = fabric.next_notice(Deps::One(Rank::new(1))).await?;
            let told = (notice.from, notice.data, notice.region, notice.end);
            ensure_eq!(told, (Rank::new(1), 77, region.key(), 16), "O9");
        }
        world.barrier().await?;
        Ok(())
    }
}

program! {
    pub async fn width_is_checked<F>(fabric: F) -> () {
        let mut world = Group::world(&fabric).await?;
        let region = fabric.alloc_symmetric(64).await?;
        let bits = fabric.caps().notice_bits;
        let widest = u64::MAX >> (64 - bits);
        if fabric.rank() == Rank::new(1) {
            let to = fabric.remote_span::<u64>(region.at(Rank::new(0), 0), 1)?;
            if bits < 64 {
                let data = widest + 1;
                let refused = fabric.put_notify(&to, [1], data).await;
                ensure_eq!(refused.err(), Some(FabricError::NoticeTooWide { data, bits }), "N4");
            }
            fabric.put_notify(&to, [2], widest).await?;
        } else {
            let notice = fabric.next_notice(Deps::All).await?;
            ensure_eq!(notice.data, widest, "N4: the widest data");
            ensure_eq!(fabric.load(&region.word::<u64>(&fabric, 0)?)?, 2, "N4: the refused put wrote nothing after");
        }
        world.barrier().await?;
        Ok(())
    }
}
