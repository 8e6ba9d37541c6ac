//! Issuing commands, where a helper executes operations.

use super::{Command, more_complete};
use crate::{
    Acp, AcpError, GlobalAddress, Handle, Mode, Result, cost, delegation,
    engine::{Flight, Kind, atomic, copy},
};
use core::task::{Context, Poll, Waker};
use rdma_fabric::AtomicWord;

impl Acp {
    /// Returns whether a helper executes this rank's operations.
    pub(crate) fn is_queued(&self) -> bool {
        self.options().mode != Mode::Direct
    }

    /// Writes a command into the queue, as soon as there is room. Invalid addresses are rejected
    /// first.
    pub(crate) async fn queued(&self, command: Command) -> Result<Handle> {
        self.check(command)?;
        let is_by_cpu = matches!(command, Command::Atomic { word, .. } if self.is_by_cpu(word));
        cost::call(self.fabric(), self.options(), is_by_cpu).await;
        let mut posted = if self.options().bypass && !is_by_cpu { self.bypassed(command).await? } else { None };
        let is_bypassed = posted.is_some();
        let mut was_full = false;
        loop {
            let (issued, seen, word) = self.try_with(|state| {
                let queue = state.queue.as_mut().expect("the mode has a queue");
                // Read before checking for room: any command that completes later ends the wait.
                let seen = queue.complete()?;
                let issued = if is_bypassed { queue.hand_over(&mut posted)? } else { queue.issue(command)? };
                if issued.is_some() {
                    state.counters.add_command(state.me, &command);
                    state.counters.bypassed += u64::from(is_bypassed);
                    state.counters.full += u64::from(was_full);
                }
                Ok((issued, seen, queue.complete_word()))
            })?;
            match issued {
                Some(handle) => return Ok(handle),
                None => was_full = true,
            }
            more_complete(self.fabric(), &word, seen).await?;
        }
    }

    /// Returns whether this rank's CPU executes atomics on that word.
    pub(crate) fn is_by_cpu(&self, word: GlobalAddress) -> bool {
        word.rank() == self.rank() && delegation::is_own_by_cpu(self.fabric(), self.options())
    }

    fn check(&self, command: Command) -> Result<()> {
        let (addresses, width) = match command {
            Command::Copy { to, from, .. } => ([to, from], 1),
            Command::Atomic { to, word, width, .. } => ([to, word], width),
            Command::Posted => return Ok(()),
        };
        for address in addresses {
            if !address.offset().is_multiple_of(width.into()) {
                return Err(AcpError::Misaligned { address, align: width });
            }
            self.try_with(|state| state.memory.place_of(address.rank()))?;
        }
        Ok(())
    }

    /// Posts an operation bypassing the queue, if all commands are complete and the network can
    /// execute it; the helper only completes it.
    async fn bypassed(&self, command: Command) -> Result<Option<(Kind, Flight)>> {
        let is_idle = self.try_with(|state| {
            let queue = state.queue.as_ref().expect("the mode has a queue");
            Ok(queue.complete()? == queue.issued())
        })?;
        if !is_idle {
            return Ok(None);
        }
        let me = self.rank();
        let (kind, mut flight) = match command {
            Command::Atomic { .. } if self.delegates_atomics() => return Ok(None),
            Command::Copy { to, from, bytes, .. } if (to.rank() == me) != (from.rank() == me) => {
                self.charge_bypass().await;
                let flight = copy(self.fabric(), self.span(to, bytes).await?, self.span(from, bytes).await?);
                (Kind::Copy((from.rank().number(), to.rank().number())), flight)
            }
            Command::Atomic { to, word, width: 4, amo, .. } => {
                (Kind::Atomic, self.atomic_flight(to, word, amo.map(|v| v as u32)).await?)
            }
            Command::Atomic { to, word, amo, .. } => (Kind::Atomic, self.atomic_flight(to, word, amo).await?),
            _ => return Ok(None),
        };
        // This posts it. Its order is satisfied, since all commands are complete.
        let posted = flight.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(done) = posted {
            flight = Box::pin(core::future::ready(done));
        }
        Ok(Some((kind, flight)))
    }

    /// Charges for an operation that the program posts itself.
    async fn charge_bypass(&self) {
        self.fabric().charge(cost::BYPASS).await;
        cost::network(self.fabric(), self.options()).await;
    }

    async fn atomic_flight<W: AtomicWord>(
        &self,
        to: GlobalAddress,
        word: GlobalAddress,
        amo: rdma_fabric::Amo<W>,
    ) -> Result<Flight> {
        self.charge_bypass().await;
        Ok(atomic(self.fabric(), self.word(to).await?, self.word(word).await?, amo))
    }

    /// Returns the state of the command queue's entry for an operation:
    /// [`EntryState::Free`](crate::EntryState) once it is complete. `None` for an operation that was
    /// never issued, and in [`Mode::Direct`], which has no queue.
    pub fn entry_state(&self, handle: Handle) -> Option<crate::EntryState> {
        let state = self.with(|state| state.queue.as_ref().and_then(|queue| queue.state(handle.number())));
        state.ok().flatten()
    }

    /// Returns the states that entries of the command queue have entered so far, in the order of
    /// [`EntryState::ALL`](crate::EntryState::ALL): also those that an entry leaves at once, which
    /// [`Acp::entry_state`] rarely sees. Empty in [`Mode::Direct`], which has no queue.
    pub fn entered_states(&self) -> Vec<crate::EntryState> {
        let entered = self.with(|state| state.queue.as_ref().map(|queue| queue.entered()));
        let entered = entered.ok().flatten().unwrap_or_default();
        crate::EntryState::ALL.into_iter().filter(|state| entered[*state as usize] > 0).collect()
    }
}
