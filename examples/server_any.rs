//! Rank 0 serves any client: it receives from any source, and answers the sender of each request.
//! `cargo example server_any -- --ranks 4`, or with `--fabric virt`.

use onesided::{
    fmpl::{Fmpl, Options},
    prelude::*,
};
use std::time::Duration;

/// The requests of every client, in order.
const NUMBERS: [u64; 4] = [3, 10, 27, 97];
/// The index of requests, and that of answers.
const REQUEST: usize = 0;
const ANSWER: usize = 1;

async fn serve(fabric: Fabric) -> ProgramResult<()> {
    let fmpl = Fmpl::init_with(&fabric, Options::default().spool(4096, Duration::ZERO)).await?;
    let world = fmpl.world();
    if world.me() == 0 {
        let request = world.buffer::<u64>(1)?;
        let mut answered = vec![0; world.len()];
        for _ in 0..NUMBERS.len() * (world.len() - 1) {
            let client = world.recv_any(&request, REQUEST).await?.from;
            let mut number = [0];
            world.fabric().read(&request, &mut number)?;
            world.send(&[steps_to_one(number[0])], client, ANSWER).await?;
            answered[client] += 1;
        }
        println!("rank 0 answered {:?}", &answered[1..]);
    } else {
        let answer = world.buffer::<u64>(1)?;
        for number in NUMBERS {
            world.send_any(&[number], 0, REQUEST).await?;
            world.recv(&answer, 0, ANSWER).await?;
            let mut steps = [0];
            world.fabric().read(&answer, &mut steps)?;
            assert_eq!(steps[0], steps_to_one(number));
        }
    }
    Ok(fmpl.finalize().await?)
}

/// Returns the number of steps, halving or tripling and incrementing, until a number is 1.
fn steps_to_one(mut number: u64) -> u64 {
    let mut steps = 0;
    while number > 1 {
        number = if number.is_multiple_of(2) { number / 2 } else { 3 * number + 1 };
        steps += 1;
    }
    steps
}

fn main() -> std::process::ExitCode {
    onesided::launch(serve)
}
