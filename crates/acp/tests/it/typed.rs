//! Pointers, slices, atomics and links.

use crate::harness::everywhere;
use acp::{Acp, AcpError, GlobalAddress, GlobalAtomic, GlobalPtr, GlobalSlice, Link, MAX_REGION_BYTES, Order};
use rdma_fabric::{Amo, Fabric, FabricError, Pod, ProgramResult, Rank};

/// An element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Node {
    next: u64,
    value: u64,
}

fn link(node: Node) -> Link<Node> {
    Link::from_bits(node.next)
}

/// Every rank prepends a node to a list at rank 0, by swapping the list's head; then all walk
/// through it.
#[test]
fn a_list_over_all_ranks_is_built_by_swaps() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let head = GlobalAtomic::<u64>::new(acp.starter(Rank::new(0))?)?;
        let nodes = acp.allocate_slice::<Node>(3, 0)?;
        for (value, node) in (0u64..).zip(nodes.iter()) {
            let next = head.swap(&acp, node.to_link().to_bits()).await?;
            node.write(&acp, Node { next, value: u64::from(acp.rank().number()) * 10 + value }).await?;
        }
        acp.sync().await?;
        let mut seen = Vec::new();
        let mut at = Link::<Node>::from_bits(head.load(&acp).await?);
        while let Some(node) = at.get() {
            let node = node.read(&acp).await?;
            seen.push(node.value);
            at = link(node);
        }
        assert!(at.is_null());
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]);
        acp.sync().await?;
        acp.free_slice(nodes)?;
        assert!(matches!(acp.free_slice(nodes), Err(AcpError::NoSuchRegion { .. })));
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn slices_move_between_ranks_and_keep_their_bounds() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let me = acp.rank().number();
        let own = acp.starter_slice::<u32>(acp.rank())?;
        assert_eq!((own.len(), own.rank(), own.bytes()), (2560, acp.rank(), 10 << 10));
        let lent = acp.register_slice((0..100).map(|i| i + 1000 * me).collect(), 0)?;
        // At the location where the next rank reads it.
        let words = own.slice(..4)?.start().cast::<[u64; 2]>()?;
        words.write(&acp, lent.to_words()).await?;
        acp.sync().await?;
        let next = Rank::new((me + 1) % 3);
        let words = acp.starter_slice::<[u64; 2]>(next)?.at(0)?.read(&acp).await?;
        let theirs = GlobalSlice::<u32>::from_words(words).ok_or("no slice")?;
        assert_eq!((theirs.len(), theirs.rank()), (100, next));
        let copied = theirs.slice(10..=19)?.copy_to(&acp, own.slice(100..110)?, Order::None).await?;
        theirs.at(99)?.copy_to(&acp, own.at(110)?, copied).await?;
        acp.complete(Order::All).await?;
        let seen = own.slice(100..111)?.to_vec(&acp).await?;
        let expected: Vec<u32> = (10..20).chain([99]).map(|i| i + 1000 * next.number()).collect();
        assert_eq!(seen, expected);
        acp.sync().await?;

        for (start, end) in [(0, 101), (101, 101), (5, 4), (usize::MAX, usize::MAX)] {
            let outside = theirs.slice(start..end);
            assert!(matches!(outside, Err(AcpError::OutOfBounds(_))), "{start}..{end}: {outside:?}");
        }
        assert!(theirs.slice(..=usize::MAX).is_err() && theirs.get(100).is_none() && theirs.at(100).is_err());
        assert!(theirs.slice(100..)?.is_empty() && theirs.slice(100..)?.to_vec(&acp).await?.is_empty());
        let (mut short, long) = ([0u32; 3], [0u32; 101]);
        let mismatch = |result: acp::Result<()>| {
            assert!(matches!(result, Err(AcpError::Fabric(FabricError::LengthMismatch(_)))), "{result:?}");
        };
        mismatch(theirs.read(&acp, &mut short).await);
        mismatch(theirs.write(&acp, &long).await);
        mismatch(theirs.copy_to(&acp, own, Order::None).await.map(drop));
        acp.sync().await?;
        let back: Vec<u32> = acp.take_slice(lent).await?;
        assert_eq!(back, (0..100).map(|i| i + 1000 * me).collect::<Vec<_>>());
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn atomics_return_what_was_before() {
    async fn all<W: rdma_fabric::AtomicWord>(acp: &Acp, at: GlobalAddress) -> ProgramResult<()> {
        let w = |value: u64| W::from_bits(value);
        let word = GlobalPtr::<W>::new(at)?.as_atomic();
        let own = acp.starter_slice::<W>(acp.rank())?.at(0)?;
        word.store(acp, w(5)).await?;
        let before = [
            word.fetch_add(acp, w(3)).await?,
            word.fetch_sub(acp, w(9)).await?,
            word.fetch_and(acp, w(0xff)).await?,
            word.fetch_or(acp, w(0x100)).await?,
            word.fetch_xor(acp, w(0x1ff)).await?,
            word.compare_swap(acp, w(0), w(1)).await?,
            word.compare_swap(acp, w(0), w(2)).await?,
            word.swap(acp, w(7)).await?,
            word.load(acp).await?,
        ];
        assert_eq!(before, [5, 8, u64::MAX, 0xff, 0x1ff, 0, 1, 1, 7].map(W::from_bits));
        let updated = word.update(acp, own, Amo::Add(w(1)), Order::None).await?;
        acp.complete(updated).await?;
        assert_eq!((own.read(acp).await?, word.as_ptr().read(acp).await?), (w(7), w(8)));
        Ok(())
    }
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = Acp::init(&fabric).await?;
        let peer = acp.starter(Rank::new(1 - acp.rank().number()))?;
        all::<u64>(&acp, peer.offset_by(64)?).await?;
        all::<u32>(&acp, peer.offset_by(76)?).await?;
        assert!(matches!(GlobalAtomic::<u64>::new(peer.offset_by(4)?), Err(AcpError::Misaligned { align: 8, .. })));
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn arithmetic_is_checked() {
    fn plain<T: Pod>() {}
    plain::<Link<Node>>();
    assert_eq!(
        [size_of::<GlobalPtr<Node>>(), size_of::<Option<GlobalPtr<Node>>>(), size_of::<Link<Node>>()],
        [8, 8, 8]
    );
    assert_eq!([size_of::<GlobalSlice<Node>>(), size_of::<GlobalAtomic<u32>>()], [16, 8]);
    // Rank 0, region 3, offset 0.
    let base = GlobalAddress::from_bits(1 << 43 | 3 << 33).expect("an address");
    let first = GlobalPtr::<u32>::new(base).expect("aligned");
    assert!(GlobalPtr::<u32>::new(base.checked_add(2).expect("inside")).is_err());
    assert!(first.sub(1).is_err() && first.add(usize::MAX).is_err());
    assert!(first.add((MAX_REGION_BYTES / 4) as usize).is_err());
    let last = first.add((MAX_REGION_BYTES / 4) as usize - 1).expect("the last one");
    assert_eq!(last.elements_from(first), Some((MAX_REGION_BYTES / 4) as usize - 1));
    assert_eq!((first.elements_from(last), last.sub((MAX_REGION_BYTES / 4) as usize - 1)), (None, Ok(first)));
    assert!(first < last && last.cast::<u64>().is_err() && last.cast::<u16>().is_ok());
    assert_eq!(
        GlobalPtr::<()>::new(base).expect("aligned").elements_from(GlobalPtr::new(base).expect("aligned")),
        Some(0)
    );
    assert!(last.slice(1).is_ok() && last.slice(2).is_err() && last.slice(usize::MAX).is_err());
    assert_eq!(last.slice(1).map(|one| one.slice(1..)).expect("one").map(GlobalSlice::len), Ok(0));
    assert_eq!(GlobalSlice::<u64>::from_words([0, 1]), None);
    assert_eq!(GlobalSlice::<u64>::from_words([base.to_bits() + 4, 1]), None);
    let link = Link::<u64>::from_bits(base.to_bits() + 4);
    assert!(link.get().is_none() && !link.is_null() && Link::<u64>::default() == Link::NULL);
    assert_eq!(first.to_link().get(), Some(first));
    assert!(format!("{:?}{:?}{link:?}", Link::<u8>::NULL, first).contains("null"));
}
