//! Uses of features that are not modelled are refused, with errors that name the feature.

use crate::{Config, Delivery, check, run};
use fabric_offload::barrier::ColourBarrier;
use rdma_fabric::{Fabric, FabricError, Group};

#[test]
fn helpers_are_refused_by_name() {
    for (delivery, promised) in [(Delivery::AtPost, false), (Delivery::Nic, true)] {
        check(Some(1), 1, move || {
            let mut config = Config::new(1, delivery);
            config.caps.helpers = promised;
            run(config, |fabric: Fabric| async move {
                assert!(!fabric.caps().helpers, "promised, and refused");
                let refused = fabric.helper("ordering", |_| async { Ok(()) });
                assert_eq!(refused, Err(FabricError::Unsupported { feature: &"helpers" }));
            });
        });
    }
}

#[test]
fn hardware_barriers_are_refused_by_name() {
    check(Some(1), 1, move || {
        let mut config = Config::new(1, Delivery::AtPost);
        // The control block of a group needs this many cells.
        config.cells_per_rank = 512;
        run(config, |fabric: Fabric| async move {
            assert_eq!(ColourBarrier::colours(&fabric), 0);
            let mut alone = Group::world(&fabric).await.expect("a group of one");
            let refused = ColourBarrier::claim(&mut alone, 0).await.map(drop);
            assert_eq!(refused, Err(FabricError::Unsupported { feature: &"hardware barriers" }));
        });
    });
}
