//! Extents of a grid for a number of members.

use super::TopologyError;

/// Extents of `dims` dimensions that multiply to `members`, as close to each other as can be (`MPI_Dims_create` without
/// constraints): never increasing, the first as small as can be, then the second, and so on.
///
/// # Errors
/// [`TopologyError::WrongMembers`] for no members, and for more than one in no dimensions.
pub fn dims_create(members: usize, dims: usize) -> Result<Vec<usize>, TopologyError> {
    let mut divisors: Vec<usize> =
        (1..).take_while(|d| *d <= members / d).filter(|d| members.is_multiple_of(*d)).collect();
    divisors.extend(divisors.clone().iter().rev().map(|d| members / d).filter(|d| *d > members / d));
    let mut extents = Vec::with_capacity(dims);
    if members > 0 && split(members, dims, members, &divisors, &mut extents) {
        Ok(extents)
    } else {
        Err(TopologyError::WrongMembers { wanted: (dims == 0).then_some(1), members })
    }
}

/// Append `dims` extents of at most `most` that multiply to `left`, if there are such.
fn split(left: usize, dims: usize, most: usize, divisors: &[usize], extents: &mut Vec<usize>) -> bool {
    if dims == 0 {
        return left == 1;
    }
    for extent in divisors.iter().copied().take_while(|extent| *extent <= most) {
        // The first is the greatest: smaller ones can't make up for it.
        let enough = u32::try_from(dims).ok().and_then(|dims| extent.checked_pow(dims)).is_none_or(|all| all >= left);
        if enough && left.is_multiple_of(extent) {
            extents.push(extent);
            if split(left / extent, dims - 1, extent, divisors, extents) {
                return true;
            }
            extents.pop();
        }
    }
    false
}
