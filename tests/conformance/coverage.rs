//! Whether every sentence of the contract has a case, and every case a sentence.

use crate::page;
use std::collections::{BTreeMap, BTreeSet};

/// A case's name, what it covers, and the numbers of ranks it is listed with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub(crate) name: &'static str,
    pub(crate) covers: &'static str,
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) sizes: &'static [usize],
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(crate) losing: bool,
}

macro_rules! list {
    (;
        plain { $($(#[$_mark:meta])? $room:ident::$case:ident($says:literal, $sizes:expr $(, $arg:ident: $value:expr)*);)* }
        losing { $($(#[$_other:meta])? $lost:ident::$losing:ident($covers:literal, $among:expr);)* }
    ) => {
        /// The suite's cases, in its order.
        pub(crate) const CASES: &[Listed] = &[
            $(Listed { name: stringify!($case), covers: $says, sizes: &$sizes, losing: false },)*
            $(Listed { name: stringify!($losing), covers: $covers, sizes: &$among, losing: true },)*
        ];
    };
}
every_case! { list! {} }

/// The numbers of the page's sentences, in its order: `* **M3** …`.
fn sentences(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("* **")?.split_once("**").map(|(number, _)| number)).collect()
}

/// What is wrong with `cases` seen from `page`.
fn gaps(page: &str, cases: &[Listed]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut known = BTreeSet::new();
    for number in sentences(page) {
        if !known.insert(number) {
            wrong.push(format!("sentence {number} is there twice"));
        }
    }
    let mut covered: BTreeMap<&str, &str> = BTreeMap::new();
    for case in cases {
        if case.covers.is_empty() {
            wrong.push(format!("case {} covers no sentence", case.name));
        }
        for number in case.covers.split(' ').filter(|number| !number.is_empty()) {
            covered.insert(number, case.name);
            if !known.contains(number) {
                wrong.push(format!("case {} covers {number}, which is no sentence", case.name));
            }
        }
    }
    wrong.extend(known.iter().filter(|number| !covered.contains_key(*number)).map(|n| format!("no case covers {n}")));
    wrong
}

#[test]
fn every_sentence_has_a_case() {
    let contract = page::read("docs/fabric-contract.md");
    assert!(sentences(&contract).len() > 40, "the page has lost its sentences");
    assert_eq!(gaps(&contract, CASES), Vec::<String>::new(), "docs/fabric-contract.md and tests/conformance/suite.rs");
}

#[test]
fn gaps_are_found() {
    let case = |covers| Listed { name: "c", covers, sizes: &[1], losing: false };
    let text = "text\n* **A1** one\n  more\n* **A2** two\n";
    assert_eq!(gaps(text, &[case("A1 A2")]), Vec::<String>::new());
    assert_eq!(gaps(text, &[case("A1")]), ["no case covers A2"]);
    assert_eq!(gaps(text, &[case("A1 A2 A3")]), ["case c covers A3, which is no sentence"]);
    assert_eq!(gaps("* **A1** one\n* **A1** two\n", &[case("A1"), case("")]).len(), 2);
}
