//! The definitions of the public tests of the first XcalableMP compiler, with smaller arrays.

use crate::{
    arrays::{Array, Dim},
    expected::{Expected, UNTOUCHED},
    simulated::{Job, all, check, plans},
};
use xmp_reflect::{Align, Corners, Format, Order, Plan, Shadow, Widths};

const ONE: Widths = Widths::of(1);

/// A job after a reflect, whose cells have been compared with the specification.
fn after(array: &Array, widths: &[Widths], corners: Corners, look: impl FnOnce(&Job)) {
    check(array, widths, corners).expect("as the specification says");
    let (mapping, expected) = (array.mapping().expect("a mapping"), Expected::new(array, widths, corners));
    let mut job = Job::new(&mapping, &expected).expect("a job");
    job.reflect(&plans(&mapping, widths, corners).expect("plans")).expect("a reflect");
    look(&job);
}

/// A square array of this extent in blocks over 2 × 2 nodes.
fn square(len: i64, shadows: [Shadow; 2]) -> Array {
    Array::simple(&[2, 2], &shadows.map(|shadow| (len, Format::Block, shadow)))
}

#[test]
fn shadow_reflect() {
    after(&square(4, [Shadow::of(1); 2]), &[ONE; 2], Corners::Orthogonal, |job| {
        // Node 0 has rows and columns 0 and 1; its shadow ends at row and column 2.
        assert_eq!((job.value(0, &[3, 1]), job.value(0, &[1, 3])), (2 * 4, 2));
        assert_eq!((job.value(0, &[3, 3]), job.value(0, &[0, 1])), (UNTOUCHED, UNTOUCHED));
    });
}

#[test]
fn shadow_check() {
    after(&square(16, [Shadow::of(1); 2]), &[Widths::WHOLE; 2], Corners::With, |job| {
        for node in 0..4 {
            for local in all(&[10, 10]).iter() {
                let outside = |dim: usize| local[dim] == if [node / 2, node % 2][dim] == 0 { 0 } else { 9 };
                let untouched = outside(0) || outside(1);
                assert_eq!(job.value(node, &local) == UNTOUCHED, untouched, "{local:?} of node {node}");
            }
        }
    });
}

#[test]
fn ordinal_reflect() {
    let array = Array::simple(&[2; 3], &[const { (8, Format::Block, Shadow::of(1)) }; 3]);
    let (mapping, widths) = (array.mapping().expect("a mapping"), [ONE.periodic(); 3]);
    check(&array, &widths, Corners::With).expect("one reflect of all dimensions");
    // Node 7 is the neighbour of node 0 at both ends of all three dimensions.
    let plan = Plan::new(&mapping, 0, &widths, Corners::With).expect("a plan");
    let corners = |transfer: &&xmp_reflect::Transfer| transfer.peer == 7;
    assert_eq!((plan.receives.len(), plan.receives.iter().filter(corners).count()), (26, 8));

    let expected = Expected::new(&array, &widths, Corners::With);
    let one_after_another = |corners| {
        let mut job = Job::new(&mapping, &expected).expect("a job");
        for dim in 0..3 {
            let mut alone = [Widths::NONE; 3];
            alone[dim] = widths[dim];
            job.reflect(&plans(&mapping, &alone, corners).expect("plans")).expect("a reflect");
        }
        job.compare()
    };
    one_after_another(Corners::Carried).expect("three reflects of one dimension");
    one_after_another(Corners::With).expect_err("corners are not theirs to update");
}

#[test]
fn full_shadows() {
    let filled = |array: &Array, nodes| {
        let whole = vec![Widths::WHOLE; array.dims.len()];
        after(array, &whole, Corners::With, |job| {
            let mapping = array.mapping().expect("a mapping");
            for node in 0..nodes {
                let part = mapping.part(node).expect("a node");
                assert!(all(part.extents()).iter().all(|local| job.value(node, &local) != UNTOUCHED));
            }
        });
    };
    filled(&Array::simple(&[2], &[(10, Format::Block, Shadow::Full)]), 2);
    filled(&Array::simple(&[2; 2], &[const { (4, Format::Cyclic, Shadow::Full) }; 2]), 4);
    filled(&square(10, [Shadow::NONE, Shadow::Full]), 4);
    filled(&square(4, [Shadow::NONE, Shadow::Full]), 4);
}

#[test]
fn a_ring_of_one_node() {
    let array = Array::simple(&[1], &[(8, Format::Block, Shadow::of(1))]);
    after(&array, &[ONE.periodic()], Corners::With, |job| {
        assert_eq!((job.value(0, &[0]), job.value(0, &[9])), (7, 0));
    });
}

#[test]
fn a_transposed_alignment() {
    let aligned = |with| Dim { bounds: 0..10, align: Align::with(with), shadow: Shadow::of(1) };
    let array =
        Array { numbered: Order::FirstFastest, dims: vec![aligned(1), aligned(0)], ..square(10, [Shadow::of(1); 2]) };
    after(&array, &[Widths::WHOLE; 2], Corners::With, |job| {
        // Node 1 has the upper half of the array's second dimension.
        assert_eq!((job.value(1, &[1, 1]), job.value(1, &[6, 0])), (5, 5 * 10 + 4));
    });
}

#[test]
fn unequal_widths() {
    let array = square(10, [Shadow::of(1), Shadow::of(2)]);
    for corners in [Corners::With, Corners::Orthogonal] {
        for widths in [[Widths::WHOLE; 2], [ONE, ONE.periodic()], [Widths::NONE, Widths { lo: 0, ..Widths::of(2) }]] {
            check(&array, &widths, corners).expect("as the specification says");
        }
    }
}

#[test]
fn reduce_shadow() {
    let blocks = Format::Gblock(vec![4, 4, 8, 16]);
    let array = Array::simple(&[4; 2], &[const { 32 }; 2].map(|len| (len, blocks.clone(), Shadow::of(1))));
    let (mapping, widths) = (array.mapping().expect("a mapping"), [ONE.periodic(); 2]);
    for (corners, at_corners) in [(Corners::Orthogonal, 3), (Corners::With, 4)] {
        check(&array, &widths, corners).expect("as the specification says");
        let expected = Expected::new(&array, &widths, corners);
        let mut job = Job::filled(&mapping, &expected, |_, _| 1).expect("a job");
        let plans: Vec<Plan> =
            plans(&mapping, &widths, corners).expect("plans").into_iter().map(Plan::reversed).collect();
        job.reduce(&plans).expect("a reduction");
        // Of 4 × 4 own cells: one at an edge is in one shadow, the one at a corner in two, or three.
        assert_eq!([[2, 2], [1, 2], [1, 1]].map(|cell| job.value(0, &cell)), [1, 2, at_corners]);
    }
}

#[test]
fn a_template_that_is_fixed_later() {
    let blocks = Format::Gblock(vec![8, 16, 32, 64]);
    let array = Array::simple(&[4], &[(120, blocks, Shadow::of(2))]);
    after(&array, &[ONE.periodic()], Corners::With, |job| {
        assert_eq!((job.value(0, &[1]), job.value(0, &[0]), job.value(3, &[66])), (119, UNTOUCHED, 0));
    });
}
