//! The speed of the virtual-time provider: every rank of a large machine locks and unlocks one
//! readers lock (two remote fetch-adds) several times, or keeps its control queues full.
//!
//! `cargo example virt_speed --release [k | hops | lock | queues] [pairs | commands]`
//!
//! * `k`: 663,552 ranks on the K computer's 82,944 nodes, latency-only network, 10 pairs.
//! * `hops`: one rank on each of the K computer's nodes, Tofu's routes along a snake, routers, 1
//!   pair.
//! * `lock`: 128 nodes of FX100 with 1, 8 and 32 ranks each, routers, 1000 pairs.
//! * `queues`: 512 nodes of FX100; each rank has a full session queue whose puts release each other
//!   across the whole machine, with notices. 20,000 commands per rank, latency-only network and
//!   routers. Also reports the memory that an open queue takes.

use rdma_fabric::{
    Deps, Fabric, ProgramResult, Rank, RemoteAddr,
    control_queue::{Command, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use std::error::Error;
use tofu2_sim::virt::{Folding, Job, NetworkModel, Platform, Run, System, Torus};

/// Executes `pairs` pairs of fetch-adds on a word of rank 0.
async fn pairs(fabric: Fabric, pairs: u32) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let addr = RemoteAddr { rank: Rank::new(0), region: home.key(), offset: 0 };
    let word = fabric.remote_word::<u64>(addr)?;
    for _ in 0..pairs {
        fabric.fetch_add(&word, 1).await?;
        fabric.fetch_add(&word, u64::MAX).await?;
    }
    // Rank 0 must not drop its memory while others still use it.
    if fabric.rank().number() == 0 {
        let own = fabric.local_word::<u64>(addr)?;
        let mut left = fabric.ranks() as u64 - 1;
        while left > 0 {
            fabric.sleep(std::time::Duration::from_millis(1)).await;
            left = fabric.ranks() as u64 - 1 - (fabric.load(&own)? >> 32);
        }
    } else {
        drop(fabric.post(rdma_fabric::op::Atomic { word: &word, amo: rdma_fabric::Amo::Add(1 << 32) }).await?);
    }
    Ok(())
}

/// Posts `commands` puts of 8 bytes on a full session queue. Each leaves a notice several hops away
/// and releases one put there; 8 puts of each rank are in flight at any time.
async fn full_queues(fabric: Fabric, commands: u32) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let spec = QueueSpec { mrq_depth: 1 << 14, ..QueueSpec::new(QueueMode::Session) };
    let queue = fabric.queues().open(spec.on(0).ahead(8).checked(false))?;
    queue.register_fixed(&home, 0)?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    fabric.sleep(std::time::Duration::from_micros(1)).await;
    let to = QueueId::new(Rank::new((me + ranks / 2 - 27) % ranks), 0, 0, 0);
    let put = Posting::new(Command::put(to, Stadd::fixed(0), Stadd::fixed(0), 8)).sps(1).remote(1);
    let (mut posted, mut told) = (0, 0);
    while told < commands {
        while posted < commands && queue.try_post(put).is_ok() {
            posted += 1;
        }
        queue.next_notice(Deps::All).await?;
        told += 1;
    }
    fabric.sleep(std::time::Duration::from_millis(100)).await;
    Ok(())
}

/// Opens `queues` queues.
async fn idle_queues(fabric: Fabric, queues: usize) -> ProgramResult<()> {
    let open = (0..queues).map(|_| fabric.queues().open(QueueSpec::new(QueueMode::Session)));
    let queues = open.collect::<Result<Vec<_>, _>>()?;
    fabric.sleep(std::time::Duration::from_micros(1)).await;
    drop(queues);
    Ok(())
}

fn queues(platform: &Platform, commands: u32) -> Result<(), Box<dyn Error>> {
    let ranks = 20_000;
    let idle = |queues| {
        Job::new(platform, ranks)
            .run(&async |fabric| idle_queues(fabric, queues).await)
            .map(|run| run.stats.bytes_per_rank)
    };
    let (none, resident) = (idle(0)?, peak_kib());
    let some = idle(32)?;
    let per_queue = |bytes: f64| bytes / (32 * ranks) as f64;
    println!(
        "{} open queues: {} B each estimated, {:.0} B each resident at peak, node tables included",
        32 * ranks,
        (some - none) / 32,
        per_queue((peak_kib() - resident) * 1024.0)
    );
    for (name, network) in [("latency", NetworkModel::Latency), ("routers", NetworkModel::Router)] {
        let job = Job::new(platform, 512).torus(Torus::new(&[8, 8, 8])?).network(network);
        let before = cpu_seconds();
        let stats = job.run(&async |fabric| full_queues(fabric, commands).await)?.stats;
        let cpu = cpu_seconds() - before;
        println!(
            "queues over {name}: {} events, {} commands, {} polls in {cpu:.2} CPU s: {:.2} M events/s, {:.0} ns per command; hash {:016x}",
            stats.events,
            stats.commands.visible,
            stats.polls,
            stats.events as f64 / cpu * 1e-6,
            cpu / stats.commands.visible as f64 * 1e9,
            stats.trace_hash,
        );
    }
    Ok(())
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) * 1e-9
}

fn peak_kib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(f64::NAN)
}

fn report(name: &str, ranks: usize, job: &Job<'_>, pairs_each: u32) -> Result<Run<()>, Box<dyn Error>> {
    let before = cpu_seconds();
    let run = job.run(&async |fabric| pairs(fabric, pairs_each).await)?;
    let cpu = cpu_seconds() - before;
    let stats = &run.stats;
    println!(
        "{name}: {} events, {} polls in {cpu:.2} CPU s: {:.2} M events/s, {:.0} ns per atomic; end {}; {} B/rank estimated, {:.0} B/rank resident at peak; hash {:016x}",
        stats.events,
        stats.polls,
        stats.events as f64 / cpu * 1e-6,
        cpu / stats.ops.atomics as f64 * 1e9,
        stats.end,
        stats.bytes_per_rank,
        peak_kib() * 1024.0 / ranks as f64,
        stats.trace_hash,
    );
    Ok(run)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let which = args.next().unwrap_or_else(|| "k".into());
    let platform = Platform::fx100();
    match which.as_str() {
        "k" => {
            let pairs_each = args.next().map_or(Ok(10), |n| n.parse())?;
            let job = Job::new(&platform, 663_552).ranks_per_node(8).torus(Torus::k_computer());
            report("k", 663_552, &job, pairs_each)?;
        }
        "hops" => {
            let pairs_each = args.next().map_or(Ok(1), |n| n.parse())?;
            let job = Job::new(&platform, 82_944).shape(System::K.shape()).folding(Folding::Snake);
            report("hops", 82_944, &job.network(NetworkModel::Router), pairs_each)?;
        }
        "lock" => {
            let pairs_each = args.next().map_or(Ok(1000), |n| n.parse())?;
            for ppn in [1, 8, 32] {
                let job = Job::new(&platform, 128 * ppn)
                    .ranks_per_node(ppn as u32)
                    .torus(Torus::new(&[2, 4, 16])?)
                    .network(NetworkModel::Router);
                let run = report(&format!("lock ppn {ppn}"), 128 * ppn, &job, pairs_each)?;
                let first = run.finish_times.iter().skip(1).min();
                println!("  first finisher {}", first.map_or(String::new(), ToString::to_string));
            }
        }
        "queues" => queues(&platform, args.next().map_or(Ok(20_000), |n| n.parse())?)?,
        other => return Err(format!("{other}: k, hops, lock or queues").into()),
    }
    Ok(())
}
