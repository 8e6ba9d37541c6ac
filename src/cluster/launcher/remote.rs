//! Ranks on other hosts: an ssh process for each host, and the agent that it started there.

use super::{
    end::RankEnd,
    error::HostsError,
    frames::{Order, Report},
    hosts::Share,
    pipes::{Event, read_reports, write_orders},
    plan::AgentPlan,
    remote_input,
    spawn::spawn,
    ssh,
    ssh_stderr::SshStderr,
};
use crate::{cluster::STEP, observing, report::emit};
use bootstrap::{Secret, ThisProgram};
use rustix::process::Signal;
use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, BufReader},
    net::SocketAddr,
    ops::Range,
    process::Child,
    sync::mpsc::{Receiver, Sender, channel},
    thread,
    time::{Duration, Instant},
};

/// Time limit for ssh to connect.
const CONNECT: Duration = Duration::from_secs(10);
/// Time limit for ssh to end after its host has sent all reports.
const END: Duration = Duration::from_secs(2);

/// The parameters of agents.
pub(super) struct Job<'a> {
    pub(super) ranks: usize,
    pub(super) coordinator: SocketAddr,
    pub(super) secret: &'a Secret,
    pub(super) lease: Duration,
    /// Further variables for ranks.
    pub(super) env: &'a [(String, OsString)],
    /// The variable that specifies for ranks of this machine which records to write, and where.
    pub(super) records: Option<(&'static str, OsString)>,
}

struct RemoteHost {
    host: String,
    share: Range<u32>,
    child: Child,
    /// Orders for the agent; dropped to end it.
    orders: Option<Sender<Order>>,
    said: Option<SshStderr>,
    started: Instant,
    begun: bool,
    /// All reports of the agent have arrived.
    done: bool,
    closed: Option<Instant>,
    /// The ssh process has ended.
    over: bool,
    running: BTreeSet<u32>,
}

/// The ranks of a job on several hosts.
pub(super) struct RemoteRanks {
    hosts: Vec<RemoteHost>,
    events: Receiver<(usize, Event)>,
    /// Notified when rank 0 has taken a piece of input.
    taken: Sender<()>,
    program: ThisProgram,
    records: Option<(&'static str, OsString)>,
}

impl RemoteRanks {
    /// Starts an agent on each host.
    pub(super) fn start(shares: &[Share], job: &Job<'_>) -> Result<Self, HostsError> {
        let command = || ssh::words().join(" ".as_ref()).to_string_lossy().into_owned();
        let no_ssh = |cause| HostsError::NoSsh { command: command(), cause };
        let no_thread = |cause| HostsError::Launcher { cause };
        let program = ThisProgram::find().map_err(no_ssh)?;
        let (tell, events) = channel();
        let (taken, wait_taken) = channel();
        let records = job.records.clone();
        let mut remote = RemoteRanks { hosts: Vec::new(), events, taken, program, records };
        for (index, share) in shares.iter().enumerate() {
            let plan = remote.plan(share, job);
            let mut command = ssh::command(&share.host, &plan, &remote.program, job.env, CONNECT, job.lease);
            remote.hosts.push(RemoteHost::new(share, command.spawn().map_err(no_ssh)?));
            remote.hosts[index].begin(index, job, tell.clone()).map_err(no_thread)?;
        }
        if let Some(orders) = remote.hosts.first().and_then(|host| host.orders.clone()) {
            remote_input::pass_on(orders, wait_taken).map_err(no_thread)?;
        }
        Ok(remote)
    }

    fn plan(&self, share: &Share, job: &Job<'_>) -> AgentPlan {
        AgentPlan {
            ranks: job.ranks,
            share: share.ranks.clone(),
            coordinator: job.coordinator,
            silence: job.lease,
            records: job.records.as_ref().map(|(_, value)| observing::what_to_record(value)),
        }
    }

    /// Returns the host of a rank.
    pub(super) fn host_of(&self, rank: u32) -> Option<&str> {
        self.hosts.iter().find(|host| host.share.contains(&rank)).map(|host| &*host.host)
    }

    /// Returns the ranks that have ended since the last call.
    pub(super) fn look(&mut self) -> Result<Vec<(u32, RankEnd)>, HostsError> {
        let mut ended = Vec::new();
        while let Ok((index, event)) = self.events.try_recv() {
            self.receive(index, event, &mut ended)?;
        }
        for host in self.hosts.iter_mut().filter(|host| !host.over) {
            host.look(&self.program, &mut ended)?;
        }
        Ok(ended)
    }

