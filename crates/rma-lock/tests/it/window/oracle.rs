//! Random accumulates, compared with a sequential model.

use checks::jobs::virtual_time;
use proptest::prelude::*;
use rdma_fabric::{Fabric, ProgramResult, Rank};
use rma_lock::{Op, Window, WindowElement};
use std::{fmt::Debug, time::Duration};
use tofu2_sim::virt::Platform;

const ELEMENTS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    Accumulate,
    Request,
    /// A request that is dropped immediately.
    Dropped,
    Fetch,
    Exchange,
    Flush,
}

/// One call, of any element type.
#[derive(Clone, Debug)]
struct WindowCall {
    kind: CallKind,
    at: usize,
    op: Op,
    values: Vec<i32>,
}

const OPS: [Op; 12] = [
    Op::Sum,
    Op::Prod,
    Op::Min,
    Op::Max,
    Op::BitAnd,
    Op::BitOr,
    Op::BitXor,
    Op::And,
    Op::Or,
    Op::Xor,
    Op::Replace,
    Op::NoOp,
];

fn call() -> impl Strategy<Value = WindowCall> {
    let kind = prop::sample::select(vec![
        CallKind::Accumulate,
        CallKind::Request,
        CallKind::Dropped,
        CallKind::Fetch,
        CallKind::Exchange,
        CallKind::Flush,
    ]);
    let values = prop::collection::vec(-3..4, 1..=ELEMENTS);
    (kind, 0..ELEMENTS, prop::sample::select(OPS.to_vec()), values).prop_map(|(kind, at, op, mut values)| {
        values.truncate(ELEMENTS - at);
        WindowCall { kind, at, op, values }
    })
}

/// The elements used in calls.
trait Sample: WindowElement + PartialEq + Debug {
    fn of(value: i32) -> Self;
}

macro_rules! samples {
    ($($element:ty),*) => {$(
        impl Sample for $element {
            fn of(value: i32) -> Self { value as $element }
        }
    )*};
}
samples!(u32, i32, u64, i64, f32, f64);

/// Rank 0 makes all calls at rank 1, and waits as rarely as possible; all results, and the final
/// memory, must be as if each call had completed before the next.
async fn make<T: Sample>(fabric: Fabric, calls: &[WindowCall]) -> ProgramResult<()> {
    let window = Window::<T>::allocate(&fabric, ELEMENTS).await?;
    let mut account = [T::of(0); ELEMENTS];
    let mut expected: Vec<Vec<T>> = Vec::new();
    for WindowCall { kind, at, op, values } in calls {
        let cells = &mut account[*at..];
        let mut before = Vec::new();
        for (cell, value) in cells.iter_mut().zip(values) {
            before.push(*cell);
            let one = matches!(kind, CallKind::Fetch | CallKind::Exchange);
            if *kind != CallKind::Flush && !(one && before.len() > 1) {
                *cell = match kind {
                    CallKind::Exchange if cell.bits() != T::of(values[0]).bits() => *cell,
                    CallKind::Exchange => T::of(values[0] + 1),
                    _ => op.apply(*cell, T::of(*value)).unwrap_or(*cell),
                };
            }
        }
        expected.push(before);
    }
    if fabric.rank() == Rank::new(0) {
        let epoch = window.lock_all().await?;
        let target = epoch.at(Rank::new(1))?;
        let mut requests = Vec::new();
        for (number, WindowCall { kind, at, op, values }) in calls.iter().enumerate() {
            let values: Vec<T> = values.iter().map(|value| T::of(*value)).collect();
            let makes_sense = op.apply(T::of(1), T::of(1)).is_some();
            match kind {
                CallKind::Flush => epoch.flush_all().await?,
                CallKind::Exchange => {
                    let new = T::of(calls[number].values[0] + 1);
                    assert_eq!(target.compare_and_swap(*at, values[0], new).await?, expected[number][0]);
                }
                _ if !makes_sense => {}
                CallKind::Accumulate => target.accumulate(*at, *op, &values).await?,
                CallKind::Request => requests.push((number, target.rget_accumulate(*at, *op, &values)?)),
                CallKind::Dropped => drop(target.raccumulate(*at, *op, &values)?),
                CallKind::Fetch => assert_eq!(target.fetch_and_op(*at, *op, values[0]).await?, expected[number][0]),
            }
        }
        // They may be awaited in any order.
        requests.reverse();
        for (number, mut request) in requests {
            let _ = request.test();
            assert_eq!(request.await?, expected[number], "call {number}");
        }
        epoch.unlock().await?;
    }
    window.barrier().await?;
    if fabric.rank() == Rank::new(1) {
        let mut there = account;
        window.read(0, &mut there)?;
        assert_eq!(there, account);
    }
    Ok(window.free().await?)
}

