//! The speed of the virtual-time provider: every rank of a large machine locks and unlocks one
//! readers lock (two remote fetch-adds) several times, or keeps its control queues full.

use crate::{
    output::{Context, Output, Steps},
    quantity::Unit,
    report::VIRTUAL,
    sheet::{Entry, Sheet, ns, picos},
};
use clap::{Args, ValueEnum};
use fabric_offload::{
    ControlQueue,
    control_queue::{Command, Posting, QueueId, QueueMode, QueueSpec, Stadd},
};
use fmpl::{Fmpl, Op};
use rdma_fabric::{Amo, Deps, Fabric, Program, ProgramResult, Rank, RemoteAddr, Time, op};
use repro::{
    simulate::{BEGIN, cpu_seconds, peak_resident_bytes},
    workloads::{Together, reader_pairs},
};
use std::{error::Error, process::ExitCode, time::Duration};
use tofu2_sim::virt::{Folding, Job, NetworkModel, Platform, Stats, System, Torus};

/// The load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Load {
    /// 663,552 ranks on the K computer's 82,944 nodes, latency-only network, 10 pairs.
    K,
    /// The lock paper's job of that size: 5 pairs of [`reader_pairs`], as `cargo reproduce lock` runs them.
    Readers,
    /// FMPL on as many ranks: a barrier, a broadcast of 8 bytes, a sum, and N messages of 8 bytes around a ring.
    Messages,
    /// One rank on each of the K computer's nodes, Tofu's routes along a snake, routers, 1 pair.
    Hops,
    /// 128 nodes of FX100 with 1, 8 and 32 ranks each, routers, 1000 pairs.
    Lock,
    /// 512 nodes of FX100; each rank has a full session queue whose puts release each other across the whole machine,
    /// with notices. 20,000 commands per rank, latency-only network and routers. Also the memory of an open queue.
    Queues,
}

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(value_enum, default_value = "k")]
    load: Load,
    /// Pairs, or commands, of each rank.
    #[arg(value_name = "N")]
    each: Option<u32>,
    /// Ranks of the loads `k`, `readers` and `messages`.
    #[arg(long, default_value_t = 663_552, value_parser = clap::value_parser!(u32).range(2..=663_552))]
    ranks: u32,
    /// 8 ranks on each of 128 nodes and 10 pairs: a smoke test.
    #[arg(long, conflicts_with_all = ["load", "each"])]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let (platform, each) = (Platform::fx100(), |usual| options.each.unwrap_or(usual));
    let many = options.ranks as usize;
    options.output.sheets(Context::new("simulator", VIRTUAL, options.quick), |steps| {
        let mut sheet = loads();
        if options.quick {
            lock(&mut sheet, &platform, 8, 10)?;
            return Ok(vec![sheet]);
        }
        match options.load {
            Load::K => {
                let job = Job::new(&platform, many).ranks_per_node(8).torus(Torus::k_computer());
                simulate(&mut sheet, "k", many, &job, &of_pairs(each(10)))?;
            }
            Load::Readers => {
                let job = Job::new(&platform, many).ranks_per_node(8);
                simulate(&mut sheet, "readers", many, &job, &reader_pairs(each(5), TOGETHER))?;
            }
            Load::Messages => {
                let (job, each) = (Job::new(&platform, many).ranks_per_node(8), each(4));
                simulate(&mut sheet, "messages", many, &job, &async |fabric| messages(fabric, each).await)?;
            }
            Load::Hops => {
                let job = Job::new(&platform, 82_944).shape(System::K.shape()).folding(Folding::Snake);
                simulate(&mut sheet, "hops", 82_944, &job.network(NetworkModel::Router), &of_pairs(each(1)))?;
            }
            Load::Lock => {
                steps.expect(3);
                for ranks_per_node in [1, 8, 32] {
                    steps.begin(format_args!("{ranks_per_node} ranks on a node"));
                    lock(&mut sheet, &platform, ranks_per_node, each(1000))?;
                }
            }
            Load::Queues => return queues(&platform, each(20_000), steps),
        }
        Ok(vec![sheet])
    })
}

/// Returns a table for loads of pairs.
fn loads() -> Sheet {
    let figures = ["CPU of an atomic", "end", "first end", "bytes per rank", "resident per rank at peak"];
    Sheet::new("Ranks that lock and unlock", ["load"].into_iter().chain(SPEED).chain(figures))
}

const SPEED: [&str; 5] = ["events", "polls", "CPU", "events per s", "trace hash"];

/// Returns the entries of [`SPEED`].
fn speed(stats: &Stats, cpu: f64) -> [Entry; 5] {
    let rate = Entry::Figure(stats.events as f64 / cpu, Unit::Rate);
    [stats.events.into(), stats.polls.into(), ns(cpu * 1e9), rate, format!("{:016x}", stats.trace_hash).into()]
}

fn lock(sheet: &mut Sheet, platform: &Platform, ranks_per_node: usize, pairs: u32) -> Result<(), Box<dyn Error>> {
    let ranks = 128 * ranks_per_node;
    let job = Job::new(platform, ranks).ranks_per_node(ranks_per_node as u32).torus(Torus::new(&[2, 4, 16])?);
    let name = format!("lock, {ranks_per_node} ranks a node");
    simulate(sheet, &name, ranks, &job.network(NetworkModel::Router), &of_pairs(pairs))
}

/// All ranks begin after set-up and stay until all have finished, as in `cargo reproduce lock`.
const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

fn of_pairs(each: u32) -> impl Program<Out = ()> {
    async move |fabric| pairs(fabric, each).await
}

