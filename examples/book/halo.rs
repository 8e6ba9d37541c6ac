//! A persistent exchange with two neighbours: `cargo example halo -- --ranks 4`.

use onesided::{
    prdma::{Buffer, Cartesian, Form, Neighbourhood, Options},
    prelude::*,
};

async fn halo(fabric: Fabric) -> ProgramResult<()> {
    const BLOCK: usize = 1024;
    let world = Group::world(&fabric).await?;
    let ring = Cartesian::new(&[world.len()], &[true])?;
    let topology = ring.topology(world.me());
    let mut hood = Neighbourhood::new(world, topology).await?;

    // Slot 0 is the left neighbour, slot 1 the right one, in both buffers.
    let send = Buffer::<u64>::new(&fabric, 2 * BLOCK)?;
    let receive = Buffer::<u64>::new(&fabric, 2 * BLOCK)?;
    let options = Options::form(Form::Fast);
    let mut exchange = hood.alltoall_init(&send, &receive, BLOCK, &options).await?;
    hood.group_mut().barrier().await?;

    let mut got = vec![0; 2 * BLOCK];
    for step in 0..100 {
        send.write(0, &vec![step; 2 * BLOCK])?;
        exchange.start().await?;
        // ... compute what needs no halo ...
        exchange.wait().await?;
        receive.read(0, &mut got)?;
    }
    // A buffer may be freed once no neighbour sends to it.
    Ok(hood.group_mut().barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch(halo)
}
