//! Sizes at which arithmetic could wrap, on threads and in virtual time.

use rdma_fabric::{Fabric, FabricError, Group, Program, ProgramResult, Rank};
use rma_lock::{
    LockMode, Locked, Window, WindowError,
    locks::{RecoverableLock, Recovery},
};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

const TOO_MANY: [usize; 8] = [
    usize::MAX,
    usize::MAX - 6,
    usize::MAX - 63,
    usize::MAX / 8,
    usize::MAX / 8 + 1,
    isize::MAX as usize,
    isize::MAX as usize + 1,
    1 << 56,
];

fn both(program: &impl Program<Out = ()>) {
    Threads::new(2).run(program).unwrap();
    Job::new(&Platform::fx100(), 2).run(program).unwrap();
}

fn is_too_much<T>(got: Result<T, WindowError>, what: &str) {
    match got {
        Err(WindowError::Fabric(FabricError::OutOfMemory(_) | FabricError::OutOfMachineMemory(_))) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: there is room"),
    }
}

async fn windows(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    for many in TOO_MANY {
        is_too_much(Window::<u8>::allocate(&fabric, many).await, "bytes");
        is_too_much(Window::<u64>::allocate(&fabric, many).await, "words");
        is_too_much(Window::<[u64; 3]>::in_group(&mut world, many).await, "triples");
        let locked = Locked::<u64>::symmetric(&fabric, Rank::new(0), many).await;
        assert!(locked.is_err(), "{many} locked words");
    }
    let window = Window::<u64>::allocate(&fabric, 8).await?;
    let epoch = window.lock(LockMode::Shared, Rank::new(0)).await?;
    for many in TOO_MANY {
        for at in [many, many / 8, many - 7] {
            assert!(epoch.put(at, [1]).await.is_err() && epoch.get_one(at).await.is_err(), "at {at}");
            assert!(window.read(at, &mut [0]).is_err() && window.own(at..many).is_err(), "at {at}");
        }
    }
    epoch.unlock().await?;
    Ok(window.free().await?)
}

#[test]
fn windows_have_an_end() {
    both(&windows);
}

async fn recoveries(fabric: Fabric) -> ProgramResult<()> {
    for many in TOO_MANY {
        for limits in
            [Recovery { epochs: many, deaths: 1 }, Recovery { epochs: 1, deaths: many }, Recovery::of_deaths(many)]
        {
            let made = <RecoverableLock as rma_lock::Lock>::symmetric_with(&fabric, Rank::new(0), limits).await;
            assert!(made.is_err(), "{limits:?}");
        }
    }
    Ok(())
}

#[test]
fn recoveries_have_limits() {
    both(&recoveries);
}