fn simulate<P: Program>(
    sheet: &mut Sheet,
    name: &str,
    ranks: usize,
    job: &Job<'_>,
    program: &P,
) -> Result<(), Box<dyn Error>> {
    let before = cpu_seconds();
    let run = job.run(program)?;
    let cpu = cpu_seconds() - before;
    let stats = &run.stats;
    let time = |at: rdma_fabric::Time| picos(at.as_picos());
    let figures = [
        ns(cpu / stats.ops.atomics as f64 * 1e9),
        time(stats.end),
        run.finish_times.iter().skip(1).min().map_or(Entry::None, |&first| time(first)),
        stats.bytes_per_rank.into(),
        Entry::figure(peak_resident_bytes().map(|peak| peak as f64 / ranks as f64), Unit::Bytes),
    ];
    sheet.row([name.into()].into_iter().chain(speed(stats, cpu)).chain(figures));
    Ok(())
}

fn queues(platform: &Platform, commands: u32, steps: &mut Steps) -> Result<Vec<Sheet>, Box<dyn Error>> {
    let ranks = 20_000;
    steps.expect(3);
    steps.begin("open queues");
    let idle = |queues| {
        let run = Job::new(platform, ranks).run(&async |fabric| idle_queues(fabric, queues).await);
        run.map(|run| run.stats.bytes_per_rank)
    };
    let (none, resident) = (idle(0)?, peak_resident_bytes());
    let some = idle(32)?;
    let columns = ["queues", "estimated, each", "resident at peak, each, node tables included"];
    let mut memory = Sheet::new("Open queues", columns);
    let grown = peak_resident_bytes().zip(resident).map(|(peak, before)| (peak - before) as f64 / (32 * ranks) as f64);
    let estimated = Entry::Figure(((some - none) / 32) as f64, Unit::Bytes);
    memory.row([(32 * ranks).into(), estimated, Entry::figure(grown, Unit::Bytes)]);
    let columns = ["network"].into_iter().chain(SPEED).chain(["commands", "CPU of a command"]);
    let mut sheet = Sheet::new("Queues that are full", columns);
    for (name, network) in [("latency", NetworkModel::Latency), ("routers", NetworkModel::Router)] {
        steps.begin(name);
        let job = Job::new(platform, 512).torus(Torus::new(&[8, 8, 8])?).network(network);
        let before = cpu_seconds();
        let stats = job.run(&async |fabric| full_queues(fabric, commands).await)?.stats;
        let cpu = cpu_seconds() - before;
        let visible = stats.commands.visible;
        let figures = [visible.into(), ns(cpu / visible as f64 * 1e9)];
        sheet.row([name.into()].into_iter().chain(speed(&stats, cpu)).chain(figures));
    }
    Ok(vec![memory, sheet])
}

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
            fabric.sleep(Duration::from_millis(1)).await;
            left = fabric.ranks() as u64 - 1 - (fabric.load(&own)? >> 32);
        }
    } else {
        drop(fabric.post(op::Atomic { word: &word, amo: Amo::Add(1 << 32) }).await?);
    }
    Ok(())
}

/// Runs one collective of each kind, and sends `each` messages to the next rank. Futures are boxed: a rank of the
/// simulator keeps room for the largest future that its program contains.
async fn messages(fabric: Fabric, each: u32) -> ProgramResult<()> {
    let fmpl = Fmpl::init(&fabric).await?;
    let world = fmpl.world();
    let (me, all) = (world.me(), world.len());
    // All values are integers, so sums are exact.
    let buffer = world.buffer::<f64>(1)?;
    Box::pin(world.barrier()).await?;
    fabric.write(&buffer, &[if me == 0 { 7.0 } else { 0.0 }])?;
    Box::pin(world.broadcast(&buffer, 0)).await?;
    Box::pin(world.allreduce(&buffer, Op::Sum)).await?;
    let (sum, mut word) = (7.0 * all as f64, [0.0]);
    for number in (0..each).map(f64::from) {
        let receive = Box::pin(world.irecv(&buffer, (me + all - 1) % all, 0)).await?;
        Box::pin(world.send(&[sum + number], (me + 1) % all, 0)).await?;
        Box::pin(receive.wait()).await?;
        fabric.read(&buffer, &mut word)?;
        if word != [sum + number] {
            return Err(format!("message {number} is {word:?}, not {}", sum + number).into());
        }
    }
    Ok(fmpl.finalize().await?)
}

/// Posts `commands` puts of 8 bytes on a full session queue. Each leaves a notice several hops away
/// and releases one put there; 8 puts of each rank are in flight at any time.
async fn full_queues(fabric: Fabric, commands: u32) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64).await?;
    let spec = QueueSpec { mrq_depth: 1 << 14, ..QueueSpec::new(QueueMode::Session) };
    let queue = ControlQueue::open(&fabric, spec.on(0).ahead(8).checked(false))?;
    queue.register_fixed(&home, 0)?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    fabric.sleep(Duration::from_micros(1)).await;
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
    fabric.sleep(Duration::from_millis(100)).await;
    Ok(())
}

/// Opens `queues` queues.
async fn idle_queues(fabric: Fabric, queues: usize) -> ProgramResult<()> {
    let open = (0..queues).map(|_| ControlQueue::open(&fabric, QueueSpec::new(QueueMode::Session)));
    let queues = open.collect::<Result<Vec<_>, _>>()?;
    fabric.sleep(Duration::from_micros(1)).await;
    drop(queues);
    Ok(())
}
