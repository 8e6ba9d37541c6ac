//! Rounds of global addresses and containers, of messages, and of matrices.

use crate::{Play, Rounds};
use onesided::{
    Amo, Fabric, Group, ProgramResult, Rank,
    acp::{Acp, Deque, Map, Options, Order, TableRef},
    blacs::{Blacs, Matrix, MatrixMut, Order as Numbering, Scope, Topology},
    fmpl::{Fmpl, Op},
};

/// Keys of the map.
const KEYS: u64 = 16;

/// Copies between other ranks, a map over all ranks, and a deque of this rank.
pub(super) async fn acp(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let acp = Acp::init_with(fabric, Options::default()).await?;
    let (me, ranks) = (acp.rank(), acp.ranks() as u32);
    let mut world = Group::world(fabric).await?;
    let at = acp.starter(Rank::new(0))?;
    if me == Rank::new(0) {
        let everybody: Vec<Rank> = (0..ranks).map(Rank::new).collect();
        let map = Map::<u64, u64>::create(&acp, &everybody, KEYS as usize, me).await?;
        for key in 0..KEYS {
            map.insert(&key, &0).await?;
        }
        acp.write(at, &map.at().to_words()).await?;
    }
    acp.sync().await?;
    let mut map = [0; 3];
    acp.read(at, &mut map).await?;
    let map = Map::<u64, u64>::from_address(&acp, TableRef::from_words(map).ok_or("no map")?).await?;
    let deque = Deque::<u64>::create(&acp, 16, me).await?;
    acp.sync().await?;
    let mut rounds = Rounds::begin(play, me.number())?;
    loop {
        let key = (rounds.made + u64::from(me.number())) % KEYS;
        let entry = map.find(&key).await?.ok_or("a key is missing")?;
        acp.fetch(entry.value, Amo::Add(1u64)).await?;
        // The rank's own word is copied to the rank after its right neighbour, through the right
        // neighbour.
        let place = |rank: u32| acp.starter(Rank::new(rank % ranks))?.offset_by(64);
        let first = acp.copy(place(me.number() + 1)?.offset_by(8)?, place(me.number())?, 8, Order::None).await?;
        let then = Order::After(first);
        let second = acp.copy(place(me.number() + 2)?.offset_by(16)?, place(me.number() + 1)?, 8, then).await?;
        acp.complete(second).await?;
        deque.push_back(&rounds.made).await?;
        if deque.pop_back().await? != Some(rounds.made) {
            return Err(format!("the deque lost round {}", rounds.made).into());
        }
        let over = u64::from(rounds.has_ended());
        if acp.while_serving(world.greatest(over)).await? == 1 {
            break;
        }
    }
    acp.finalize().await?;
    Ok(rounds.made)
}

/// Messages around the ring, short and long, and a sum over all ranks.
pub(super) async fn fmpl(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let fmpl = Fmpl::init(fabric).await?;
    let comm = fmpl.world();
    let (me, members) = (comm.me(), comm.len());
    let (buffer, sums) = (comm.buffer::<u8>(40_000)?, comm.buffer::<i32>(1)?);
    comm.barrier().await?;
    let mut rounds = Rounds::begin(play, fabric.rank().number())?;
    loop {
        let bytes = [8, 200, 40_000, 0][rounds.made as usize % 4];
        if members > 1 {
            let request = comm.irecv(&buffer, (me + members - 1) % members, 0).await?;
            comm.send(&vec![rounds.made as u8; bytes], (me + 1) % members, 0).await?;
            let received = request.wait().await?;
            let mut found = vec![0; received.bytes];
            fabric.read(&buffer.slice(0..received.bytes)?, &mut found)?;
            if found != vec![rounds.made as u8; bytes] {
                return Err(format!("the message of round {} is wrong", rounds.made).into());
            }
        }
        let over = i32::from(rounds.has_ended());
        fabric.write(&*sums, &[over])?;
        comm.allreduce(&*sums, Op::Sum).await?;
        let mut sum = [0];
        fabric.read(&*sums, &mut sum)?;
        if sum[0] > 0 {
            break;
        }
    }
    drop((buffer, sums));
    fmpl.finalize().await?;
    Ok(rounds.made)
}

/// Broadcasts and sums on a grid of one row.
pub(super) async fn blacs(fabric: &Fabric, play: &Play) -> ProgramResult<u64> {
    let mut blacs = Blacs::begin(fabric).await?;
    let grid = blacs.grid(Numbering::RowMajor, 1, fabric.ranks()).await?.ok_or("no grid")?;
    grid.barrier(Scope::All).await?;
    let mut rounds = Rounds::begin(play, fabric.rank().number())?;
    let (me, columns) = (grid.column(), grid.columns());
    loop {
        let (n, rows) = (rounds.made as usize, [1, 100, 3000][rounds.made as usize % 3]);
        let (root, mut memory) = (n % columns, vec![(me + n) as f64; 2 * rows]);
        if me == root {
            grid.broadcast_send(Scope::Row, Topology::Default, Matrix::new(&memory, rows, 2, rows)?).await?;
        } else {
            let a = MatrixMut::new(&mut memory, rows, 2, rows)?;
            grid.broadcast_recv(Scope::Row, Topology::Default, a, (0, root)).await?;
        }
        if memory[2 * rows - 1] != (root + n) as f64 {
            return Err(format!("the broadcast of round {n} is wrong").into());
        }
        let mut over = [f64::from(u8::from(rounds.has_ended()))];
        grid.sum(Scope::All, Topology::Default, MatrixMut::new(&mut over, 1, 1, 1)?, None).await?;
        if over[0] > 0.0 {
            break;
        }
    }
    grid.exit().await?;
    Ok(rounds.made)
}
