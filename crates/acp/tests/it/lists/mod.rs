//! Lists.

mod random;

use crate::harness::everywhere;
use acp::{Acp, AcpError, List, Options, Result};
use rdma_fabric::{Fabric, ProgramResult, Rank};

const HEAP: usize = 64 << 10;

async fn begin(fabric: &Fabric) -> Result<Acp> {
    Acp::init_with(fabric, Options::default().heap_bytes(HEAP)).await
}

async fn assert_freed(acp: &Acp) -> Result<()> {
    for rank in 0..acp.ranks() as u32 {
        let all = acp.malloc(HEAP - 56, Rank::new(rank)).await?;
        acp.free(all).await?;
    }
    Ok(())
}

/// One rank after the other appends to the same list, and removes from it.
#[test]
fn lists_go_from_rank_to_rank() {
    let outs = everywhere(3, &async |fabric: Fabric| -> ProgramResult<Vec<u64>> {
        let acp = begin(&fabric).await?;
        let (me, starter) = (acp.rank(), acp.starter(Rank::new(0))?);
        if me.number() == 0 {
            acp.store(starter, List::<u64>::create(&acp, Rank::new(1)).await?.address().to_bits()).await?;
        }
        acp.sync().await?;
        let address = acp::GlobalAddress::from_bits(acp.load::<u64>(starter).await?).expect("a list");
        let list = List::<u64>::from_address(&acp, address);
        let mut taken = vec![];
        for turn in 0..6 {
            if turn % 3 == me.number() {
                for n in 0..3u64 {
                    list.push_back(&(u64::from(turn) * 10 + n), me).await?;
                }
                taken.extend(list.pop_front().await?);
            }
            acp.sync().await?;
        }
        let all: Vec<u64> = list.iter().await?.collect().await?;
        assert_eq!(all, [20, 21, 22, 30, 31, 32, 40, 41, 42, 50, 51, 52]);
        assert_eq!(list.element(list.end()).await, Err(AcpError::NoSuchElement { address }));
        acp.sync().await?;
        if me.number() == 2 {
            list.destroy().await?;
            assert_freed(&acp).await?;
        }
        acp.finalize().await?;
        Ok(taken)
    });
    assert_eq!(outs, [[0, 10], [1, 11], [2, 12]]);
}

#[test]
fn misuse_and_lack_of_memory_change_nothing() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let (home, full) = (Rank::new(0), Rank::new(1));
            let (list, other) = (List::<str>::create(&acp, home).await?, List::<str>::create(&acp, home).await?);
            for word in ["a", "b", "c"] {
                list.push_back(word, home).await?;
                other.push_back(word, full).await?;
            }
            let foreign = other.begin().await?;
            let refused = AcpError::NoSuchElement { address: foreign.element };
            assert_eq!(list.insert(foreign, "x", home).await, Err(refused.clone()));
            assert_eq!(list.get(foreign).await, Err(refused.clone()));
            assert_eq!(list.next(foreign).await, Err(refused.clone()));
            assert_eq!(list.erase(foreign).await, Err(refused.clone()));
            assert_eq!(list.splice(foreign, &other, foreign).await, Err(refused.clone()));
            assert_eq!(list.erase_range(list.begin().await?, foreign).await, Err(refused));
            let end = AcpError::NoSuchElement { address: list.address() };
            assert_eq!(list.erase(list.end()).await, Err(end.clone()));
            assert_eq!(list.next(list.end()).await, Err(end.clone()));
            assert_eq!(list.advance(list.begin().await?, 4).await, Err(end.clone()));
            assert_eq!(list.advance(list.begin().await?, -1).await, Err(end));
            let first = list.begin().await?;
            let backwards = AcpError::NoSuchElement { address: first.element };
            assert_eq!(list.distance(list.end(), first).await, Err(backwards.clone()));
            assert_eq!(list.erase_range(list.end(), first).await, Err(backwards));
            let mut taken = vec![];
            for bytes in [1 << 14, 1 << 10, 64, 16] {
                while let Ok(block) = acp.malloc(bytes, full).await {
                    taken.push(block);
                }
            }
            let exhausted = |done: Result<()>| {
                assert!(matches!(done, Err(AcpError::HeapExhausted { rank, .. }) if rank == full), "{done:?}");
            };
            exhausted(list.push_back("x", full).await);
            exhausted(list.assign(&other).await);
            exhausted(list.insert_range(list.end(), &other, foreign, other.end()).await.map(drop));
            for list in [&list, &other] {
                assert_eq!(list.iter().await?.collect::<Vec<_>>().await?, ["a", "b", "c"]);
            }
            // Merging needs no memory.
            list.merge(&other).await?;
            assert_eq!(list.iter().await?.collect::<String>().await?, "aabbcc");
            let numbers = List::<u64>::from_address(&acp, list.address());
            assert_eq!(numbers.front().await, Err(AcpError::OtherType { address: list.begin().await?.element }));
            assert_eq!(numbers.sort().await, Err(AcpError::OtherType { address: list.begin().await?.element }));
            // A list whose first element is linked to itself.
            acp.store(first.element, first.element.to_bits()).await?;
            assert!(matches!(list.sort().await, Err(AcpError::Damaged { .. })));
            let nothing = List::<u64>::from_address(&acp, acp.starter(home)?);
            assert!(matches!(nothing.len().await, Err(AcpError::Damaged { .. })));
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}

