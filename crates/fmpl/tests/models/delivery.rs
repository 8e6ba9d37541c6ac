//! Small jobs under every order of delivery or random ones, and mutants that must be detected;
//! `cargo xtask explore --only fmpl` explores the larger ones.

use checks::{
    exploration::{Expected, Exploration, check},
    fmpl::explorations,
};

fn is_exhausted(exploration: &Exploration) -> bool {
    matches!(exploration.expected(), Expected::Exhausted { .. })
}

#[test]
fn messages_in_every_order() {
    check(explorations().into_iter().filter(is_exhausted));
}

#[test]
fn messages_in_random_orders() {
    check(explorations().into_iter().filter(|exploration| !is_exhausted(exploration) && !exploration.is_mutant()));
}

#[test]
fn mutants_are_found() {
    check(explorations().into_iter().filter(Exploration::is_mutant));
}
