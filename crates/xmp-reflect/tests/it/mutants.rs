//! Mutated plans, which the oracle must detect. Each mutant is also run on arrays on which it has
//! no effect, which shows that the detection is due to this mutant and nothing else.

use crate::{
    arrays::Array,
    expected::Expected,
    simulated::{plans, reflects},
};
use xmp_reflect::{Corners, Format, Mapping, Part, Plan, Section, Shadow, Transfer, Widths};

/// The condition for the existence of a corner piece of shadow.
#[derive(Clone, Copy)]
enum Border {
    /// Each dimension in which the direction is not 0.
    EachDimension,
    /// One flag for all of them, and any that is at a bound.
    ProductOfFlags,
}

/// Plans by coordinates: the next node in each dimension is assumed to own the source cells.
fn by_neighbours(mapping: &Mapping, widths: &[Widths], border: Border) -> Vec<Plan> {
    (0..mapping.nodes().size()).map(|node| of_node(&mapping.part(node).expect("a node"), widths, border)).collect()
}

fn of_node(part: &Part, widths: &[Widths], border: Border) -> Plan {
    let dims = widths.len();
    let mut plan = Plan::default();
    for number in (0..3usize.pow(dims as u32)).filter(|number| *number != 3usize.pow(dims as u32) / 2) {
        let direction: Vec<i8> =
            (0..dims).map(|dim| (number / 3usize.pow((dims - 1 - dim) as u32) % 3) as i8 - 1).collect();
        let add = |list: &mut Vec<Transfer>, sign: i8, start: fn(i8, usize, usize, usize) -> usize| {
            let towards: Vec<i8> = direction.iter().map(|side| side * sign).collect();
            let Some(peer) = neighbour(part, widths, &towards, border) else { return };
            let mut section = Section { starts: Vec::new(), extents: Vec::new() };
            for (dim, side) in direction.iter().enumerate() {
                let Shadow::Width { lo, .. } = part.mapping().declared_shadow(dim) else { panic!("no layers") };
                let owned = part.owned(dim);
                let width = [widths[dim].lo, owned, widths[dim].hi][(side + 1) as usize];
                section.starts.push(start(*side, lo, owned, width));
                section.extents.push(width);
            }
            if !section.is_empty() {
                let label = list.iter().filter(|transfer| transfer.peer == peer).count() as u32;
                list.push(Transfer { peer, section, direction: direction.clone(), label });
            }
        };
        add(&mut plan.receives, 1, |side, lo, owned, width| {
            [lo.wrapping_sub(width), lo, lo + owned][(side + 1) as usize]
        });
        add(&mut plan.sends, -1, |side, lo, owned, width| {
            [(lo + owned).saturating_sub(width), lo, lo][(side + 1) as usize]
        });
    }
    plan
}

/// The node in a direction, if the piece of shadow there is to be updated.
fn neighbour(part: &Part, widths: &[Widths], direction: &[i8], border: Border) -> Option<usize> {
    let nodes = part.mapping().nodes();
    let mut peer = part.coordinates().to_vec();
    let (mut flags, mut outside, mut missing) = (true, false, false);
    for (dim, side) in direction.iter().enumerate().filter(|(_, side)| **side != 0) {
        let (at, extent) = (peer[dim] as i64 + i64::from(*side), nodes.extents()[dim] as i64);
        let beyond = !(0..extent).contains(&at);
        flags &= widths[dim].periodic;
        outside |= beyond;
        missing |= beyond && !widths[dim].periodic;
        peer[dim] = at.rem_euclid(extent) as usize;
    }
    let there = match border {
        Border::EachDimension => !missing,
        Border::ProductOfFlags => flags || !outside,
    };
    there.then(|| nodes.number(&peer).expect("a node"))
}

/// Runs mutated plans.
fn run(array: &Array, widths: &[Widths], make: impl Fn(&Mapping) -> Vec<Plan>) -> Result<(), String> {
    let (mapping, expected) = (array.mapping().expect("a mapping"), Expected::new(array, widths, Corners::With));
    let right = plans(&mapping, widths, Corners::With).expect("plans");
    reflects(&mapping, &expected, &right).expect("the crate's own plans are right");
    reflects(&mapping, &expected, &make(&mapping))
}

/// Square blocks of these lengths.
fn blocks(lengths: &[usize]) -> Array {
    let dim = (lengths.iter().sum::<usize>() as i64, Format::Gblock(lengths.to_vec()), Shadow::of(2));
    Array::simple(&[lengths.len(); 2], &[dim.clone(), dim])
}

const CLOSED: Widths = Widths::of(1);
const RING: Widths = Widths::of(1).periodic();

#[test]
fn a_neighbour_by_coordinates_has_not_what_an_empty_block_should() {
    let neighbours = |array: &Array, widths: [Widths; 2]| {
        run(array, &widths, |mapping| by_neighbours(mapping, &widths, Border::EachDimension))
    };
    for widths in [[CLOSED; 2], [RING; 2], [RING, CLOSED], [CLOSED, RING]] {
        neighbours(&blocks(&[3, 2, 4]), widths).expect("no block is empty");
        neighbours(&blocks(&[2]), widths).expect("one node");
        neighbours(&blocks(&[2, 3]), widths).expect("two nodes");
        neighbours(&blocks(&[3, 0, 4]), widths).expect_err("an empty block");
    }
    neighbours(&blocks(&[3, 1, 4]), [Widths::of(2); 2]).expect_err("a block narrower than the shadow");
}

#[test]
fn one_flag_for_all_dimensions_drops_corners() {
    let product = |widths: [Widths; 2]| {
        let make = |mapping: &Mapping| by_neighbours(mapping, &widths, Border::ProductOfFlags);
        run(&blocks(&[3, 2, 4]), &widths, make)
    };
    product([CLOSED; 2]).expect("no dimension is periodic");
    product([RING; 2]).expect("all dimensions are periodic");
    product([RING, CLOSED]).expect_err("beyond the first dimension, inside of the second");
    product([CLOSED, RING]).expect_err("beyond the second dimension, inside of the first");
}

#[test]
fn sends_in_the_order_of_the_sender_arrive_elsewhere() {
    let by_sender = |lengths: &[usize]| {
        run(&blocks(lengths), &[RING; 2], |mapping| {
            let mut plans = plans(mapping, &[RING; 2], Corners::With).expect("plans");
            for plan in &mut plans {
                plan.sends.sort_by_key(|transfer| (transfer.peer, transfer.section.starts.clone()));
                for at in 0..plan.sends.len() {
                    let earlier = plan.sends[..at].iter().filter(|other| other.peer == plan.sends[at].peer).count();
                    plan.sends[at].label = earlier as u32;
                }
            }
            plans
        })
    };
    by_sender(&[3, 2, 4]).expect("one piece for each two nodes");
    by_sender(&[3, 3]).expect_err("both sides of the ring are one node");
}

#[test]
fn a_piece_that_is_missing_is_missed() {
    let lose = |lost: fn(&mut Plan)| {
        run(&blocks(&[2, 2]), &[RING; 2], |mapping| {
            let mut plans = plans(mapping, &[RING; 2], Corners::With).expect("plans");
            lost(&mut plans[3]);
            plans
        })
    };
    lose(|_| ()).expect("nothing is lost");
    lose(|plan| drop(plan.receives.pop())).expect_err("nobody receives");
    lose(|plan| drop(plan.sends.pop())).expect_err("nobody sends");
    lose(|plan| plan.receives[0].section.starts[0] += 1).expect_err("one cell off");
}
