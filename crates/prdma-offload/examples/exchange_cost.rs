//! What a persistent exchange costs over shared memory: `cargo run --release -p prdma-offload --example exchange_cost`.
//!
//! Two thread ranks in a periodic ring, so that both neighbours of each are the other; start and wait, nothing between. The fastest of many batches,
//! for each form. Beside it the machine's own: one word to and fro, half of it. First one rank that exchanges with itself: the processor's work alone.

use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use prdma_offload::{Buffer, Cartesian, Form, Neighbourhood, Options};
use rdma_fabric::Group;
use std::{sync::Arc, time::Instant};
use tofu2_sim::shm::Threads;

const ROUNDS: u32 = 100;
const BATCHES: usize = 1_000;

rdma_fabric::program! {
    /// Nanoseconds an exchange in the fastest batch.
    async fn exchange<F>(fabric: F, form: Form, bytes: usize) -> f64 {
        let group = Group::world(&fabric).await?;
        let ring = Cartesian::new(&[group.len()], &[true])?;
        let topology = ring.topology(group.me());
        let mut hood = Neighbourhood::new(group, topology).await?;
        let send = Buffer::<F, u8>::new(&fabric, 2 * bytes)?;
        let receive = Buffer::<F, u8>::new(&fabric, 2 * bytes)?;
        let mut request = hood.alltoall_init(&send, &receive, bytes, &Options::form(form)).await?;
        let mut best = f64::INFINITY;
        for _ in 0..BATCHES {
            let begun = Instant::now();
            for _ in 0..ROUNDS {
                request.start().await?;
                request.wait().await?;
            }
            best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
        }
        hood.group_mut().barrier().await?;
        Ok(best)
    }
}

/// Nanoseconds of a word's way from one thread to another and back, the fastest of many batches.
fn ping_pong() -> f64 {
    #[repr(align(128))]
    struct Line(AtomicU64);
    let lines = Arc::new([Line(AtomicU64::new(0)), Line(AtomicU64::new(0))]);
    let turns = u64::from(ROUNDS) * BATCHES as u64;
    let other = std::thread::spawn({
        let lines = lines.clone();
        move || {
            for turn in 1..=turns {
                while lines[0].0.load(Acquire) < turn {
                    core::hint::spin_loop();
                }
                lines[1].0.store(turn, Release);
            }
        }
    });
    let (mut best, mut turn) = (f64::INFINITY, 0);
    for _ in 0..BATCHES {
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            turn += 1;
            lines[0].0.store(turn, Release);
            while lines[1].0.load(Acquire) < turn {
                core::hint::spin_loop();
            }
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
    }
    other.join().expect("it only counts");
    best
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let alone = std::env::args().any(|argument| argument == "--alone");
    for ranks in if alone { &[1][..] } else { &[1, 2][..] } {
        if *ranks == 2 {
            println!("a word one way: {:.0} ns", ping_pong() / 2.0);
        }
        println!("{ranks} ranks\n{:>8} {:>10} {:>10} {:>10}   ns an exchange", "bytes", "fast", "mrc", "cpu");
        for bytes in [0, 8, 1024, 8192, 65536] {
            let mut row = format!("{bytes:8}");
            for form in [Form::Fast, Form::Mrc, Form::Cpu] {
                let ran = Threads::new(*ranks).run(&exchange { form, bytes })?;
                row += &format!(" {:10.0}", ran.into_iter().fold(0.0, f64::max));
            }
            println!("{row}");
        }
    }
    Ok(())
}