    fn receive(&mut self, index: usize, event: Event, ended: &mut Vec<(u32, RankEnd)>) -> Result<(), HostsError> {
        let host = &mut self.hosts[index];
        match event {
            Event::Began => {
                host.begun = true;
                host.said.as_ref().map(SshStderr::begun);
            }
            Event::Closed => host.closed = Some(Instant::now()),
            Event::Told(Report::Ended(rank, end)) => {
                if host.running.remove(&rank) {
                    ended.push((rank, end));
                }
            }
            Event::Told(Report::InputTaken) => _ = self.taken.send(()),
            Event::Told(Report::Record(rank, bytes)) => {
                if let Some((_, value)) = &self.records
                    && let Err(error) = observing::bring_home(value, rank, &bytes)
                {
                    emit(format_args!("error: {error}"));
                }
            }
            Event::Told(Report::Failed(problem)) => {
                return Err(HostsError::Start { host: host.host.clone(), problem });
            }
            Event::Told(Report::Done) => host.done = true,
            Event::Told(Report::Out(_) | Report::Err(_)) => {}
        }
        Ok(())
    }

    /// Requests the end of the running ranks.
    pub(super) fn send(&mut self, signal: Signal) {
        for host in &self.hosts {
            let order = if signal == Signal::KILL { Order::Kill } else { Order::Terminate };
            let _ = host.orders.as_ref().map(|orders| orders.send(order));
        }
    }

    /// Gives up hosts that do not answer: ends the ssh processes. An agent that notices this ends
    /// its ranks; one that only receives no more frames becomes alone, and leaves them to decide.
    pub(super) fn abandon(&mut self) {
        for host in self.hosts.iter_mut().filter(|host| !host.over) {
            let _ = host.child.kill();
        }
    }

    /// Waits until the agents, whose ranks have ended, have sent all reports.
    pub(super) fn finish(&mut self) {
        let until = Instant::now() + STEP;
        while self.hosts.iter().any(|host| !host.done && !host.over) && Instant::now() < until {
            if self.look().is_err() {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl RemoteHost {
    fn new(share: &Share, child: Child) -> Self {
        RemoteHost {
            host: share.host.clone(),
            share: share.ranks.clone(),
            child,
            orders: None,
            said: None,
            started: Instant::now(),
            begun: false,
            done: false,
            closed: None,
            over: false,
            running: share.ranks.clone().collect(),
        }
    }

    /// Starts the communication with the agent.
    fn begin(&mut self, index: usize, job: &Job<'_>, tell: Sender<(usize, Event)>) -> io::Result<()> {
        self.said = Some(SshStderr::of(&self.host, self.child.stderr.take())?);
        let (orders, to_write) = channel();
        let _ = orders.send(Order::Secret(job.secret.to_hex()));
        self.orders = Some(orders);
        if let Some(stdin) = self.child.stdin.take() {
            let beat = (job.lease / 4).max(Duration::from_millis(10));
            spawn("orders to a host", move || write_orders(stdin, &to_write, beat))?;
        }
        if let Some(stdout) = self.child.stdout.take() {
            let read = move || read_reports(BufReader::new(stdout), &|event| _ = tell.send((index, event)));
            spawn("reports of a host", read)?;
        }
        Ok(())
    }

    fn said(&self) -> String {
        self.said.as_ref().map(SshStderr::text).unwrap_or_default()
    }

    fn look(&mut self, program: &ThisProgram, ended: &mut Vec<(u32, RankEnd)>) -> Result<(), HostsError> {
        let host = || self.host.clone();
        if !self.begun && self.closed.is_none() && self.started.elapsed() > STEP {
            return Err(HostsError::Silent { host: host(), within: STEP, said: self.said() });
        }
        let Some(closed) = self.closed else { return Ok(()) };
        let status = match self.child.try_wait() {
            Ok(Some(status)) => RankEnd::from(status),
            _ if closed.elapsed() > END => {
                let _ = self.child.kill();
                let _ = self.child.wait();
                RankEnd::Killed(9)
            }
            _ => return Ok(()),
        };
        self.over = true;
        self.said.as_mut().map(SshStderr::finish);
        let said = self.said();
        if !self.begun {
            return Err(match status.code() {
                255 => HostsError::Unreachable { host: host(), said },
                126 | 127 => HostsError::NoProgram { host: host(), program: program.file().to_owned(), said },
                code => HostsError::NoAgent { host: host(), code, said },
            });
        }
        let why = format!("host {} is not heard of any more", self.host);
        ended.extend(std::mem::take(&mut self.running).into_iter().map(|rank| (rank, RankEnd::Unheard(why.clone()))));
        Ok(())
    }
}

impl Drop for RemoteRanks {
    /// Ends the remaining agents, which end their ranks.
    fn drop(&mut self) {
        for orders in self.hosts.iter_mut().filter_map(|host| host.orders.take()) {
            // The thread that reads this process's input also holds a sender of orders, so the
            // channel may stay open.
            let _ = orders.send(Order::Kill);
        }
        let until = Instant::now() + END / 2;
        for host in self.hosts.iter_mut().filter(|host| !host.over) {
            while matches!(host.child.try_wait(), Ok(None)) && Instant::now() < until {
                thread::sleep(Duration::from_millis(2));
            }
            let _ = host.child.kill();
            let _ = host.child.wait();
        }
    }
}
