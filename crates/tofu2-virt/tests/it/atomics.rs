//! The unit that executes atomics on each machine, and the errors of a machine without atomics.

use crate::start::at;
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Posting, QueueMode, QueueSpec, Width},
};
use rdma_fabric::{Amo, Atomics, Fabric, FabricError, ProgramResult, Refused};
use tofu2_virt::Platform;

#[test]
fn each_machine_tells_who_carries_them_out() {
    let without = Platform::fx100().with("atomics", 0).unwrap();
    for (platform, atomics) in [
        (Platform::fx100(), Atomics::Hardware),
        (Platform::fx10(), Atomics::Software),
        (Platform::tofud(), Atomics::Hardware),
        (without, Atomics::None),
    ] {
        let caps = checks::jobs::virtual_time(&platform, 2)
            .run(&async |fabric: Fabric| Ok(fabric.caps().atomics))
            .unwrap()
            .outs;
        assert_eq!(caps, [atomics; 2], "{}", platform.name());
    }
    let wrong = Platform::fx100().with("atomics", 3).unwrap();
    let error = checks::jobs::virtual_time(&wrong, 1).run(&async |_| Ok(())).unwrap_err().to_string();
    assert!(error.contains("atomics is 3"), "{error}");
}

/// Rank 0 tries atomics on rank 1, in each way.
async fn refused(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(16).await?;
    let word = fabric.remote_word::<u64>(at(1, region.key(), 8))?;
    let queue = ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Normal))?;
    let own = queue.register(&region)?;
    if fabric.rank().number() == 0 {
        let error = fabric.compare_swap(&word, 0, 1).await.unwrap_err();
        assert_eq!(error, FabricError::no_atomics_at_all(word.addr()));
        let told = error.to_string();
        assert!(
            told.starts_with("no atomics at byte 8 of region ") && told.ends_with(" of rank 1: this network has none")
        );
        let command = Command::Atomic { to: queue.id(), at: own, width: Width::Eight, amo: Amo::Add(1) };
        match queue.try_post(Posting::new(command)) {
            Err(Refused::Failed(error, ())) => assert_eq!(error, FabricError::Unsupported { feature: &"atomics" }),
            other => panic!("{other:?}"),
        }
        // Puts are supported.
        fabric.put_word(&word, 3).await?;
        fabric.flush(word.rank()).await?;
        assert_eq!(fabric.get_word(&word).await?, 3);
    }
    fabric.sleep(std::time::Duration::from_millis(1)).await;
    Ok(())
}

#[test]
fn a_machine_without_atomics_refuses_them_by_name() {
    let platform = Platform::fx100().with("atomics", 0).unwrap();
    checks::jobs::virtual_time(&platform, 2).run(&refused).unwrap();
}
