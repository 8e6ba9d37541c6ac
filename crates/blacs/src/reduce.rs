//! The combination of two operands: sums, and the greatest and least magnitudes.

use crate::{Combine, Element, Precision};

/// The rule by which two messages of a combine are combined.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fold {
    pub(crate) combine: Combine,
    pub(crate) precision: Precision,
    /// Whether each message contains, after its elements, the distance of each element's contributor.
    pub(crate) winners: bool,
}

/// The number of bytes of a distance.
pub(crate) const DISTANCE: usize = size_of::<u32>();

impl Fold {
    /// Combines the message `second` into `first`. Both have the same length.
    pub(crate) fn apply(&self, first: &mut [u8], second: &[u8]) {
        match self.precision {
            Precision::I => self.of::<i32>(first, second),
            Precision::Long => self.of::<i64>(first, second),
            Precision::S => self.of::<f32>(first, second),
            Precision::D => self.of::<f64>(first, second),
            Precision::C => self.of::<[f32; 2]>(first, second),
            Precision::Z => self.of::<[f64; 2]>(first, second),
        }
    }

    fn of<T: Element>(&self, first: &mut [u8], second: &[u8]) {
        match self.combine {
            Combine::Sum => each(first, second, |a: T, b: T| Some(a.plus(b))),
            Combine::AbsMax if self.winners => {
                with_winners(first, second, |a: &T, b: &T| b.magnitude() > a.magnitude())
            }
            Combine::AbsMin if self.winners => {
                with_winners(first, second, |a: &T, b: &T| b.magnitude() < a.magnitude())
            }
            Combine::AbsMax => {
                each(first, second, |a: T, b: T| replaces(&a, &b, b.magnitude() > a.magnitude()).then_some(b))
            }
            Combine::AbsMin => {
                each(first, second, |a: T, b: T| replaces(&a, &b, b.magnitude() < a.magnitude()).then_some(b))
            }
        }
    }
}

/// Returns whether `b` replaces `a`: `b` has won, or the magnitudes are equal and `b` precedes `a` by
/// value.
fn replaces<T: Element>(a: &T, b: &T, won: bool) -> bool {
    won || a.magnitude() == b.magnitude() && b.precedes(a)
}

/// Replaces each element of `first` for which `replacement` returns a value.
fn each<T: Element>(first: &mut [u8], second: &[u8], replacement: impl Fn(T, T) -> Option<T>) {
    for (a, b) in first.chunks_exact_mut(size_of::<T>()).zip(second.chunks_exact(size_of::<T>())) {
        if let Some(new) = replacement(bytemuck::pod_read_unaligned(a), bytemuck::pod_read_unaligned(b)) {
            a.copy_from_slice(bytemuck::bytes_of(&new));
        }
    }
}

/// Replaces each element of `first`, with its distance, if the element of `second` wins, or if it has
/// the same magnitude and a smaller distance.
fn with_winners<T: Element>(first: &mut [u8], second: &[u8], wins: impl Fn(&T, &T) -> bool) {
    let elements = first.len() / (size_of::<T>() + DISTANCE);
    let (first, first_distances) = first.split_at_mut(elements * size_of::<T>());
    let (second, second_distances) = second.split_at(elements * size_of::<T>());
    let values = first.chunks_exact_mut(size_of::<T>()).zip(second.chunks_exact(size_of::<T>()));
    let distances = first_distances.chunks_exact_mut(DISTANCE).zip(second_distances.chunks_exact(DISTANCE));
    for ((a, b), (near, far)) in values.zip(distances) {
        let (old, new): (T, T) = (bytemuck::pod_read_unaligned(a), bytemuck::pod_read_unaligned(b));
        let (here, there): (u32, u32) = (bytemuck::pod_read_unaligned(near), bytemuck::pod_read_unaligned(far));
        if wins(&old, &new) || old.magnitude() == new.magnitude() && there < here {
            a.copy_from_slice(b);
            near.copy_from_slice(far);
        }
    }
}
