//! The time of calls from C and of the same calls from Rust, both with a launcher that binds ranks to
//! cores. `cargo test --release -p acp-c --test it figures -- --ignored --nocapture`

use crate::tools::{compiled, ended, job};
use acp::{Acp, GlobalAddress, Order};
use onesided::{Backend, block_on};
use process_tests::{
    child::{Ended, this_program},
    programs::Linkage,
};
use rdma_fabric::{Amo, ProgramResult, Rank};
use std::{
    collections::BTreeMap,
    future::Future,
    hint::black_box,
    path::Path,
    sync::atomic::{
        AtomicU64,
        Ordering::{Relaxed, SeqCst},
    },
    time::Instant,
};

const BATCHES: usize = 15;
const TIMES: u32 = 100_000;

/// Prints the figures of both, and their ratio.
pub(crate) fn c_beside_rust() {
    let Some(program) = compiled(&["tests/own/bench.c"], Linkage::Shared) else { return };
    let in_c = figures(&job(2, &program, &[]));
    let this = std::env::current_exe().expect("the path of this program");
    let in_rust = figures(&ended({
        let mut command = this_program(["launch", "2"]);
        command.arg(Path::new(&this)).arg("figures-of-rust");
        command
    }));
    let (added, copied) = of_memory();
    for (figure, c) in &in_c {
        let rust = in_rust.get(figure).copied().unwrap_or(f64::NAN);
        let bare = if figure.starts_with("add") { added } else { copied };
        println!("    {figure}: C {c:.1} ns, Rust {rust:.1} ns, memory {bare:.1} ns, C to Rust {:.2}", c / rust);
    }
    assert!(!in_c.is_empty() && in_c.len() == in_rust.len());
}

/// Measures the accesses of a fetch-and-add that stores the previous value, and of a copy of 8 bytes.
fn of_memory() -> (f64, f64) {
    let (from, to) = (AtomicU64::new(0), AtomicU64::new(0));
    let (from, to) = (black_box(&from), black_box(&to));
    (least(|| to.store(from.fetch_add(1, SeqCst), Relaxed)), least(|| to.store(from.load(Relaxed), Relaxed)))
}

fn least(access: impl Fn()) -> f64 {
    let batch = |_| {
        let start = Instant::now();
        (0..TIMES).for_each(|_| black_box(&access)());
        start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
    };
    (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
}

fn figures(ended: &Ended) -> BTreeMap<String, f64> {
    assert_eq!(ended.code(), Some(0), "{ended}");
    let lines = ended.out.lines().filter_map(|line| line.strip_prefix("bench ")?.split_once(" ns "));
    lines.map(|(figure, value)| (figure.to_owned(), value.parse().expect("a number"))).collect()
}

/// Measures the same calls as `bench.c`, as a rank.
pub(crate) fn of_rust() {
    block_on(rank()).expect("two ranks");
}

async fn rank() -> ProgramResult<()> {
    let fabric = Backend::Cluster.attach()?;
    let acp = Acp::init_with(&fabric, acp::Options::default().threads(acp::Threads::Many)).await?;
    let key = acp.allocate(512, 0)?;
    acp.store(acp.starter(acp.rank())?, acp.address(key, 0)?.to_bits()).await?;
    acp.sync().await?;
    if acp.rank().number() == 0 {
        let last = Rank::new(acp.ranks() as u32 - 1);
        let own = acp.address(key, 0)?;
        let there = GlobalAddress::from_bits(acp.load(acp.starter(last)?).await?).ok_or("no address")?;
        let word = there.offset_by(64)?;
        let own_word = own.offset_by(64)?;
        measure("add4-local", &acp, || acp.atomic(own, own_word, Amo::Add(1u32), Order::None))?;
        measure("add4-remote", &acp, || acp.atomic(own, word, Amo::Add(1u32), Order::None))?;
        measure("put-8", &acp, || acp.copy(word, own, 8, Order::None))?;
        measure("get-8", &acp, || acp.copy(own, word, 8, Order::None))?;
        let starter = acp.starter(last)?;
        measure("put-8-starter", &acp, || acp.copy(starter, own, 8, Order::None))?;
    }
    acp.sync().await?;
    Ok(acp.finalize().await?)
}

fn measure<F: Future<Output = acp::Result<acp::Handle>>>(
    figure: &str,
    acp: &Acp,
    mut call: impl FnMut() -> F,
) -> ProgramResult<()> {
    let mut least = f64::INFINITY;
    for _ in 0..BATCHES {
        let start = Instant::now();
        // One executor for the batch, as in a program in Rust.
        block_on(async {
            for _ in 0..TIMES {
                acp.complete(call().await?).await?;
            }
            Ok::<_, acp::AcpError>(())
        })?;
        least = least.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES));
    }
    println!("bench {figure} ns {least:.1}");
    Ok(())
}
