//! Waits of one rank's fabric, and its parks.

use super::fabric::FabricState;
use crate::{
    TURNS,
    wire::{AwaitedEvent, ParkUntil, Parked},
};
use core::{
    future::poll_fn,
    mem::replace,
    pin::pin,
    task::{Context, Poll},
    time::Duration,
};
use rdma_fabric::{
    Fabric, Result, Time,
    provider::{Ended, Place, WaitFor, WaitState},
};
use tofu2_virt::program::ProgramRank;

/// The longest wait of a poll that finds nothing, and the longest park of a process with several threads.
const LONGEST: Duration = Duration::from_millis(1);
/// Polls in a row after which one waits without a limit.
const ENDLESS: u32 = 4096;

/// A wait that a rank has begun.
#[derive(Debug)]
pub(super) struct Wait {
    event: AwaitedEvent,
    /// The word, if the event is a write to one.
    word: Option<Place>,
    state: WaitState,
}

impl FabricState {
    /// Polls a wait, which this begins if there is none of that number, and which ends if it is ready.
    pub(super) fn poll_wait(&mut self, number: u64, event: &AwaitedEvent, cx: &mut Context<'_>) -> Option<Result<()>> {
        if !self.waits.contains_key(&number) {
            let word = match event {
                AwaitedEvent::Word { word, .. } => match self.place(word) {
                    Ok(word) => Some(word),
                    Err(error) => return Some(Err(error)),
                },
                _ => None,
            };
            self.waits.insert(number, Wait { event: event.clone(), word, state: WaitState::default() });
        }
        let Wait { event, word, state } = self.waits.get_mut(&number)?;
        match self.fabric.provider().poll_wait(state, event.wait_for(word.as_ref())?, cx) {
            Poll::Pending => None,
            Poll::Ready(ended) => {
                self.end_wait(number, if ended.is_ok() { Ended::Reached } else { Ended::GivenUp });
                Some(ended)
            }
        }
    }

    /// Ends a wait, if there is one of that number.
    pub(super) fn end_wait(&mut self, number: u64, ended: Ended) {
        if let Some(Wait { event, word, mut state }) = self.waits.remove(&number)
            && let Some(wait_for) = event.wait_for(word.as_ref())
            && !state.is_empty()
        {
            self.fabric.provider().end_wait(&mut state, wait_for, ended);
        }
    }

    /// Begins waits, and lets the other ranks run until the simulator resumes this one. Returns what has ended.
    pub(super) async fn park(
        &mut self,
        operations: &[u64],
        waits: Vec<(u64, AwaitedEvent)>,
        is_woken: bool,
        until: ParkUntil,
    ) -> Parked {
        let limit = match until {
            ParkUntil::Awaited | ParkUntil::Turn => None,
            ParkUntil::Soon => Some(self.fabric.now() + LONGEST),
            ParkUntil::News { misses } => until_news(&self.fabric, &self.program, misses),
        };
        let mut news = pin!(matches!(until, ParkUntil::News { .. }).then(|| self.program.news(limit)));
        let mut sleep = WaitState::default();
        let mut parked = Parked { operations: Vec::new(), waits: Vec::new() };
        let (mut first, mut has_begun) = (Some(waits), false);
        poll_fn(|cx| {
            for (number, event) in first.take().into_iter().flatten() {
                let ended = self.poll_wait(number, &event, cx);
                parked.waits.extend(ended.map(|ended| (number, ended)));
            }
            self.collect(operations, &mut parked, cx);
            let has_ended = !parked.operations.is_empty() || !parked.waits.is_empty();
            // A pause takes its time in any case, below.
            if replace(&mut has_begun, true) || has_ended || matches!(until, ParkUntil::Turn) {
                return Poll::Ready(());
            }
            // The rank's task gets another turn, as a task that wakes itself.
            if is_woken {
                cx.waker().wake_by_ref();
            }
            match (news.as_mut().as_pin_mut(), limit) {
                (Some(news), _) => news.poll(cx),
                (None, Some(limit)) => {
                    self.fabric.provider().poll_wait(&mut sleep, WaitFor::Until(limit), cx).map(drop)
                }
                (None, None) => Poll::Pending,
            }
        })
        .await;
        if let ParkUntil::Turn = until {
            self.fabric.compute(self.program.turn()).await;
            poll_fn(|cx| {
                self.collect(operations, &mut parked, cx);
                Poll::Ready(())
            })
            .await;
        }
        parked
    }

    /// Polls operations, and all waits that have begun. Adds those that have ended.
    fn collect(&mut self, operations: &[u64], parked: &mut Parked, cx: &mut Context<'_>) {
        for number in operations {
            if self.operations.contains_key(number) && self.advance(*number, cx).unwrap_or(true) {
                let is_empty = self.operations.get(number).is_some_and(|operation| operation.bytes.is_empty());
                let outcome = match is_empty {
                    true => self.operations.remove(number).and_then(|operation| operation.outcome),
                    false => None,
                };
                parked.operations.push((*number, outcome));
            }
        }
        let mut numbers: Vec<u64> = self.waits.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            let Some(event) = self.waits.get(&number).map(|wait| wait.event.clone()) else { continue };
            let ended = self.poll_wait(number, &event, cx);
            parked.waits.extend(ended.map(|ended| (number, ended)));
        }
    }
}

/// Returns the end of the wait of a poll, the `misses`-th in a row that finds nothing: each is 16 times as long as
/// the one before.
pub(super) fn until_news(fabric: &Fabric, program: &ProgramRank, misses: u32) -> Option<Time> {
    let doublings = misses.saturating_sub(TURNS).saturating_mul(4).min(24);
    let wait = program.turn().saturating_mul(1 << doublings).min(LONGEST);
    (misses <= ENDLESS).then(|| fabric.now() + wait)
}
