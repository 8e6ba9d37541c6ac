//! Writers.

use super::{
    super::lock::named,
    GRANT, IN_A_ROW, SUCCESSOR, Shift, Turn,
    state::{Message, State},
};
use rdma_fabric::Rank;
use rma_lock::Result;

impl Shift {
    pub(super) async fn enter_to_write(&self) -> Result<Turn> {
        let fabric = &self.rank_state.fabric;
        let before = fabric.swap(&self.tail, self.rank_state.name()).await?;
        if before == 0 {
            let found = State(fabric.fetch_add(&self.state, State::ANNOUNCE).await?);
            // A writer that is about to leave counts one further release.
            let drained = found.drained(found.writers());
            if drained != found.released() {
                self.drained(drained).await?;
            }
            return Ok(Turn { mode: found.turn(), in_a_row: 0 });
        }
        self.rank_state.tell(named(before), SUCCESSOR, self.rank_state.name()).await?;
        match Message::of(self.rank_state.told(&self.grant).await?) {
            Message::Handover { mode, in_a_row } => Ok(Turn { mode, in_a_row }),
            Message::ModeChanged { mode, released } => {
                self.drained(released).await?;
                Ok(Turn { mode, in_a_row: 0 })
            }
        }
    }

    /// Polls until `released` releases have been counted.
    async fn drained(&self, released: u64) -> Result<()> {
        while State(self.rank_state.fabric.get_word(&self.state).await?).released() != released {}
        Ok(())
    }

    pub(super) async fn leave_from_writing(&self, Turn { mode, in_a_row }: Turn) -> Result<()> {
        let fabric = &self.rank_state.fabric;
        let me = self.rank_state.name();
        if fabric.load(&self.successor)? == 0 && fabric.compare_swap(&self.tail, me, 0).await? == me {
            fabric.fetch_add(&self.state, State::withdraw(mode)).await?;
            return Ok(());
        }
        let in_a_row = in_a_row + 1;
        let message = if in_a_row < IN_A_ROW {
            Message::Handover { mode, in_a_row }
        } else {
            let found = State(fabric.fetch_add(&self.state, State::let_readers_in(mode)).await?);
            Message::ModeChanged { mode: mode.next(), released: found.drained(1) }
        };
        let successor = self.successor().await?;
        self.rank_state.tell(successor, GRANT, message.bits()).await
    }

    /// Waits for the successor's identifier, which may be in transit, and takes it.
    async fn successor(&self) -> Result<Rank> {
        Ok(named(self.rank_state.told(&self.successor).await?))
    }
}
