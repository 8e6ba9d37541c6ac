//! Groups.

use super::world_and_region;
use crate::{ensure, ensure_eq};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank};
use std::time::Duration;

/// A multiple of the time that a rank may take to detect that another one has left.
const HANG: Duration = Duration::from_secs(5);

pub(super) async fn barriers_separate(fabric: Fabric) -> ProgramResult<()> {
    let n = fabric.ranks() as u64;
    // At rank 0, the number of arrivals of each rank.
    let (mut world, region) = world_and_region(&fabric, 8 * fabric.ranks()).await?;
    let all = fabric.remote_span::<u64>(region.at(Rank::new(0), 0), fabric.ranks())?;
    let mine = fabric.remote_word::<u64>(region.at(Rank::new(0), 8 * fabric.rank().number() as u64))?;
    for round in 0..10 {
        // Ranks reach the barrier at different times.
        let late = (fabric.rank().number() as u64 + round) % n;
        fabric.sleep(Duration::from_micros(20 * late)).await;
        fabric.put_word(&mine, round + 1).await?;
        fabric.flush(Rank::new(0)).await?;
        world.barrier().await?;
        let arrived = fabric.get(&all, vec![0; fabric.ranks()]).await?;
        ensure_eq!(arrived, vec![round + 1; fabric.ranks()], "G1: arrivals before round {round} was over");
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn broadcast_from_everywhere(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    for round in 0..3u64 {
        for root in 0..world.len() {
            let mine = [world.me() as u64, round, 3, 4, 5];
            let got = world.broadcast(root, mine).await?;
            ensure_eq!(got, [root as u64, round, 3, 4, 5], "G2: broadcast of member {root}");
        }
    }
    let byte = world.broadcast(world.len() - 1, world.me() as u8).await?;
    ensure_eq!(byte as usize, world.len() - 1, "G2: broadcast of a byte");
    Ok(world.barrier().await?)
}

/// Members put into each other's words for set-up, and meet in every collective before they look.
pub(super) async fn setup_words_are_left_alone(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    const SOME: [usize; 4] = [0, 1, 2, Group::SETUP_WORDS - 1];
    let value = |member: usize, index: usize| (member * 1_000 + index + 1) as u64;
    for index in SOME {
        ensure_eq!(fabric.load(&world.own_setup_word(index)?)?, 0, "G7: word {index} at first");
    }
    world.barrier().await?;
    for index in SOME {
        fabric.put_word(&world.setup_word((me + 1) % n, index)?, value(me, index)).await?;
    }
    fabric.flush_all().await?;
    for root in 0..n {
        world.broadcast(root, me).await?;
        world.allgather([me; 3]).await?;
        world.greatest(u64::MAX - me as u64).await?;
    }
    for index in SOME {
        let seen = fabric.load(&world.own_setup_word(index)?)?;
        ensure_eq!(seen, value((me + n - 1) % n, index), "G7: word {index}, which the member before has put");
    }
    Ok(world.barrier().await?)
}

pub(super) async fn allgather_in_member_order(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    for round in 0..4u32 {
        let all = world.allgather([round, 100 + world.me() as u32, 7]).await?;
        let want: Vec<_> = (0..world.len() as u32).map(|i| [round, 100 + i, 7]).collect();
        ensure_eq!(all, want, "G2: allgather {round}");
        let bytes = world.allgather(world.me() as u8).await?;
        ensure_eq!(bytes, (0..world.len() as u8).collect::<Vec<_>>(), "G2: allgather of bytes");
    }
    Ok(world.barrier().await?)
}

pub(super) async fn splits_number_by_order(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    // Odd and even members, numbered in reverse.
    let half = world.split(Some(me as u64 % 2), (n - me) as u64).await?;
    let Some(mut half) = half else { return Err("G2: a member without its group".into()) };
    let members: Vec<u32> = (0..n as u32).rev().filter(|i| *i as usize % 2 == me % 2).collect();
    ensure_eq!(half.len(), members.len(), "G2: members of the half");
    ensure_eq!(half.allgather(fabric.rank().number()).await?, members, "G2: order of the half");
    for (number, rank) in members.iter().enumerate() {
        ensure_eq!(half.rank(number)?, Rank::new(*rank), "G2: rank of member {number}");
    }
    // The halves work concurrently, and may overlap with the whole group's next operation.
    let root = half.broadcast(0, me as u64).await?;
    ensure_eq!(root, members[0] as u64, "G2: broadcast in the half");
    half.barrier().await?;
    // Some join no group.
    let some = world.split((me % 3 != 1).then_some(4), 0).await?;
    ensure_eq!(some.is_some(), me % 3 != 1, "G2: who joins");
    if let Some(mut some) = some {
        let want: Vec<u32> = (0..n as u32).filter(|i| i % 3 != 1).collect();
        ensure_eq!(some.allgather(me as u32).await?, want, "G2: order without an order");
        some.barrier().await?;
    }
    Ok(world.barrier().await?)
}

pub(super) async fn memory_of_a_group(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    let half = world.split(Some(me as u64 % 2), (n - me) as u64).await?;
    let Some(mut half) = half else { return Err("G4: a member without its group".into()) };
    let whole = half.memory(24).await?;
    let memory = whole.part(8, 16)?;
    let outside = memory.part(8, 9).err();
    ensure!(matches!(outside, Some(FabricError::OutOfBounds(_))), "G4: a part beyond the end: {outside:?}");
    ensure_eq!((memory.len(), memory.members()), (16, half.len()), "G4");
    for number in 0..half.len() {
        let rank = half.rank(number)?;
        ensure_eq!((memory.member(number)?, memory.number(rank)), (rank, Some(number)), "G4: member {number}");
        fabric.fetch_add(&fabric.remote_word::<u64>(memory.at(rank, 8)?)?, 1 + me as u64).await?;
    }
    let listed = (0..half.len()).map(|number| half.rank(number)).collect::<Result<Vec<_>, _>>()?;
    ensure_eq!(memory.ranks().collect::<Vec<_>>(), listed, "G4: ranks, in order");
    ensure_eq!(memory.without(&listed[..1]).ranks().len(), half.len(), "G4: the lost are among them");
    half.barrier().await?;
    let sum: u64 = (0..n as u64).filter(|rank| *rank as usize % 2 == me % 2).map(|rank| 1 + rank).sum();
    let own = fabric.local_word::<u64>(whole.at(fabric.rank(), 16)?)?;
    ensure_eq!(fabric.load(&own)?, sum, "G4: what the members added");
    let stranger = Rank::new((me as u32 + 1) % n as u32);
    if n > 1 && (n.is_multiple_of(2) || me + 1 < n) {
        ensure_eq!(
            memory.at(stranger, 0).err(),
            Some(FabricError::NotInGroup { rank: stranger, members: half.len() }),
            "G4"
        );
        ensure_eq!((memory.number(stranger), half.number(stranger).is_err()), (None, true), "G4");
    }
    with_control(half).await?;
    let ours = world.memory(8).await?;
    ensure_eq!(
        (ours.members(), ours.member(n - 1)?, ours.number(Rank::new(n as u32))),
        (n, Rank::new(n as u32 - 1), None),
        "G4"
    );
    ensure!(ours.ranks().eq((0..n as u32).map(Rank::new)), "G4: ranks of the world");
    let last = fabric.remote_word::<u64>(ours.at(Rank::new(n as u32 - 1), 0)?)?;
    fabric.fetch_add(&last, 1).await?;
    world.barrier().await?;
    ensure_eq!(fabric.get_word(&last).await?, n as u64, "G4: of the world");
    Ok(world.barrier().await?)
}

/// Memory next to the group's control block: neither interferes with the other, before and after.
async fn with_control(mut group: Group) -> ProgramResult<()> {
    let fabric = group.fabric().clone();
    let (n, me) = (group.len(), group.me());
    for round in 0..3u64 {
        let memory = group.memory_with_control(8 * n).await?;
        ensure_eq!((memory.len(), memory.members()), (8 * n, n), "G4: beside the control block");
        let outside = memory.part(8 * n - 8, 9).err();
        ensure!(matches!(outside, Some(FabricError::OutOfBounds(_))), "G4: beyond the end: {outside:?}");
        for number in 0..n {
            let there = fabric.remote_word::<u64>(memory.at(group.rank(number)?, 8 * me as u64)?)?;
            fabric.put_word(&there, u64::MAX - me as u64).await?;
        }
        fabric.flush_all().await?;
        ensure_eq!(group.allgather(round).await?, vec![round; n], "G4: the group goes on, round {round}");
        ensure_eq!(group.greatest(me as u64).await?, n as u64 - 1, "G4: it agrees, round {round}");
        let mut own = vec![0u64; n];
        fabric.read(&fabric.local_span(memory.at(fabric.rank(), 0)?, n)?, &mut own)?;
        let want: Vec<u64> = (0..n as u64).map(|number| u64::MAX - number).collect();
        ensure_eq!(own, want, "G4: what the members put, round {round}");
        group.barrier().await?;
    }
    Ok(())
}

pub(super) async fn the_greatest_of_all(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let half = world.split(Some(world.me() as u64 % 2), 0).await?;
    let Some(half) = half else { return Err("G5: a member without its group".into()) };
    for mut group in [world, half] {
        let (n, me) = (group.len() as u64, group.me() as u64);
        ensure_eq!(group.greatest(0).await?, 0, "G5: of nothing but zeros");
        ensure_eq!(group.greatest(u64::MAX - me).await?, u64::MAX, "G5: of the largest there are");
        // The member with the greatest value and the latecomers change; no barrier keeps fast
        // members out of the next round.
        for round in 0..4 * n {
            let late = (me + 3 * round) % n;
            fabric.sleep(Duration::from_micros(20 * late)).await;
            let mine = 1000 * (4 * n - round) + (me + round) % n;
            ensure_eq!(group.greatest(mine).await?, 1000 * (4 * n - round) + n - 1, "G5: round {round}");
            let least = !group.greatest(!mine).await?;
            ensure_eq!(least, 1000 * (4 * n - round), "G5: the least of round {round}");
        }
        ensure_eq!(group.broadcast(0, me).await?, 0, "G5: the group goes on");
    }
    Ok(())
}

pub(super) async fn barriers_publish_what_was_flushed(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let (n, me) = (world.len(), world.me());
    let region = fabric.alloc_symmetric(8 * n).await?;
    for round in 1..=10u64 {
        for rank in 0..n as u32 {
            let there = fabric.remote_word::<u64>(region.at(Rank::new(rank), 8 * me as u64))?;
            fabric.put_word(&there, round).await?;
        }
        fabric.flush_all().await?;
        world.barrier().await?;
        let mut mine = vec![0u64; n];
        fabric.read(&region.span(&fabric, 0, n)?, &mut mine)?;
        ensure_eq!(mine, vec![round; n], "G1: flushed before barrier {round}");
        let theirs = fabric.remote_span::<u64>(region.at(Rank::new(((me + 1) % n) as u32), 0), n)?;
        ensure_eq!(fabric.get(&theirs, vec![0u64; n]).await?, vec![round; n], "G1: at another rank");
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn misuse_is_told(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let n = world.len();
    for nobody in [n, usize::MAX] {
        let end = world.broadcast(nobody, 1u8).await.err();
        ensure!(matches!(end, Some(FabricError::NoSuchRank { .. })), "G3: root {nobody} of {n} members: {end:?}");
        let end = world.rank(nobody).err();
        ensure!(matches!(end, Some(FabricError::NoSuchRank { .. })), "G3: member {nobody} of {n}: {end:?}");
    }
    // The group stays usable, whether one member misused it or all did.
    if fabric.rank() == Rank::new(0) {
        ensure!(world.broadcast(n, 1u8).await.is_err(), "G3: on one member only");
    }
    ensure_eq!(world.broadcast(n - 1, world.me()).await?, n - 1, "G3: after misuse");
    let some = world.split(None, 0).await?;
    ensure!(some.is_none(), "G3: who joins no group has none");
    Ok(world.barrier().await?)
}

/// The last rank leaves before the others arrive. On each of them, every collective returns an
/// error that contains the last rank, and each stays until all have received their errors.
pub(super) async fn who_has_left_is_told(fabric: Fabric) -> ProgramResult<()> {
    let others = fabric.ranks() - 1;
    let last = Rank::new(others as u32);
    let stage = fabric.alloc_symmetric(16).await?;
    let mut world = Group::world(&fabric).await?;
    let everybody = |group: Option<Group>| group.ok_or("everybody is in it");
    let mut gathers = everybody(world.split(Some(0), 0).await?)?;
    let mut agrees = everybody(world.split(Some(0), 0).await?)?;
    let mut spreads = everybody(world.split(Some(0), (others - world.me()) as u64).await?)?;
    let mut moved = everybody(world.split(Some(0), 0).await?)?;
    let _beside = moved.memory_with_control(8).await?;
    world.barrier().await?;
    if fabric.rank() == last {
        return Ok(());
    }
    // Some arrive before it has left, others after.
    fabric.sleep(Duration::from_micros(300 * u64::from(fabric.rank().number()))).await;
    let ends = async {
        let root = spreads.len() - 1;
        [
            ("a barrier", world.barrier().await),
            ("an allgather", gathers.allgather(1u64).await.map(drop)),
            ("a broadcast", spreads.broadcast(root, 1u64).await.map(drop)),
            ("the greatest", agrees.greatest(1).await.map(drop)),
            ("a barrier beside memory", moved.barrier().await),
            ("a second barrier", world.barrier().await),
        ]
    };
    let ends = fabric.before(fabric.now() + HANG, ends).await.ok_or("G6: a collective that somebody has left hangs")?;
    for (what, end) in ends {
        ensure_eq!(end.as_ref().err().and_then(FabricError::gone), Some(last), "G6: who is gone by {what}, {end:?}");
    }
    // The ranks stay until all are done, so that no error is due to one of them leaving.
    let first = Rank::new(0);
    let ranks: Vec<_> = (0..others as u32).map(Rank::new).collect();
    fabric.fetch_add(&fabric.remote_word::<u64>(stage.at(first, 0))?, 1).await?;
    if fabric.rank() == first {
        let told = stage.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&told, Deps::Ranks(&ranks), |told| told == others as u64).await?;
        for rank in &ranks[1..] {
            fabric.put_word(&fabric.remote_word::<u64>(stage.at(*rank, 8))?, 1).await?;
        }
        fabric.flush_all().await?;
    } else {
        let go = stage.word::<u64>(&fabric, 8)?;
        fabric.wait_until(&go, Deps::Ranks(&ranks), |go| go == 1).await?;
    }
    Ok(())
}
