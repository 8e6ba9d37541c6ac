//! A new protocol, from the first lines to its exploration: many ranks send, one receives, and
//! every rank obtains the sum. `docs/learn/own-protocol.md` explains it.
//!
//! ```text
//! cargo example own_protocol -- --ranks 4
//! cargo example own_protocol -- --ranks 4 --fabric virt --seed 7 --mistake flush
//! cargo example own_protocol -- --explore --mistake flush
//! ```
//!
//! `--mistake` selects one of four mutants: `flush`, `atomic`, `check` or `region`.

use onesided::{
    Deps, Fabric, FabricError, Group, LocalWord, ProgramResult, Rank, Region, RemoteWord,
    explore::{
        Explorer, Probe, Report,
        mutant::{Mutant, mutated},
    },
};
use std::{ffi::OsString, process::ExitCode};

#[cfg(test)]
mod tests;

/// Many ranks send words, one receives them. Each message has its own slot.
#[derive(Debug)]
pub struct Mailbox {
    fabric: Fabric,
    region: Region,
}

/// Where messages go.
pub const HOME: Rank = Rank::new(0);
/// At [`HOME`]: the number of tickets drawn.
const TICKETS: u64 = 0;
/// At [`HOME`]: the sum of all messages.
const TOTAL: u64 = 8;
/// At every rank: whether the sum is available.
const READY: u64 = 16;
/// At [`HOME`], by ticket: whether the slot is full, and the message.
const fn slot(ticket: u64) -> [u64; 2] {
    [24 + 16 * ticket, 32 + 16 * ticket]
}

impl Mailbox {
    /// Collective.
    pub async fn new(fabric: &Fabric, messages: usize) -> ProgramResult<Self> {
        let region = fabric.alloc_symmetric(24 + 16 * messages).await?;
        Ok(Mailbox { fabric: fabric.clone(), region })
    }

    fn at(&self, rank: Rank, offset: u64) -> ProgramResult<RemoteWord<u64>> {
        Ok(self.fabric.remote_word(self.region.at(rank, offset))?)
    }

    fn own(&self, offset: u64) -> ProgramResult<LocalWord<u64>> {
        Ok(self.region.word(&self.fabric, offset as usize)?)
    }

    /// Send `message` and return its ticket.
    pub async fn send(&self, message: u64) -> ProgramResult<u64> {
        let ticket = self.fabric.fetch_add(&self.at(HOME, TICKETS)?, 1).await?;
        let [full, place] = slot(ticket);
        self.fabric.put_word(&self.at(HOME, place)?, message).await?;
        self.fabric.flush(HOME).await?; // the message is there before the flag that says so
        self.fabric.put_word(&self.at(HOME, full)?, 1).await?;
        Ok(ticket)
    }

    /// The message with this ticket, at [`HOME`].
    pub async fn receive(&self, ticket: u64) -> ProgramResult<u64> {
        let [full, place] = slot(ticket);
        self.fabric.wait_until(&self.own(full)?, Deps::All, |full| full == 1).await?;
        Ok(self.fabric.load(&self.own(place)?)?)
    }

    /// Send the sum to all ranks.
    async fn publish(&self, sum: u64) -> ProgramResult<()> {
        self.fabric.store(&self.own(TOTAL)?, sum)?;
        for rank in (1..self.fabric.ranks() as u32).map(Rank::new) {
            self.fabric.put_word(&self.at(rank, READY)?, 1).await?;
        }
        Ok(())
    }

    /// Hear the sum.
    async fn await_sum(&self) -> ProgramResult<u64> {
        self.fabric.wait_until(&self.own(READY)?, Deps::All, |ready| ready == 1).await?;
        Ok(self.fabric.get_word(&self.at(HOME, TOTAL)?).await?)
    }
}

