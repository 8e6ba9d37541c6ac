//! A rank of a job of several processes: from the search for the coordinator to the end.

use super::{
    STEP,
    deadlock::Watch,
    failed, identity, meet,
    membership::{self, Membership, Recipient},
};
#[cfg(feature = "ofi")]
use crate::report::emit;
use crate::{AtomicsBy, Launch, observing, report::LaunchError, settings::setting};
use bootstrap::{Cluster, Found, Hello, Patience, SecretAt, Session};
use rdma_fabric::{Fabric, Program, ProgramResult, Rank};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::{
    hash::{DefaultHasher, Hash, Hasher},
    thread,
    time::Duration,
};
use tofu2_sim::{
    JobError,
    shm::part::{Part, PartPlan, bind_this_thread},
};

/// Time limit for the operations that a rank has posted, after its program has ended.
#[cfg(feature = "ofi")]
const QUIESCE: Duration = Duration::from_secs(30);

/// Runs `program` as the rank of the job that this process was started for.
pub(crate) fn run<P: Program>(launch: &Launch, found: &Found, program: &P) -> Result<(), LaunchError> {
    run_with(launch, found, |rank| rank.run(program))
}

/// Calls `rank` as the rank of the job that this process was started for, with its bare fabric.
pub(crate) fn run_shared(
    launch: &Launch,
    found: &Found,
    rank: &dyn Fn(Fabric) -> ProgramResult<()>,
) -> Result<(), LaunchError> {
    run_with(launch, found, |job| job.run_shared(rank))
}

fn run_with(
    launch: &Launch,
    found: &Found,
    program: impl FnOnce(&RankOfJob) -> (Result<(), LaunchError>, bool),
) -> Result<(), LaunchError> {
    let refused = told_by_launcher(launch, found);
    let met = meet(launch, found)?;
    let membership = membership::new();
    let hello = Hello {
        rank: met.rank,
        ranks: met.ranks,
        build: identity::build()?,
        provider: network(launch),
        host: identity::host(),
        node: identity::node(launch, met.rank)?,
    };
    let heard = membership.clone();
    let patience = Patience { within: STEP * 3, refused };
    let session = Session::join(met.address, &met.secret, hello, patience, move |speaker, event| {
        heard.receive(speaker, event);
    })
    .map_err(|error| failed(&error))?;
    let rank = RankOfJob::become_of(launch, &session, &membership, &met)?;
    let watch = launch.stuck_after.map(|bound| Watch::start(bound, &membership, session.speaker()));
    let (ended, quiesced) = program(&rank);
    drop(watch);
    membership.print_deadlock();
    rank.report_counters(launch);
    match (rank.part.abort(), &ended) {
        // If all ranks share memory, no other component has notified the coordinator.
        (Some(JobError::Aborted { rank, text, code }), _) if rank.number() == met.rank => {
            _ = session.abort(code, &text);
        }
        (_, Ok(())) => {
            session.left().map_err(|error| failed(&error))?;
            // Its memory stays available to the others until all have ended. The wait is repeated
            // after an hour, and fails when the coordinator is lost.
            while session.wait_all_ended(Duration::from_secs(3600)).is_err_and(|error| is_late(&error)) {}
        }
        (_, Err(error)) if quiesced => _ = session.lost(&error.to_string()),
        // One of its operations is in flight: its connection breaks off, as if it had been killed,
        // so all others drain before the loss is reported to them.
        (_, Err(_)) => {}
    }
    membership.leave();
    drop(rank);
    ended
}

/// Returns how long the coordinator may refuse connections. If this program's own launcher has
/// started this process, its coordinator listened before. A refusal then means that the coordinator
/// has ended, and this process ends with it: immediately if the system supports that, otherwise
/// after a lease.
fn told_by_launcher(launch: &Launch, found: &Found) -> Duration {
    match found {
        Found::Cluster(Cluster { secret: SecretAt::Stdin, .. }) => {
            // If this call fails, the broken connection reveals the end of the launcher.
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            launch.lease
        }
        _ => STEP * 3,
    }
}

