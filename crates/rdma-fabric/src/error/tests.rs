use super::*;
use crate::Node;

#[test]
fn who_is_gone_is_named_and_who_is_wrong_is_not() {
    let (rank, region) = (Rank::new(7), RegionKey::from_bits(5));
    let gone = [
        FabricError::PeerLost { rank },
        FabricError::MemberLeft { rank },
        FabricError::StaleRegion { rank, region },
        FabricError::NoSuchRegion { rank, region },
    ];
    for error in gone {
        assert_eq!(error.gone(), Some(rank), "{error}");
    }
    let there = [
        FabricError::PeersLeft,
        FabricError::NoSuchRank { rank, ranks: 4 },
        FabricError::NotInGroup { rank, members: 4 },
        FabricError::Locked { rank, region },
        FabricError::NotMapped { rank, region },
        FabricError::out_of_bounds(RemoteAddr { rank, region, offset: 8 }, 8, 8),
    ];
    for error in there {
        assert_eq!(error.gone(), None, "{error}");
    }
}

#[test]
fn what_is_boxed_says_what_it_holds() {
    let (rank, region) = (Rank::new(7), RegionKey { index: 5, generation: 1 });
    let addr = RemoteAddr { rank, region, offset: 12 };
    let said = [
        (FabricError::out_of_bounds(addr, u64::MAX, 40), "bytes 12..18446744073709551615 of region 5.1 of rank 7"),
        (FabricError::misaligned(addr, 8), "byte 12 of region 5.1 of rank 7 is not aligned to 8 bytes"),
        (FabricError::no_atomics(addr), "no atomics at byte 12 of region 5.1 of rank 7: its memory is"),
        (FabricError::no_atomics_at_all(addr), "no atomics at byte 12 of region 5.1 of rank 7: this network"),
        (FabricError::length_mismatch(2, 3), "2 elements given where 3 are wanted"),
        (BlocksError::None.into(), "a put of no blocks"),
        (BlocksError::Overlap { len: 16, stride: 8 }.into(), "blocks of 16 bytes overlap, 8 bytes apart"),
        (BlocksError::Elements { stride: 12, element: 8 }.into(), "blocks that are 12 bytes apart are not made of"),
        (
            MulticastError::Elsewhere { one: addr, other: RemoteAddr { offset: 16, ..addr } }.into(),
            "no multicast writes byte 12 of region 5.1 of rank 7 and byte 16 of region 5.1 of rank 7",
        ),
        (
            MulticastError::SameNode { first: rank, second: Rank::new(8), node: Node::new(2) }.into(),
            "no multicast reaches both rank 7 and rank 8: they share node 2",
        ),
        (
            MulticastError::NoBox { members: 3 }.into(),
            "no multicast reaches these 3 ranks: their nodes do not fill a box",
        ),
        (FabricError::setting("torus", "no axes"), "setting torus: no axes"),
        (GateError::Disagreement.into(), "members of the group asked for different reductions"),
        (ColourError::Freed { colour: 3, rank }.into(), "rank 7 has given colour 3 back"),
        (QueueError::NoneFree(48).into(), "all 48 control queues of the node"),
    ];
    for (error, start) in said {
        assert!(error.to_string().starts_with(start), "{error}");
        assert!(std::error::Error::source(&error).is_none() && error.clone() == error);
    }
}
