//! Facts that the paper states about Tofu2, observed in jobs.

use super::{Pattern, PrdmaPlan, runs::TOGETHER};
use crate::{
    ReproError,
    shape::Shape,
    simulate::{BEGIN, JobRecord, Runner, Setting},
    workloads::{
        Exchange, Kept, exchanges,
        machine::{Transfers, queues, transfers},
    },
};
use prdma_offload::{EndOfData, Form};
use tofu2_sim::virt::{Released, SeenCommand, Timeline, TofuShape, TopologyError};

/// Observed facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The links of a router: nodes at a distance of one hop.
    pub links: usize,
    /// Bytes per second over a link, headers of packets included.
    pub link_rate: f64,
    /// The number of transfers with different neighbours, each way, that take as long as one.
    pub at_once: usize,
    /// The control queues of an engine.
    pub queues_per_engine: f64,
    /// The control queues that each of two ranks of a node could open.
    pub queues_of_two: [usize; 2],
    /// Whether no command of an exchange started before it was released.
    pub session_rule: bool,
    /// The jobs.
    pub jobs: Vec<JobRecord>,
}

/// The most neighbours with which rank 0 exchanges at once.
const MOST: usize = 6;
/// The number of jobs.
pub(super) const JOBS: usize = 2 + MOST + 2 + 1;

/// The smallest job in which all links of a router lead to different nodes, inside the mesh of Y.
const GROUPS: [u32; 3] = [3, 3, 3];
/// Bytes of a transfer. They take many times as long as the latency.
const BYTES: usize = 256 << 10;

pub(super) fn run(plan: &PrdmaPlan, runner: &mut Runner<'_>) -> Result<Machine, ReproError> {
    let platform = &plan.platform;
    let constant = |name| platform.value(name).unwrap_or(0);
    let engines = constant("engines").clamp(1, 255) as u8;
    let shape = Shape::tofu(GROUPS);
    let on_groups = || Setting::routed(platform.clone(), shape.nodes(), 1, shape, plan.seed);
    let mut jobs = Vec::with_capacity(JOBS);

    let open = runner.run("queues of a rank".into(), on_groups(), &async |fabric| queues(fabric).await)?;
    let neighbours = open.hops_to_first.iter().zip(0..).filter(|(hops, _)| **hops == 1).map(|(_, rank)| rank);
    let neighbours: Vec<u32> = neighbours.collect();
    let of_first = open.outs.first().copied().unwrap_or_default();
    jobs.push(open.job);
    let two = Setting::latency(platform.clone(), 2, 2, plan.seed);
    let of_two = runner.run("queues of two ranks".into(), two, &async |fabric| queues(fabric).await)?;
    let queues_of_two = [0, 1].map(|rank| of_two.outs[rank].queues);
    jobs.push(of_two.job);

    // Seconds of the slowest rank.
    let mut timed = |label: String, partners: &[u32], bytes| {
        let what = Transfers { partners: partners.to_vec(), bytes, engines };
        let done = runner.run(label, on_groups(), &async |fabric| transfers(fabric, what.clone(), TOGETHER).await)?;
        jobs.push(done.job);
        Ok::<_, ReproError>(done.outs.iter().copied().max().unwrap_or(0) as f64 * 1e-12)
    };
    let mut times = Vec::with_capacity(MOST);
    for many in 1..=MOST {
        let partners = &neighbours[..many.min(neighbours.len())];
        times.push(timed(format!("transfers at once: {many} each way"), partners, BYTES)?);
    }
    let at_once = times.iter().take_while(|time| **time < 1.5 * times[0]).count();
    let one_link = vec![neighbours.first().copied().unwrap_or(1); usize::from(engines)];
    let short = timed("one link, four engines".into(), &one_link, BYTES)?;
    let long = timed("one link, four engines, twice the bytes".into(), &one_link, 2 * BYTES)?;
    let header = constant("packet_overhead") as f64 / constant("packet_payload") as f64;
    let link_rate = f64::from(engines) * BYTES as f64 * (1.0 + header) / (long - short);

    let (followed, job) = session_rule(plan, runner)?;
    jobs.push(job);
    Ok(Machine {
        links: links().map_err(|error| ReproError::Network { stage: "links of a router".into(), error })?,
        link_rate,
        at_once,
        queues_per_engine: of_first.queues as f64 / of_first.engines as f64,
        queues_of_two,
        session_rule: followed,
        jobs,
    })
}

/// Returns the number of nodes at a distance of one hop from the node that has most of them.
fn links() -> Result<usize, TopologyError> {
    let shape = TofuShape::of_groups(GROUPS)?;
    let nodes = 0..shape.nodes();
    let adjacent = |one: u32| -> Result<usize, TopologyError> {
        let hops = nodes.clone().map(|other| shape.hops(one, other, None));
        Ok(hops.collect::<Result<Vec<u32>, _>>()?.into_iter().filter(|hops| *hops == 1).count())
    };
    let each = nodes.clone().map(adjacent).collect::<Result<Vec<usize>, _>>()?;
    Ok(each.into_iter().max().unwrap_or(0))
}

/// Runs some iterations of the MRC form, and checks its commands.
fn session_rule(plan: &PrdmaPlan, runner: &mut Runner<'_>) -> Result<(bool, JobRecord), ReproError> {
    let shape = Pattern::Line.shape();
    let exchange = Exchange {
        grid: Pattern::Line.grid(),
        periodic: true,
        corners: false,
        form: Form::Mrc,
        end: EndOfData::WithData,
        kept: Kept::Persistent,
        sizes: vec![PrdmaPlan::IN_SPACE],
        warm_up: 0,
        iterations: 3,
    };
    let setting = Setting::routed(plan.platform.clone(), shape.nodes(), 1, shape, plan.seed);
    let setting = Setting { timeline: Some((Timeline::ENTRIES, BEGIN)), ..setting };
    let label = "session mode: commands and their releases".to_owned();
    let done = runner.run(label, setting, &async |fabric| exchanges(fabric, exchange.clone(), TOGETHER).await)?;
    Ok((done.timeline.is_some_and(|timeline| is_followed(&timeline)), done.job))
}

/// Returns whether each command that waited was released by an arrived put with an SPS field, and
/// started no earlier. Timelines without such commands are no evidence.
fn is_followed(timeline: &Timeline) -> bool {
    let commands = timeline.commands();
    let mut waited = commands.iter().filter_map(|command| match command.released {
        Released::AtOnce => None,
        Released::By(by) => Some((command, by.and_then(|by| commands.get(by)))),
    });
    let follows = |(command, by): (&SeenCommand, Option<&SeenCommand>)| {
        by.filter(|by| by.posting.sps > 0).and_then(|by| Some(command.started? >= by.arrived?)).unwrap_or(false)
    };
    waited.next().is_some_and(&follows) && waited.all(follows)
}
