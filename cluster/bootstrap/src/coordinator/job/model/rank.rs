//! A rank of the model.

use super::{LEASE, Link, Place, RunMutant, World};
use crate::{
    Succession,
    coordinator::job::Phase,
    session::{
        memory::Memory,
        search::{CoordinatorSearch, Step},
    },
    wire::{Down, Frame, Up},
};
use std::time::Instant;

/// The state of a rank.
enum State {
    /// It has a coordinator, over this connection.
    Member(u64),
    Seeking(Box<Search>),
    Ended,
}

struct Search {
    search: CoordinatorSearch,
    candidates: Vec<u32>,
    /// The standbys that were asked and have not answered.
    asked: Vec<usize>,
    /// The connection over which it has voted.
    vote: Option<(u64, usize)>,
    dead: Vec<u32>,
}

/// A rank.
pub(super) struct Rank {
    pub(super) memory: Memory,
    state: State,
    heard: Instant,
    beaten: Instant,
    /// The rank whose process runs the coordinator, if the coordinator was elected.
    host: Option<u32>,
}

impl Rank {
    pub(super) fn new(rank: u32, nodes: &[u32], now: Instant) -> Self {
        let state = State::Member(u64::from(rank) + 1);
        Self { memory: Memory::new(rank, nodes.into()), state, heard: now, beaten: now, host: None }
    }

    /// Ends it; returns whether it was running.
    pub(super) fn end(&mut self) -> bool {
        !matches!(std::mem::replace(&mut self.state, State::Ended), State::Ended)
    }

    pub(super) fn runs(&self) -> bool {
        !matches!(self.state, State::Ended)
    }

    pub(super) fn is_member_over(&self) -> Option<u64> {
        if let State::Member(token) = self.state { Some(token) } else { None }
    }
}

impl World {
    fn send(&mut self, token: u64, up: Up) {
        self.links.get_mut(&token).into_iter().for_each(|link| link.up.push_back(Some(up.clone())));
    }

    /// Delivers a message, or the end of its connection, to a rank.
    pub(super) fn on_message(&mut self, rank: u32, token: u64, down: Option<(Down, Frame)>) {
        let this = &mut self.ranks[rank as usize];
        let wanted = match &this.state {
            State::Member(own) => *own == token,
            State::Seeking(search) => search.vote.is_some_and(|(vote, _)| vote == token),
            State::Ended => false,
        };
        if !wanted {
            if self.mutant == Some(RunMutant::AnswersBoth) && this.runs() {
                self.answer(token, down.map(|(down, _)| down));
            }
            return;
        }
        this.heard = self.now;
        if let State::Seeking(search) = &mut this.state {
            let Some((_, index)) = search.vote else { return };
            match down {
                Some((Down::Elected, _)) => {
                    let host = search.candidates[index];
                    (this.host, this.state) = (Some(host), State::Member(token));
                    if host != rank {
                        self.shut_own(rank);
                    }
                }
                Some((Down::Dismissed { .. }, _)) => self.kill(rank),
                _ => {
                    search.search.gone(index);
                    search.vote = None;
                }
            }
            return;
        }
        let Some((down, frame)) = down else {
            let again = this.host.is_some() || self.succession == Succession::AfterAnyEnd;
            return if again { self.begin_search(rank, true) } else { self.kill(rank) };
        };
        this.memory.note(&down, &frame[4..]);
        match down {
            Down::Dismissed { .. } | Down::Aborted { .. } | Down::AllEnded => self.kill(rank),
            other => self.answer(token, Some(other)),
        }
    }

    fn answer(&mut self, token: u64, down: Option<Down>) {
        match down {
            Some(Down::Drain { epoch, .. }) => self.send(token, Up::Drained { epoch }),
            Some(Down::Reopen { epoch }) => self.send(token, Up::Reopened { epoch, contact: Vec::new() }),
            _ => {}
        }
    }

    fn shut_own(&mut self, rank: u32) {
        let own: Vec<usize> = (0..self.places.len()).filter(|it| self.places[*it].rank == Some(rank)).collect();
        own.into_iter().for_each(|place| self.shut(place));
    }

