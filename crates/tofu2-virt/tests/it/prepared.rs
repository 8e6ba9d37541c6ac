//! The costs and savings of preparing an operation.

use crate::start::at;
use rdma_fabric::{Amo, Fabric, Prepared, ProgramResult, op::Atomic};
use tofu2_virt::{Platform, Run};

/// A fetch-add on the neighbouring node, as calibrated.
const ATOMIC: u64 = 1_689_500;

/// Rank 0 adds three times to a word of rank 1; returns the times of preparing and of each
/// addition.
async fn adds(fabric: Fabric, prepared: bool) -> ProgramResult<[u64; 4]> {
    let region = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(at(1, region.key(), 0))?;
    let mut took = [0; 4];
    if fabric.rank().number() == 0 {
        let begun = fabric.now();
        let op = Atomic { word: &word, amo: Amo::Add(1) };
        let descriptor = if prepared { Some(Prepared::new(&fabric, op).await?) } else { None };
        took[0] = fabric.now().picos_since(begun);
        for took in &mut took[1..] {
            let begun = fabric.now();
            match &descriptor {
                Some(descriptor) => drop(descriptor.run().await?),
                None => drop(fabric.fetch_add(&word, 1).await?),
            }
            *took = fabric.now().picos_since(begun);
        }
    }
    fabric.sleep(std::time::Duration::from_millis(1)).await;
    Ok(took)
}

fn run(platform: &Platform, prepared: bool) -> Run<[u64; 4]> {
    checks::jobs::virtual_time(platform, 2).run(&async |fabric| adds(fabric, prepared).await).unwrap()
}

#[test]
fn nothing_is_known_to_be_saved_on_real_machines() {
    for platform in [Platform::fx100(), Platform::fx10(), Platform::tofud()] {
        let (plain, prepared) = (run(&platform, false), run(&platform, true));
        assert_eq!((plain.outs, plain.stats.trace_hash), (prepared.outs, prepared.stats.trace_hash));
    }
    assert_eq!(run(&Platform::fx100(), true).outs[0], [0, ATOMIC, ATOMIC, ATOMIC]);
}

#[test]
fn a_descriptor_is_paid_for_once() {
    let platform = Platform::fx100().with("software.descriptor", 40_000).unwrap();
    assert_eq!(run(&platform, false).outs[0], [0, ATOMIC + 40_000, ATOMIC + 40_000, ATOMIC + 40_000]);
    assert_eq!(run(&platform, true).outs[0], [40_000, ATOMIC, ATOMIC, ATOMIC]);
}

/// The saving in the published figures is due to ACP's software.
#[test]
fn the_layer_of_acp_has_the_published_saving() {
    assert_eq!(Platform::fx100().value("software.acp.descriptor"), Some(3_360_000 - 3_230_000));
    assert_eq!(Platform::fx100().value("post"), Some(150_000));
}