/// The word of a list's count is overwritten.
#[test]
fn a_count_that_no_list_has_is_damaged() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        let me = acp.rank();
        let (list, other) = (List::<u64>::create(&acp, me).await?, List::<u64>::create(&acp, me).await?);
        list.push_back(&1, me).await?;
        other.push_back(&2, me).await?;
        let count = |list: &List<u64>| list.address().offset_by(16);
        acp.write(count(&list)?, &[u64::MAX]).await?;
        let damaged = AcpError::Damaged { address: list.address() };
        assert_eq!(list.push_back(&3, me).await, Err(damaged.clone()));
        let first = other.begin().await?;
        assert_eq!(list.splice(list.end(), &other, first).await, Err(damaged));
        acp.write(count(&list)?, &[1u64]).await?;
        assert_eq!((list.len().await?, other.len().await?), (1, 1));
        list.destroy().await?;
        other.destroy().await?;
        acp.sync().await?;
        if me.number() == 0 {
            assert_freed(&acp).await?;
        }
        acp.finalize().await?;
        Ok(())
    });
}

#[test]
fn elements_are_arranged_by_position() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let acp = begin(&fabric).await?;
        if acp.rank().number() == 0 {
            let list = List::<str>::create(&acp, Rank::new(1)).await?;
            for (word, rank) in [("one", 0), ("three", 1), ("", 0)] {
                list.push_back(word, Rank::new(rank)).await?;
            }
            let elements = list.elements().await?;
            for (element, word) in elements.iter().zip(["one", "three", ""]) {
                assert_eq!(list.element(element.position).await?, (element.value, element.bytes));
                assert_eq!(acp.read_vec::<u8>(element.value, element.bytes as usize).await?, word.as_bytes());
            }
            let [one, three, none] = [0, 1, 2].map(|n| elements[n].position);
            list.arrange(&[none, one, three]).await?;
            assert_eq!(list.iter().await?.collect::<Vec<_>>().await?, ["", "one", "three"]);
            let refused = |position: acp::ListPosition| Err(AcpError::NoSuchElement { address: position.element });
            assert_eq!(list.arrange(&[none, one, one]).await, refused(one));
            assert_eq!(list.arrange(&[none, one, list.end()]).await, refused(list.end()));
            assert_eq!(list.arrange(&[one, none]).await, refused(three));
            assert_eq!(list.iter().await?.collect::<Vec<_>>().await?, ["", "one", "three"]);
            let missing = acp.read_vec::<u64>(one.element, usize::MAX).await;
            assert!(matches!(missing, Err(AcpError::OutOfBounds(_))), "{missing:?}");
            list.destroy().await?;
            assert_freed(&acp).await?;
        }
        acp.sync().await?;
        acp.finalize().await?;
        Ok(())
    });
}
