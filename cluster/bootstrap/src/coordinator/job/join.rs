//! Gathering the ranks of a job, and the reasons why that may fail.

use super::{Job, Order, Phase};
use crate::{End, Hello, Refusal, wire::Down};
use std::{collections::HashMap, net::SocketAddr, time::Instant};

/// The maximum number of missing ranks that are listed.
const NAMED: usize = 8;

impl Job {
    /// Returns the number of ranks that have not joined yet.
    pub(in super::super) fn awaited(&self) -> usize {
        match self.phase {
            Phase::Gathering => self.members.iter().filter(|member| member.hello.is_none()).count(),
            Phase::Standby => self.members.iter().filter(|member| member.line.is_none()).count(),
            _ => 0,
        }
    }

    /// Handles the hello of a process over the connection `token`, and returns whether it is part
    /// of the job now. Otherwise the reason has been sent over the connection.
    pub(super) fn join(&mut self, now: Instant, token: u64, hello: Hello, standby: Option<SocketAddr>) -> bool {
        let refusal = match &self.phase {
            Phase::Refused(refusal) => Some(refusal.clone()),
            Phase::Aborted(abort) => Some(Refusal::Aborted { text: abort.text.clone() }),
            Phase::Gathering | Phase::Standby | Phase::Running => self.mismatch(&hello),
        };
        let index = hello.rank as usize;
        if let Some(refusal) = refusal {
            self.orders.push_back(Order::Send(token, Down::Refused(refusal.clone()).frame()));
            self.orders.push_back(Order::CloseGently(token));
            self.refuse(refusal);
            if let Some(member) = self.members.get_mut(index)
                && member.end == Some(End::NeverCame)
            {
                member.end = Some(End::Refused);
                self.changed = true;
            }
            return false;
        }
        let member = &mut self.members[index];
        (member.hello, member.line, member.heard) = (Some(hello), Some(token), now);
        member.standby = standby;
        let noted = Down::Noted { ranks: self.plan.ranks, segment: self.plan.segment.len() };
        self.send(index, noted.frame());
        if self.awaited() == 0 {
            self.begin(now);
        }
        true
    }

    /// Returns why this process can't be part of the job.
    fn mismatch(&self, hello: &Hello) -> Option<Refusal> {
        let (rank, host, ranks) = (hello.rank, hello.host.clone(), self.plan.ranks);
        if hello.ranks != ranks {
            return Some(Refusal::OtherRanks { rank, host, theirs: hello.ranks, ours: ranks });
        }
        let Some(member) = self.members.get(rank as usize) else {
            return Some(Refusal::RankOutOfRange { rank, host, ranks });
        };
        if let Some(first) = &member.hello {
            return Some(Refusal::RankTaken { rank, first: first.host.clone(), second: host });
        }
        let first = self.members.iter().find_map(|member| member.hello.as_ref())?;
        let (other, other_host) = (first.rank, first.host.clone());
        if first.build != hello.build {
            let (build, other_build) = (hello.build.clone(), first.build.clone());
            return Some(Refusal::OtherBuild { rank, host, build, other, other_host, other_build });
        }
        if first.provider != hello.provider {
            let (provider, other_provider) = (hello.provider.clone(), first.provider.clone());
            return Some(Refusal::OtherProvider { rank, host, provider, other, other_host, other_provider });
        }
        None
    }

    /// Numbers the nodes and welcomes all ranks.
    fn begin(&mut self, now: Instant) {
        self.phase = Phase::Running;
        self.next_beat = now + self.plan.lease / 4;
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let (mut nodes, mut hosts) = (Vec::new(), Vec::new());
        for member in &mut self.members {
            let Some(hello) = &member.hello else { continue };
            let next = numbers.len() as u32;
            member.node = *numbers.entry(hello.node.clone()).or_insert(next);
            member.heard = now;
            if member.node == next {
                hosts.push(hello.host.clone());
            }
            nodes.push(member.node);
        }
        let age = now.saturating_duration_since(self.begun);
        let (lease, segment) = (self.plan.lease, self.plan.segment.clone());
        let (job, succession) = (self.number, self.plan.succession);
        let standbys = self.members.iter().map(|member| member.standby).collect();
        self.send_to_all(&Down::Welcome { nodes, hosts, age, job, lease, segment, succession, standbys });
    }

    /// Ends the join phase: all ranks that have joined receive the reason why the job can't start.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        if self.phase != Phase::Gathering {
            return;
        }
        self.send_to_all(&Down::Refused(refusal.clone()));
        for member in &mut self.members {
            member.end.get_or_insert(if member.hello.is_some() { End::Refused } else { End::NeverCame });
            self.orders.extend(member.line.take().map(Order::CloseGently));
        }
        self.changed = true;
        self.phase = Phase::Refused(refusal);
    }

    /// Ends the join phase because a rank has already ended.
    pub(super) fn refuse_died(&mut self, index: usize, text: String) {
        let member = &mut self.members[index];
        let host = member.hello.as_ref().map(|hello| hello.host.clone()).unwrap_or_default();
        member.end = Some(End::Lost(text.clone()));
        self.refuse(Refusal::Died { rank: index as u32, host, text });
    }

    /// Ends the join phase because its time limit has expired.
    pub(super) fn refuse_missing(&mut self) {
        let absent = self.members.iter().enumerate().filter(|(_, member)| member.hello.is_none());
        let absent: Vec<u32> = absent.map(|(index, _)| index as u32).collect();
        self.refuse(Refusal::Missing {
            count: absent.len(),
            first: absent.into_iter().take(NAMED).collect(),
            ranks: self.plan.ranks,
            within: self.plan.join_within,
        });
    }
}
