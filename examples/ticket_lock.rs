//! A new protocol, explored: a ticket lock whose holder notifies the next one. Run it as
//! `cargo example ticket_lock`; with `-- broken`, the release does not flush the data.

use explore::{Explorer, Probe};
use rdma_fabric::{Deps, Fabric, LocalWord, ProgramResult, Rank, Region, RemoteWord};

/// A lock for a fixed number of acquisitions: each ticket has a word at the rank that draws it.
struct TicketLock {
    fabric: Fabric,
    region: Region,
    /// The next ticket.
    tickets: RemoteWord<u64>,
    flushes: bool,
}

/// At rank 0: the next ticket. At every rank: the ticket whose turn it is, as far as this rank has
/// been notified.
const TICKETS: u64 = 0;
const TURN: u64 = 8;
/// At rank 0, by ticket: the rank that has drawn it, plus one.
const HOLDERS: u64 = 16;

impl TicketLock {
    async fn new(fabric: &Fabric, flushes: bool) -> ProgramResult<Self> {
        let region = fabric.alloc_symmetric(128).await?;
        let tickets = fabric.remote_word(region.at(Rank::new(0), TICKETS))?;
        Ok(TicketLock { fabric: fabric.clone(), region, tickets, flushes })
    }

    fn holder(&self, ticket: u64) -> ProgramResult<RemoteWord<u64>> {
        Ok(self.fabric.remote_word(self.region.at(Rank::new(0), HOLDERS + 8 * ticket))?)
    }

    /// Draws a ticket and waits for its turn.
    async fn lock(&self) -> ProgramResult<u64> {
        let ticket = self.fabric.fetch_add(&self.tickets, 1).await?;
        let me = u64::from(self.fabric.rank().number()) + 1;
        // A rank that finds no mark here sets its own and waits; one that finds the mark enters.
        let before = self.fabric.swap(&self.holder(ticket)?, me).await?;
        if ticket > 0 && before == 0 {
            let turn: LocalWord<u64> = self.region.word(&self.fabric, TURN as usize)?;
            self.fabric.wait_until(&turn, Deps::All, |turn| turn == ticket).await?;
        }
        Ok(ticket)
    }

    async fn unlock(&self, ticket: u64) -> ProgramResult<()> {
        if self.flushes {
            self.fabric.flush_all().await?;
        }
        match self.fabric.swap(&self.holder(ticket + 1)?, u64::MAX).await? {
            0 => {}
            next => {
                let rank = Rank::new(next as u32 - 1);
                self.fabric.put_word(&self.fabric.remote_word(self.region.at(rank, TURN))?, ticket + 1).await?;
            }
        }
        Ok(())
    }
}

/// Adds one to a counter, under the lock.
async fn count(fabric: Fabric, probe: Probe, flushes: bool) -> ProgramResult<()> {
    const INSIDE: u32 = 0;
    let lock = TicketLock::new(&fabric, flushes).await?;
    let data = fabric.alloc_symmetric(8).await?;
    let counter = fabric.remote_word::<u64>(data.at(Rank::new(1), 0))?;
    let ticket = lock.lock().await?;
    probe.note("is inside");
    assert_eq!(probe.add(INSIDE, 1), 0, "two holders");
    let before = fabric.get_word(&counter).await?;
    assert_eq!(before, ticket, "an addition was lost");
    fabric.put_word(&counter, before + 1).await?;
    probe.subtract(INSIDE, 1);
    lock.unlock(ticket).await
}

fn main() {
    let flushes = std::env::args().nth(1).as_deref() != Some("broken");
    for ranks in 2..=4 {
        let explorer = (0..ranks as u64).fold(Explorer::new(ranks), |explorer, ticket| {
            explorer.name(0, HOLDERS + 8 * ticket, &format!("holder of ticket {ticket}"))
        });
        let explorer = explorer
            .name(0, TICKETS, "next ticket")
            .name(0, TURN, "turn")
            .name(1, 0, "counter")
            .name_fact(0, "ranks inside");
        let report = explorer.run(move |fabric| {
            let probe = Probe::of(&fabric);
            count(fabric, probe, flushes)
        });
        println!("{ranks} ranks: {report}");
    }
}
