//! Copies inside containers.

use crate::{Acp, GlobalAddress, Result, engine};

impl Acp {
    /// Copies between any two ranks; returns once the bytes are visible. If source and destination
    /// overlap, the destination receives the source's previous bytes. The copy is outside the order
    /// of handles, and requires no action by another rank, so [`finish`](super::finish::finish)
    /// allows it.
    pub(crate) async fn moved(&self, to: GlobalAddress, from: GlobalAddress, bytes: usize) -> Result<()> {
        let me = self.rank();
        if bytes == 0 {
            return Ok(());
        }
        if to.rank() != me && from.rank() != me && !self.fabric().caps().third_party_copy {
            let mut between = vec![0u8; bytes];
            self.read(from, &mut between).await?;
            return self.write(to, &between).await;
        }
        self.retried([to, from], move || async move {
            let (to, from) = (self.span(to, bytes).await?, self.span(from, bytes).await?);
            engine::copy(self.fabric(), to, from).await
        })
        .await
    }
}
