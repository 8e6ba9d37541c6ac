//! Plans of up to 20 members in random orders. Seeded, so a failure comes again.

use super::{
    super::{
        making::Kind,
        tree::{Shape, Tree},
        tree_plan::Load,
    },
    World, allreduce,
    mutants::mutants,
    plans,
};
use crate::{Form, session_model::walk};

const ITERATIONS: u8 = 6;

fn kinds(members: usize) -> Vec<Kind> {
    let mut kinds = vec![Kind::Barrier];
    for shape in [Shape::Binomial, Shape::Chain] {
        for root in [0, members - 1, members / 2] {
            let tree = Tree { members, root, shape };
            kinds.extend([1, 3].map(|segments| Kind::Tree { tree, load: Load { up: 0, down: 24, segments } }));
        }
    }
    let tree = Tree { members, root: 0, shape: Shape::Binomial };
    kinds.push(allreduce(members, 0, 8));
    kinds.push(Kind::Tree { tree, load: Load { up: 8, down: 8 * members as u64, segments: 2 } });
    kinds
}

#[test]
fn plans_hold_whatever_the_network_does() {
    let mut runs = 0;
    for members in [1, 2, 3, 4, 5, 8, 13, 20] {
        for kind in kinds(members) {
            // A group of one has no data under way.
            if members == 1 && matches!(kind, Kind::Tree { load, .. } if load.up > 0) {
                continue;
            }
            for form in [Form::Fast, Form::Mrc] {
                let Some(plans) = plans(kind, form, members) else { continue };
                let world = World::new(kind, plans, ITERATIONS);
                for seed in 0..40 {
                    assert_eq!(walk(&world, seed), Ok(()), "{kind:?}, {form}, {members} members, seed {seed}");
                    runs += 1;
                }
            }
        }
    }
    println!("{runs} runs");
}

#[test]
fn every_wrong_number_in_a_program_is_noticed() {
    let members = 8;
    let tree = |root| Tree { members, root, shape: Shape::Binomial };
    let kinds = [
        Kind::Barrier,
        // Member 1 in the middle, and at the root.
        Kind::Tree { tree: tree(5), load: Load { up: 0, down: 24, segments: 3 } },
        Kind::Tree { tree: tree(1), load: Load { up: 0, down: 24, segments: 3 } },
        allreduce(members, 1, 8),
    ];
    let (mut noticed, mut not) = (0, Vec::new());
    for kind in kinds {
        for form in [Form::Fast, Form::Mrc] {
            let Some(plans) = plans(kind, form, members) else { continue };
            for (what, plans) in mutants(&plans) {
                let world = World::new(kind, plans, ITERATIONS);
                match (0..300).find_map(|seed| walk(&world, seed).err()) {
                    Some(_) => noticed += 1,
                    None => not.push(format!("{kind:?}, {form}: {what}")),
                }
            }
        }
    }
    println!("{noticed} mutants noticed");
    assert!(not.is_empty(), "not noticed: {not:#?}");
    assert!(noticed > 170);
}
