//! Reductions.

use super::{
    ByUnit, Op, Part, Scalar,
    combine::{Combine, by_function},
    edge::{Differ, Way},
    fast_reduce::{Reduced, Reduction},
    unit::MOST,
};
use crate::{Algorithm, Collective, Communicator, FmplError, Result};
use core::future::Future;
use rdma_fabric::{
    FabricError, LocalSpan, Pod,
    barrier::{GateError, ReduceOp},
    fast_path::fast_path,
    provider::Boxed,
};

/// Where the result goes.
#[derive(Clone, Copy)]
pub(crate) enum To {
    Member(usize),
    All,
}

impl To {
    /// Returns the root of the tree.
    pub(crate) fn root(self) -> usize {
        if let To::Member(root) = self { root } else { 0 }
    }

    pub(crate) fn kind(self) -> Collective {
        if let To::Member(_) = self { Collective::Reduce } else { Collective::Allreduce }
    }
}

impl Communicator {
    /// Combines the elements of all members into the `span` of member `root` (`fmpl_reduce`); the
    /// other spans are unchanged. All members pass the same root and operation, and the same number
    /// of elements of the same type.
    ///
    /// Small numbers of integers, or magnitudes, are combined by the barrier unit if there is one;
    /// [`Communicator::reduction_algorithm`] returns the choice. All other reductions use the
    /// binomial tree of the root. The values combined and their order depend only on the number of
    /// members and the root, so the same values always yield the same bits.
    ///
    /// # Errors
    /// [`NoSuchMember`](crate::FmplError::NoSuchMember) and [`CollectiveInUse`](crate::FmplError::CollectiveInUse),
    /// and nothing is sent. [`CountMismatch`](crate::FmplError::CountMismatch) at two neighbours in the tree
    /// whose lengths differ, and at all members between them and the root. [`MemberLeft`](crate::FmplError::MemberLeft); [`TooManyPeers`](crate::FmplError::TooManyPeers);
    /// [`Fabric`](crate::FmplError::Fabric), if a member was lost or memory runs out.
    pub fn reduce<T: Scalar>(
        &self,
        span: &LocalSpan<T>,
        op: Op,
        root: usize,
    ) -> impl Future<Output = Result<()>> + Send {
        fast_path(
            Reduction { comm: self, span, op, to: To::Member(root), reduced: Reduced::default() },
            Reduction::slow,
        )
    }

    /// Combines by a function of the program. It receives the elements of some members, and those
    /// of the members that follow them, and replaces the former with the result. Members follow
    /// each other from the root on, and member 0 follows the last one, so the function needs to be
    /// associative, but not commutative.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    pub fn reduce_with<'a, T: Pod + Send>(
        &'a self,
        span: &LocalSpan<T>,
        function: impl Fn(&mut [T], &[T]) + Send + 'a,
        root: usize,
    ) -> impl Future<Output = Result<()>> + Send {
        self.reduce_bytes(
            span.as_bytes().map_err(FmplError::from),
            by_function(&self.fabric, span.len(), function),
            To::Member(root),
            None,
            Reduced::default(),
        )
    }

    /// Combines the elements of all members into the `span` of each (`fmpl_allreduce`): a reduction
    /// to member 0 and a broadcast from there, so all members receive the same bits.
    ///
    /// # Errors
    /// As [`Communicator::reduce`]; [`CountMismatch`](crate::FmplError::CountMismatch) is the same
    /// at all members.
    pub fn allreduce<T: Scalar>(&self, span: &LocalSpan<T>, op: Op) -> impl Future<Output = Result<()>> + Send {
        fast_path(Reduction { comm: self, span, op, to: To::All, reduced: Reduced::default() }, Reduction::slow)
    }

    /// Combines by a function of the program, which receives its arguments as in
    /// [`Communicator::reduce_with`], in the order of the members; all members receive the result.
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn allreduce_with<'a, T: Pod + Send>(
        &'a self,
        span: &LocalSpan<T>,
        function: impl Fn(&mut [T], &[T]) + Send + 'a,
    ) -> impl Future<Output = Result<()>> + Send {
        self.reduce_bytes(
            span.as_bytes().map_err(FmplError::from),
            by_function(&self.fabric, span.len(), function),
            To::All,
            None,
            Reduced::default(),
        )
    }

    /// Continues a reduction.
    pub(crate) fn reduce_bytes<'a>(
        &'a self,
        span: Result<LocalSpan<u8>>,
        mut combine: Combine<'a>,
        to: To,
        unit: Option<ByUnit>,
        reduced: Reduced,
    ) -> Boxed<'a, Result<()>> {
        if self.algorithms.some(to.kind(), Algorithm::Central) {
            // A future of its own, since moving the other one takes a noticeable time.
            return Box::pin(async move {
                let span = span?;
                let mut part = self.begin_by_hardware(0)?;
                let outcome = part.reduce_centrally(&span, &mut combine, reduced.arrival).await;
                part.end(outcome).await
            });
        }
        Box::pin(async move {
            let span = span?;
            let (collective, root) = (to.kind(), to.root());
            let size = unit.as_ref().map_or(1, |unit| unit.size);
            let way = self.reduction_way(collective, unit.as_ref(), span.len() / size, span.len())?;
            let Some(unit) = unit.filter(|_| self.algorithms.some(collective, Algorithm::Gates)) else {
                let part = self.begin(root).await?;
                let outcome = part.reduce(&span, &mut combine, to, reduced).await;
                return part.end_in_tree(root, outcome).await;
            };
            let mut part = self.begin_by_hardware(root)?;
            let outcome = match way {
                Algorithm::Gates => part.reduce_by_unit(&span, &unit, to).await,
                // Members with fewer elements may already be using the unit.
                _ => part.reduce_when_agreed(&span, &mut combine, to, reduced).await,
            };
            part.end(outcome).await
        })
    }

    /// Returns the algorithm for a reduction of `elements` elements and `bytes` bytes, given how the
    /// unit would execute it, if it can.
    pub(crate) fn reduction_way(
        &self,
        collective: Collective,
        unit: Option<&ByUnit>,
        elements: usize,
        bytes: usize,
    ) -> Result<Algorithm> {
        let way = self.algorithms.at(collective, bytes)?;
        match unit {
            _ if way == Algorithm::Central => Ok(way),
            Some(unit) if elements <= unit.most => Ok(way),
            _ if way == Algorithm::Tree => Ok(way),
            _ => self.algorithms.otherwise(collective),
        }
    }
}

