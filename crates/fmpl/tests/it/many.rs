//! Many communicators of a rank.

use crate::harness::pattern;
use checks::watchdog::watch_test;
use fmpl::{Communicator, Fmpl, Options};
use rdma_fabric::{Fabric, Program, ProgramResult};
use std::{collections::VecDeque, time::Duration};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// As many as MPI has.
const MANY: usize = 4094;

/// Both members send to each other before either receives, so the messages wait.
async fn exchange(comm: &Communicator, n: usize, bytes: usize) -> ProgramResult<()> {
    comm.send_from(&mut &pattern(n, bytes)[..], 1 - comm.me(), n % 2).await?;
    receive(comm, n, bytes).await
}

async fn receive(comm: &Communicator, n: usize, bytes: usize) -> ProgramResult<()> {
    let mut into = vec![0; bytes];
    let received = comm.recv_into(&mut &mut into[..], 1 - comm.me(), n % 2).await?;
    assert!(received.bytes == bytes && into == pattern(n, bytes), "message {n} of {bytes} bytes");
    Ok(())
}

fn options() -> Options {
    Options::default().indices(2).any_indices(0).spool(0, Duration::ZERO).growing(Duration::ZERO)
}

async fn created(fmpl: &mut Fmpl) -> ProgramResult<Communicator> {
    Ok(fmpl.create(Some(0), 0).await?.expect("all join"))
}

fn on_threads(program: &impl Program) {
    watch_test();
    Threads::new(2).run(program).unwrap_or_else(|error| panic!("on threads: {error}"));
}

fn in_virtual_time(program: &impl Program) {
    watch_test();
    let job = Job::new(&Platform::fx100(), 2);
    job.run(program).unwrap_or_else(|error| panic!("in virtual time: {error}"));
}

/// Creates many communicators, finishes half of them, and creates as many again.
async fn create_many(fabric: Fabric) -> ProgramResult<()> {
    let mut fmpl = Fmpl::init_with(&fabric, options()).await?;
    let mut all = Vec::new();
    for _ in 0..MANY {
        all.push(created(&mut fmpl).await?);
    }
    for n in [0, MANY / 2, MANY - 1] {
        exchange(&all[n], n, 100).await?;
    }
    let mut kept = Vec::new();
    for (n, comm) in all.into_iter().enumerate() {
        if n % 2 == 0 { kept.push(comm) } else { comm.finish().await? }
    }
    for _ in 0..MANY / 2 {
        kept.push(created(&mut fmpl).await?);
    }
    for n in (0..MANY).step_by(97).chain([MANY - 1]) {
        exchange(&kept[n], n, 100).await?;
        kept[n].barrier().await?;
    }
    Ok(fmpl.finalize().await?)
}

#[test]
fn thousands_are_alive_and_their_places_are_used_again() {
    in_virtual_time(&async |fabric: Fabric| create_many(fabric).await);
}

#[test]
#[ignore = "long: weekly"]
fn thousands_are_alive_on_threads_and_their_places_are_used_again() {
    on_threads(&async |fabric: Fabric| create_many(fabric).await);
}

/// With separate buffers, each communicator would use 384 KiB, so 200 would not fit.
#[test]
fn buffers_that_hold_nothing_serve_others() {
    const COMMS: usize = 200;
    watch_test();
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init_with(&fabric, options()).await?;
        let mut all = Vec::new();
        for n in 0..COMMS {
            let comm = created(&mut fmpl).await?;
            exchange(&comm, n, 1000).await?;
            // Through the window, if the receive is posted first.
            comm.barrier().await?;
            if comm.me() == 0 {
                comm.send_from(&mut &pattern(n, 200_000)[..], 1, n % 2).await?;
            } else {
                receive(&comm, n, 200_000).await?;
            }
            all.push(comm);
        }
        // Again, in a different order; in some communicators, three messages wait for some time.
        let mut waiting = VecDeque::new();
        for round in 0..2 * COMMS {
            let n = round * 7 % COMMS;
            if round % 16 == 0 {
                for k in 0..3 {
                    all[n].send_from(&mut &pattern(n + 2 * k, 500)[..], 1 - all[n].me(), n % 2).await?;
                }
                waiting.push_back(n);
            } else if !waiting.contains(&n) {
                exchange(&all[n], n, 300).await?;
            }
            if waiting.len() > 10 || round + 1 == 2 * COMMS {
                let late = waiting.pop_front().expect("some wait");
                for k in 0..3 {
                    receive(&all[late], late + 2 * k, 500).await?;
                }
            }
        }
        for late in waiting {
            for k in 0..3 {
                receive(&all[late], late + 2 * k, 500).await?;
            }
        }
        Ok(fmpl.finalize().await?)
    };
    Threads::new(2).segment_bytes(64 << 20).run(&program).unwrap_or_else(|error| panic!("{error}"));
}

/// A window that a receive has posted is not taken by another communicator, and neither is one
/// whose receive was dropped.
#[test]
fn buffers_in_use_stay_where_they_are() {
    const COMMS: usize = 200;
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let mut fmpl = Fmpl::init_with(&fabric, options()).await?;
        let (mut all, me) = (Vec::new(), fmpl.world().me());
        for _ in 0..COMMS {
            all.push(created(&mut fmpl).await?);
        }
        let mut sinks = vec![vec![0u8; 3000]; COMMS];
        // All receives are posted before a message is sent.
        let receives = all.iter().zip(&mut sinks).map(|(comm, sink)| async move {
            let mut sink = &mut sink[..];
            comm.recv_into(&mut sink, 1 - me, 0).await
        });
        let sends = async {
            fabric.sleep(Duration::from_millis(5)).await;
            for (n, comm) in all.iter().enumerate() {
                comm.send_from(&mut &pattern(n, 3000)[..], 1 - me, 0).await?;
            }
            Ok::<_, fmpl::FmplError>(())
        };
        let (received, sent) = rdma_fabric::join::join(rdma_fabric::join::join_all(receives), sends).await;
        sent?;
        for (n, (received, sink)) in received.into_iter().zip(&sinks).enumerate() {
            assert_eq!(received?.bytes, 3000, "communicator {n}");
            assert!(*sink == pattern(n, 3000), "communicator {n}");
        }
        for n in (0..COMMS).rev() {
            exchange(&all[n], n, 2000).await?;
        }
        Ok(fmpl.finalize().await?)
    };
    on_threads(&program);
    in_virtual_time(&program);
}