fn is_late(error: &bootstrap::Error) -> bool {
    matches!(error, bootstrap::Error::NotEnded { .. })
}

/// The rank, with its memory.
struct RankOfJob {
    part: Part,
    fabric: Fabric,
    #[cfg(feature = "ofi")]
    member: Option<std::sync::Arc<fabric_ofi::cluster::Member>>,
}

impl RankOfJob {
    fn become_of(
        launch: &Launch,
        session: &Session,
        membership: &Membership,
        met: &bootstrap::Rendezvous,
    ) -> Result<Self, LaunchError> {
        let welcome = session.welcome();
        let nodes = &welcome.nodes;
        let own = nodes.get(met.rank as usize).copied().unwrap_or(0);
        let local =
            (0..met.ranks as u32).filter(|rank| nodes[*rank as usize] == own).map(Rank::new).collect::<Vec<_>>();
        let host = |node: u32| welcome.hosts.get(node as usize);
        let on_machine = (0..met.ranks).filter(|rank| nodes.get(*rank).is_some_and(|node| host(*node) == host(own)));
        let on_machine: Vec<usize> = on_machine.collect();
        let plan = PartPlan {
            ranks: met.ranks,
            me: Rank::new(met.rank),
            segment_bytes: segment_bytes(&welcome.segment)?,
            age: welcome.age + welcome.arrived.elapsed(),
            oversubscribed: on_machine.len() > thread::available_parallelism().map_or(1, usize::from),
            local,
        };
        if let Some(nth) = on_machine.iter().position(|rank| *rank == met.rank as usize) {
            bind_this_thread(launch.bind, nth, on_machine.len())?;
        }
        alone_on_its_node(launch, own, &plan.local)?;
        let number = welcome.job.wrapping_add(u64::from(own));
        let secret = secret_of_node(&met.secret.to_hex());
        let leads = plan.local.first() == Some(&plan.me);
        let part = if leads {
            Part::lead(&plan, number, secret)
        } else {
            Part::join_while(&plan, number, secret, &|| membership.can_begin())
        }?;
        let several = nodes.iter().any(|node| *node != own);
        let rank =
            if several { Self::among(launch, session, membership, part)? } else { Self::alone(membership, part) };
        // No program starts before all ranks can be reached.
        session.exchange(&[], STEP).map_err(|error| failed(&error))?;
        Ok(rank)
    }

    fn alone(membership: &Membership, part: Part) -> Self {
        membership.set_recipient(Recipient::SingleNode(part.clone()));
        RankOfJob {
            fabric: part.fabric(),
            part,
            #[cfg(feature = "ofi")]
            member: None,
        }
    }

    #[cfg(feature = "ofi")]
    fn among(launch: &Launch, session: &Session, membership: &Membership, part: Part) -> Result<Self, LaunchError> {
        let domain = super::network::domain(launch)?;
        let nodes = session.welcome().nodes.clone();
        let voice = membership::Voice(session.speaker().clone());
        let atomics = match launch.atomics {
            AtomicsBy::Cpu => fabric_ofi::cluster::AtomicsBy::Cpu,
            AtomicsBy::Nic => fabric_ofi::cluster::AtomicsBy::Nic,
        };
        let joined = fabric_ofi::cluster::Member::join(part.clone(), domain, nodes, atomics, voice);
        let (member, contact) = joined.map_err(|error| failed(&error))?;
        let contacts = session.exchange(&contact, STEP).map_err(|error| failed(&error))?;
        let contacts: Vec<_> = contacts.into_iter().map(Some).collect();
        member.connect(&contacts).map_err(|error| failed(&error))?;
        let member = std::sync::Arc::new(member);
        membership.set_recipient(Recipient::Cluster(member.clone()));
        Ok(RankOfJob { part, fabric: member.fabric(), member: Some(member) })
    }

    #[cfg(not(feature = "ofi"))]
    fn among(_: &Launch, session: &Session, _: &Membership, _: Part) -> Result<Self, LaunchError> {
        let hosts = session.welcome().hosts.join(", ");
        Err(failed(&format_args!(
            "the job's ranks are on several nodes ({hosts}), which needs the feature `ofi` of the crate `onesided`"
        )))
    }

