//! Random operations, compared with a sequential model of one rank's memory.

use crate::start::{at, fx100, meet};
use proptest::prelude::*;
use rdma_fabric::{Amo, Fabric, ProgramResult};
use tofu2_virt::NetworkModel;

const BYTES: usize = 256;

#[derive(Clone, Debug)]
enum Operation {
    Put(usize, Vec<u8>),
    Get(usize, usize),
    Amo64(usize, Amo<u64>),
    Amo32(usize, Amo<u32>),
    /// A put from, or a get into, registered memory of the poster.
    PutFrom(usize, usize),
    GetInto(usize, usize),
}

fn amo<W: Copy + std::fmt::Debug + 'static>(
    word: impl Strategy<Value = W> + Clone + 'static,
) -> impl Strategy<Value = Amo<W>> {
    prop_oneof![
        word.clone().prop_map(Amo::Add),
        word.clone().prop_map(Amo::Swap),
        (word.clone(), word.clone()).prop_map(|(expected, new)| Amo::CompareSwap { expected, new }),
        word.clone().prop_map(Amo::Or),
        word.clone().prop_map(Amo::And),
        word.prop_map(Amo::Xor),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let range = || (0..BYTES).prop_flat_map(|from| (Just(from), 0..=BYTES - from));
    let few64 = prop_oneof![Just(0u64), Just(1), any::<u64>()];
    let few32 = prop_oneof![Just(0u32), Just(u32::MAX), any::<u32>()];
    prop_oneof![
        range()
            .prop_flat_map(|(from, len)| (Just(from), prop::collection::vec(any::<u8>(), len)))
            .prop_map(|(f, d)| Operation::Put(f, d)),
        range().prop_map(|(from, len)| Operation::Get(from, len)),
        (0..BYTES / 8, amo(few64)).prop_map(|(w, a)| Operation::Amo64(8 * w, a)),
        (0..BYTES / 4, amo(few32)).prop_map(|(w, a)| Operation::Amo32(4 * w, a)),
        range().prop_map(|(from, len)| Operation::PutFrom(from, len)),
        range().prop_map(|(from, len)| Operation::GetInto(from, len)),
    ]
}

/// Rank 1 performs the steps on rank 0's memory, one after another.
async fn replay(fabric: Fabric, steps: Vec<Operation>) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(BYTES + 64).await?;
    let me = fabric.rank().index();
    if me == 1 {
        let mut model = vec![0u8; BYTES];
        let mut mine = vec![0u8; BYTES];
        for step in steps {
            match step {
                Operation::Put(from, data) => {
                    let span = fabric.remote_span::<u8>(at(0, home.key(), from), data.len())?;
                    model[from..from + data.len()].copy_from_slice(&data);
                    assert_eq!(fabric.put(&span, data.clone()).await?, data);
                    fabric.flush(span.rank()).await?;
                }
                Operation::Get(from, len) => {
                    let span = fabric.remote_span::<u8>(at(0, home.key(), from), len)?;
                    assert_eq!(fabric.get(&span, vec![0; len]).await?, model[from..from + len]);
                }
                Operation::Amo64(from, amo) => {
                    let bytes = &mut model[from..from + 8];
                    let old = u64::from_ne_bytes((&*bytes).try_into()?);
                    bytes.copy_from_slice(&amo.apply(old).to_ne_bytes());
                    assert_eq!(fabric.atomic(&fabric.remote_word(at(0, home.key(), from))?, amo).await?, old);
                }
                Operation::Amo32(from, amo) => {
                    let bytes = &mut model[from..from + 4];
                    let old = u32::from_ne_bytes((&*bytes).try_into()?);
                    bytes.copy_from_slice(&amo.apply(old).to_ne_bytes());
                    assert_eq!(fabric.atomic(&fabric.remote_word(at(0, home.key(), from))?, amo).await?, old);
                }
                Operation::PutFrom(from, len) => {
                    let own = fabric.local_span::<u8>(at(1, home.key(), from), len)?;
                    fabric.put(&fabric.remote_span(at(0, home.key(), from), len)?, own).await?;
                    fabric.flush_all().await?;
                    model[from..from + len].copy_from_slice(&mine[from..from + len]);
                }
                Operation::GetInto(from, len) => {
                    let own = fabric.local_span::<u8>(at(1, home.key(), from), len)?;
                    fabric.get(&fabric.remote_span(at(0, home.key(), from), len)?, own).await?;
                    mine[from..from + len].copy_from_slice(&model[from..from + len]);
                }
            }
        }
        let mut own = vec![0u8; BYTES];
        fabric.read(&fabric.local_span(at(1, home.key(), 0), BYTES)?, &mut own)?;
        assert_eq!(own, mine);
        assert_eq!(fabric.get(&fabric.remote_span(at(0, home.key(), 0), BYTES)?, vec![0; BYTES]).await?, model);
    }
    meet(&fabric, &home, BYTES + 16).await?;
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn operations_agree_with_a_sequential_model(steps in prop::collection::vec(operation(), 0..60), ppn in 1u32..3, routed: bool) {
        let network = if routed { NetworkModel::Router } else { NetworkModel::Latency };
        let run = fx100(2).ranks_per_node(ppn).network(network).run(&async |fabric| replay(fabric, steps.clone()).await);
        prop_assert!(run.is_ok(), "{}", run.unwrap_err());
    }
}

/// Transfers above the machine's limit arrive complete.
async fn oversized(fabric: Fabric) -> ProgramResult<u64> {
    let len = 3000;
    let home = fabric.alloc_symmetric(64 + len).await?;
    if fabric.rank().number() == 1 {
        let span = fabric.remote_span::<u8>(at(0, home.key(), 64), len)?;
        let data: Vec<u8> = (0..len).map(|i| i as u8).collect();
        fabric.put(&span, data.clone()).await?;
        fabric.flush_all().await?;
        assert_eq!(fabric.get(&span, vec![0; len]).await?, data);
    }
    meet(&fabric, &home, 16).await?;
    Ok(fabric.caps().max_transfer)
}

#[test]
fn long_transfers_are_split() {
    let platform = tofu2_virt::Platform::fx100().with("max_transfer", 1000).unwrap();
    let run = checks::jobs::virtual_time(&platform, 2).run(&oversized).unwrap();
    assert_eq!(run.outs, [1000, 1000]);
}
