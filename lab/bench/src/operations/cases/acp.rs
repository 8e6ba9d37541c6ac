//! Operations by global address: the cost of the layer of addresses, handles and order.

use super::{
    Case,
    pair::{PEER, Pair},
};
use crate::{
    goal::Fault,
    operations::sampling::{Named, Takes, Took, form, repeat, run},
    outside::{bare::How, limit, lines},
};
use acp::{Acp, GlobalAddress, GlobalAtomic, Options, Order, Threads};
use core::hint::black_box;
use rdma_fabric::{Amo, ProgramResult};

const ADD: Case =
    Case::new("acp-add", "atomic(Add) on an owned line + complete", Takes::Origin).at_most(2.0, Fault::Software);
const ADD_THREADS: Case =
    Case::new("acp-add-threads", "the same, callable by any thread", Takes::Origin).at_most(3.2, Fault::Software);
const TYPED: Case =
    Case::new("acp-fetch-add", "GlobalAtomic::fetch_add on an owned line", Takes::Origin).at_most(1.5, Fault::Software);
const COPY: Case = Case::new("acp-copy", "copy 8 B + complete", Takes::Origin).at_most(2.0, Fault::Software);
const ORDERED: Case = Case::new("acp-copy-chain", "three copies of 8 B in order + complete; beside one", Takes::Origin)
    .at_most(3.5, Fault::Software);
const REMOTE: Case = Case::new("acp-copy-remote", "copy within the peer's memory + complete", Takes::Origin)
    .at_most(1.0 / 0.85, Fault::Software);
const BY_WAY: Case = Case::new("acp-copy-direct", "the same, beside copies by way of own memory", Takes::Origin)
    .at_most(1.0 / 1.6, Fault::Software);

pub(super) const CASES: &[Case] = &[ADD, ADD_THREADS, TYPED, COPY, ORDERED, REMOTE, BY_WAY];

/// Bytes of a long copy.
const LONG: usize = 1 << 20;
/// Bytes from the start of a starter memory to the area of long copies; words come before it.
const LONG_AT: u64 = 64 << 10;

pub(super) async fn measure(pair: &mut Pair<'_>) -> ProgramResult<()> {
    if !CASES.iter().any(|case| pair.is_planned(case)) {
        return Ok(());
    }
    let options = Options::default().starter_bytes(LONG_AT as usize + 2 * LONG);
    let acp = Acp::init_with(pair.fabric, options).await?;
    let many = Acp::init_with(pair.fabric, options.threads(Threads::Many)).await?;
    let starters =
        |acp: &Acp| -> acp::Result<[GlobalAddress; 2]> { Ok([acp.starter(acp.rank())?, acp.starter(PEER)?]) };
    let [own, peer] = starters(&acp)?;
    touch(&acp, own).await?;
    acp.sync().await?;
    let owned = pair.sampler.bare.word(lines::OWNED);

    let forms = vec![
        repeat!("acp", _ => {
            let handle = acp.atomic(own, peer, Amo::Add(1u64), Order::None).await?;
            acp.complete(handle).await?;
        }),
        run!("lock xadd", times => limit::fetch_add(owned, times)),
    ];
    pair.measure(&ADD, 8, forms).await?;

    let [many_own, many_peer] = starters(&many)?;
    let forms = vec![
        repeat!("acp", _ => {
            let handle = many.atomic(many_own, many_peer, Amo::Add(1u64), Order::None).await?;
            many.complete(handle).await?;
        }),
        run!("lock xadd", times => limit::fetch_add(owned, times)),
    ];
    pair.measure(&ADD_THREADS, 8, forms).await?;

    let counter = GlobalAtomic::<u64>::new(peer)?;
    let forms = vec![
        repeat!("acp", _ => black_box(counter.fetch_add(&acp, 1).await?)),
        run!("lock xadd", times => limit::fetch_add(owned, times)),
    ];
    pair.measure(&TYPED, 8, forms).await?;

    let forms = vec![
        repeat!("acp", _ => {
            let handle = acp.copy(peer, own, 8, Order::None).await?;
            acp.complete(handle).await?;
        }),
        run!("lock xadd", times => limit::fetch_add(owned, times)),
    ];
    pair.measure(&COPY, 8, forms).await?;

    let forms = vec![
        repeat!("acp", _ => {
            let first = acp.copy(peer, own, 8, Order::None).await?;
            let second = acp.copy(peer, own, 8, first).await?;
            let third = acp.copy(peer, own, 8, second).await?;
            acp.complete(third).await?;
        }),
        repeat!("one copy", _ => {
            let handle = acp.copy(peer, own, 8, Order::None).await?;
            acp.complete(handle).await?;
        }),
    ];
    pair.measure(&ORDERED, 8, forms).await?;
    long(pair, &acp, own, peer).await?;
    many.finalize().await?;
    Ok(acp.finalize().await?)
}

/// Writes every byte once, so that no copy is the first access to a page.
async fn touch(acp: &Acp, own: GlobalAddress) -> ProgramResult<()> {
    let bytes = vec![1u8; LONG_AT as usize + 2 * LONG];
    Ok(acp.write(own, &bytes).await?)
}

async fn long(pair: &mut Pair<'_>, acp: &Acp, own: GlobalAddress, peer: GlobalAddress) -> ProgramResult<()> {
    let bare = pair.sampler.bare;
    let (from, to) = (peer.offset_by(LONG_AT)?, peer.offset_by(LONG_AT + LONG as u64)?);
    let buffer = own.offset_by(LONG_AT)?;
    let direct = || -> Named<'_> {
        repeat!("acp", _ => {
            let handle = acp.copy(to, from, LONG, Order::None).await?;
            acp.complete(handle).await?;
        })
    };
    let mut forms = vec![direct()];
    for how in How::ALL {
        forms.push(form(how.name(), async move |times| {
            bare.copy_target(PEER.index(), LONG, how, times);
            Ok(Took::Wall)
        }));
    }
    pair.measure(&REMOTE, LONG, forms).await?;
    let forms = vec![
        direct(),
        repeat!("get + put", _ => {
            let got = acp.copy(buffer, from, LONG, Order::None).await?;
            let put = acp.copy(to, buffer, LONG, got).await?;
            acp.complete(put).await?;
        }),
    ];
    pair.measure(&BY_WAY, LONG, forms).await
}
