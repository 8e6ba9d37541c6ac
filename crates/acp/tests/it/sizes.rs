//! Sizes and positions at which arithmetic could wrap, on threads and in virtual time.

use crate::harness::everywhere;
use acp::{
    Acp, AcpError, ChannelOptions, Deque, GlobalAtomic, GlobalPtr, GlobalSlice, Map, Mode, Options, Set, Striping,
    Vector, WorkSpace,
};
use rdma_fabric::{Fabric, ProgramResult};

const TOO_MANY: [usize; 8] = [
    usize::MAX,
    usize::MAX - 6,
    usize::MAX - 7,
    usize::MAX / 8,
    usize::MAX / 8 + 1,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    1 << 56,
];

async fn options(fabric: Fabric) -> ProgramResult<()> {
    for many in TOO_MANY {
        let of = Options::default;
        for wrong in [
            of().starter_bytes(many),
            of().heap_bytes(many),
            of().channel_bytes(many),
            of().regions(many),
            of().delegation_slots(many),
            of().mode(Mode::CommandQueue).depth(many),
            of().channels(ChannelOptions { slot_bytes: many, ..ChannelOptions::default() }),
            of().channels(ChannelOptions { receive_slots: many, ..ChannelOptions::default() }),
            of().channels(ChannelOptions { requests: many, ..ChannelOptions::default() }),
            of().channels(ChannelOptions { table_entries: many, ..ChannelOptions::default() }),
        ] {
            let begun = Acp::init_with(&fabric, wrong).await.map(drop);
            assert!(matches!(begun, Err(AcpError::Option(_))), "{wrong:?}: {begun:?}");
        }
    }
    Ok(())
}

#[test]
fn options_have_limits() {
    everywhere(2, &options);
}

async fn memory(fabric: Fabric) -> ProgramResult<()> {
    let acp = Acp::init(&fabric).await?;
    let (me, own) = (acp.rank(), acp.starter(acp.rank())?);
    let vector = Vector::<u64>::create(&acp, 4, me).await?;
    for many in TOO_MANY {
        assert!(acp.allocate(many, 0).is_err(), "{many} bytes");
        assert!(acp.malloc(many, me).await.is_err(), "{many} bytes of a heap");
        assert!(own.offset_by(many as u64).is_err() && own.checked_add(many as u64).is_none(), "{many} bytes on");
        assert!(GlobalSlice::<u64>::new(own, many).is_err(), "a slice of {many}");
        assert!(GlobalPtr::<u64>::new(own)?.add(many).is_err(), "element {many}");
        let slice = GlobalSlice::<u64>::new(own, 8)?;
        assert!(slice.get(many).is_none() && slice.slice(many..).is_err() && slice.slice(..many).is_err());
        assert!(Vector::<u64>::create(&acp, many, me).await.is_err(), "a vector of {many}");
        assert!(Deque::<[u64; 3]>::create(&acp, many, me).await.is_err(), "a deque of {many}");
        assert!(Map::<u64, u64>::create(&acp, &[me], many, me).await.is_err(), "a map of {many} slots");
        assert!(Set::<u64>::create(&acp, &[me], many, me).await.is_err(), "a set of {many} slots");
        assert!(vector.reserve(many).await.is_err() && vector.get(many).await.is_err(), "{many} elements");
        assert!(vector.erase(many - 1..many).await.is_err() && vector.insert(many, &1).await.is_err());
        assert!(vector.extend_from(own, many).await.is_err() && vector.pieces(0..many).await.is_err());
    }
    assert!(GlobalAtomic::<u64>::new(own).is_ok());
    assert_eq!(vector.len().await?, 0);
    acp.sync().await?;
    for many in TOO_MANY {
        assert!(WorkSpace::create(&acp, many).await.is_err(), "a work space of {many} bytes");
        // So many blocks that their number plus that of the ranks overflows.
        for bytes_per_rank in [1, 2, 64] {
            let striping = Striping { bytes_per_rank, ..Striping::default() };
            let space = WorkSpace::create_with(&acp, many, striping).await;
            assert!(space.is_err(), "a work space of {many} bytes in blocks of {bytes_per_rank}");
        }
        let striping = Striping { bytes_per_rank: many, ..Striping::default() };
        if let Ok(space) = WorkSpace::create_with(&acp, 64, striping).await {
            assert!(space.address(many).is_err() && space.read(many, &mut [0u64]).await.is_err());
            assert!(space.read(0, &mut [0u64; 9]).await.is_err());
            space.destroy().await?;
        }
    }
    acp.finalize().await?;
    Ok(())
}

