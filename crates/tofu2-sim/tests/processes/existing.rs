//! Memory that existed before it was registered, and ranks that end or are stopped while they copy
//! into it.

use rdma_fabric::{Existing, Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, Registered, RemoteAddr};
use rustix::process::{Pid, Signal, getpid, kill_process};
use std::time::Duration;

/// The size in bytes of a copy that takes some milliseconds.
const BYTES: usize = 16 << 20;
const OWNER: Rank = Rank::new(0);

/// Returns all ranks' process ids, the owner's memory, and its key.
async fn begin(fabric: &Fabric) -> ProgramResult<(Vec<Pid>, Option<Registered<u8>>, RegionKey)> {
    let mut world = Group::world(fabric).await?;
    let pids = world.allgather(getpid().as_raw_nonzero().get()).await?;
    let mine = (fabric.rank() == OWNER).then(|| fabric.register(vec![1u8; BYTES])).transpose()?;
    let key = mine.as_ref().map_or(RegionKey { index: 0, generation: 0 }, |mine| mine.key());
    let key = world.broadcast(0, key).await?;
    Ok((pids.into_iter().filter_map(Pid::from_raw).collect(), mine, key))
}

/// Puts repeatedly until that fails.
async fn put_repeatedly(fabric: &Fabric, key: RegionKey, mut each: impl FnMut(u8)) -> FabricError {
    let mut bytes = vec![0u8; BYTES];
    for round in 2.. {
        let whole = match fabric.remote_span::<u8>(RemoteAddr { rank: OWNER, region: key, offset: 0 }, BYTES) {
            Ok(whole) => whole,
            Err(error) => return error,
        };
        bytes.fill(round);
        bytes = match fabric.put(&whole, bytes).await {
            Ok(bytes) => bytes,
            Err(error) => return error,
        };
        each(round);
        if round == u8::MAX {
            break;
        }
    }
    FabricError::PeersLeft
}

/// A rank that was killed while copying is not waited for, and its last copy stopped with it.
pub(crate) async fn killed_inside(fabric: &Fabric) -> ProgramResult<u8> {
    let (pids, mine, key) = begin(fabric).await?;
    let Some(mine) = mine else {
        let error = put_repeatedly(fabric, key, |_| ()).await;
        return Err(format!("not killed: {error}").into());
    };
    let bytes = mine.all()?.slice(0..1)?;
    let mut first = [1u8];
    while first == [1] {
        fabric.read(&bytes, &mut first)?;
    }
    kill_process(pids[1], Signal::KILL)?;
    let taken = mine.take().await?;
    let before = taken.clone();
    std::thread::sleep(Duration::from_millis(100));
    assert!(taken == before, "written after it was taken");
    println!("taken");
    Ok(0)
}

/// Using a dead rank's memory is an error, when resolving it and in the middle of copies. The dead
/// rank's peer, which notices before the launcher can, fails as a result and may end first.
pub(crate) async fn dead_owner(fabric: &Fabric) -> ProgramResult<u8> {
    let (_, mine, key) = begin(fabric).await?;
    if let Some(mine) = mine {
        let bytes = mine.all()?.slice(0..1)?;
        let mut first = [1u8];
        while first == [1] {
            fabric.read(&bytes, &mut first)?;
        }
        kill_process(getpid(), Signal::KILL)?;
    }
    let error = put_repeatedly(fabric, key, |_| ()).await;
    assert_eq!(error, FabricError::PeerLost { rank: OWNER });
    println!("received {error}");
    Err(error.into())
}

/// The memory is not given back while a living rank is stopped in the middle of a copy.
pub(crate) async fn stopped_inside(fabric: &Fabric) -> ProgramResult<()> {
    let (pids, mine, key) = begin(fabric).await?;
    let staged = fabric.caps().register_existing == Existing::Staged;
    let Some(mine) = mine else {
        let mut last = 0;
        let error = put_repeatedly(fabric, key, |round| last = round).await;
        assert!(matches!(error, FabricError::StaleRegion { .. }), "{error}");
        let last = if last == 0 { 1 } else { last };
        Group::world(fabric).await?.allgather(last).await?;
        return Ok(());
    };
    let bytes = mine.all()?.slice(0..1)?;
    let mut first = [1u8];
    while first == [1] {
        fabric.read(&bytes, &mut first)?;
    }
    kill_process(pids[1], Signal::STOP)?;
    let continues = std::thread::spawn({
        let pid = pids[1];
        move || {
            std::thread::sleep(Duration::from_millis(100));
            kill_process(pid, Signal::CONT)
        }
    });
    let taken = mine.take().await?;
    // Any later write would be too late.
    let at_once = taken.clone();
    continues.join().expect("no panic")?;
    let last = Group::world(fabric).await?.allgather(0u8).await?[1];
    let wrong = at_once.iter().position(|byte| *byte != last);
    assert_eq!(wrong, None, "{last} was put last (staged: {staged})");
    assert!(taken == at_once, "written after it was taken");
    println!("whole");
    Ok(())
}
