//! Messages whose receivers start late, while their sender waits outside the fabric.
//!
//! No receiver may depend on another call of the sender.

use crate::harness::{machines, pattern};
use checks::watchdog::watch_test;
use fmpl::{Communicator, Fmpl, Options};
use rdma_fabric::{Fabric, ProgramResult};
use std::{sync::Barrier, time::Duration};
use tofu2_sim::{shm::Threads, virt::Job};

const RANKS: usize = 3;
const MESSAGES: usize = 100;

/// How messages are sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Named,
    /// Received into any memory, through a window of 64 bytes.
    Into,
    AnyIndex,
    AnySource,
    /// Sent from registered memory, all at once, each with its own index.
    Begun,
}

const WAYS: [Way; 5] = [Way::Named, Way::Into, Way::AnyIndex, Way::AnySource, Way::Begun];

/// Returns the length of message `n`: empty, short, and longer than a window.
fn bytes(n: usize) -> usize {
    [8, 3000, 0, 70, 20_000][n % 5]
}

fn options() -> Options {
    Options::default().indices(MESSAGES).window(64).spool(1 << 20, Duration::ZERO).growing(Duration::ZERO)
}

/// Sends all messages from member 0 to each other one, and returns the sends that must be kept
/// until their messages are received.
async fn send<'a>(world: &'a Communicator, way: Way) -> ProgramResult<Vec<fmpl::Sending<'a>>> {
    let mut begun = Vec::new();
    for n in 0..MESSAGES {
        for to in 1..world.len() {
            let message = pattern(n + to, bytes(n));
            match way {
                Way::Named | Way::Into | Way::AnyIndex => world.send(&message, to, 0).await?,
                Way::AnySource => world.send_any(&message, to, 0).await?,
                Way::Begun => {
                    let buffer = world.buffer::<u8>(message.len())?;
                    world.fabric().write(&buffer, &message)?;
                    begun.push(world.isend(&buffer, to, n).await?);
                    // It stays registered for as long as the test runs.
                    std::mem::forget(buffer);
                }
            }
        }
    }
    Ok(begun)
}

async fn receive(world: &Communicator, way: Way) -> ProgramResult<()> {
    let buffer = world.buffer::<u8>(20_000)?;
    let mut into = vec![0; 20_000];
    for n in 0..MESSAGES {
        let received = match way {
            Way::Named => world.recv(&buffer, 0, 0).await?,
            Way::Into => world.recv_into(&mut &mut into[..], 0, 0).await?,
            Way::AnyIndex => world.irecv_any_index(&buffer, 0).await?.wait().await?,
            Way::AnySource => world.recv_any(&buffer, 0).await?,
            Way::Begun => world.recv(&buffer, 0, n).await?,
        };
        assert_eq!((received.from, received.bytes), (0, bytes(n)), "{way:?}, message {n}");
        if way != Way::Into {
            world.fabric().read(&buffer, &mut into)?;
        }
        assert!(into[..bytes(n)] == pattern(n + world.me(), bytes(n)), "{way:?}, message {n}");
    }
    Ok(())
}

#[test]
fn receivers_need_no_call_of_a_sender_that_waits_outside() {
    for way in WAYS {
        watch_test();
        let (sent, received) = (Barrier::new(RANKS), Barrier::new(RANKS));
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let fmpl = Fmpl::init_with(&fabric, options()).await?;
            let world = fmpl.world();
            if world.me() == 0 {
                let begun = send(world, way).await?;
                sent.wait();
                received.wait();
                for sending in begun {
                    sending.wait().await?;
                }
                assert_eq!(world.check_spool().await?.waiting, 0, "{way:?}");
            } else {
                sent.wait();
                receive(world, way).await?;
                received.wait();
            }
            Ok(fmpl.finalize().await?)
        };
        Threads::new(RANKS).run(&program).unwrap_or_else(|error| panic!("{way:?}: {error}"));
    }
}

/// The sender sleeps for as long as the receivers may take, and makes no call in the meantime.
#[test]
fn receivers_need_no_call_of_a_sender_that_sleeps() {
    const LATE: Duration = Duration::from_millis(20);
    const ASLEEP: Duration = Duration::from_secs(10);
    for (name, machine) in machines() {
        for way in WAYS {
            watch_test();
            let program = async |fabric: Fabric| -> ProgramResult<()> {
                let fmpl = Fmpl::init_with(&fabric, options()).await?;
                let (world, begun) = (fmpl.world(), fabric.now());
                if world.me() == 0 {
                    let begun = send(world, way).await?;
                    fabric.sleep(ASLEEP).await;
                    for sending in begun {
                        sending.wait().await?;
                    }
                } else {
                    fabric.sleep(LATE * world.me() as u32).await;
                    receive(world, way).await?;
                    let took = fabric.now() - begun;
                    assert!(took < ASLEEP, "{way:?}: the receiver waited for the sender: {took:?}");
                }
                Ok(fmpl.finalize().await?)
            };
            let job = Job::new(&machine, RANKS).jitter(Duration::from_micros(30)).shuffle_ties(true);
            job.run(&program).unwrap_or_else(|error| panic!("{name}, {way:?}: {error}"));
        }
    }
}

/// Nodes and messages are freed as they are taken, so a queue does not grow with use.
#[test]
fn a_queue_gives_its_memory_back() {
    watch_test();
    let job = Threads::new(2).segment_bytes(1 << 20);
    job.run(&async |fabric: Fabric| -> ProgramResult<()> {
        let fmpl =
            Fmpl::init_with(&fabric, Options::default().spool(0, Duration::ZERO).growing(Duration::ZERO)).await?;
        let world = fmpl.world();
        let buffer = world.buffer::<u64>(1)?;
        // The messages of all rounds together would not fit.
        for round in 0..100 {
            for n in 0..200u64 {
                if world.me() == 0 {
                    world.send(&[round * 1000 + n], 1, 0).await?;
                } else {
                    world.recv(&buffer, 0, 0).await?;
                    let mut found = [0];
                    fabric.read(&buffer, &mut found)?;
                    assert_eq!(found, [round * 1000 + n]);
                }
            }
            world.barrier().await?;
        }
        Ok(fmpl.finalize().await?)
    })
    .unwrap_or_else(|error| panic!("{error}"));
}
