//! Reductions.

use super::{
    Op, Part, Scalar,
    edge::{Differ, Way},
};
use crate::{Communicator, Result, point::as_bytes};
use core::future::Future;
use rdma_fabric::{Fabric, LocalSpan, Pod, provider::Boxed};

/// Combines the first with the second into the third; all have the same length.
type Combine<'a> = Box<dyn FnMut(&LocalSpan<u8>, &LocalSpan<u8>, &LocalSpan<u8>) -> Result<()> + Send + 'a>;

/// Where the result goes.
#[derive(Clone, Copy)]
enum To {
    Member(usize),
    All,
}

impl Communicator {
    /// Combines the elements of all members into the `span` of member `root` (`fmpl_reduce`); the
    /// other spans stay as they are. All name the same root and operation, and give as many elements
    /// of the same type.
    ///
    /// Goes up the binomial tree of the root. Which values are combined, and in which order, depends
    /// on nothing but the number of members and the root, so the same values always give the same
    /// bits.
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
        self.reduce_bytes(as_bytes(span), by_op::<T>(&self.fabric, op), To::Member(root))
    }

    /// Combines by a function of the program. It gets the elements of some members, and those of the
    /// members that follow them; it puts the result in place of the former. Members follow each other
    /// from the root on, and member 0 follows the last one, so the function needs to be associative,
    /// but not commutative.
    ///
    /// # Errors
    /// As [`Communicator::reduce`].
    pub fn reduce_with<'a, T: Pod + Send>(
        &'a self,
        span: &LocalSpan<T>,
        function: impl Fn(&mut [T], &[T]) + Send + 'a,
        root: usize,
    ) -> impl Future<Output = Result<()>> + Send {
        self.reduce_bytes(as_bytes(span), by_function(&self.fabric, span.len(), function), To::Member(root))
    }

    /// Combines the elements of all members into the `span` of each (`fmpl_allreduce`): a reduction
    /// to member 0, and a broadcast from there, so all get the same bits.
    ///
    /// # Errors
    /// As [`Communicator::reduce`]; [`CountMismatch`](crate::FmplError::CountMismatch) is the same at all.
    pub fn allreduce<T: Scalar>(&self, span: &LocalSpan<T>, op: Op) -> impl Future<Output = Result<()>> + Send {
        self.reduce_bytes(as_bytes(span), by_op::<T>(&self.fabric, op), To::All)
    }

    /// Combines by a function of the program, which gets its arguments as in
    /// [`Communicator::reduce_with`], in the order of the members; all get the result.
    ///
    /// # Errors
    /// As [`Communicator::allreduce`].
    pub fn allreduce_with<'a, T: Pod + Send>(
        &'a self,
        span: &LocalSpan<T>,
        function: impl Fn(&mut [T], &[T]) + Send + 'a,
    ) -> impl Future<Output = Result<()>> + Send {
        self.reduce_bytes(as_bytes(span), by_function(&self.fabric, span.len(), function), To::All)
    }

    fn reduce_bytes<'a>(
        &'a self,
        span: Result<LocalSpan<u8>>,
        mut combine: Combine<'a>,
        to: To,
    ) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let span = span?;
            let part = self.begin(if let To::Member(root) = to { root } else { 0 }).await?;
            let outcome = part.reduce(&span, &mut combine, to).await;
            part.end(outcome).await
        })
    }
}

impl Part<'_> {
    async fn reduce(&self, span: &LocalSpan<u8>, combine: &mut Combine<'_>, to: To) -> Result<()> {
        if let To::All = to {
            // Nothing comes down before what this member has sent up is combined.
            self.expect_down(span).await?;
        }
        let differ = self.up(span, combine).await?;
        match to {
            To::All => self.down(span, differ).await,
            To::Member(_) => differ.map_or(Ok(()), |differ| Err(differ.error())),
        }
    }

    /// Combines what comes up with what this member has, and sends it on; at the root it is then in
    /// `span`. While one child's is combined, the next one's may come.
    async fn up(&self, span: &LocalSpan<u8>, combine: &mut Combine<'_>) -> Result<Option<Differ>> {
        let mut mine = span.clone();
        let mut differ = None;
        if !self.children.is_empty() {
            let [result, even, odd] = self.work(span.len())?;
            let into = if self.parent.is_some() { result } else { span.clone() };
            for (child, theirs) in self.children.iter().zip([&even, &odd]) {
                child.post(Way::Up, theirs).await?;
            }
            for (n, child) in self.children.iter().enumerate() {
                let theirs = if n % 2 == 0 { &even } else { &odd };
                differ = differ.or(child.arrival(Way::Up).await?);
                if differ.is_none() {
                    combine(&mine, theirs, &into)?;
                    mine = into.clone();
                }
                if let Some(later) = self.children.get(n + 2) {
                    later.post(Way::Up, theirs).await?;
                }
            }
        }
        match &self.parent {
            Some(parent) => parent.send(Way::Up, &mine, differ).await,
            None => Ok(differ),
        }
    }
}

/// How many elements an operation takes at once.
const BLOCK: usize = 256;

fn by_op<T: Scalar>(fabric: &Fabric, op: Op) -> Combine<'static> {
    let fabric = fabric.clone();
    Box::new(move |mine, theirs, into| {
        let elements = mine.len() / size_of::<T>();
        let (mut block, mut other) = ([T::zeroed(); BLOCK], [T::zeroed(); BLOCK]);
        for start in (0..elements).step_by(BLOCK) {
            let length = BLOCK.min(elements - start);
            let (block, other) = (&mut block[..length], &mut other[..length]);
            let at = start * size_of::<T>();
            fabric.read(&*mine.part_as::<T>(at, length)?, block)?;
            fabric.read(&*theirs.part_as::<T>(at, length)?, other)?;
            op.combine(block, other);
            fabric.write(&*into.part_as::<T>(at, length)?, block)?;
        }
        Ok(())
    })
}

fn by_function<'a, T: Pod + Send>(
    fabric: &Fabric,
    elements: usize,
    function: impl Fn(&mut [T], &[T]) + Send + 'a,
) -> Combine<'a> {
    let fabric = fabric.clone();
    let (mut all, mut others) = (Vec::new(), Vec::new());
    Box::new(move |mine, theirs, into| {
        all.resize(elements, T::zeroed());
        others.resize(elements, T::zeroed());
        fabric.read(&*mine.part_as::<T>(0, elements)?, &mut all)?;
        fabric.read(&*theirs.part_as::<T>(0, elements)?, &mut others)?;
        function(&mut all, &others);
        Ok(fabric.write(&*into.part_as::<T>(0, elements)?, &all)?)
    })
}
