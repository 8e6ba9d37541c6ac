//! Rounds, in which all members meet: barriers, and reductions to all.
//!
//! Before a member arrives it fills its row. The last one to arrive combines the rows, in the order of
//! the tree of member 0, so that the same values yield the same bits, puts the result to every member,
//! and then the number of the round.
//!
//! # Why nothing is overwritten
//! A member fills its row for the next round once it has seen this one's number, which is put after all
//! rows were read. A result, and a number, is put when all members have arrived, so all have
//! seen those of the round before. The last member to arrive puts neither to itself: it would not
//! wait for that.

use super::{Arrival, Central, Ended, MOST, ROW, announce, body_after};
use crate::{
    Communicator, FmplError, Result,
    collective::{Part, combine::Combine, fast_reduce::Reduced, reduce::To},
    cost,
};
use core::ops::Range;
use rdma_fabric::{Fabric, FabricError, LocalSpan, provider::Boxed};

/// The words of a row's header: the round, and the number of bytes, of which the row holds up to
/// [`MOST`].
pub(super) type Given = [u64; 2];
/// The words of a result's header: the round, one of the constants below, and its details.
pub(super) type Verdict = [u64; 6];

/// The bytes of these headers.
pub(super) const GIVEN: usize = size_of::<Given>();
pub(super) const VERDICT: usize = size_of::<Verdict>();

/// Verdicts, followed for the last by two members and their numbers of bytes.
pub(super) const COMBINED: u64 = 0;
const BY_TREE: u64 = 1;
const DIFFER: u64 = 2;

impl Central {
    /// Waits until all members have called this function.
    async fn meet(&mut self, comm: &Communicator, arrival: Arrival) -> Result<()> {
        let last = match arrival {
            Arrival::Counted { last } => last,
            Arrival::Combined => true,
            Arrival::Due => {
                self.round += 1;
                self.arrivals.pass(&comm.fabric, self.round).await?
            }
        };
        match last {
            true => announce(&comm.fabric, &self.releases, self.round).await,
            false => self.released(comm).await,
        }
    }

    async fn released(&self, comm: &Communicator) -> Result<()> {
        self.reaches(comm, &self.released, self.round, (&self.arrivals, self.round)).await
    }

    /// Fills this member's row, unless there are too many bytes, and counts it. Returns whether it is the last one.
    async fn give(&mut self, fabric: &Fabric, span: &LocalSpan<u8>) -> Result<bool> {
        let bytes = span.len();
        self.round += 1;
        let given: Given = [self.round, bytes as u64];
        fabric.put(&self.row.slice(0..GIVEN)?, bytes_of::<GIVEN>(&given)).await?;
        if (1..=MOST).contains(&bytes) {
            fabric.put(&self.row.slice(body(GIVEN, bytes))?, span.clone()).await?;
        }
        self.arrivals.pass(fabric, self.round).await
    }

    /// Combines the members' bytes, unless there are too many.
    async fn combine(
        &mut self,
        comm: &Communicator,
        span: &LocalSpan<u8>,
        combine: &mut Combine<'_>,
        arrival: Arrival,
    ) -> Result<Ended> {
        let (fabric, bytes) = (&comm.fabric, span.len());
        let last = match arrival {
            Arrival::Due => self.give(fabric, span).await?,
            Arrival::Counted { last } => last,
            Arrival::Combined => {
                announce(fabric, &self.releases, self.round).await?;
                return Ok(Ended::Here);
            }
        };
        let (verdict, from, header) = if last {
            let verdict = self.combined(comm, bytes, combine).await?;
            self.publish(fabric, verdict, bytes).await?;
            announce(fabric, &self.releases, self.round).await?;
            (verdict, &self.copies, GIVEN)
        } else {
            self.released(comm).await?;
            let mut verdict = [0; VERDICT];
            fabric.read(&self.result.slice(0..VERDICT)?, &mut verdict)?;
            (bytemuck::pod_read_unaligned(&verdict), &self.result, VERDICT)
        };
        let [round, kind, member, given, other, other_given] = verdict;
        match kind {
            // The last member called another collective.
            _ if round != self.round => {
                let (member, other) = (comm.me(), (comm.me() + 1) % comm.len());
                Err(FmplError::CountMismatch { member, bytes, other, other_bytes: 0 })
            }
            COMBINED => {
                let mut result = [0; MOST];
                fabric.read(&from.slice(body(header, bytes))?, &mut result[..bytes])?;
                fabric.write(span, &result[..bytes])?;
                comm.fabric.charge_bytes(cost::COPY, bytes).await;
                Ok(Ended::Here)
            }
            BY_TREE => Ok(Ended::ByTree),
            _ => Err(FmplError::CountMismatch {
                member: member as usize,
                bytes: given as usize,
                other: other as usize,
                other_bytes: other_given as usize,
            }),
        }
    }

