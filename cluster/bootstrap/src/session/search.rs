//! The search of a rank that has lost its coordinator for another one: the standbys that it asks,
//! and when. The search neither blocks nor reads a clock.
//!
//! Standbys are ordered. The first is asked immediately; each later one after a short delay, or
//! once all before it are known to be gone, unless one before it has answered. A rank answers as a
//! standby only once it has lost the coordinator itself. A rank that has lost it early waits, for
//! half a lease, for a standby of lower order than the one that has answered, because other ranks
//! may notice the loss later. It votes for one standby at a time, and withdraws its vote in favour
//! of one of lower order that answers later. A standby decides a lease after its own loss, or half
//! a lease later.

use std::time::{Duration, Instant};

/// The next action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Connect to this standby.
    Dial(usize),
    /// Vote for this standby, which has answered, and withdraw any earlier vote.
    Vote(usize),
    /// Wait until then, unless an event arrives.
    Wait(Instant),
    /// No coordinator can be found.
    GiveUp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unasked,
    Asked,
    Answered,
    Gone,
}

/// A search for a coordinator.
#[derive(Debug)]
pub(crate) struct CoordinatorSearch {
    begun: Instant,
    lease: Duration,
    states: Vec<State>,
    vote: Option<usize>,
}

impl CoordinatorSearch {
    /// Begins the search among `standbys` standbys.
    pub(crate) fn new(standbys: usize, lease: Duration, now: Instant) -> Self {
        Self { begun: now, lease, states: vec![State::Unasked; standbys], vote: None }
    }

    /// Returns when the search ends without success.
    pub(crate) fn end(&self) -> Instant {
        self.begun + self.lease * 7 / 4
    }

    /// Records that a standby has answered.
    pub(crate) fn answered(&mut self, index: usize) {
        if self.states[index] == State::Asked {
            self.states[index] = State::Answered;
        }
    }

    /// Records that a standby can't be reached, or was not elected.
    pub(crate) fn gone(&mut self, index: usize) {
        self.states[index] = State::Gone;
        self.vote = self.vote.filter(|vote| *vote != index);
    }

    /// Returns the next action.
    pub(crate) fn next(&mut self, now: Instant) -> Step {
        if now >= self.end() {
            return Step::GiveUp;
        }
        if let Some(vote) = self.vote {
            let Some(lower) = self.states[..vote].iter().position(|state| *state == State::Answered) else {
                return Step::Wait(self.end());
            };
            self.gone(vote);
            self.vote = Some(lower);
            return Step::Vote(lower);
        }
        let chosen = self.begun + self.lease / 2;
        let count = self.states.len() as u32;
        let mut next = self.end();
        let mut waits_for_lower = false;
        for (index, state) in self.states.iter_mut().enumerate() {
            match state {
                State::Gone => {}
                State::Answered if waits_for_lower && now < chosen => return Step::Wait(next.min(chosen)),
                State::Answered => {
                    self.vote = Some(index);
                    return Step::Vote(index);
                }
                State::Asked => waits_for_lower = true,
                State::Unasked => {
                    let due = self.begun + self.lease * index as u32 / (4 * count);
                    if !waits_for_lower || now >= due {
                        *state = State::Asked;
                        return Step::Dial(index);
                    }
                    // The standbys after this one are due even later.
                    return Step::Wait(next.min(due));
                }
            }
        }
        // No standby has answered. By the end of the lease, every rank has to have noticed the loss
        // and decided, so a standby that has not answered by then never will.
        if !waits_for_lower || now >= self.begun + self.lease {
            return Step::GiveUp;
        }
        next = next.min(self.begun + self.lease);
        Step::Wait(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(16);

    fn search(standbys: usize) -> (CoordinatorSearch, Instant) {
        let now = Instant::now();
        (CoordinatorSearch::new(standbys, LEASE, now), now)
    }

    #[test]
    fn the_first_that_answers_gets_the_vote() {
        let (mut search, now) = search(3);
        assert_eq!(search.next(now), Step::Dial(0));
        assert!(matches!(search.next(now), Step::Wait(_)), "nobody else is asked at once");
        search.answered(0);
        assert_eq!(search.next(now), Step::Vote(0));
        assert_eq!(search.next(now), Step::Wait(search.end()));
        assert_eq!(search.next(search.end()), Step::GiveUp);
    }

    #[test]
    fn a_later_one_gets_it_if_those_before_do_not_answer_in_time() {
        let (mut search, now) = search(3);
        assert_eq!(search.next(now), Step::Dial(0));
        let Step::Wait(due) = search.next(now) else { panic!("too early") };
        assert_eq!(search.next(due), Step::Dial(1));
        search.answered(1);
        let Step::Wait(until) = search.next(due) else { panic!("0 may answer yet") };
        assert_eq!(until, now + LEASE / 2);
        assert_eq!(search.next(until), Step::Vote(1));
        assert_eq!(search.next(until), Step::Wait(search.end()));
        search.answered(0);
        assert_eq!(search.next(until), Step::Vote(0));
        assert_eq!(search.next(until), Step::Wait(search.end()));
    }

    #[test]
    fn the_next_is_asked_when_one_is_gone_and_the_end_comes_when_all_are() {
        let (mut search, now) = search(2);
        assert_eq!(search.next(now), Step::Dial(0));
        search.gone(0);
        assert_eq!(search.next(now), Step::Dial(1));
        search.answered(1);
        assert_eq!(search.next(now), Step::Vote(1));
        search.gone(1);
        assert_eq!(search.next(now), Step::GiveUp);
    }

    #[test]
    fn a_rank_silent_for_a_lease_is_skipped() {
        let (mut search, now) = search(2);
        assert_eq!(search.next(now), Step::Dial(0));
        assert_eq!(search.next(now + LEASE / 2), Step::Dial(1));
        search.gone(1);
        assert_eq!(search.next(now + LEASE / 2), Step::Wait(now + LEASE));
        assert_eq!(search.next(now + LEASE), Step::GiveUp);
    }
}
