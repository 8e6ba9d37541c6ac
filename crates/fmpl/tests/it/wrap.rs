//! Tags of records wrap after 65,536 messages: a record that old must not be taken for a new one.

use crate::harness::{everywhere, read};
use checks::watchdog::watch_test;
use fmpl::Fmpl;
use rdma_fabric::{Fabric, ProgramResult};
use std::time::Duration;
use tofu2_sim::virt::{Job, Platform};

/// The period of the tags.
const PERIOD: u64 = 1 << 16;
const BATCH: u64 = 257;

/// The first message finds the header of its receive; the following ones are spooled before their
/// receives, which then need no header. Receives that post one nevertheless, now and then, replace
/// the first one in time; without them the message one period later goes into the first buffer.
async fn wrap(fabric: Fabric) -> ProgramResult<()> {
    let fmpl = Fmpl::init(&fabric).await?;
    let world = fmpl.world();
    world.set_spool(64 << 10, Some(Duration::ZERO))?;
    let (first, others) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
    if world.me() == 0 {
        world.barrier().await?;
        world.send(&[0u64], 1, 0).await?;
        for n in 1..=PERIOD + 1 {
            world.send(&[n], 1, 0).await?;
            if n % BATCH == 0 || n >= PERIOD - 1 {
                world.barrier().await?;
                world.barrier().await?;
            }
        }
    } else {
        let receive = world.irecv(&first, 0, 0).await?;
        world.barrier().await?;
        receive.wait().await?;
        let mut next = 1;
        for n in 1..=PERIOD + 1 {
            if n % BATCH == 0 || n >= PERIOD - 1 {
                world.barrier().await?;
                for n in next..=n {
                    world.recv(&others, 0, 0).await?;
                    assert_eq!(read(world, &others, 1)?, [n]);
                }
                next = n + 1;
                world.barrier().await?;
            }
        }
        assert_eq!(read(world, &first, 1)?, [0]);
    }
    Ok(fmpl.finalize().await?)
}

#[test]
fn a_header_is_not_valid_a_period_later() {
    watch_test();
    let job = Job::new(&Platform::fx100(), 2).jitter(Duration::from_micros(30)).shuffle_ties(true);
    job.run(&async |fabric: Fabric| wrap(fabric).await).expect("no rank fails");
}

#[test]
#[ignore = "long: weekly"]
fn a_header_is_not_valid_a_period_later_anywhere() {
    everywhere(2, &async |fabric: Fabric| wrap(fabric).await);
}
