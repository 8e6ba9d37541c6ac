//! Sends for whose messages no memory is left.

use crate::harness::pattern;
use checks::watchdog::watch_test;
use fmpl::{Communicator, Fmpl, FmplError, Options};
use rdma_fabric::{Fabric, ProgramResult};
use std::{
    sync::{
        Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tofu2_sim::shm::Threads;

const SEGMENT: usize = 1 << 20;

fn options() -> Options {
    Options::default().spool(0, Duration::ZERO).growing(Duration::ZERO)
}

async fn expect(world: &Communicator, n: usize, bytes: usize, index: usize) -> ProgramResult<()> {
    let mut into = vec![0; bytes];
    assert_eq!(world.recv_into(&mut &mut into[..], 0, index).await?.bytes, bytes, "message {n}");
    assert!(into == pattern(n, bytes), "message {n}");
    Ok(())
}

/// Longer than all memory, and longer than what other messages leave of it.
#[test]
fn whether_a_long_message_passes_does_not_depend_on_which_end_is_first() {
    for late in [0, 1] {
        for (others, bytes) in [(0, SEGMENT * 3 / 2), (0, SEGMENT * 3 / 4), (6, SEGMENT / 2), (6, SEGMENT * 2)] {
            watch_test();
            let program = async |fabric: Fabric| -> ProgramResult<()> {
                let fmpl = Fmpl::init_with(&fabric, options()).await?;
                let world = fmpl.world();
                if world.me() == late {
                    fabric.sleep(Duration::from_millis(30)).await;
                }
                if world.me() == 0 {
                    for n in 0..others {
                        world.send(&pattern(n, 100_000), 1, 0).await?;
                    }
                    world.send(&pattern(7, bytes), 1, 1).await?;
                } else {
                    expect(world, 7, bytes, 1).await?;
                    for n in 0..others {
                        expect(world, n, 100_000, 0).await?;
                    }
                }
                Ok(fmpl.finalize().await?)
            };
            let job = Threads::new(2).segment_bytes(SEGMENT);
            job.run(&program).unwrap_or_else(|error| panic!("{late} is late, {others} and {bytes} bytes: {error}"));
        }
    }
}

/// Nothing that was sent before is lost, and the memory can be used again.
#[test]
fn a_send_without_memory_is_an_error_that_says_what_waits() {
    const BYTES: usize = 16_000;
    watch_test();
    let (full, received, count) = (Barrier::new(2), Barrier::new(2), AtomicUsize::new(0));
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init_with(&fabric, options()).await?;
        let world = fmpl.world();
        if world.me() == 0 {
            let mut sent = 0;
            let error = loop {
                match world.send(&pattern(sent, BYTES), 1, 0).await {
                    Ok(()) => sent += 1,
                    Err(error) => break error,
                }
            };
            let FmplError::SpoolFull { bytes, waiting, held, .. } = &error else { panic!("{error}") };
            assert_eq!((*bytes, *waiting, *held), (BYTES, sent, sent * BYTES));
            assert!(sent * BYTES > SEGMENT / 2, "{sent} messages");
            assert!(
                error.to_string().contains("wait already in this communicator, and rank 0 cannot register"),
                "{error}"
            );
            let any = world.send_any(&pattern(0, BYTES), 1, 0).await;
            assert!(matches!(any, Err(FmplError::SpoolFull { .. })), "{any:?}");
            count.store(sent, SeqCst);
            full.wait();
            received.wait();
            world.send(&pattern(sent, BYTES), 1, 0).await?;
        } else {
            full.wait();
            let sent = count.load(SeqCst);
            for n in 0..sent {
                expect(world, n, BYTES, 0).await?;
            }
            received.wait();
            expect(world, sent, BYTES, 0).await?;
        }
        Ok(fmpl.finalize().await?)
    };
    Threads::new(2).segment_bytes(SEGMENT).run(&program).unwrap_or_else(|error| panic!("{error}"));
}

/// The space of messages received in one communicator can hold messages of another one.
#[test]
fn communicators_share_the_memory_of_their_rank() {
    watch_test();
    let (first, second) = (Barrier::new(2), Barrier::new(2));
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init_with(&fabric, options()).await?;
        let made = fmpl.create(Some(0), 0).await?.ok_or("no communicator")?;
        for world in [fmpl.world(), &made] {
            for n in 0..30 {
                if world.me() == 0 {
                    world.send(&pattern(n, 20_000), 1, 0).await?;
                }
            }
            first.wait();
            for n in 0..30 {
                if world.me() == 1 {
                    expect(world, n, 20_000, 0).await?;
                }
            }
            second.wait();
        }
        made.finish().await?;
        Ok(fmpl.finalize().await?)
    };
    Threads::new(2).segment_bytes(SEGMENT).run(&program).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn sizes_without_sense_are_errors() {
    watch_test();
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl = Fmpl::init(&fabric).await?;
        let world = fmpl.world();
        for elements in [usize::MAX, usize::MAX / 8 + 1, usize::MAX / 8, (isize::MAX as usize) / 8 + 1] {
            let error = world.buffer::<u64>(elements).err();
            let most = isize::MAX as usize;
            assert_eq!(error, Some(FmplError::TooManyElements { elements, element: 8, most }));
        }
        assert!(matches!(world.buffer::<u64>(isize::MAX as usize / 8), Err(FmplError::Fabric(_))));
        assert!(matches!(world.buffer::<u8>(isize::MAX as usize), Err(FmplError::Fabric(_))));
        for bytes in [usize::MAX, isize::MAX as usize + 1] {
            let error = Fmpl::init_with(&fabric, Options::default().spool(bytes, Duration::MAX)).await.err();
            assert!(matches!(error, Some(FmplError::Option { option: "spool", .. })), "{error:?}");
        }
        Ok(fmpl.finalize().await?)
    };
    Threads::new(1).run(&program).unwrap_or_else(|error| panic!("{error}"));
}
