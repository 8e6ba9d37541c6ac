//! The spool's size and time-out are changed at run time.

use crate::harness::{everywhere, pattern, read};
use fmpl::{Fmpl, FmplError, Options, Spooled};
use rdma_fabric::{
    Fabric, FabricError, ProgramResult,
    join::{join, now},
};
use std::{pin::pin, time::Duration};
use tofu2_sim::virt::{Job, Platform};

const LATE: Duration = Duration::from_millis(3);

/// Each mode decides when a send completes: buffered at once, synchronous with its receive,
/// standard at the latest after the time-out. Exact in virtual time.
#[test]
fn the_time_out_selects_the_mode_of_each_send() {
    let standard = Duration::from_millis(1);
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(1000)?;
        let modes = [Some(Duration::ZERO), None, Some(standard), None, Some(Duration::ZERO)];
        for (n, mode) in modes.into_iter().enumerate() {
            world.set_spool(4096, mode)?;
            world.barrier().await?;
            if world.me() == 0 {
                let begun = fabric.now();
                world.send(&pattern(n, 1000), 1, 0).await?;
                let took = fabric.now() - begun;
                let expected = match mode {
                    None => LATE - Duration::from_micros(50)..LATE + Duration::from_micros(50),
                    Some(least) => least..least + Duration::from_micros(50),
                };
                assert!(expected.contains(&took), "{mode:?}: {took:?}");
            } else {
                fabric.sleep(LATE).await;
                assert_eq!(world.recv(&buffer, 0, 0).await?.bytes, 1000);
                assert!(read(world, &buffer, 1000)? == pattern(n, 1000));
            }
        }
        Ok(fmpl.finalize().await?)
    };
    for machine in [Platform::fx100(), Platform::sr8000()] {
        Job::new(&machine, 2).run(&program).expect("no rank fails");
    }
}

/// A send in progress keeps its time-out; the next one has the new one.
#[test]
fn a_send_in_progress_keeps_its_time_out() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(1)?;
        if world.me() == 0 {
            let mut first = pin!(world.send(&[1u64], 1, 0));
            assert!(now(first.as_mut()).is_none(), "no receive is posted");
            world.set_spool(4096, Some(Duration::ZERO))?;
            // It completes although nothing is received; the first one still waits.
            world.send(&[2u64], 1, 1).await?;
            assert!(now(first.as_mut()).is_none(), "no receive is posted");
            world.send(&[3u64], 1, 2).await?;
            first.await?;
            world.set_time_out(None)?;
            world.send(&[4u64], 1, 0).await?;
        } else {
            for (index, value) in [(2, 3), (0, 1), (1, 2), (0, 4)] {
                world.recv(&buffer, 0, index).await?;
                assert_eq!(read(world, &buffer, 1)?, [value]);
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

/// Messages in the old memory are received after the change; then the old memory is given back.
#[test]
fn the_spool_is_resized_while_messages_wait() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(8192, Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(20_000)?;
        // The last message finds no room, so it waits for its receive.
        let sizes = [(8192, 3000), (8192, 4000), (32_768, 20_000), (64, 64), (1000, 900), (0, 5)];
        for round in 0..3 {
            if world.me() == 0 {
                for (n, (spool, bytes)) in sizes.into_iter().enumerate() {
                    world.set_spool(spool, Some(Duration::ZERO))?;
                    world.send(&pattern(n + round, bytes), 1, n).await?;
                }
                world.all_fetched().await?;
                world.set_spool(8192, None)?;
            } else {
                fabric.sleep(Duration::from_micros(200)).await;
                for n in [4, 2, 0, 1, 3, 5] {
                    assert_eq!(world.recv(&buffer, 0, n).await?.bytes, sizes[n].1);
                    assert!(read(world, &buffer, sizes[n].1)? == pattern(n + round, sizes[n].1), "message {n}");
                }
            }
            world.barrier().await?;
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn resizing_hundreds_of_times_takes_no_more_memory() {
    resize(200);
}

#[test]
#[ignore = "long: weekly"]
fn resizing_a_thousand_times_takes_no_more_memory() {
    resize(1000);
}

/// The memory of former sizes does not accumulate: all of it would be more than a rank has.
fn resize(times: usize) {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u8>(100)?;
        for n in 0..times {
            if world.me() == 0 {
                world.set_spool((1 + n % 2) << 20, Some(Duration::ZERO))?;
                world.send(&pattern(n, 100), 1, n % 5).await?;
            } else {
                world.recv(&buffer, 0, n % 5).await?;
                assert!(read(world, &buffer, 100)? == pattern(n, 100));
            }
        }
        Ok(fmpl.finalize().await?)
    });
}

#[test]
fn a_size_that_is_refused_changes_nothing() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(4096, Duration::ZERO)).await?;
        let world = fmpl.world();
        let none = world.set_spool(usize::MAX, None);
        assert!(matches!(none, Err(FmplError::Option { option: "spool", .. })), "{none:?}");
        let too_long = world.set_spool(1 << 50, None);
        assert!(
            matches!(
                &too_long,
                Err(FmplError::Fabric(FabricError::OutOfMemory(_) | FabricError::OutOfMachineMemory(_)))
            ),
            "{too_long:?}"
        );
        // Still buffered, in memory of the old size.
        let buffer = world.buffer::<u8>(4000)?;
        world.send(&pattern(1, 4000), 0, 0).await?;
        assert_eq!(world.check_spool().await?, Spooled { received: 0, waiting: 1 });
        world.recv(&buffer, 0, 0).await?;
        assert!(read(world, &buffer, 4000)? == pattern(1, 4000));
        Ok(fmpl.finalize().await?)
    });
}

/// Synchronous sends to receives of any index complete one for each receive, although the spool has
/// room for more.
#[test]
fn a_synchronous_send_does_not_fill_the_spool() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 14, Duration::ZERO)).await?;
        let world = fmpl.world();
        let (first, second) = (world.buffer::<u64>(1)?, world.buffer::<u64>(1)?);
        if world.me() == 0 {
            world.set_time_out(None)?;
            let (one, other) = join(world.send(&[1u64], 1, 0), world.send(&[2u64], 1, 1)).await;
            one.and(other)?;
            let Spooled { waiting, .. } = world.check_spool().await?;
            assert!(waiting <= 1, "{waiting} wait");
        } else {
            let received = world.irecv_any_index(&first, 0).await?.wait().await?;
            fabric.sleep(Duration::from_micros(100)).await;
            let other = world.irecv(&second, 0, 1 - received.index).await?;
            other.wait().await?;
            let values = [read(world, &first, 1)?[0], read(world, &second, 1)?[0]];
            assert_eq!(values, [1 + received.index as u64, 2 - received.index as u64]);
        }
        Ok(fmpl.finalize().await?)
    });
}