    /// Makes a rank that has lost its coordinator seek another one.
    fn begin_search(&mut self, rank: u32, ended: bool) {
        let Some(token) = self.ranks[rank as usize].is_member_over() else { return };
        match self.mutant {
            Some(RunMutant::AnswersBoth) => {}
            Some(RunMutant::EndsConnections) => {
                self.links.get_mut(&token).into_iter().for_each(|link| link.up.push_back(None))
            }
            _ if ended => {}
            _ => self.send(token, Up::Deserts),
        }
        self.shut_own(rank);
        self.start_standby(rank);
        let this = &self.ranks[rank as usize];
        let nodes = &this.memory.nodes;
        let (own, host) = (nodes[rank as usize], this.host);
        let certain = |other: &u32| {
            let node = nodes[*other as usize];
            !self.ranks[*other as usize].runs()
                && (node == own || ended && host == Some(*other) && self.reach(own, node))
        };
        let dead = this.memory.running().filter(certain).collect();
        let candidates = this.memory.candidates();
        let search = CoordinatorSearch::new(candidates.len(), LEASE, self.now);
        let search = Search { search, candidates, asked: Vec::new(), vote: None, dead };
        self.ranks[rank as usize].state = State::Seeking(Box::new(search));
    }

    /// Performs the actions of a rank that are due.
    pub(super) fn tick(&mut self, rank: u32) {
        let now = self.now;
        let this = &mut self.ranks[rank as usize];
        match &this.state {
            State::Ended => {}
            State::Member(token) => {
                let token = *token;
                if now - this.heard > LEASE * 9 / 8 {
                    return self.begin_search(rank, false);
                }
                if now - this.beaten >= LEASE / 4 {
                    this.beaten = now;
                    self.send(token, Up::Beat);
                }
            }
            State::Seeking(_) => self.search(rank),
        }
    }

    fn search(&mut self, rank: u32) {
        self.receive_answers(rank);
        loop {
            let now = self.now;
            let State::Seeking(search) = &mut self.ranks[rank as usize].state else { return };
            match search.search.next(now) {
                Step::Dial(index) => search.asked.push(index),
                Step::Vote(index) => {
                    let before = search.vote.take();
                    let (host, dead) = (search.candidates[index], search.dead.clone());
                    before.into_iter().for_each(|(token, _)| self.send(token, Up::Deserts));
                    let Some(place) = self.standby_of(host) else { return };
                    let token = self.links.last_key_value().map_or(1, |(last, _)| last + 1);
                    let vote = Up::Vote(self.ranks[rank as usize].memory.vote(dead, 0));
                    let up = [Some(vote)].into();
                    self.links.insert(token, Link { place, rank, up, down: [].into(), closed: false });
                    let State::Seeking(search) = &mut self.ranks[rank as usize].state else { return };
                    search.vote = Some((token, index));
                }
                Step::GiveUp => {
                    if let Some((token, _)) = search.vote {
                        self.send(token, Up::Deserts);
                    }
                    return self.kill(rank);
                }
                Step::Wait(_) => return,
            }
        }
    }

    /// Delivers the answers of the standbys that a rank has asked and can reach.
    fn receive_answers(&mut self, rank: u32) {
        let State::Seeking(search) = &self.ranks[rank as usize].state else { return };
        let nodes = self.ranks[rank as usize].memory.nodes.clone();
        let mut answers = Vec::new();
        for index in &search.asked {
            let other = search.candidates[*index];
            if self.reach(nodes[rank as usize], nodes[other as usize]) {
                let answered = self.standby_of(other).is_some();
                let gone = !self.ranks[other as usize].runs();
                answers.extend((answered || gone).then_some((*index, answered)));
            }
        }
        let State::Seeking(search) = &mut self.ranks[rank as usize].state else { return };
        for (index, answered) in answers {
            search.asked.retain(|asked| *asked != index);
            match answered {
                true => search.search.answered(index),
                false => search.search.gone(index),
            }
        }
    }

    /// Returns the standby that a rank has open.
    fn standby_of(&self, rank: u32) -> Option<usize> {
        let stands = |place: &Place| place.open && place.rank == Some(rank) && place.job.phase != Phase::Gathering;
        self.places.iter().rposition(stands)
    }
}
