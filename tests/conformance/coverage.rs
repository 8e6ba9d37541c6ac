//! Whether every sentence of the contract has a case, and every case a sentence. What no program
//! can show has a test elsewhere.

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
        plain { $($(#[$_mark:meta])? $room:ident::$case:ident($says:literal, $sizes:expr);)* }
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

/// Sentences that no program can show, and what does: a test and its file.
const ELSEWHERE: &[(&str, &str, &str)] =
    &[("V1", "another_thread_neither_uses_nor_drops_it", "crates/rdma-fabric/src/provider/one_thread.rs")];

/// The numbers of the page's sentences, in its order: `* **M3** …`.
fn sentences(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("* **")?.split_once("**").map(|(number, _)| number)).collect()
}

/// What is wrong with `cases`, and with the sentences that are tested `elsewhere`, seen from `page`.
fn gaps(page: &str, cases: &[Listed], elsewhere: &[&str]) -> Vec<String> {
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
    for number in elsewhere {
        match covered.insert(number, "elsewhere") {
            Some(case) => wrong.push(format!("{number} is tested elsewhere and by {case}")),
            None if !known.contains(number) => wrong.push(format!("{number}, tested elsewhere, is no sentence")),
            None => {}
        }
    }
    wrong.extend(known.iter().filter(|number| !covered.contains_key(*number)).map(|n| format!("no case covers {n}")));
    wrong
}

#[test]
fn every_sentence_has_a_case() {
    let contract = page::read("docs/fabric-contract.md");
    assert!(sentences(&contract).len() > 40, "the page has lost its sentences");
    let elsewhere: Vec<_> = ELSEWHERE.iter().map(|(number, ..)| *number).collect();
    let found = gaps(&contract, CASES, &elsewhere);
    assert_eq!(found, Vec::<String>::new(), "docs/fabric-contract.md and tests/conformance/suite.rs");
}

#[test]
fn what_is_tested_elsewhere_is() {
    for (number, test, file) in ELSEWHERE {
        let there = page::read(file).contains(&format!("#[test]\n    fn {test}()"));
        assert!(there, "{number}: {file} has no test {test}");
    }
}

#[test]
fn gaps_are_found() {
    let case = |covers| Listed { name: "c", covers, sizes: &[1], losing: false };
    let text = "text\n* **A1** one\n  more\n* **A2** two\n";
    assert_eq!(gaps(text, &[case("A1 A2")], &[]), Vec::<String>::new());
    assert_eq!(gaps(text, &[case("A1")], &["A2"]), Vec::<String>::new());
    assert_eq!(gaps(text, &[case("A1")], &[]), ["no case covers A2"]);
    assert_eq!(gaps(text, &[case("A1 A2 A3")], &[]), ["case c covers A3, which is no sentence"]);
    assert_eq!(gaps(text, &[case("A1 A2")], &["A3"]), ["A3, tested elsewhere, is no sentence"]);
    assert_eq!(gaps(text, &[case("A1 A2")], &["A2"]), ["A2 is tested elsewhere and by c"]);
    assert_eq!(gaps("* **A1** one\n* **A1** two\n", &[case("A1"), case("")], &[]).len(), 2);
}
