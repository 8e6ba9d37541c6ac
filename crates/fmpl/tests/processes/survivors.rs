//! Members that continue when one of them is killed.

use crate::job::launch;
use checks::killed::{Outcome, die_after};
use fmpl::{Fmpl, FmplError, Options};
use rdma_fabric::{Fabric, FabricError, ProgramResult};
use std::time::Duration;

const RANKS: usize = 4;
const VICTIM: usize = 2;
const MESSAGES: u64 = 200;

/// Plays one rank's part: all send to rank 0, which does not name them.
pub(crate) async fn play(fabric: Fabric, micros: u64) -> ProgramResult<String> {
    let fmpl = Fmpl::init_with(&fabric, Options::default().spool(1 << 14, Duration::ZERO)).await?;
    let world = fmpl.world();
    let buffer = world.buffer::<u64>(1)?;
    // The last rank may create the communicator long after the first: death before that is another case.
    if world.me() == VICTIM {
        for from in (0..RANKS).filter(|from| *from != VICTIM) {
            world.recv(&buffer, from, 0).await?;
        }
        die_after(Duration::from_micros(micros));
    } else {
        world.send(&[0u64], VICTIM, 0).await?;
    }
    if world.me() > 0 {
        for n in 0.. {
            if n == MESSAGES && world.me() != VICTIM {
                break;
            }
            world.send_any(&[n], 0, 0).await?;
        }
        world.recv(&buffer, 0, 0).await?;
        return Ok("stopped".to_owned());
    }
    let (mut next, mut acknowledged) = ([0; RANKS], 0);
    while acknowledged == 0 || next[1] < MESSAGES || next[3] < MESSAGES {
        match world.recv_any(&buffer, 0).await {
            Ok(received) => {
                let mut found = [0];
                fabric.read(&buffer, &mut found)?;
                assert_eq!(found[0], next[received.from], "of member {}", received.from);
                next[received.from] += 1;
            }
            Err(FmplError::Fabric(FabricError::PeerLost { .. })) => {
                assert_eq!(world.acknowledge_losses()?, [VICTIM]);
                acknowledged += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    assert_eq!(acknowledged, 1, "survivors need not ask again and again");
    for to in [1, 3] {
        world.send(&[0u64], to, 0).await?;
    }
    world.all_fetched().await?;
    Ok("complete".to_owned())
}

#[test]
fn a_receiver_of_any_sender_continues_when_one_is_killed() {
    for micros in [10, 300, 2_000, 9_000] {
        let outcomes = launch(RANKS, &format!("survivors {micros}"));
        let [complete, stopped] = ["complete", "stopped"].map(|text| Outcome::Ended(text.to_owned()));
        assert_eq!(outcomes, [complete, stopped.clone(), Outcome::Silent, stopped], "after {micros} us");
    }
}
