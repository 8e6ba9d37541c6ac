//! Schedules of well-known patterns.

use super::{Builder, Operation, Reason, Schedule, builder::Label};
use core::str::FromStr;

/// A pattern of messages among all ranks, in the rounds and the order of operations in which
/// LogGOPSim's own generator writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pattern {
    /// In round `r` each rank sends to the one `2^r` above, and receives from the one `2^r` below,
    /// before the next round. A barrier, if messages are short.
    Dissemination,
    /// A broadcast from rank 0: in round `r` each of the first `2^r` ranks sends to the one `2^r` above.
    Binomial,
    /// All ranks send a byte to rank 0, which sends one back to each when it has received all.
    LinearBarrier,
    /// A message goes from rank 0 through all ranks, in order, and back to it.
    Ring,
    /// All other ranks send to rank 0 at once.
    Incast,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Pattern; 5] =
        [Pattern::Dissemination, Pattern::Binomial, Pattern::LinearBarrier, Pattern::Ring, Pattern::Incast];

    /// Returns its name, as in texts.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::Dissemination => "dissemination",
            Pattern::Binomial => "binomial",
            Pattern::LinearBarrier => "linear-barrier",
            Pattern::Ring => "ring",
            Pattern::Incast => "incast",
        }
    }

    /// Returns the schedule for a number of ranks and messages of some bytes (those of a linear
    /// barrier have one).
    ///
    /// # Errors
    /// No ranks, or more operations than a schedule may have (2^31).
    pub fn schedule(self, ranks: u32, bytes: u64) -> Result<Schedule, Reason> {
        let mut builder = Builder::new(ranks)?;
        for rank in 0..ranks {
            match self {
                Pattern::Dissemination => dissemination(&mut builder, rank, bytes)?,
                Pattern::Binomial => binomial(&mut builder, rank, bytes)?,
                Pattern::LinearBarrier => linear_barrier(&mut builder, rank)?,
                Pattern::Ring => ring(&mut builder, rank, bytes)?,
                Pattern::Incast => incast(&mut builder, rank, bytes)?,
            }
            builder.end_rank()?;
        }
        builder.finish()
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Pattern::ALL
            .into_iter()
            .find(|pattern| pattern.name() == name)
            .ok_or_else(|| format!("known patterns: {}", Pattern::ALL.map(Pattern::name).join(", ")))
    }
}

/// Returns 1, 2, 4 and so on, below a number of ranks.
fn distances(ranks: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|round| 1u64 << round).take_while(move |distance| *distance < ranks.into()).map(|d| d as u32)
}

fn dissemination(builder: &mut Builder, rank: u32, bytes: u64) -> Result<(), Reason> {
    let ranks = builder.ranks();
    let mut received: Option<Label> = None;
    for distance in distances(ranks) {
        let up = (u64::from(rank) + u64::from(distance)) % u64::from(ranks);
        let down = (u64::from(rank) + u64::from(ranks - distance)) % u64::from(ranks);
        let send = builder.add(Operation::send(up as u32, bytes, 0))?;
        if let Some(received) = received {
            builder.requires(send, received)?;
        }
        received = Some(builder.add(Operation::recv(down as u32, bytes, 0))?);
    }
    Ok(())
}

fn binomial(builder: &mut Builder, rank: u32, bytes: u64) -> Result<(), Reason> {
    let ranks = builder.ranks();
    let mut received: Option<Label> = None;
    for distance in distances(ranks) {
        if rank < distance {
            if ranks - distance > rank {
                let send = builder.add(Operation::send(rank + distance, bytes, 0))?;
                if let Some(received) = received {
                    builder.requires(send, received)?;
                }
            }
        } else if rank - distance < distance {
            received = Some(builder.add(Operation::recv(rank - distance, bytes, 0))?);
        }
    }
    Ok(())
}

fn linear_barrier(builder: &mut Builder, rank: u32) -> Result<(), Reason> {
    if rank > 0 {
        builder.add(Operation::send(0, 1, 0))?;
        builder.add(Operation::recv(0, 1, 0))?;
        return Ok(());
    }
    // Makes 2n dependencies of n^2.
    let all = builder.add(Operation::calc(0))?;
    for peer in 1..builder.ranks() {
        let receive = builder.add(Operation::recv(peer, 1, 0))?;
        let send = builder.add(Operation::send(peer, 1, 0))?;
        builder.requires(all, receive)?;
        builder.requires(send, all)?;
    }
    Ok(())
}

fn ring(builder: &mut Builder, rank: u32, bytes: u64) -> Result<(), Reason> {
    let ranks = builder.ranks();
    if ranks == 1 {
        return Ok(());
    }
    let receive = builder.add(Operation::recv((rank + ranks - 1) % ranks, bytes, 0))?;
    let send = builder.add(Operation::send((rank + 1) % ranks, bytes, 0))?;
    if rank > 0 {
        builder.requires(send, receive)?;
    }
    Ok(())
}

fn incast(builder: &mut Builder, rank: u32, bytes: u64) -> Result<(), Reason> {
    if rank > 0 {
        builder.add(Operation::send(0, bytes, 0))?;
        return Ok(());
    }
    for peer in 1..builder.ranks() {
        builder.add(Operation::recv(peer, bytes, 0))?;
    }
    Ok(())
}