/// Every rank but [`HOME`] sends its number; all learn the sum.
pub async fn sum(fabric: &Fabric, mutant: Option<MailboxMutant>) -> ProgramResult<u64> {
    let mut world = Group::world(fabric).await?;
    let senders = fabric.ranks() as u64 - 1;
    let mailbox = Mailbox::new(fabric, fabric.ranks()).await?;
    let sum = if fabric.rank() == HOME {
        let mut sum = 0;
        for ticket in 0..senders {
            sum += match mutant {
                Some(MailboxMutant::Check) => mailbox.receive_unchecked(ticket).await?,
                _ => mailbox.receive(ticket).await?,
            };
        }
        if sum != senders * (senders + 1) / 2 {
            return Err(format!("the sum is {sum}").into());
        }
        mailbox.publish(sum).await?;
        sum
    } else {
        let me = fabric.rank().number().into();
        match mutant {
            Some(MailboxMutant::Flush) => mailbox.send_unflushed(me).await?,
            Some(MailboxMutant::Atomic) => mailbox.send_torn(me).await?,
            _ => mailbox.send(me).await?,
        };
        mailbox.await_sum().await?
    };
    if mutant != Some(MailboxMutant::Region) {
        world.barrier().await?; // memory stays until no rank can access it
    }
    Ok(sum)
}

/// The mutants of this example: parts of the protocol that are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxMutant {
    /// Leaves out the flush between two puts.
    Flush,
    /// Changes a word that several ranks change without an atomic.
    Atomic,
    /// Does not wait for the message itself, but only for its ticket to be drawn.
    Check,
    /// Drops this rank's memory while other ranks may still use it.
    Region,
}

impl Mailbox {
    /// Wrong: nothing orders the two puts.
    async fn send_unflushed(&self, message: u64) -> ProgramResult<u64> {
        let ticket = self.fabric.fetch_add(&self.at(HOME, TICKETS)?, 1).await?;
        let [full, place] = slot(ticket);
        self.fabric.put_word(&self.at(HOME, place)?, message).await?;
        self.fabric.put_word(&self.at(HOME, full)?, 1).await?;
        Ok(ticket)
    }

    /// Wrong: two ranks can draw the same ticket.
    async fn send_torn(&self, message: u64) -> ProgramResult<u64> {
        let tickets = self.at(HOME, TICKETS)?;
        let ticket = self.fabric.get_word(&tickets).await?;
        self.fabric.put_word(&tickets, ticket + 1).await?;
        let [full, place] = slot(ticket);
        self.fabric.put_word(&self.at(HOME, place)?, message).await?;
        self.fabric.flush(HOME).await?;
        self.fabric.put_word(&self.at(HOME, full)?, 1).await?;
        Ok(ticket)
    }

    /// Wrong: a rank that has drawn a ticket may not have sent its message yet.
    async fn receive_unchecked(&self, ticket: u64) -> ProgramResult<u64> {
        let [_, place] = slot(ticket);
        self.fabric.wait_until(&self.own(TICKETS)?, Deps::All, |drawn| drawn > ticket).await?;
        Ok(self.fabric.load(&self.own(place)?)?)
    }
}

/// Every rank prints the sum.
pub async fn add_up(fabric: Fabric, mutant: Option<MailboxMutant>) -> ProgramResult<u64> {
    let sum = sum(&fabric, mutant).await?;
    println!("{}: {sum}", fabric.rank());
    Ok(sum)
}

/// All orders of delivery, for three ranks.
pub fn explored(mutant: Option<MailboxMutant>) -> Report {
    // Region 0 is the group's.
    Explorer::new(3)
        .name(1, TICKETS, "tickets")
        .name(1, TOTAL, "total")
        .name(1, READY, "ready flag")
        .name(1, slot(0)[0], "flag 0")
        .name(1, slot(0)[1], "message 0")
        .name(1, slot(1)[0], "flag 1")
        .name(1, slot(1)[1], "message 1")
        .run(move |fabric| async move { sum(&fabric, mutant).await.map(drop) })
}

const SENT: u32 = 0;
const RECEIVED: u32 = 1;
const FIRST: u32 = 2;

/// The same messages, by ranks that record their actions.
async fn watched(fabric: Fabric) -> ProgramResult<()> {
    let probe = Probe::of(&fabric);
    let mut world = Group::world(&fabric).await?;
    let mailbox = Mailbox::new(&fabric, 2).await?;
    if fabric.rank() == HOME {
        for ticket in 0..2 {
            probe.add(RECEIVED, mailbox.receive(ticket).await?);
        }
    } else {
        let me = fabric.rank().number().into();
        probe.add(SENT, me);
        if mailbox.send(me).await? == 0 {
            probe.set(FIRST, me);
        }
    }
    Ok(world.barrier().await?)
}

