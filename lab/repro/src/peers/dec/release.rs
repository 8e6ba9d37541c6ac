//! Leaving, and admitting the next participants.

use super::{
    super::lock::named,
    Dec, GRANT, Held,
    layout::{Found, Header},
};
use rdma_fabric::{Amo, RemoteSpan, join::join_all, op};
use rma_lock::Result;

/// The number of entries that a release reads in its batch: the artifact's whole ring with cohorts.
pub(super) const AHEAD: u64 = 32;
/// The number of entries in one further read: the artifact's whole ring without cohorts.
const PIECE: u64 = 512;
/// The maximum number of messages in flight.
const TOGETHER: usize = 256;

/// Entries that were read from the ring.
struct Read {
    first: u64,
    entries: Vec<u64>,
}

impl Dec {
    pub(super) async fn leave(&self, held: Held) -> Result<()> {
        let (fabric, layout) = (&self.rank_state.fabric, self.layout);
        let first = layout.after(held.position, 1);
        let (span, room) = self.span(first, AHEAD)?;
        let amo = Amo::Add(layout.leave(held.exclusive));
        let added = fabric.post(op::Atomic { word: &self.header, amo }).await?;
        let got = fabric.post(op::Get { from: &span, to: room }).await?;
        let found = layout.header(added.await?);
        let mut read = Read { first, entries: got.await? };
        if found.participants < 2 {
            return Ok(());
        }
        if held.exclusive {
            return self.let_next_in(found, &mut read).await;
        }
        // All participants between the head and this rank's position are readers.
        let ahead = layout.distance(found.head, held.position);
        let is_certainly_not_last = 0 < ahead && ahead < layout.entries();
        if found.writers > 0 && !is_certainly_not_last {
            self.let_writer_in(found, &mut read).await?;
        }
        Ok(())
    }

    /// Admits, for a leaving writer, the next writer or all readers before it.
    async fn let_next_in(&self, found: Header, read: &mut Read) -> Result<()> {
        let mut group = Vec::new();
        let mut steps = 1;
        while steps < found.participants {
            let position = self.layout.after(found.head, steps);
            match self.look(position, found.participants - steps, read).await? {
                Found::Waits(entry) if entry.exclusive && !group.is_empty() => break,
                Found::Waits(entry) => {
                    group.push((entry.name, position));
                    if entry.exclusive {
                        break;
                    }
                    steps += 1;
                }
                // All of them wait, so all of them have put an entry.
                Found::Nothing | Found::Later => self.read(position, 1, read).await?,
            }
        }
        for some in group.chunks(TOGETHER) {
            let told = join_all(some.iter().map(|&(name, _)| self.rank_state.tell(named(name), GRANT, name))).await;
            told.into_iter().collect::<Result<()>>()?;
        }
        Ok(())
    }

    /// Admits, for a leaving reader that is the last of its group, the writer after it.
    async fn let_writer_in(&self, found: Header, read: &mut Read) -> Result<()> {
        let next = self.layout.after(found.head, 1);
        let mut steps = 1;
        loop {
            let position = self.layout.after(found.head, steps);
            match self.look(position, found.participants - steps, read).await? {
                Found::Waits(entry) if steps == 1 => {
                    if entry.exclusive {
                        self.rank_state.tell(named(entry.name), GRANT, entry.name).await?;
                    }
                    return Ok(());
                }
                Found::Waits(entry) if entry.alone => return Ok(()),
                Found::Later => return Ok(()),
                Found::Waits(_) | Found::Nothing => steps += 1,
            }
            if steps == found.participants {
                // An entry is in transit: restart from the beginning.
                steps = 1;
                self.read(next, found.participants - 1, read).await?;
            }
        }
    }

    /// Returns the meaning of a position's entry. If it has not been read, `more` positions are
    /// read first.
    async fn look(&self, position: u64, more: u64, read: &mut Read) -> Result<Found> {
        let mut at = self.layout.distance(read.first, position) as usize;
        if at >= read.entries.len() {
            self.read(position, more, read).await?;
            at = 0;
        }
        Ok(self.layout.found(position, read.entries[at]))
    }

    /// Reads at most `most` entries, starting at a position.
    async fn read(&self, position: u64, most: u64, read: &mut Read) -> Result<()> {
        let (span, room) = self.span(position, most.clamp(1, PIECE))?;
        *read = Read { first: position, entries: self.rank_state.fabric.get(&span, room).await? };
        Ok(())
    }

    /// Returns the address of `most` entries starting at a position, or of the entries up to the
    /// ring's end if there are fewer, and a buffer for them.
    fn span(&self, position: u64, most: u64) -> Result<(RemoteSpan<u64>, Vec<u64>)> {
        let place = self.layout.place(position);
        let entries = most.min(self.layout.entries() - place) as usize;
        Ok((self.rank_state.fabric.remote_span(self.rank_state.beyond(place), entries)?, vec![0; entries]))
    }
}
