//! Broadcasts by the network's multicast, on the machine that has one.

use crate::{
    broadcasts::{all, round},
    harness::{Guarded, SCOPES},
};
use blacs::{Blacs, BlacsError, Order, Scope, Shape, Topology};
use checks::watchdog::watch_test;
use fmpl::FmplError;
use rdma_fabric::{Fabric, Program, ProgramResult};
use std::{num::NonZeroU8, time::Duration};
use tofu2_sim::virt::{Job, Platform};

fn job(ranks: usize) -> Job<'static> {
    Job::new(&Platform::sr8000(), ranks).jitter(Duration::from_micros(10)).shuffle_ties(true)
}

#[track_caller]
fn sr8000<P: Program>(ranks: usize, program: &P) -> Vec<P::Out> {
    watch_test();
    job(ranks).run(program).unwrap_or_else(|error| panic!("{error}")).outs
}

/// Rows, columns and grids that fill a box of the network, and those that do not.
#[test]
fn multicasts_bring_every_shape_to_all_of_a_scope() {
    for (rows, columns) in [(1, 2), (2, 2), (3, 3)] {
        sr8000(rows * columns, &async |fabric: Fabric| -> ProgramResult<()> { all(fabric, rows, columns).await });
    }
}

/// Messages of several pieces, in more grids than there are colours.
#[test]
fn several_grids_share_the_hardware() {
    sr8000(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let mut grids = Vec::new();
        for _ in 0..4 {
            grids.push(blacs.grid(Order::ColumnMajor, 2, 2).await?.expect("all processes"));
        }
        for turn in 0..4 {
            for grid in &grids {
                for scope in SCOPES {
                    round::<f64>(grid, scope, Topology::Default, Shape::general(190, 200, 201), turn).await?;
                    round::<f64>(grid, scope, Topology::Default, Shape::general(30_000, 1, 1), turn).await?;
                }
                grid.barrier(Scope::All).await?;
            }
        }
        for grid in grids {
            grid.exit().await?;
        }
        Ok(blacs.exit().await?)
    });
}

/// The default topology takes less time than the tree only if the network forwards.
#[test]
fn the_default_topology_uses_the_hardware() {
    let took = |topology| {
        let outs = Job::new(&Platform::sr8000(), 8).run(&async move |fabric: Fabric| -> ProgramResult<Duration> {
            let mut blacs = Blacs::begin(&fabric).await?;
            let grid = blacs.grid(Order::RowMajor, 2, 4).await?.expect("all processes");
            let mut took = Duration::ZERO;
            for scope in SCOPES {
                grid.barrier(Scope::All).await?;
                let begun = fabric.now();
                round::<f64>(&grid, scope, topology, Shape::general(40_000, 1, 1), 0).await?;
                grid.barrier(Scope::All).await?;
                if scope != Scope::Column {
                    took += fabric.now() - begun;
                }
            }
            grid.exit().await?;
            blacs.exit().await?;
            Ok(took)
        });
        outs.expect("no rank fails").outs[0]
    };
    let (default, tree) = (took(Topology::Default), took(Topology::Tree(NonZeroU8::MIN)));
    assert!(3 * default < 2 * tree, "{default:?} and {tree:?}");
}

#[test]
fn a_wrong_length_is_reported_by_its_receiver_only() {
    sr8000(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 4).await?.expect("all processes");
        for (sent, expected) in [(3, 5), (20_000, 5), (5, 20_000), (0, 1), (1, 0)] {
            for scope in [Scope::Row, Scope::All] {
                if grid.column() == 1 {
                    let a = Guarded::<f64>::new(Shape::general(sent, 1, 1), |i, _| i as i32);
                    grid.broadcast_send(scope, Topology::Default, a.get()).await?;
                    continue;
                }
                let is_odd = grid.column() == 2;
                let shape = Shape::general(if is_odd { expected } else { sent }, 1, 1);
                let mut a = Guarded::<f64>::empty(shape);
                let received = grid.broadcast_recv(scope, Topology::Default, a.get_mut(), (0, 1)).await;
                match is_odd {
                    true => {
                        let (sent, expected) = (8 * sent, 8 * expected);
                        assert_eq!(received, Err(BlacsError::ShapeMismatch { from: (0, 1), sent, expected }));
                    }
                    false => {
                        received?;
                        a.check(|i, _| i as i32, (scope, sent));
                    }
                }
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn the_death_of_a_member_ends_a_multicast() {
    for lost in 0..3 {
        for scope in [Scope::Row, Scope::All] {
            watch_test();
            let program = async |fabric: Fabric| -> ProgramResult<()> {
                let mut blacs = Blacs::begin(&fabric).await?;
                let grid = blacs.grid(Order::RowMajor, 1, 3).await?.expect("all processes");
                round::<f64>(&grid, scope, Topology::Default, Shape::general(10, 1, 10), 0).await?;
                if grid.column() == lost {
                    fabric.sleep(Duration::from_micros(20)).await;
                    return Err("lost".into());
                }
                for turn in 0.. {
                    let sent = round::<f64>(&grid, scope, Topology::Default, Shape::general(99, 99, 99), turn).await;
                    let Err(error) = sent else { continue };
                    let error = error.downcast_ref::<BlacsError>().cloned();
                    assert!(
                        matches!(error, Some(BlacsError::Fmpl(FmplError::Fabric(_) | FmplError::MemberLeft { .. }))),
                        "{error:?}"
                    );
                    break;
                }
                Ok(())
            };
            let (run, _) = job(3).run_through(&program).unwrap_or_else(|error| panic!("{error}"));
            let ended: Vec<bool> = run.outs.iter().map(Option::is_some).collect();
            assert_eq!(ended, (0..3).map(|rank| rank != lost).collect::<Vec<_>>(), "{scope:?}");
        }
    }
}
