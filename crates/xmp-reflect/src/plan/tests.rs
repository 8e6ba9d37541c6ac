//! The contents, errors and cost of plans. The integration tests check their correctness.

use super::*;
use crate::mapping::{Align, Format, Nodes, Order, Shadow, Template};

/// An array of these extents in blocks over as many nodes along each dimension.
fn blocks(nodes: &[usize], extents: &[i64], shadows: &[Shadow]) -> Mapping {
    let nodes = Nodes::new(nodes, Order::LastFastest).expect("nodes");
    let bounds: Vec<_> = extents.iter().map(|extent| 0..*extent).collect();
    let template = Template::new(&bounds, &vec![Format::Block; extents.len()], &nodes).expect("a template");
    let aligns: Vec<_> = (0..extents.len()).map(Align::with).collect();
    template.align(&bounds, &aligns).expect("a mapping").shadow(shadows).expect("a shadow")
}

#[test]
fn widths_are_checked() {
    let mapping = blocks(&[2, 2], &[8, 8], &[Shadow::Width { lo: 1, hi: 2 }, Shadow::Full]);
    let plan = |widths: &[Widths]| Plan::new(&mapping, 0, widths, Corners::With).map(|plan| plan.receives.len());
    let whole = Widths::WHOLE;
    assert_eq!(plan(&[whole]), Err(PlanError::Widths { given: 1, dims: 2 }));
    assert_eq!(plan(&[Widths { lo: 2, ..whole }, whole]), Err(above(Side::Lower, 2, 1)));
    assert_eq!(plan(&[Widths { hi: 3, ..whole }, whole]), Err(above(Side::Upper, 3, 2)));
    for (lo, hi) in [(1, 1), (0, ALL), (ALL, 4)] {
        let part = Widths { lo, hi, periodic: false };
        assert_eq!(plan(&[whole, part]), Err(PlanError::PartOfFull { dim: 1, lo, hi }));
    }
    assert_eq!((plan(&[whole, whole]), plan(&[Widths::NONE, whole]), plan(&[Widths::NONE; 2])), (Ok(3), Ok(1), Ok(0)));
    let nobody = Plan::new(&mapping, 4, &[whole; 2], Corners::With);
    assert!(matches!(nobody, Err(PlanError::Mapping(_))), "{nobody:?}");
    assert!(Plan::new(&mapping, 3, &[Widths::NONE; 2], Corners::With).expect("a plan").is_empty());
}

fn above(side: Side, width: usize, shadow: usize) -> PlanError {
    PlanError::AboveShadow { dim: 0, side, width, shadow }
}

#[test]
fn errors_say_where_and_how_much() {
    assert_eq!(
        above(Side::Upper, 3, 2).to_string(),
        "dimension 0: a width of 3 for the upper shadow, which has 2 layers"
    );
}

#[test]
fn transfers_are_described() {
    let mapping = blocks(&[2, 2], &[8, 6], &[Shadow::of(1), Shadow::of(2)]);
    let plan = Plan::new(&mapping, 0, &[Widths::of(1), Widths::of(2)], Corners::With).expect("a plan");
    let described = |list: &[Transfer]| list.iter().map(Transfer::to_string).collect::<Vec<_>>();
    assert_eq!(
        described(&plan.receives),
        ["(0, +1) node 1: 4 x 2 at (1, 5)", "(+1, 0) node 2: 1 x 3 at (5, 2)", "(+1, +1) node 3: 1 x 2 at (5, 5)"]
    );
    assert_eq!(
        described(&plan.sends),
        ["(-1, -1) node 3: 1 x 2 at (4, 3)", "(-1, 0) node 2: 1 x 3 at (4, 2)", "(0, -1) node 1: 4 x 2 at (1, 3)"]
    );
}

#[test]
fn orthogonal_plans_have_faces_only() {
    let mapping = blocks(&[3; 3], &[9; 3], &[Shadow::of(1); 3]);
    let count = |corners| {
        let plan = Plan::new(&mapping, 13, &[Widths::of(1); 3], corners).expect("a plan");
        (plan.receives.len(), plan.sends.len())
    };
    assert_eq!((count(Corners::With), count(Corners::Orthogonal)), ((26, 26), (6, 6)));
}

#[test]
fn transfers_between_two_nodes_are_labelled_in_one_order() {
    let mapping = blocks(&[2], &[8], &[Shadow::of(1)]);
    let plan = |node| Plan::new(&mapping, node, &[Widths::of(1).periodic()], Corners::With).expect("a plan");
    let ends = |list: &[Transfer]| list.iter().map(|end| (end.peer, end.label, end.direction[0])).collect::<Vec<_>>();
    for (node, peer) in [(0, 1), (1, 0)] {
        assert_eq!(ends(&plan(node).receives), [(peer, 0, -1), (peer, 1, 1)]);
        assert_eq!(ends(&plan(node).sends), [(peer, 0, -1), (peer, 1, 1)]);
    }
}

/// With 10¹⁵ nodes, a plan would take forever if it visited all of them.
#[test]
fn a_plan_does_not_ask_all_nodes() {
    let nodes = [1000; 5];
    let mapping = blocks(&nodes, &[4000; 5], &[Shadow::of(1); 5]);
    let node = mapping.nodes().number(&[500, 0, 999, 1, 17]).expect("a node");
    let plan = Plan::new(&mapping, node, &[Widths::of(1).periodic(); 5], Corners::With).expect("a plan");
    assert_eq!((plan.receives.len(), plan.sends.len()), (242, 242));
    let full = blocks(&[300, 300, 300], &[600; 3], &[Shadow::Full; 3]);
    let plan = Plan::new(&full, 7, &[Widths::WHOLE; 3], Corners::Orthogonal).expect("a plan");
    assert_eq!((plan.receives.len(), plan.sends.len()), (897, 897));
}

#[test]
fn a_full_shadow_has_sides_too() {
    let nodes = Nodes::new(&[3], Order::LastFastest).expect("nodes");
    let template = Template::new(&[0..12, 0..1], &[Format::CyclicOf(2), Format::None], &nodes).expect("a template");
    let mapping = template.align(&[0..12, 0..1], &[Align::with(0), Align::with(1)]).expect("a mapping");
    let mapping = mapping.shadow(&[Shadow::Full, Shadow::NONE]).expect("a shadow");
    let plan = Plan::new(&mapping, 1, &[Widths::WHOLE; 2], Corners::With).expect("a plan");
    // Node 1 owns 2, 3, 8 and 9; the cells between its chunks are above the lowest of them.
    let pieces: Vec<_> = plan.receives.iter().map(|end| (end.direction[0], end.section.starts[0], end.peer)).collect();
    assert_eq!(pieces, [(-1, 0, 0), (1, 4, 2), (1, 6, 0), (1, 10, 2)]);
}
