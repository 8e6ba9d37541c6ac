//! Two queues for four neighbours keep the step in which their ranks begin
//! (`docs/papers/reproducing.md`): virtual time, 36 nodes, 64 KiB.
//!
//! In step each receive engine takes one message at a time. Out of step two neighbours' messages
//! meet at one engine and share it, which keeps back both senders' queues, so that they meet again
//! in the next iteration.

use crate::fx100;
use prdma_offload::{Buffer, Cartesian, Form, Neighbourhood, Options};
use rdma_fabric::{Fabric, Group, ProgramResult, Time};
use std::time::Duration;
use tofu2_sim::virt::{NetworkModel, Torus};

const BYTES: usize = 65_536;
const ITERATIONS: u64 = 40;
/// Set-up is certainly over.
const BEGIN: Time = Time::from_picos(1_000_000_000_000);

/// Ranks begin within `spread`. Picoseconds of the later half of the iterations.
async fn exchange(fabric: Fabric, form: Form, spread: Duration) -> ProgramResult<u64> {
    let group = Group::world(&fabric).await?;
    let topology = Cartesian::new(&[6, 6], &[true, true])?.topology(group.me());
    let (send, receive) = (Buffer::<u8>::new(&fabric, 4 * BYTES)?, Buffer::<u8>::new(&fabric, 4 * BYTES)?);
    let mut hood = Neighbourhood::new(group, topology).await?;
    let mut request = hood.alltoall_init(&send, &receive, BYTES, &Options::form(form)).await?;
    hood.group_mut().barrier().await?;
    // A permutation of the ranks, far from that of their places.
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
    // It is the receive engines: where they take everything at once, the beginning is forgotten.
    for spread in [together, apart] {
        let without = iteration(Form::Queues(2), Latency, spread);
        assert!((without / in_step - 1.0).abs() < 0.01, "{without} µs without contention, {in_step} µs in step");
    }
    // One neighbour a queue: nobody has another message to send that waits behind.
    let fast = [together, apart].map(|spread| iteration(Form::Fast, Router, spread));
    assert!((fast[1] / fast[0] - 1.0).abs() < 0.01, "{fast:?} µs");
}
