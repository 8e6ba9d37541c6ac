//! Tests of the harness itself on multicasts, which it executes as puts.

use loom_fabric::{Config, Delivery, check, run};
use rdma_fabric::{Deps, FabricError, MulticastSpan, Multicasts, Rank};

#[test]
fn multicasts_are_puts_to_each_member_at_the_post() {
    multicasts_are_puts(Delivery::AtPost);
}

#[test]
fn multicasts_are_puts_to_each_member_at_the_flush() {
    multicasts_are_puts(Delivery::AtFlush);
}

#[test]
#[ignore = "long: weekly"]
fn multicasts_are_puts_to_each_member_by_the_network() {
    multicasts_are_puts(Delivery::Nic);
}

/// Rank 0 multicasts a cell of its own memory to both ranks, and notifies the other one.
fn multicasts_are_puts(delivery: Delivery) {
    let mut config = Config::new(2, delivery);
    config.caps.multicasts = Multicasts::Software;
    check(None, 1, move || {
        run(config, |fabric| async move {
            let announced = async {
                let (region, ranks) = (fabric.alloc_symmetric(24).await?, [0, 1].map(Rank::new));
                if fabric.rank() == ranks[0] {
                    let own = region.span::<u64>(&fabric, 8, 1)?;
                    fabric.write(&own, &[3])?;
                    let both = MulticastSpan::new(&fabric, &ranks.map(|rank| region.at(rank, 0)), 1)?;
                    both.put(&fabric, own).await?;
                    fabric.flush_all().await?;
                    fabric.put_word(&fabric.remote_word(region.at(ranks[1], 16))?, 1u64).await?;
                } else {
                    let flag = region.word::<u64>(&fabric, 16)?;
                    fabric.wait_until(&flag, Deps::All, |flag| flag == 1).await?;
                }
                assert_eq!(fabric.load::<u64>(&region.word(&fabric, 0)?)?, 3, "at {}", fabric.rank());
                fabric.flush_all().await
            };
            announced.await.expect("no call fails");
        });
    });
}

#[test]
fn multicasts_are_refused_where_the_capabilities_have_none() {
    check(None, 1, move || {
        run(Config::new(2, Delivery::AtFlush), |fabric| async move {
            let refused = FabricError::Unsupported { feature: &"multicast" };
            assert_eq!(Multicasts::reach(&fabric, &[fabric.rank()]), Err(refused));
        });
    });
}