impl Part<'_> {
    /// Reduces by the barrier unit.
    async fn reduce_by_unit(&mut self, span: &LocalSpan<u8>, unit: &ByUnit, to: To) -> Result<()> {
        let (rounds, comm) = self.rounds()?;
        let mut numbers = [0; MOST];
        let given = unit.encode(&comm.fabric, span, &mut numbers)?;
        match rounds.reduce(comm, unit.op, &numbers[..given]).await {
            Ok(reduced) => match to {
                To::Member(root) if root != comm.me() => Ok(()),
                _ => unit.decode(&comm.fabric, span, &reduced),
            },
            Err(error) => self.refused(error, span.len()).await,
        }
    }

    /// Reduces along the tree, once all members have the same length and none reduces by the unit.
    async fn reduce_when_agreed(
        &mut self,
        span: &LocalSpan<u8>,
        combine: &mut Combine<'_>,
        to: To,
        reduced: Reduced,
    ) -> Result<()> {
        self.agree(span.len()).await?;
        self.meet(to.root()).await?;
        self.reduce(span, combine, to, reduced).await
    }

    /// Checks that all members reduce `bytes` bytes, and none by the unit.
    async fn agree(&mut self, bytes: usize) -> Result<()> {
        let (rounds, comm) = self.rounds()?;
        let (bytes, not) = (bytes as u64, !(bytes as u64));
        match rounds.reduce(comm, ReduceOp::BitOr, &[bytes, not]).await {
            Ok(all) if all[0] & all[1] == 0 => Ok(()),
            Ok(_) => self.differing(bytes as usize).await,
            Err(error) => self.refused(error, bytes as usize).await,
        }
    }

    /// Returns why the unit has refused the reduction: the members' lengths, if they differ.
    async fn refused(&mut self, error: FmplError, bytes: usize) -> Result<()> {
        match &error {
            FmplError::Fabric(FabricError::Gate(gate)) if matches!(**gate, GateError::Mismatch(_)) => {
                self.differing(bytes).await.and(Err(error))
            }
            _ => Err(error),
        }
    }

    /// Finds the members that pass the most and the fewest bytes.
    async fn differing(&mut self, bytes: usize) -> Result<()> {
        let (rounds, comm) = self.rounds()?;
        let (bytes, me) = (bytes as u64, comm.me() as u64);
        let found = rounds.reduce(comm, ReduceOp::MaxLoc, &[bytes, me, !bytes, me]).await?;
        let [most, member, fewest, other] = [found[0], found[1], !found[2], found[3]].map(|number| number as usize);
        match most == fewest {
            true => Ok(()),
            false => Err(FmplError::CountMismatch { member, bytes: most, other, other_bytes: fewest }),
        }
    }

    pub(super) async fn reduce(
        &self,
        span: &LocalSpan<u8>,
        combine: &mut Combine<'_>,
        to: To,
        reduced: Reduced,
    ) -> Result<()> {
        if let (To::All, false) = (to, reduced.down.posted) {
            // The parent sends the result only after it has combined the elements of this member.
            self.expect_down(span).await?;
        }
        let differ = self.up(span, combine, reduced).await?;
        match to {
            To::All => self.down(span, differ, reduced.down).await,
            To::Member(_) => differ.map_or(Ok(()), |differ| Err(differ.error())),
        }
    }

    /// Combines the children's elements with this member's, and sends the result to the parent; at
    /// the root the result is in `span`. While one child's elements are combined, the next child's
    /// may arrive.
    async fn up(&self, span: &LocalSpan<u8>, combine: &mut Combine<'_>, reduced: Reduced) -> Result<Option<Differ>> {
        let mut mine = span.clone();
        let mut differ = None;
        if !self.children.is_empty() {
            let [result, even, odd] = self.work(span.len())?;
            let into = if self.parent.is_some() { result } else { span.clone() };
            for (child, theirs) in self.children.iter().zip([&even, &odd]).skip(reduced.posted) {
                child.post(Way::Up, theirs).await?;
            }
            for (n, child) in self.children.iter().enumerate() {
                let theirs = if n % 2 == 0 { &even } else { &odd };
                if n >= reduced.came {
                    differ = differ.or(child.arrival(Way::Up).await?);
                }
                if differ.is_none() {
                    if n >= reduced.combined {
                        combine(&mine, theirs, &into)?;
                    }
                    mine = into.clone();
                }
                if let Some(later) = self.children.get(n + 2) {
                    later.post(Way::Up, theirs).await?;
                }
            }
        }
        match &self.parent {
            Some(parent) if !reduced.sent => parent.send(Way::Up, &mine, differ).await,
            _ => Ok(differ),
        }
    }
}
