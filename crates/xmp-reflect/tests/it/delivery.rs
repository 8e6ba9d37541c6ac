//! Two reflects of one array in progress together, against a network that delivers in any order.

use checks::exchange::{ExchangeMutant, MutatedExchange};
use core::{ops::Range, pin::Pin};
use explore::{Explorer, Probe, mutant::mutated};
use rdma_fabric::{Caps, Fabric, Group, ProgramResult, PutOrder};
use std::{cell::Cell, rc::Rc};
use xmp_reflect::{Align, Array, Format, Mapping, NodeSet, Nodes, Order, Reflect, Shadow, Template, Transport, Widths};

/// The first of a row of facts, one for each rank: whether its set-up has completed.
const SET_UP: u32 = 0;
/// The first of a row of facts, one for each rank: reflects that have ended.
const ENDED: u32 = 100;

/// The transports that synchronise neighbours by READY and END.
const TRANSPORTS: [Transport; 2] = [Transport::Blocks, Transport::Datatypes];

/// One cell at each of two nodes, with a layer on both sides.
fn mapping() -> ProgramResult<Mapping> {
    let nodes = Nodes::new(&[2], Order::LastFastest)?;
    let template = Template::new(&[Range { start: 0, end: 2 }], &[Format::Block], &nodes)?;
    Ok(template.align(&template.bounds(), &[Align::with(0)])?.shadow(&[Shadow::of(1)])?)
}

/// The value of an element in a round: never 0.
fn value(node: usize, round: u64) -> u64 {
    0xF1E1D << 24 | round << 8 | (node as u64 + 1)
}

/// Reflects both sides concurrently, and waits for them in opposite orders, a few times.
async fn program(
    fabric: Fabric,
    memory: Fabric,
    probe: Probe,
    (rounds, periodic, transport): (u64, bool, Transport),
    begun: impl FnOnce(),
) -> ProgramResult<()> {
    let mapping = mapping()?;
    let mut set = NodeSet::new(Group::world(&fabric).await?, mapping.nodes().clone())?.with_transport(transport);
    let array: Array<u64> = set.array_through(&memory, &mapping)?;
    let [below, above] = [(1, 0), (0, 1)].map(|(lo, hi)| Reflect::widths(&[Widths { lo, hi, periodic }]));
    // Schedules are made before.
    let me = set.me();
    for reflect in [&below, &above] {
        set.explain(&array, reflect).await?;
    }
    begun();
    probe.set(SET_UP + me as u32, 1);
    probe.step(0);
    for round in 1..=rounds {
        let mine = me as i64;
        array.set(&[mine], value(me, round))?;
        set.reflect_async(&array, &below, 1).await?;
        set.reflect_async(&array, &above, 2).await?;
        let [first, second] = if me == 0 { [1, 2] } else { [2, 1] };
        set.wait_async(&[first]).await?;
        set.wait_async(&[second]).await?;
        // Inside the ring, or the row, an adjacent cell is a copy of the other node's.
        for side in [mine - 1, mine + 1].into_iter().filter(|side| periodic || (0..2).contains(side)) {
            assert_eq!(array.get(&[side])?, value(1 - me, round), "beside node {me}, round {round}");
        }
        probe.set(ENDED + me as u32, round);
        probe.step(round);
    }
    Ok(())
}

fn explorer(order: PutOrder, rounds: u64) -> Explorer<'static> {
    let mut caps = Caps::weakest();
    caps.put_order = order;
    let explorer = Explorer::new(2).leave_together().caps(caps).set_up(SET_UP);
    explorer.at_end("all rounds have ended", move |view| (0..2).all(|rank| view.fact(ENDED + rank) == rounds))
}

/// Runs one node; the mutant is applied at node 0.
fn job(
    (rounds, periodic, transport): (u64, bool, Transport),
    mutant: Option<ExchangeMutant>,
) -> impl Fn(Fabric) -> Pin<Box<dyn Future<Output = ProgramResult<()>>>> {
    move |fabric| {
        let (probe, memory, begun) = (Probe::of(&fabric), fabric.clone(), Rc::new(Cell::new(false)));
        let fabric = match mutant {
            Some(mutant) if fabric.rank().index() == 0 => {
                mutated(fabric, MutatedExchange { mutant, begun: begun.clone() })
            }
            _ => fabric,
        };
        Box::pin(async move { program(fabric, memory, probe, (rounds, periodic, transport), || begun.set(true)).await })
    }
}

#[test]
fn two_reflects_under_way_in_every_order() {
    for transport in TRANSPORTS {
        for order in [PutOrder::None, PutOrder::SameTarget] {
            let report = explorer(order, 1).run(job((1, false, transport), None));
            println!("{transport}, {order:?}: {report}");
            report.expect_exhausted();
            assert!(report.states > 100, "{} states", report.states);
        }
    }
}

#[test]
fn more_rounds_in_random_orders() {
    for transport in TRANSPORTS {
        for order in [PutOrder::None, PutOrder::SameTarget] {
            let sample = explorer(order, 3).sample(1, 20, job((3, true, transport), None));
            assert!(sample.failure.is_none(), "{transport}, {order:?}: {sample}");
        }
    }
}

#[test]
fn a_wrong_step_is_found() {
    let mutants = [
        ExchangeMutant::ReadyIgnored,
        ExchangeMutant::ReadyLost,
        ExchangeMutant::DataNotFlushed,
        ExchangeMutant::EndFirst,
        ExchangeMutant::EndRepeated,
        ExchangeMutant::WaitsForTheLast,
    ];
    for transport in TRANSPORTS {
        for mutant in mutants {
            let sample = explorer(PutOrder::None, 3).sample(1, 2000, job((3, true, transport), Some(mutant)));
            assert!(sample.failure.is_some(), "{transport}, {mutant:?} is not noticed: {sample}");
        }
    }
}
