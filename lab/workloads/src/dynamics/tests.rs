use super::*;
use rdma_fabric::{Fabric, Group, ProgramResult};
use tofu2_sim::virt::{Job, Platform};
use xmp_reflect::{NodeSet, Nodes, Order, Reflect, Split, Widths};

const AROUND: [Widths; 3] = [Widths::NONE, Widths::of(SHADOW).periodic(), Widths::of(SHADOW).periodic()];

fn atmosphere(cells: [usize; 3]) -> Atmosphere {
    Atmosphere::new(cells).expect("cells in the air")
}

/// Returns the sums of mass and heat over all columns.
fn totals(grid: &Alone, atmosphere: &Atmosphere) -> [f64; 2] {
    let ([_, columns, rows], mut totals) = (atmosphere.cells(), Totals::default());
    for (i, j) in (0..rows).flat_map(|j| (0..columns).map(move |i| (i, j))) {
        totals.add_column(atmosphere, grid.column(DENSITY, i, j), grid.column(HEAT, i, j));
    }
    totals.sums()
}

#[test]
fn a_steady_wind_stays_as_it_is_bit_by_bit() {
    let atmosphere = atmosphere([9, 5, 4]);
    let mut calm = Vectors::new(atmosphere.cells());
    for (i, j) in (0..4).flat_map(|j| (0..5).map(move |i| (i, j))) {
        let [_, east, north, ..] = calm.columns_mut(i + SHADOW, j + SHADOW);
        for layer in 0..9 {
            (east[layer], north[layer]) = (13.0 * atmosphere.density[layer], -7.0 * atmosphere.density[layer]);
        }
    }
    calm.wrap();
    let (mut next, block) = (calm.clone(), calm.block());
    next.compute(&atmosphere, &calm, Some(&calm), &block, Atmosphere::STEP, &mut Work::new(&atmosphere));
    assert!(next == calm);
}

#[test]
fn a_warm_bubble_rises_and_nothing_is_lost() {
    let atmosphere = atmosphere([16, 12, 10]);
    let mut grid = Alone::new(&atmosphere);
    let before = totals(&grid, &atmosphere);
    (0..60).for_each(|_| grid.step());
    for (before, after) in before.into_iter().zip(totals(&grid, &atmosphere)) {
        assert!((after / before - 1.0).abs() < 1e-14, "{before} {after}");
    }
    let fastest = (0..10).flat_map(|j| (0..12).map(move |i| (i, j)));
    let fastest = fastest.flat_map(|(i, j)| grid.column(UP, i, j)).copied().fold(0.0, f64::max);
    assert!(fastest > 0.1 && fastest < 10.0, "{fastest} kg/(m² s) upwards");
}

#[test]
fn a_grid_in_the_ground_or_in_empty_space_is_refused() {
    assert_eq!([3, 4, 400].map(|layers| Atmosphere::new([layers, 1, 1]).is_some()), [false, true, false]);
    assert_eq!(Atmosphere::new([4, 0, 1]), None);
}

/// Computes steps on nodes, and compares the result with that of one loop.
async fn steps(fabric: Fabric, cells: [usize; 3], nodes: [usize; 2]) -> ProgramResult<()> {
    let atmosphere = atmosphere(cells);
    let nodes = Nodes::new(&nodes, Order::LastFastest)?;
    let mut set = NodeSet::new(Group::world(&fabric).await?, nodes.clone())?;
    let mapping = mapping(&atmosphere, &nodes)?;
    let states = [fields(&set, &mapping)?, fields(&set, &mapping)?, fields(&set, &mapping)?];
    for (field, array) in states[0].iter().enumerate() {
        array.fill(|index| atmosphere.first([0, 1, 2].map(|dim| index[dim] as usize))[field])?;
    }
    let split = Split::new(&mapping, set.me(), &AROUND)?;
    let mut work = Work::new(&atmosphere);
    for _ in 0..3 {
        for Stage { from, to, share } in STAGES {
            for (id, field) in states[from].iter().enumerate() {
                set.reflect_async(field, &Reflect::widths(&AROUND), id as u64).await?;
            }
            let mut part = |section| {
                let base = Some(&states[0]).filter(|_| to != 0);
                let time = share * Atmosphere::STEP;
                compute(&atmosphere, [&states[from], &states[to]], base, section, time, &mut work)
            };
            split.inner.iter().try_for_each(&mut part)?;
            set.wait_async(&[0, 1, 2, 3, 4]).await?;
            split.boundary.iter().try_for_each(&mut part)?;
        }
    }
    let mut alone = Alone::new(&atmosphere);
    (0..3).for_each(|_| alone.step());
    for (field, array) in states[0].iter().enumerate() {
        for (index, value) in array.owned()? {
            let [layer, i, j] = [0, 1, 2].map(|dim| index[dim] as usize);
            assert_eq!(value.to_bits(), alone.column(field, i, j)[layer].to_bits(), "field {field}, {index:?}");
        }
    }
    Ok(set.barrier().await?)
}

#[test]
fn nodes_compute_what_one_loop_does_bit_by_bit() {
    // Even blocks, uneven ones, blocks narrower than the shadow, and no column at all.
    for (cells, nodes) in [([6, 8, 8], [2, 2]), ([5, 11, 6], [3, 2]), ([4, 3, 2], [3, 1]), ([4, 2, 5], [4, 2])] {
        let run = async |fabric: Fabric| steps(fabric, cells, nodes).await;
        let ran = Job::new(&Platform::fx100(), nodes.iter().product()).run(&run);
        assert!(ran.is_ok(), "{cells:?} on {nodes:?}: {:?}", ran.err());
    }
}
