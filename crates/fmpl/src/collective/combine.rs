//! Combining elements of members, in memory that others access: blocks of them are copied out, and the results back.

use super::{Op, Scalar};
use crate::Result;
use rdma_fabric::{Fabric, LocalSpan, Pod};

/// Combines the first with the second into the third; all have the same length.
pub(crate) type Combine<'a> = Box<dyn FnMut(&LocalSpan<u8>, &LocalSpan<u8>, &LocalSpan<u8>) -> Result<()> + Send + 'a>;

/// The most bytes that an operation processes at a time: an access to memory costs several locked instructions.
const BLOCK: usize = 8 << 10;

/// Elements of this member and of another one, while they are combined.
#[derive(Default)]
pub(crate) struct Scratch([Vec<u64>; 2]);

pub(super) fn by_op<T: Scalar>(fabric: &Fabric, op: Op) -> Combine<'static> {
    let (fabric, mut scratch) = (fabric.clone(), Scratch::default());
    Box::new(move |mine, theirs, into| combine::<T>(&fabric, op, [mine, theirs, into], &mut scratch))
}

/// Combines the first with the second into the third.
pub(super) fn combine<T: Scalar>(
    fabric: &Fabric,
    op: Op,
    [mine, theirs, into]: [&LocalSpan<u8>; 3],
    scratch: &mut Scratch,
) -> Result<()> {
    let (elements, most) = (mine.len() / size_of::<T>(), BLOCK / size_of::<T>());
    for start in (0..elements).step_by(most) {
        let (at, length) = (start * size_of::<T>(), most.min(elements - start));
        let words = (length * size_of::<T>()).div_ceil(size_of::<u64>());
        let [block, other] = scratch.0.each_mut().map(|kept| {
            if kept.len() < words {
                kept.resize(words, 0);
            }
            &mut bytemuck::cast_slice_mut::<_, T>(&mut kept[..words])[..length]
        });
        fabric.read(&*mine.part_as::<T>(at, length)?, block)?;
        fabric.read(&*theirs.part_as::<T>(at, length)?, other)?;
        op.combine(block, other);
        fabric.write(&*into.part_as::<T>(at, length)?, block)?;
    }
    Ok(())
}

pub(super) fn by_function<'a, T: Pod + Send>(
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
