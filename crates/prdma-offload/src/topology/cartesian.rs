//! Grids.

use super::{Edge, Topology, TopologyError};
use crate::init::compiled_here;
use rdma_fabric::Group;

/// A grid of members, numbered with the last dimension fastest (`MPI_Cart_create`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cartesian {
    /// Extents, none of them 0; their product does not overflow.
    dims: Box<[usize]>,
    /// Whether the last member of a dimension is a neighbour of the first one.
    periodic: Box<[bool]>,
}

impl Cartesian {
    /// Makes a grid of these extents; a periodic dimension is a ring. Without dimensions the grid
    /// has one member.
    ///
    /// # Errors
    /// [`TopologyError::Dimensions`]; [`TopologyError::WrongMembers`] if the grid has no members,
    /// or more than can be numbered.
    pub fn new(dims: &[usize], periodic: &[bool]) -> Result<Cartesian, TopologyError> {
        if dims.len() != periodic.len() {
            return Err(TopologyError::Dimensions { given: periodic.len(), dims: dims.len() });
        }
        match dims.iter().try_fold(1usize, |members, extent| members.checked_mul(*extent)) {
            Some(1..) => Ok(Cartesian { dims: dims.into(), periodic: periodic.into() }),
            wanted => Err(TopologyError::WrongMembers { wanted, members: 0 }),
        }
    }

    /// Returns the number of members of the grid.
    pub fn members(&self) -> usize {
        self.dims.iter().product()
    }

    /// Returns the extents.
    pub fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// Returns, for each dimension, whether it is a ring.
    pub fn periodic(&self) -> &[bool] {
        &self.periodic
    }

    /// Returns the coordinates of a member (`MPI_Cart_coords`).
    ///
    /// # Errors
    /// [`TopologyError::NotAMember`].
    pub fn coordinates(&self, member: usize) -> Result<Vec<usize>, TopologyError> {
        if member >= self.members() {
            return Err(TopologyError::NotAMember { member, members: self.members() });
        }
        Ok(digits(member, &self.dims))
    }

    /// Returns the member at some coordinates (`MPI_Cart_rank`): wraps around in periodic
    /// dimensions, and is `None` beyond a border of others.
    ///
    /// # Errors
    /// [`TopologyError::Dimensions`].
    pub fn member(&self, coordinates: &[i64]) -> Result<Option<usize>, TopologyError> {
        if coordinates.len() != self.dims.len() {
            return Err(TopologyError::Dimensions { given: coordinates.len(), dims: self.dims.len() });
        }
        Ok(coordinates.iter().zip(&self.dims).zip(&self.periodic).try_fold(0, |number, ((at, extent), periodic)| {
            let at = if *periodic { at.rem_euclid(*extent as i64) } else { *at };
            let at = usize::try_from(at).ok().filter(|at| at < extent)?;
            Some(number * extent + at)
        }))
    }

    /// Returns the members from which `me` receives and to which it sends if all members send by
    /// `displacement` along `dim` (`MPI_Cart_shift`).
    ///
    /// # Errors
    /// [`TopologyError::NotAMember`], [`TopologyError::NoSuchDim`].
    pub fn shift(
        &self,
        me: usize,
        dim: usize,
        displacement: i64,
    ) -> Result<(Option<usize>, Option<usize>), TopologyError> {
        let at = self.coordinates(me)?;
        let Some(extent) = self.dims.get(dim).copied() else {
            return Err(TopologyError::NoSuchDim { dim, dims: self.dims.len() });
        };
        let stride: usize = self.dims[dim + 1..].iter().product();
        let moved = |by: i128| {
            let to = at[dim] as i128 + by;
            let to = if self.periodic[dim] { to.rem_euclid(extent as i128) } else { to };
            let to = usize::try_from(to).ok().filter(|to| *to < extent)?;
            Some(me - at[dim] * stride + to * stride)
        };
        Ok((moved(-i128::from(displacement)), moved(i128::from(displacement))))
    }

    /// Returns the neighbours of `me` along the axes (`MPI_Cart_create`, MPI 4.1 section 8.6): on
    /// both sides, slot `2d` is the neighbour in the negative direction of dimension `d`, and slot
    /// `2d + 1` the one in the positive direction; `None` beyond a border.
    ///
    /// A block that is sent in slot `s` arrives in slot `s ^ 1` of the receiver, even if a ring has
    /// one or two members and both slots refer to the same member.
    ///
    /// # Panics
    /// If `me` is not a member.
    pub fn topology(&self, me: usize) -> Topology {
        let n = self.dims.len();
        let directions = (0..2 * n).map(|slot| {
            let mut direction = vec![0; n];
            direction[slot / 2] = if slot % 2 == 0 { -1 } else { 1 };
            direction
        });
        self.towards(me, directions.collect(), |slot| slot ^ 1)
    }