    /// Runs a program. Also returns whether all operations that it posted have completed.
    #[cfg(feature = "ofi")]
    fn run<P: Program>(&self, program: &P) -> (Result<(), LaunchError>, bool) {
        match &self.member {
            None => (observing::run_over(&self.part, self.fabric.clone(), program), true),
            Some(member) => {
                let program = member.with_shutdown(program, QUIESCE);
                (observing::run_over(&self.part, self.fabric.clone(), &program), self.quiesce())
            }
        }
    }

    /// Runs a program. All operations that it posted have completed afterwards.
    #[cfg(not(feature = "ofi"))]
    fn run<P: Program>(&self, program: &P) -> (Result<(), LaunchError>, bool) {
        (observing::run_over(&self.part, self.fabric.clone(), program), true)
    }

    /// Calls a rank with its own runtime. Also returns whether all operations that it posted have
    /// completed.
    fn run_shared(&self, rank: &dyn Fn(Fabric) -> ProgramResult<()>) -> (Result<(), LaunchError>, bool) {
        observing::leave_out(&self.fabric);
        let ended = self.part.run_with(self.fabric.clone(), |fabric| {
            let ended = rank(fabric);
            self.quiesce();
            ended
        });
        (ended.map_err(LaunchError::from), self.quiesce())
    }

    /// Waits until all operations that the rank posted have completed; prints an error if they do
    /// not.
    fn quiesce(&self) -> bool {
        #[cfg(feature = "ofi")]
        if let Some(member) = &self.member
            && !member.quiesce(QUIESCE)
        {
            emit("error: what this rank has posted did not come to its end");
            return false;
        }
        true
    }

    /// Prints the numbers of operations over the network, if they were requested.
    fn report_counters(&self, launch: &Launch) {
        #[cfg(feature = "ofi")]
        if let Some(member) = self.member.as_ref().filter(|_| observing::wants_counters(launch)) {
            let all = member.counters();
            let (writes, reads, messages, served) = (all.writes, all.reads, all.messages, all.served);
            let atomics = match launch.atomics {
                AtomicsBy::Cpu => String::new(),
                AtomicsBy::Nic => format!(" {} atomics,", all.atomics),
            };
            emit(format_args!(
                "over libfabric: {writes} fi_write, {reads} fi_read,{atomics} {messages} messages, {served} requests served"
            ));
        }
        #[cfg(not(feature = "ofi"))]
        let _ = launch;
    }
}

fn segment_bytes(bytes: &[u8]) -> Result<usize, LaunchError> {
    let number = bytes.try_into().map(u64::from_le_bytes).ok().and_then(|bytes| usize::try_from(bytes).ok());
    let malformed = || setting("segment", "the job's coordinator does not say how much memory a rank has".to_owned());
    number.ok_or_else(|| JobError::from(malformed()).into())
}

/// Returns the secret with which ranks of a node obtain their memory, which differs from the job's.
fn secret_of_node(secret: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    ("memory of a node", secret).hash(&mut hasher);
    hasher.finish()
}

/// Returns the part of the options that must be the same on all ranks, which can't communicate
/// otherwise.
fn network(launch: &Launch) -> String {
    match launch.atomics {
        AtomicsBy::Cpu => launch.ofi.clone(),
        AtomicsBy::Nic => format!("{} with atomics of its own", launch.ofi),
    }
}

/// Checks that this rank shares its memory with no other rank if the network's atomics are used.
/// Other nodes check the same when they join.
fn alone_on_its_node(launch: &Launch, node: u32, local: &[Rank]) -> Result<(), LaunchError> {
    match local {
        [first, second, ..] if launch.atomics == AtomicsBy::Nic => Err(failed(&format_args!(
            "`--atomics nic` needs one rank on each node: ranks {} and {} are both on node {node}; \
             `--on-node ofi` makes each rank a node of its own",
            first.number(),
            second.number()
        ))),
        _ => Ok(()),
    }
}
