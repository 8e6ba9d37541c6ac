//! Directives of the macro, on threads and in virtual time: the same results as the calls.

use checks::jobs::{threads, virtual_time};
use rdma_fabric::{Fabric, Group, ProgramResult};
use tofu2_virt::Platform;
use xmp_reflect::{
    Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template, Widths, XmpError, plan::ALL, xmp,
};

/// The value of an element.
fn value(index: &[i64]) -> i64 {
    index.iter().fold(0, |value, at| 100 * value + at)
}

/// All cells of a node's part.
fn all_cells(array: &Array<i64>) -> Result<Vec<i64>, XmpError> {
    Ok(array.view()?.to_vec())
}

/// Three dimensions, one of them not distributed, with each form of each clause.
async fn by_directives(fabric: Fabric) -> ProgramResult<Vec<Vec<i64>>> {
    let group = Group::world(&fabric).await?;
    let chunk = 4;
    xmp! {
        nodes p(2, 2) on group;
        template t(0..8, 1..9, 0..3);
        distribute t(block(chunk), gblock([3, 5]), *) onto p;
        align a(0..5, j, i) with t(i, j + 1, *);
        shadow a(1, 1:2, 2);
        array u, v: i64, mapped a on p;
    }
    u.fill(value)?;
    v.fill(|index| -value(index))?;
    xmp! {
        reflect (u) on p;
        reflect (v) width(0, /periodic/ 1:2, /periodic/ 1) orthogonal on p;
    }
    let mut results = vec![all_cells(&u)?, all_cells(&v)?];
    xmp! {
        reflect (u, v) width(/periodic/ 1, 1:2, /periodic/ 1:2) async(3) on p;
        wait_async(3, 4) on p;
        reflect (v) width(1, 0, 0) orthogonal on p;
    }
    results.extend([all_cells(&u)?, all_cells(&v)?]);
    assert_eq!((t.bounds().len(), a.dims()), (3, 3));
    p.barrier().await?;
    Ok(results)
}

/// The same by calls.
async fn by_calls(fabric: Fabric) -> ProgramResult<Vec<Vec<i64>>> {
    let group = Group::world(&fabric).await?;
    let nodes = Nodes::new(&[2, 2], Order::LastFastest)?;
    let formats = [Format::BlockOf(4), Format::Gblock(vec![3, 5]), Format::None];
    let template = Template::new(&[0..8, 1..9, 0..3], &formats, &nodes)?;
    let mapping = template.align(&[0..5, 0..8, 0..8], &[Align::Collapsed, Align::shifted(1, 1), Align::with(0)])?;
    let mapping = mapping.shadow(&[Shadow::of(1), Shadow::Width { lo: 1, hi: 2 }, Shadow::of(2)])?;
    let mut set = NodeSet::new(group, nodes)?;
    let (u, v): (Array<i64>, Array<i64>) = (set.array(&mapping)?, set.array(&mapping)?);
    u.fill(value)?;
    v.fill(|index| -value(index))?;
    set.reflect(&u, &Reflect::whole()).await?;
    let wide = Widths { lo: 1, hi: 2, periodic: false };
    let one = Widths::of(1).periodic();
    set.reflect(&v, &Reflect::widths(&[Widths::NONE, wide.periodic(), one]).orthogonal()).await?;
    let mut results = vec![all_cells(&u)?, all_cells(&v)?];
    for array in [&u, &v] {
        set.reflect(array, &Reflect::widths(&[one, wide, wide.periodic()])).await?;
    }
    set.reflect(&v, &Reflect::widths(&[Widths::of(1), Widths::NONE, Widths::NONE]).orthogonal()).await?;
    results.extend([all_cells(&u)?, all_cells(&v)?]);
    set.barrier().await?;
    Ok(results)
}

#[test]
fn directives_are_the_calls() {
    let calls = threads(4).run(&by_calls).expect("threads");
    assert_eq!(threads(4).run(&by_directives).expect("threads"), calls);
    let job = virtual_time(&Platform::fx100(), 4).shuffle_ties(true);
    assert_eq!(job.run(&by_directives).expect("virtual time").outs, calls);
}

/// Full shadows, and node sets of all ranks.
#[test]
fn stars_are_all() {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let group = Group::world(&fabric).await?;
        xmp! {
            nodes p(*) on group;
            template t(0..7);
            distribute t(cyclic) onto p;
            align a(i) with t(i - 2);
            shadow a(*);
            array u: i64, mapped a on p;
        }
        assert_eq!((p.nodes().extents(), a.bounds(0)), (&[3][..], 2..9));
        u.fill(value)?;
        xmp! { reflect (u) width(ALL) on p; }
        for index in 2..9 {
            assert_eq!(u.get(&[index])?, index);
        }
        p.barrier().await?;
        Ok(())
    };
    threads(3).run(&program).expect("threads");
    virtual_time(&Platform::fx100(), 3).run(&program).expect("virtual time");
}

/// Values that do not fit are errors of the calls.
#[test]
fn wrong_values_are_typed_errors() {
    let program = async |fabric: Fabric| -> ProgramResult<()> {
        let group = Group::world(&fabric).await?;
        let directives = async |group: Group| -> Result<(), XmpError> {
            xmp! {
                nodes p(2) on group;
                template t(0..8);
                distribute t(gblock([3, 4])) onto p;
            }
            drop((p, t));
            Ok(())
        };
        assert!(matches!(directives(group).await, Err(XmpError::Mapping(_))));
        Ok(())
    };
    threads(2).run(&program).expect("threads");
}
