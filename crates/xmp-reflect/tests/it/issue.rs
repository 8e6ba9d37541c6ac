//! The time at which blocks leave.

use crate::asynchronous::row;
use checks::jobs::virtual_time;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::time::Duration;
use tofu2_virt::Platform;
use xmp_reflect::{NodeSet, Nodes, Order, Reflect, Transport};

/// Blocks of a node that its neighbour is ready for too late leave in its wait, with derived
/// datatypes in its start.
#[test]
fn datatypes_leave_while_the_owner_computes() {
    const LATE: Duration = Duration::from_micros(100);
    const BUSY: Duration = Duration::from_millis(1);
    let took = |transport| {
        let program = async |fabric: Fabric| -> ProgramResult<Duration> {
            let mut set = NodeSet::new(Group::world(&fabric).await?, Nodes::new(&[2], Order::LastFastest)?)?;
            let (array, reflect) = (row(&set)?, Reflect::whole().by(transport));
            array.fill(|index| index[0] as i32)?;
            set.explain(&array, &reflect).await?;
            let begun = fabric.now();
            if set.me() == 1 {
                fabric.compute(LATE).await;
            }
            set.reflect_async(&array, &reflect, 1).await?;
            if set.me() == 0 {
                fabric.compute(BUSY).await;
            }
            set.wait_async(&[1]).await?;
            let took = fabric.now() - begun;
            assert_eq!(array.get(&[[4, 3][set.me()]])?, [4, 3][set.me()]);
            set.barrier().await?;
            Ok(took)
        };
        virtual_time(&Platform::k(), 2).run(&program).expect("virtual time").outs[1]
    };
    assert!(took(Transport::Blocks) > BUSY);
    assert!(took(Transport::Datatypes) < 2 * LATE);
}