async fn random_calls(fabric: Fabric, calls: Vec<WindowCall>, element: usize) -> ProgramResult<()> {
    match element {
        0 => make::<u32>(fabric, &calls).await,
        1 => make::<i32>(fabric, &calls).await,
        2 => make::<u64>(fabric, &calls).await,
        3 => make::<i64>(fabric, &calls).await,
        4 => make::<f32>(fabric, &calls).await,
        _ => make::<f64>(fabric, &calls).await,
    }
}

/// Every rank makes commuting accumulates at rank 0, with one operation for each element type.
async fn commuting(fabric: Fabric, values: Vec<i32>) -> ProgramResult<(Vec<f64>, Vec<i64>)> {
    let (sums, products) = (Window::<f64>::allocate(&fabric, 40).await?, Window::<i64>::allocate(&fabric, 40).await?);
    let (mut a, mut b) = (sums.fence().await?, products.fence().await?);
    let home = Rank::new(0);
    let mine = |value: i32| value * (fabric.rank().number() as i32 + 1);
    for chunk in values.chunks(40) {
        let floats: Vec<_> = chunk.iter().map(|value| mine(*value).into()).collect();
        a.at(home)?.accumulate(0, Op::Sum, &floats).await?;
        let integers: Vec<_> = chunk.iter().map(|value| mine(*value).into()).collect();
        b.at(home)?.accumulate(0, Op::Min, &integers).await?;
    }
    a.fence().await?;
    b.fence().await?;
    let mut out = (vec![0.0; 40], vec![0; 40]);
    sums.read(0, &mut out.0)?;
    products.read(0, &mut out.1)?;
    a.end().await?;
    b.end().await?;
    Ok(out)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_ranks_accumulates_happen_in_its_order(
        calls in prop::collection::vec(call(), 1..40),
        element in 0usize..6,
        seed in any::<u64>(),
    ) {
        let platform = Platform::fx100();
        let job = virtual_time(&platform, 2).ranks_per_node(1).seed(seed).jitter(Duration::from_micros(3)).shuffle_ties(true);
        if let Err(error) = job.run(&async |fabric| random_calls(fabric, calls.clone(), element).await) {
            return Err(TestCaseError::fail(error.to_string()));
        }
    }

    #[test]
    fn nothing_that_commutes_is_lost(values in prop::collection::vec(-9..10, 1..100), seed in any::<u64>()) {
        const RANKS: i32 = 4;
        let platform = Platform::fx100();
        let job = virtual_time(&platform, RANKS as usize).ranks_per_node(2).seed(seed).jitter(Duration::from_micros(3));
        let ended = job.run(&async |fabric| commuting(fabric, values.clone()).await).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let (mut sums, mut least) = ([0.0; 40], [0i64; 40]);
        for (place, value) in values.iter().enumerate() {
            for rank in 1..=RANKS {
                sums[place % 40] += f64::from(value * rank);
                least[place % 40] = least[place % 40].min(i64::from(value * rank));
            }
        }
        prop_assert_eq!(&ended.outs[0].0[..], &sums[..]);
        prop_assert_eq!(&ended.outs[0].1[..], &least[..]);
    }
}
