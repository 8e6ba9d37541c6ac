//! A communicator's use of its spool: to spool a message, to check and trim it, to wait until it is fetched.

use super::{Spooled, State};
use crate::{
    Communicator, FmplError, Result,
    area::{Channel, OFFERS},
    state::ChannelId,
};
use rdma_fabric::{FabricError, join::race_all};

/// Returns the fabric error if it reports that memory or regions have run out.
pub(crate) fn no_memory(error: &FmplError) -> Option<&FabricError> {
    match error {
        FmplError::Fabric(cause) if is_no_room(cause) => Some(cause),
        _ => None,
    }
}

fn is_no_room(error: &FabricError) -> bool {
    use FabricError::{OutOfMachineMemory, OutOfMemory, TooManyRegions};
    matches!(error, OutOfMemory(_) | OutOfMachineMemory(_) | TooManyRegions { .. })
}

/// Returns whether a message is longer than a quarter of the available memory. A few other messages
/// can prevent such a message from being spooled, so its send then waits for its receive instead of
/// failing.
fn is_long(bytes: usize, no_memory: &FabricError) -> bool {
    match no_memory {
        FabricError::OutOfMemory(error) => bytes > error.segment / 4,
        FabricError::OutOfMachineMemory(error) => bytes as u64 > error.available / 4,
        _ => false,
    }
}

impl Communicator {
    /// Returns whether a message that has been taken was refused; the next check of the spool does
    /// not report it.
    pub(crate) fn was_refused(&self, id: ChannelId, n: u64) -> Result<bool> {
        self.with(|state| {
            let refused =
                Channel::new(&self.fabric, &state.peers[id.peer].ends, id.channel).taken()?.refused == Some(n);
            state.sweep(&self.fabric)?;
            if refused {
                state.spool.refused = None;
            }
            Ok(refused)
        })?
    }

    /// Waits for a limited time if message `n` is too far ahead of those that its receiver has
    /// fetched.
    pub(crate) async fn not_too_far(&self, channel: Channel<'_>, id: ChannelId, n: u64) -> Result<()> {
        if let Some(patience) = self.with(|state| state.patience(&self.fabric, id, n))?? {
            let fetched = self.progressing(channel.until_taken(n + 1 - OFFERS));
            if self.fabric.before(self.fabric.now() + patience, fetched).await.transpose()?.is_none() {
                self.with(|state| {
                    let taken = state.taken(&self.fabric, id.peer, id.channel)?;
                    state.peers[id.peer].stalled = Some((id.channel, taken));
                    Ok::<_, FmplError>(())
                })??;
            }
        }
        Ok(())
    }

    /// Checks the spool (`fmpl_sendbuf_check`): frees the space of received messages. No message
    /// depends on this call.
    ///
    /// # Errors
    /// [`FmplError::TooLong`] if a receiver has refused a message since the last check;
    /// [`FmplError::Fabric`] if one could not be announced, as its receiver was lost.
    pub async fn check_spool(&self) -> Result<Spooled> {
        self.once().await;
        self.with(|state| {
            state.sweep(&self.fabric)?;
            match state.spool.refused.take() {
                Some(error) => Err(error),
                None => Ok(Spooled {
                    received: core::mem::take(&mut state.spool.received),
                    waiting: state.spool.held.len(),
                }),
            }
        })?
    }

    /// Returns the memory by which the spool [has grown](crate::Options::growing) and that is now
    /// empty.
    ///
    /// # Errors
    /// [`FmplError::OtherThread`]; [`FmplError::Fabric`].
    pub fn trim_spool(&self) -> Result<()> {
        self.with(|state| {
            state.sweep(&self.fabric)?;
            drop((state.spool.memory.take_idle(), state.spool.nodes.take_idle()));
            Ok(())
        })?
    }

    /// Spools a message as [`State::spool`] does. If memory runs out, the idle memory of all
    /// communicators of the rank is given back first. Then a message that is [long](is_long), and
    /// whose receive may still be posted, waits: `None`.
    pub(crate) fn spool(
        &self,
        bytes: usize,
        may_wait: bool,
        mut spool: impl FnMut(&mut State) -> Result<Option<()>>,
    ) -> Result<Option<()>> {
        let kept = self.with(|state| (state.keeps_buffers || !state.spool.grows()).then(|| spool(state)))?;
        let mut spooled = match kept {
            Some(spooled) => spooled,
            None => {
                self.keep_buffers()?;
                self.with(&mut spool)?
            }
        };
        if spooled.as_ref().is_err_and(|error| no_memory(error).is_some()) {
            self.siblings.trim(&self.fabric);
            spooled = self.with(&mut spool)?;
        }
        let Err(error) = spooled else { return spooled };
        let Some(cause) = no_memory(&error) else { return Err(error) };
        if may_wait && is_long(bytes, cause) {
            return Ok(None);
        }
        let (waiting, held) = self.with(|state| state.spool.load())?;
        Err(FmplError::SpoolFull { bytes, waiting, held, cause: cause.clone() })
    }

    /// Waits until any message of the spool has been received, if there is one.
    pub(crate) async fn one_fetched(&self) -> Result<()> {
        let firsts = self.with(|state| {
            let mut firsts: Vec<(ChannelId, u64)> = state.spool.held.iter().map(|held| (held.id, held.n)).collect();
            firsts.sort_unstable_by_key(|(id, n)| (id.peer, id.channel, *n));
            firsts.dedup_by_key(|(id, _)| *id);
            let of_peer = |(id, n): (ChannelId, u64)| (state.peers[id.peer].ends.clone(), id.channel, n);
            firsts.into_iter().map(of_peer).collect::<Vec<_>>()
        })?;
        race_all(firsts.iter().map(|(ends, channel, n)| Channel::new(&self.fabric, ends, *channel).until_taken(n + 1)))
            .await
    }

    /// Waits until all sends have completed and all spooled messages have been received.
    ///
    /// # Errors
    /// As [`Communicator::check_spool`].
    pub async fn all_fetched(&self) -> Result<()> {
        self.until(|state| state.pending.is_empty().then_some(())).await?;
        while self.check_spool().await?.waiting > 0 {
            self.progressing(self.one_fetched()).await?;
        }
        Ok(())
    }
}