    /// Combines the rows; the result is in the first one's copy.
    async fn combined(&self, comm: &Communicator, bytes: usize, combine: &mut Combine<'_>) -> Result<Verdict> {
        let (fabric, members) = (&comm.fabric, comm.len());
        if comm.me() > 0 {
            fabric.get(&self.rows, self.copies.clone()).await?;
        }
        for member in 0..members {
            let mut given = [0; GIVEN];
            fabric.read(&self.copies.slice(member * ROW..member * ROW + GIVEN)?, &mut given)?;
            let [round, given]: Given = bytemuck::pod_read_unaligned(&given);
            // A member that is in a barrier has filled no row.
            let given = if round == self.round { given } else { 0 };
            if given != bytes as u64 {
                return Ok([self.round, DIFFER, comm.me() as u64, bytes as u64, member as u64, given]);
            }
        }
        if bytes > MOST {
            return Ok([self.round, BY_TREE, 0, 0, 0, 0]);
        }
        let Range { start, end } = body(GIVEN, bytes);
        let row = |member: usize| self.copies.slice(member * ROW + start..member * ROW + end);
        let mut step = 1;
        while step < members {
            for member in (0..members - step).step_by(2 * step) {
                let into = row(member)?;
                combine(&into, &row(member + step)?, &into)?;
            }
            step *= 2;
        }
        Ok([self.round, COMBINED, 0, 0, 0, 0])
    }

    /// Puts the verdict and the result to every member.
    async fn publish(&self, fabric: &Fabric, verdict: Verdict, bytes: usize) -> Result<()> {
        for result in self.results.iter().filter(|result| result.rank() != fabric.rank()) {
            fabric.put(&result.slice(0..VERDICT)?, bytes_of::<VERDICT>(&verdict)).await?;
            if verdict[1] == COMBINED && bytes > 0 {
                fabric.put(&result.slice(body(VERDICT, bytes))?, self.copies.slice(body(GIVEN, bytes))?).await?;
            }
        }
        if !fabric.caps().puts_in_order {
            fabric.flush_all().await?;
        }
        Ok(())
    }
}

fn body(header: usize, bytes: usize) -> Range<usize> {
    let start = body_after(header, bytes);
    start..start + bytes
}

fn bytes_of<const BYTES: usize>(words: &[u64]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(bytemuck::cast_slice(words));
    bytes
}

impl Part<'_> {
    /// Returns the memory, which every collective that needs it has.
    pub(super) fn central(&mut self) -> Result<(&mut Central, &Communicator)> {
        let central = self.hardware.as_mut().and_then(|hardware| hardware.central.as_deref_mut());
        Ok((central.ok_or(FabricError::Unsupported { feature: &"collectives by a counter" })?, self.comm))
    }

    /// Meets all members.
    pub(crate) async fn meet_centrally(&mut self, arrival: Arrival) -> Result<()> {
        self.comm.fabric.charge(cost::INIT).await;
        let (central, comm) = self.central()?;
        let outcome = match central.meet(comm, arrival).await {
            Err(error) => Err(central.named(comm, error).await),
            met => met,
        };
        central.count(&outcome);
        outcome
    }

    /// Combines the elements of all members into the span of each: few bytes in rows, more along the tree.
    pub(crate) async fn reduce_centrally(
        &mut self,
        span: &LocalSpan<u8>,
        combine: &mut Combine<'_>,
        arrival: Arrival,
    ) -> Result<()> {
        self.comm.fabric.charge(cost::INIT).await;
        let (central, comm) = self.central()?;
        let outcome = match central.combine(comm, span, combine, arrival).await {
            Ok(Ended::Here) => Ok(()),
            Ok(Ended::ByTree) => {
                let by_tree: Boxed<'_, Result<()>> = Box::pin(async {
                    self.meet(0).await?;
                    self.reduce(span, combine, To::All, Reduced::default()).await
                });
                by_tree.await
            }
            Err(error) => Err(central.named(comm, error).await),
        };
        self.central()?.0.count(&outcome);
        outcome
    }
}
