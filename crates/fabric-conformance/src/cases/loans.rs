//! Regions that a provider lends to their owner.

use super::neighbour;
use crate::{ensure, ensure_eq};
use rdma_fabric::{Fabric, Group, ProgramResult, RegionKey, RemoteAddr};

/// Elements of a region.
const LEN: usize = 300;

/// A loan shows the region at the time of lending, and what a program writes in one is in the region once it is
/// given back.
pub(super) async fn a_loan_is_the_region(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc(LEN * 8)?;
    let keys = world.allgather(region.key().to_bits()).await?;
    let (own, peer) = (region.span::<u64>(&fabric, 0, LEN)?, neighbour(&fabric));
    let there = RemoteAddr { rank: peer, region: RegionKey::from_bits(keys[peer.index()]), offset: 0 };
    let theirs = fabric.remote_span::<u64>(there, LEN)?;
    let numbers = |first: u64| (first..first + LEN as u64).collect::<Vec<_>>();
    let Some(lender) = fabric.provider().lender() else { return Ok(world.barrier().await?) };

    let blank = lender.lend(own.place(), false);
    ensure!(blank.is_none_or(|loan| loan.slice(0, LEN) == Some(&[0u64; LEN][..])), "M11: a region never written");
    fabric.write(&own, &numbers(1))?;
    let (one, two) = (lender.lend(own.place(), false), lender.lend(own.place(), false));
    let (Some(one), Some(two)) = (one, two) else { return Err("M11: a region that is written is lent".into()) };
    world.barrier().await?;
    fabric.put(&*theirs.part(7..8)?, [1000]).await?;
    fabric.flush(peer).await?;
    world.barrier().await?;
    for loan in [&one, &two] {
        ensure_eq!(loan.slice(0, LEN), Some(&numbers(1)[..]), "M11: a loan shows what was there");
    }
    let mut changed = numbers(1);
    changed[7] = 1000;
    let read = || -> rdma_fabric::Result<_> {
        let mut all = vec![0; LEN];
        fabric.read(&own, &mut all).map(|()| all)
    };
    ensure_eq!(read()?, changed, "M11: a put into a lent region");
    let again = lender.lend(own.place(), false);
    let shown = again.as_ref().and_then(|loan| loan.slice(0, LEN));
    ensure_eq!(shown, Some(&changed[..]), "M11: a loan after the put");
    drop((one, two, again));

    for round in 0..3 {
        let Some(mut loan) = lender.lend(own.place(), true) else { return Err("M11: lent to be written".into()) };
        ensure!(lender.lend(own.place(), true).is_none() && lender.lend(own.place(), false).is_none(), "M11: twice");
        let Some(elements) = loan.slice_mut(0, LEN) else { return Err("M11: a loan to be written".into()) };
        if round == 0 {
            ensure_eq!(elements, &changed[..], "M11: a loan to be written");
        }
        elements.copy_from_slice(&numbers(2000 + round));
        lender.give_back(own.place(), loan);
        ensure_eq!(read()?, numbers(2000 + round), "M11: what was written in a loan");
    }
    world.barrier().await?;
    let mut got = vec![0; LEN];
    fabric.get_slice(&theirs, &mut got).await?;
    ensure_eq!(got, numbers(2002), "M11: read by a peer");
    world.barrier().await?;

    let loan = lender.lend(own.place(), false);
    drop(region);
    ensure!(loan.is_some_and(|loan| loan.slice(0, LEN) == Some(&numbers(2002)[..])), "M11: a loan stays");
    ensure!(lender.lend(own.place(), false).is_none(), "M11: a loan of a dropped region");
    Ok(world.barrier().await?)
}