    /// Returns the 3ⁿ − 1 members that surround `me`, including corners: those of stencils of 9 and
    /// 27 points. Directions are in order of their coordinates −1, 0, 1, the last dimension
    /// fastest, without the zero direction; `None` beyond a border. MPI has no such topology.
    ///
    /// A block that is sent in one direction arrives in the receiver's slot of the
    /// [opposite](Cartesian::opposite) direction, even if several slots refer to the same member.
    ///
    /// # Panics
    /// If `me` is not a member.
    pub fn moore(&self, me: usize) -> Topology {
        let threes = vec![3; self.dims.len()];
        let all = threes.iter().product::<usize>();
        let directions = (0..all).filter(|number| *number != all / 2);
        let directions =
            directions.map(|number| digits(number, &threes).iter().map(|digit| *digit as i64 - 1).collect());
        self.towards(me, directions.collect(), |slot| self.opposite(slot))
    }

    /// Returns the slot of [`Cartesian::moore`] where a block sent in `slot` arrives.
    ///
    /// # Panics
    /// If there is no such slot.
    pub fn opposite(&self, slot: usize) -> usize {
        3usize.pow(self.dims.len() as u32) - 2 - slot
    }

    /// Returns the topology with neighbours in `directions`; each edge is labelled with the slot of
    /// its source.
    fn towards(&self, me: usize, directions: Vec<Vec<i64>>, opposite: impl Fn(usize) -> usize) -> Topology {
        assert!(me < self.members(), "member {me} of a grid of {}", self.members());
        let at = digits(me, &self.dims);
        let neighbours: Vec<Option<usize>> = directions
            .iter()
            .map(|direction| {
                let there: Vec<i64> = at.iter().zip(direction).map(|(at, by)| *at as i64 + by).collect();
                self.member(&there).expect("a direction of this grid")
            })
            .collect();
        let edges = |label: &dyn Fn(usize) -> usize| {
            let edge = |(slot, member): (usize, &Option<usize>)| {
                member.map(|member| Edge { member, label: label(slot) as u32 })
            };
            neighbours.iter().enumerate().map(edge).collect()
        };
        Topology { sources: edges(&opposite), destinations: edges(&|slot| slot), weights: None }
    }

    /// Makes the part of the grid that has the same coordinates as this member in all dimensions
    /// that are not kept, as a separate group and grid (`MPI_Cart_sub`). Collective over `group`,
    /// to which this grid belongs.
    ///
    /// # Errors
    /// [`TopologyError::Dimensions`], [`TopologyError::WrongMembers`]; as [`Group::split`].
    pub fn sub<'a>(
        &'a self,
        group: &'a mut Group,
        keep: &'a [bool],
    ) -> impl Future<Output = Result<(Group, Cartesian), TopologyError>> {
        compiled_here(self.kept(group, keep))
    }

    async fn kept(&self, group: &mut Group, keep: &[bool]) -> Result<(Group, Cartesian), TopologyError> {
        if keep.len() != self.dims.len() {
            return Err(TopologyError::Dimensions { given: keep.len(), dims: self.dims.len() });
        }
        self.fits(group)?;
        let at = self.coordinates(group.me())?;
        let number = |kept: bool| {
            let dims = at.iter().zip(&self.dims).zip(keep).filter(|(_, keep)| **keep == kept);
            dims.fold(0u64, |number, ((at, extent), _)| number * *extent as u64 + *at as u64)
        };
        let (colour, order) = (number(false), number(true));
        let kept = |dim: &usize| keep[*dim];
        let grid = Cartesian {
            dims: (0..keep.len()).filter(kept).map(|dim| self.dims[dim]).collect(),
            periodic: (0..keep.len()).filter(kept).map(|dim| self.periodic[dim]).collect(),
        };
        match group.split(Some(colour), order).await? {
            Some(part) => Ok((part, grid)),
            None => Err(TopologyError::Failed { member: group.me() }),
        }
    }

    /// Checks that the grid has as many members as a group.
    pub(super) fn fits(&self, group: &Group) -> Result<(), TopologyError> {
        let (wanted, members) = (Some(self.members()), group.len());
        if wanted == Some(members) { Ok(()) } else { Err(TopologyError::WrongMembers { wanted, members }) }
    }
}

/// Returns the digits of `number` in mixed radix, the last fastest.
pub(super) fn digits(number: usize, radices: &[usize]) -> Vec<usize> {
    let mut rest = number;
    let mut digits: Vec<usize> = radices
        .iter()
        .rev()
        .map(|radix| {
            let digit = rest % radix;
            rest /= radix;
            digit
        })
        .collect();
    digits.reverse();
    digits
}

/// Returns extents of `dims` dimensions that multiply to `members`, as close to each other as
/// possible (`MPI_Dims_create` without constraints): in non-increasing order, the first as small as
/// possible, then the second, and so on.
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

/// Appends `dims` extents of at most `most` that multiply to `left`, if such extents exist.
fn split(left: usize, dims: usize, most: usize, divisors: &[usize], extents: &mut Vec<usize>) -> bool {
    if dims == 0 {
        return left == 1;
    }
    for extent in divisors.iter().copied().take_while(|extent| *extent <= most) {
        // The first is the greatest: smaller ones cannot compensate for it.
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
