//! A halo exchange along a ring that the network runs by itself: each rank sends a block to both
//! neighbours in every step, and checks the blocks that it received.
//!
//! ```text
//! cargo example halo_1d --release -- --ranks 4
//! cargo example halo_1d --release -- --ranks 4 --fabric virt --form mrc --bytes 16384
//! cargo example halo_1d --release -- --ranks 4 --fabric virt --steps 1 --timeline halo.json
//! ```
//!
//! `--help` lists its options. The output states the form on which all ranks agreed, which uses
//! fewer queues than requested if queues run out. With one step, `--timeline FILE` shows in
//! Perfetto how the request is created, and one iteration; `--trace FILE` shows the operations of
//! any fabric.

use onesided::{
    Fabric, Group, Program, ProgramResult, Rank,
    prdma::{Buffer, Cartesian, Form, Neighbourhood, Options},
};
use std::{ffi::OsString, process::ExitCode};

/// Starts, awaits and checks one exchange in each step.
async fn halo_1d(fabric: Fabric, form: Form, bytes: usize, steps: u32) -> ProgramResult<()> {
    let world = Group::world(&fabric).await?;
    let (me, ranks) = (world.me(), world.len());
    let ring = Cartesian::new(&[ranks], &[true])?;
    let mut hood = Neighbourhood::new(world, ring.topology(me)).await?;
    // In both buffers, slot 0 belongs to the left neighbour and slot 1 to the right one.
    let send = Buffer::<u8>::new(&fabric, 2 * bytes)?;
    let receive = Buffer::<u8>::new(&fabric, 2 * bytes)?;
    let mut halo = hood.alltoall_init(&send, &receive, bytes, &Options::form(form)).await?;
    hood.group_mut().barrier().await?;

    let block = |rank: usize, step: u32| (rank as u32 + 7 * step) as u8;
    let (left, right) = ring.shift(me, 0, 1)?;
    let (mut got, mut exchanging) = (vec![0; 2 * bytes], std::time::Duration::ZERO);
    for step in 0..steps {
        send.write(0, &vec![block(me, step); 2 * bytes])?;
        let begin = fabric.now();
        halo.start().await?;
        halo.wait().await?;
        exchanging += fabric.now() - begin;
        receive.read(0, &mut got)?;
        for (neighbour, got) in [left, right].into_iter().flatten().zip(got.chunks_exact(bytes.max(1))) {
            if got.iter().any(|byte| *byte != block(neighbour, step)) {
                return Err(format!("{}: the block of {neighbour} in step {step} is wrong", fabric.rank()).into());
            }
        }
    }
    // No rank frees memory that a neighbour still sends to.
    hood.group_mut().barrier().await?;
    if fabric.rank() == Rank::new(0) {
        let each = exchanging / steps.max(1);
        println!(
            "{ranks} ranks, form {}, {bytes} bytes to each side: {each:?} a step, {steps} steps right",
            halo.form()
        );
    }
    Ok(())
}

fn form(name: &str) -> Result<Form, String> {
    match name {
        "auto" | "fast" => Ok(Form::Fast),
        "mrc" => Ok(Form::Mrc),
        "cpu" => Ok(Form::Cpu),
        number => match number.parse() {
            Ok(queues @ 2..) => Ok(Form::Queues(queues)),
            _ => Err(format!("`{number}` is none of fast, mrc, cpu, auto, or a number of queues from 2 on")),
        },
    }
}

const USAGE: &str = "\
Halo exchange along a ring: each rank sends a block to both neighbours in every step, and checks what it got.

  --form NAME          fast: a control queue for each neighbour; mrc: one for all; a number from 2 on: so many; cpu: none;
                       auto: as many as there are (auto)
  --bytes N            bytes of a block (8192)
  --steps N            steps (1000)
";

/// Returns the program selected by the rest of the command line.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let mut told = || {
        let form = rest.opt_value_from_fn("--form", form)?.unwrap_or(Form::Fast);
        let bytes = rest.opt_value_from_str("--bytes")?.unwrap_or(8192);
        let steps = rest.opt_value_from_str("--steps")?.unwrap_or(1000);
        Ok(async move |fabric| halo_1d(fabric, form, bytes, steps).await)
    };
    let program = told().map_err(|error: pico_args::Error| error.to_string())?;
    match &rest.finish()[..] {
        [] => Ok(program),
        more => Err(format!("there is no {more:?}; --help says what there is")),
    }
}

fn main() -> ExitCode {
    onesided::launch_with(USAGE, program)
}
