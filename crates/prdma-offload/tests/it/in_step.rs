//! Two queues for four neighbours preserve the relative timing with which their ranks start
//! (`docs/papers/reproducing.md`): virtual time, 36 nodes, 64 KiB.
//!
//! In step, each receive engine takes one message at a time. Out of step, the messages of two
//! neighbours arrive at one engine at the same time and share it, which delays the queues of both
//! senders, so they collide again in the next iteration.

use crate::fx100;
use prdma_offload::{Buffer, Cartesian, Form, Neighbourhood, Options};
use rdma_fabric::{Fabric, Group, ProgramResult, Time};
use std::time::Duration;
use tofu2_virt::{NetworkModel, Torus};

const BYTES: usize = 65_536;
const ITERATIONS: u64 = 40;
/// A time at which set-up has certainly completed.
const BEGIN: Time = Time::from_picos(1_000_000_000_000);

/// Ranks start within `spread`. Returns the picoseconds of the later half of the iterations.
async fn exchange(fabric: Fabric, form: Form, spread: Duration) -> ProgramResult<u64> {
    let group = Group::world(&fabric).await?;
    let topology = Cartesian::new(&[6, 6], &[true, true])?.topology(group.me());
    let (send, receive) = (Buffer::<u8>::new(&fabric, 4 * BYTES)?, Buffer::<u8>::new(&fabric, 4 * BYTES)?);
    let mut hood = Neighbourhood::new(group, topology).await?;
    let mut request = hood.alltoall_init(&send, &receive, BYTES, &Options::form(form)).await?;
    hood.group_mut().barrier().await?;
    // A permutation of the ranks, unrelated to their places.
    let late = spread * (fabric.rank().number() * 23 % 36) / 36;
    fabric.sleep_until(BEGIN + late).await;
    let mut begun = fabric.now();
    for iteration in 0..ITERATIONS {
        if iteration == ITERATIONS / 2 {
            begun = fabric.now();
        }
        request.start().await?;
        request.wait().await?;
    }
    let took = fabric.now().picos_since(begun);
    hood.group_mut().barrier().await?;
    Ok(took)
}

/// Microseconds of an iteration at the slowest rank.
fn iteration(form: Form, network: NetworkModel, spread: Duration) -> f64 {
    let torus = Torus::new(&[6, 6]).expect("a torus");
    let job = fx100(36).ranks_per_node(1).torus(torus).network(network);
    let outs = job.run(&async |fabric| exchange(fabric, form, spread).await).expect("it runs").outs;
    outs.into_iter().max().expect("36 ranks") as f64 * 1e-6 / (ITERATIONS / 2) as f64
}

#[test]
fn two_queues_stay_out_of_step() {
    use NetworkModel::{Latency, Router};
    let [together, apart] = [Duration::ZERO, Duration::from_micros(10)];
    let in_step = iteration(Form::Queues(2), Router, together);
    let out_of_step = iteration(Form::Queues(2), Router, apart);
    println!("in step {in_step:.1} µs, out of step {out_of_step:.1} µs");
    assert!(out_of_step > 1.2 * in_step, "{in_step} and {out_of_step} µs");
    // The receive engines are the cause: if they take all messages at once, the initial timing has
    // no effect.
    for spread in [together, apart] {
        let without = iteration(Form::Queues(2), Latency, spread);
        assert!((without / in_step - 1.0).abs() < 0.01, "{without} µs without contention, {in_step} µs in step");
    }
    // With one neighbour per queue, no message of a member waits behind another.
    let fast = [together, apart].map(|spread| iteration(Form::Fast, Router, spread));
    assert!((fast[1] / fast[0] - 1.0).abs() < 0.01, "{fast:?} µs");
}
