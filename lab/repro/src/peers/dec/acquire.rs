//! Acquiring.

use super::{Dec, Held, layout::Entry};
use rma_lock::Result;

impl Dec {
    pub(super) async fn enter(&self, exclusive: bool) -> Result<Held> {
        let (fabric, layout) = (&self.rank_state.fabric, self.layout);
        let found = layout.header(fabric.fetch_add(&self.header, layout.arrive(exclusive)).await?);
        let position = layout.after(found.head, found.participants);
        let is_inside = found.participants == 0 || !exclusive && found.writers == 0;
        if !is_inside {
            let alone = exclusive && found.writers == 0;
            let entry = Entry { name: self.rank_state.name(), exclusive, alone };
            let place = fabric.remote_word::<u64>(self.rank_state.beyond(layout.place(position)))?;
            fabric.put_word(&place, layout.entry(position, entry)).await?;
            self.rank_state.told(&self.grant).await?;
        }
        Ok(Held { position, exclusive })
    }
}
