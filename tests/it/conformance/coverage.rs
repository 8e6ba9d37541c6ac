//! Checks that every sentence of the contract has a case and every case a sentence, and that the
//! cases are in the order of the page. Sentences that no program can demonstrate have tests
//! elsewhere.
//!
//! O20's case has no mutant: a provider that read a lent slice late would keep it after the post,
//! which safe code can't express. A doctest at `provider::Source` checks that it can't.

use crate::page;
use fabric_conformance::CASES;
use std::collections::BTreeMap;

/// Sentences that no program can demonstrate, each with the test that checks it and that test's
/// file.
const ELSEWHERE: &[(&str, &str, &str)] =
    &[("V1", "another_thread_neither_uses_nor_drops_it", "crates/rdma-fabric/src/provider/one_thread.rs")];

/// Returns the numbers of the page's sentences, in its order: `* **M3** …`.
fn sentences(page: &str) -> Vec<&str> {
    page.lines().filter_map(|line| line.strip_prefix("* **")?.split_once("**").map(|(number, _)| number)).collect()
}

/// Returns the differences between `page` and the `cases` (their names and sentences) with the
/// sentences tested `elsewhere`.
fn gaps(page: &str, cases: &[(&str, &str)], elsewhere: &[&str]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut known = BTreeMap::new();
    for (place, number) in sentences(page).into_iter().enumerate() {
        if known.insert(number, place).is_some() {
            wrong.push(format!("sentence {number} is there twice"));
        }
    }
    let mut covered: BTreeMap<&str, &str> = BTreeMap::new();
    let mut last = 0;
    for (name, sentences) in cases {
        if sentences.is_empty() {
            wrong.push(format!("case {name} covers no sentence"));
        }
        for (at, number) in sentences.split(' ').filter(|number| !number.is_empty()).enumerate() {
            covered.insert(number, name);
            match known.get(number) {
                None => wrong.push(format!("case {name} covers {number}, which is no sentence")),
                Some(place) if at == 0 && *place < last => {
                    wrong.push(format!("case {name} comes too late for {number}"))
                }
                Some(place) if at == 0 => last = *place,
                Some(_) => {}
            }
        }
    }
    for number in elsewhere {
        match covered.insert(number, "elsewhere") {
            Some(case) => wrong.push(format!("{number} is tested elsewhere and by {case}")),
            None if !known.contains_key(number) => wrong.push(format!("{number}, tested elsewhere, is no sentence")),
            None => {}
        }
    }
    wrong.extend(known.keys().filter(|number| !covered.contains_key(*number)).map(|n| format!("no case covers {n}")));
    wrong
}

#[test]
fn every_sentence_has_a_case() {
    let contract = page::read("docs/contract/fabric.md");
    assert!(sentences(&contract).len() > 40, "the page has lost its sentences");
    let elsewhere: Vec<_> = ELSEWHERE.iter().map(|(number, ..)| *number).collect();
    let cases: Vec<_> = CASES.iter().map(|case| (case.name, case.sentences)).collect();
    let found = gaps(&contract, &cases, &elsewhere);
    assert_eq!(found, Vec::<String>::new(), "docs/contract/fabric.md and crates/fabric-conformance/src/cases/mod.rs");
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
    let text = "text\n* **A1** one\n  more\n* **A2** two\n";
    for (cases, elsewhere, found) in [
        (&[("c", "A1 A2")][..], &[][..], &[][..]),
        (&[("c", "A1")], &["A2"], &[]),
        (&[("c", "A1")], &[], &["no case covers A2"]),
        (&[("c", "A1 A2 A3")], &[], &["case c covers A3, which is no sentence"]),
        (&[("c", "A1 A2")], &["A3"], &["A3, tested elsewhere, is no sentence"]),
        (&[("c", "A1 A2")], &["A2"], &["A2 is tested elsewhere and by c"]),
        (&[("c", "A2"), ("d", "A1")], &[], &["case d comes too late for A1"]),
        (&[("c", "A1 A2"), ("d", "")], &[], &["case d covers no sentence"]),
    ] {
        assert_eq!(gaps(text, cases, elsewhere), found, "{cases:?}");
    }
    assert_eq!(gaps("* **A1** one\n* **A1** two\n", &[("c", "A1")], &[]), ["sentence A1 is there twice"]);
}
