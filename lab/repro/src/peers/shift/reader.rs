//! Readers.

use super::{Shift, state::State};
use rma_lock::Result;

impl Shift {
    pub(super) async fn enter_to_read(&self) -> Result<()> {
        let fabric = &self.rank_state.fabric;
        let found = State(fabric.fetch_add(&self.state, State::ARRIVE).await?);
        if found.writers() > 0 {
            let turn = found.turn();
            while State(fabric.get_word(&self.state).await?).mode() != turn {}
        }
        Ok(())
    }

    pub(super) async fn leave_from_reading(&self) -> Result<()> {
        self.rank_state.fabric.fetch_add(&self.state, State::LEAVE).await?;
        Ok(())
    }
}
