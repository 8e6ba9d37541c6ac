//! The comparison with the printed figures.

use super::{Ordering, Version, XmpPlan, XmpRuns};
use crate::{
    figures::{self, Paper},
    outcome::Row,
    workloads::reflects::faces,
};
use xmp_reflect::{Corners, Widths};

/// Returns a row for every figure of the paper to which the runs apply, in the paper's order.
pub fn compare(runs: &XmpRuns) -> Vec<Row> {
    let [i, j] = published_faces();
    let mut rows = Vec::new();
    for figure in figures::of(Paper::Xmp) {
        let ordering = Ordering::ALL.into_iter().find(|ordering| ordering.id() == figure.id);
        let value = match (figure.id, ordering) {
            (_, Some(ordering)) => holds(runs, ordering).map(truth),
            // Two layers of 129 cells, in 16 rows and those of the shadow on both sides.
            ("X4", _) => Some(truth(i == Some((2 * 129 * 8 * (16 + 2 * 2), 16 + 2 * 2)))),
            ("X5", _) => Some(truth(runs.tags.iter().copied().eq(0..=14))),
            ("X7-flat", _) => flat_holds(runs).map(truth),
            ("X10", _) => i.map(|(bytes, blocks)| bytes as f64 / blocks as f64),
            ("X10-blocks", _) => i.map(|(_, blocks)| blocks as f64),
            ("X10-j", _) => j.filter(|(_, blocks)| *blocks == 1).map(|(bytes, _)| bytes as f64),
            _ => None,
        };
        rows.extend(value.map(|value| Row::simulated(figure, value)).or_else(|| Row::not_modelled(figure)));
    }
    rows
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Returns whether an ordering holds: on 1024 nodes, and on fewer nodes within the accuracy of a
/// plot. `None` if the largest run is missing.
fn holds(runs: &XmpRuns, ordering: Ordering) -> Option<bool> {
    Some(runs.margin(ordering)? > 0.0 && runs.holds_below(ordering)?)
}

/// Returns whether derived datatypes are the fastest version for all numbers of nodes with eight
/// ranks each.
fn flat_holds(runs: &XmpRuns) -> Option<bool> {
    let of = |version, nodes| runs.flat_of(version, nodes).map(|run| run.step);
    let each = runs.plan.flat.iter().map(|nodes| {
        let nodes = nodes.many();
        let fastest = of(Version::Datatypes, nodes)?;
        Some(fastest < of(Version::Mpi, nodes)? && fastest < of(Version::Pack, nodes)?)
    });
    let each: Option<Vec<bool>> = each.collect();
    each.filter(|each| !each.is_empty()).map(|each| each.into_iter().all(|holds| holds))
}

/// Returns bytes and blocks of a face in i and of one in j as the paper's runtime sends them on
/// 1024 nodes: dimension by dimension, including the shadows of the other dimension.
fn published_faces() -> [Option<(usize, usize)>; 2] {
    let grid = XmpPlan::grid([32; 2]);
    let [_, i, j] = grid.widths();
    let face = |widths: [Widths; 3]| -> Option<(usize, usize)> {
        let [sends, _] = faces(&grid, 0, &widths, Corners::Carried).ok()?;
        let equal = sends.iter().all(|face| (face.bytes, face.blocks) == (sends[0].bytes, sends[0].blocks));
        (sends.len() == 2 && equal).then(|| (sends[0].bytes, sends[0].blocks))
    };
    [face([Widths::NONE, i, Widths::NONE]), face([Widths::NONE, Widths::NONE, j])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_those_of_the_paper() {
        // 20 blocks of 2,064 B in i, 41,280 B in one piece in j.
        assert_eq!(published_faces(), [Some((41_280, 20)), Some((41_280, 1))]);
    }
}
