//! Packing divided among threads: on real memory, and in virtual time.

use crate::{
    arrays::Array,
    random::for_all,
    reflects::{Call, nodes, program},
};
use checks::jobs::{threads, virtual_time};
use proptest::test_runner::TestCaseError;
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};
use tofu2_virt::Platform;
use xmp_reflect::{
    Array as Distributed, Corners, Format, NodeSet, Packer, Packing, Reflect, Shadow, Threads, Transport, Widths,
};

#[test]
fn every_cell_holds_what_the_specification_says_if_threads_pack() {
    for_all(60, |array, widths| {
        if nodes(&array) > 4 {
            return Ok(());
        }
        for (at, call) in [Call::Reflect, Call::Async, Call::Schedule].into_iter().enumerate() {
            let (transport, corners) = (Transport::Packed, [Corners::With, Corners::Orthogonal][at % 2]);
            let failed = |error: &dyn std::fmt::Display| TestCaseError::fail(format!("{call:?}: {error}"));
            let real = async |fabric: Fabric| {
                let packing = Threads::new(at + 1).expect("threads").packing_above(0);
                program(fabric, &array, &widths, corners, transport, call, packing).await
            };
            threads(nodes(&array)).run(&real).map_err(|error| failed(&error))?;
            let modelled = async |fabric: Fabric| {
                program(fabric, &array, &widths, corners, transport, call, Packing::modelled(at + 1, 0)).await
            };
            let job = virtual_time(&Platform::k(), nodes(&array)).shuffle_ties(true);
            job.run(&modelled).map_err(|error| failed(&error))?;
        }
        Ok(())
    });
}

/// Blocks with a shadow of 2 around each, in two dimensions.
fn square(nodes: &[usize; 2], cells: i64) -> Array {
    let dim = (cells, Format::Block, Shadow::of(2));
    Array::simple(nodes, &[dim.clone(), dim])
}

/// A wrong packer.
#[derive(Clone, Copy, Debug)]
enum Mutant {
    LastForgotten,
    FirstForgotten,
    /// One share is copied in place of another.
    FirstTwice,
    /// Shares that do not exist.
    OneOff,
}

impl Packer for Mutant {
    fn threads(&self) -> usize {
        3
    }

    fn run(&self, shares: usize, share: &(dyn Fn(usize) + Sync)) {
        match self {
            Mutant::LastForgotten => (0..shares - 1).for_each(share),
            Mutant::FirstForgotten => (1..shares).for_each(share),
            Mutant::FirstTwice => (0..shares).map(|number| number / 2).for_each(share),
            Mutant::OneOff => (1..=shares).for_each(share),
        }
    }
}

#[test]
fn a_wrong_packer_is_found() {
    let (array, widths) = (square(&[1, 2], 12), [Widths::of(2).periodic(); 2]);
    let is_right = |packing: Packing| {
        let run = async |fabric: Fabric| {
            let (corners, packing) = (Corners::With, packing.clone());
            program(fabric, &array, &widths, corners, Transport::Packed, Call::Reflect, packing).await
        };
        // A failed comparison may be reported as a panic or as an error.
        catch_unwind(AssertUnwindSafe(|| virtual_time(&Platform::k(), 2).run(&run).is_ok())).unwrap_or(false)
    };
    assert!(is_right(Packing::modelled(3, 0)), "the right one");
    for mutant in [Mutant::LastForgotten, Mutant::FirstForgotten, Mutant::FirstTwice, Mutant::OneOff] {
        assert!(is_right(Packing::by(Arc::new(mutant), 1 << 20)), "{mutant:?}: no face is that long");
        assert!(!is_right(Packing::by(Arc::new(mutant), 0)), "{mutant:?} is not noticed");
    }
}

/// Only faces above the threshold are divided, and the explanation says among how many.
#[test]
fn the_threshold_is_in_bytes_of_a_face() {
    let array = square(&[2, 1], 20);
    let run = async |fabric: Fabric| -> ProgramResult<Vec<(u64, u64, usize)>> {
        let mapping = array.mapping()?;
        let set = NodeSet::new(Group::world(&fabric).await?, mapping.nodes().clone())?;
        // Faces of the second dimension: 10 blocks of 2 elements of 8 bytes.
        let mut set = set.with_transport(Transport::Packed).with_packing(Threads::new(4)?.packing_above(159));
        let field: Distributed<i64> = set.array(&mapping)?;
        let mut divided = Vec::new();
        for layers in [2, 1] {
            let reflect = Reflect::widths(&[Widths::NONE, Widths::of(layers).periodic()]);
            let explanation = set.explain(&field, &reflect).await?;
            divided.extend(explanation.sends.iter().map(|line| (line.bytes, line.blocks, line.threads)));
            set.reflect(&field, &reflect).await?;
        }
        set.barrier().await?;
        Ok(divided)
    };
    for divided in threads(2).run(&run).expect("threads") {
        assert_eq!(divided, [(160, 10, 4), (160, 10, 4), (80, 10, 1), (80, 10, 1)]);
    }
}

#[test]
fn threads_share_processors_with_other_ranks() {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    for (ranks, threads) in [(0, processors), (1, processors), (processors, 1), (usize::MAX, 1)] {
        assert_eq!(Threads::of_machine(ranks).expect("threads").threads(), threads, "{ranks} ranks");
    }
    let packing = Threads::new(3).expect("threads").packing();
    assert_eq!(packing.shares(2, Threads::ABOVE).threads, 1);
    assert_eq!(packing.shares(2, Threads::ABOVE + 2).threads, 2);
}