#[test]
fn memory_has_an_end() {
    everywhere(2, &memory);
}

async fn positions(fabric: Fabric) -> ProgramResult<()> {
    let acp = Acp::init(&fabric).await?;
    let vector = Vector::<u64>::create(&acp, 4, acp.rank()).await?;
    let (begin, mut near, mut far) = (vector.begin(), vector.begin(), vector.begin());
    near.advance(1)?;
    far.advance(isize::MAX)?;
    far.advance(1)?;
    assert_eq!([near.distance(&far), far.distance(&near)], [isize::MAX, -isize::MAX]);
    assert_eq!([begin.distance(&far), far.distance(&begin)], [isize::MAX, isize::MIN]);
    far.advance(isize::MAX)?;
    assert_eq!([begin.distance(&far), far.distance(&begin)], [isize::MAX, isize::MIN]);
    assert!(far.advance(1).is_err() && far.position() == usize::MAX);
    assert!(far.address().await.is_err() && far.next().await?.is_none());
    acp.finalize().await?;
    Ok(())
}

#[test]
fn cursors_are_at_most_half_of_all_positions_apart() {
    everywhere(2, &positions);
}

/// Words that no call has written, at the address of a deque.
async fn overwritten(fabric: Fabric) -> ProgramResult<()> {
    let acp = Acp::init(&fabric).await?;
    let own = acp.starter(acp.rank())?;
    let body = own.offset_by(64)?.to_bits();
    for (offset, size, capacity) in
        [(u64::MAX - 1, u64::MAX - 1, u64::MAX), (1 << 63, 1 << 63, (1 << 63) + 1), (0, 3, 1 << 40)]
    {
        acp.write(own, &[body, offset, size, capacity]).await?;
        let deque = Deque::<u8>::from_address(&acp, own);
        let damaged = AcpError::Damaged { address: own };
        assert_eq!(deque.get(2).await, Err(damaged.clone()), "{offset}, {size}, {capacity}");
        assert_eq!(deque.pieces(0..2).await, Err(damaged.clone()));
        assert_eq!(deque.push_back(&1).await, Err(damaged.clone()));
        assert_eq!(deque.erase(0..1).await, Err(damaged));
    }
    acp.finalize().await?;
    Ok(())
}

#[test]
fn words_that_no_sequence_has_are_damaged() {
    everywhere(2, &overwritten);
}

/// As many regions as a directory may have entries.
async fn regions(fabric: Fabric) -> ProgramResult<()> {
    let acp = Acp::init_with(&fabric, Options::default().regions(253)).await?;
    let keys = (0..253).map(|_| acp.allocate(8, 0)).collect::<acp::Result<Vec<_>>>()?;
    let full = AcpError::DirectoryFull { rank: acp.rank(), limit: 253 };
    assert_eq!(acp.allocate(8, 0), Err(full.clone()));
    acp.unregister(keys[7])?;
    assert_eq!((acp.allocate(8, 0), acp.allocate(8, 0)), (Ok(keys[7]), Err(full)));
    assert_eq!(acp.address(keys[252], 0)?.region(), 255);
    acp.finalize().await?;
    Ok(())
}

#[test]
fn a_directory_may_be_full() {
    everywhere(2, &regions);
}