/// The invariants of every state, the conditions at the end, and the reachable outcomes.
pub fn invariants() -> Report {
    Explorer::new(3)
        .name_fact(SENT, "sent")
        .name_fact(RECEIVED, "received")
        .always("nothing arrives that nobody sent", |view| view.fact(RECEIVED) <= view.fact(SENT))
        .at_end("everything arrives", |view| view.fact(RECEIVED) == 1 + 2)
        .possible("the last rank is first", |view| view.fact(FIRST) == 2)
        .run(watched)
}

/// Rank 2 may die at any moment: the others are notified and end.
pub fn with_a_death() -> Report {
    let mortal = Rank::new(2);
    Explorer::new(3).mortal(mortal).run(move |fabric| async move {
        let Err(error) = sum(&fabric, None).await else { return Ok(()) };
        match error.downcast_ref() {
            Some(FabricError::PeerLost { rank }) if *rank == mortal => Ok(()),
            // The region of a rank that was notified of the death earlier and has given up.
            Some(FabricError::StaleRegion { .. }) => Ok(()),
            _ => Err(error),
        }
    })
}

/// Two messages of each sender. After each one a sender's state is its round and the sum of its
/// tickets; `says_all` determines whether it declares both.
pub fn in_steps(says_all: bool) -> Report {
    Explorer::new(3).run(move |fabric| async move {
        let probe = Probe::of(&fabric);
        let mailbox = Mailbox::new(&fabric, 4).await?;
        let mut world = Group::world(&fabric).await?;
        if fabric.rank() == HOME {
            for ticket in 0..4 {
                mailbox.receive(ticket).await?;
                probe.step(ticket);
            }
        } else {
            let mut tickets = 0;
            for round in 0..2 {
                tickets += mailbox.send(7).await?;
                probe.step((round, if says_all { tickets } else { 0 }));
            }
            fabric.put_word(&mailbox.at(fabric.rank(), TOTAL)?, tickets).await?;
        }
        Ok(world.barrier().await?)
    })
}

/// No flush happens.
#[derive(Debug)]
struct NoFlush;

impl Mutant for NoFlush {
    fn flushes(&self, _target: Option<Rank>) -> bool {
        false
    }
}

/// The correct protocol, mutated on its way to the fabric.
pub fn without_flushes() -> Report {
    Explorer::new(3).run(|fabric| async move { sum(&mutated(fabric, NoFlush), None).await.map(drop) })
}

const USAGE: &str = "\
Every rank but the first sends its number to it, and all learn the sum.

  --mistake NAME       run a mutant: flush, atomic, check or region
  --explore            no ranks: explore all orders of delivery instead
";

fn mutant(rest: Vec<OsString>) -> Result<Option<MailboxMutant>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let named = rest.opt_value_from_str::<_, String>("--mistake").map_err(|error| error.to_string())?;
    let mutant = match named.as_deref() {
        None => None,
        Some("flush") => Some(MailboxMutant::Flush),
        Some("atomic") => Some(MailboxMutant::Atomic),
        Some("check") => Some(MailboxMutant::Check),
        Some("region") => Some(MailboxMutant::Region),
        Some(other) => return Err(format!("`{other}` is none of flush, atomic, check, region")),
    };
    match rest.finish().first() {
        None => Ok(mutant),
        Some(word) => Err(format!("there is no `{}`; --help says what there is", word.display())),
    }
}

fn main() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(place) = words.iter().position(|word| word == "--explore") {
        words.remove(place);
        match mutant(words) {
            Ok(mutant) => println!("{}", explored(mutant)),
            Err(error) => eprintln!("error: {error}"),
        }
        return ExitCode::SUCCESS;
    }
    onesided::launch_with(USAGE, |rest| mutant(rest).map(|mutant| async move |fabric| add_up(fabric, mutant).await))
}
