//! Variables of launchers.

use bootstrap::{Cluster, DetectError, Found, SecretAt, detect, node_list};
use proptest::prelude::*;

fn found(variables: &[(&str, &str)]) -> Result<Option<Found>, DetectError> {
    detect(&|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into()))
}

const PMI: &[(&str, &str)] = &[("PMI_RANK", "3"), ("PMI_SIZE", "8"), ("PMI_FD", "7")];
const PMIX: &[(&str, &str)] = &[("PMIX_RANK", "3"), ("PMIX_NAMESPACE", "prterun-1")];
const TORCH: &[(&str, &str)] = &[("RANK", "3"), ("WORLD_SIZE", "8"), ("MASTER_ADDR", "n1"), ("MASTER_PORT", "29500")];
const SLURM: &[(&str, &str)] = &[
    ("SLURM_PROCID", "3"),
    ("SLURM_NTASKS", "8"),
    ("SLURM_JOB_NODELIST", "n[1-9]"),
    ("SLURM_STEP_NODELIST", "n[1-2]"),
    ("SLURM_JOB_ID", "4711"),
    ("SLURM_STEP_ID", "0"),
];

fn with(one: &[(&'static str, &'static str)], name: &str, value: &'static str) -> Vec<(&'static str, &'static str)> {
    one.iter().map(|(known, old)| (*known, if *known == name { value } else { *old })).collect()
}

fn without(one: &[(&'static str, &'static str)], name: &str) -> Vec<(&'static str, &'static str)> {
    one.iter().copied().filter(|(known, _)| *known != name).collect()
}

#[test]
fn each_launcher_is_found_by_its_variables() {
    assert_eq!(found(&[]), Ok(None));
    let cluster = Cluster { rank: 1, ranks: 2, coordinator: "[::1]:4000".parse().unwrap(), secret: SecretAt::Fd(5) };
    assert_eq!(found(&[("ONESIDED_CLUSTER", &cluster.to_string())]), Ok(Some(Found::Cluster(cluster))));
    assert_eq!(found(PMI), Ok(Some(Found::Pmi1 { rank: 3, ranks: 8, fd: 7 })));
    assert_eq!(found(PMIX), Ok(Some(Found::Pmix { rank: 3, namespace: "prterun-1".into() })));
    assert_eq!(found(TORCH), Ok(Some(Found::Torchrun { rank: 3, ranks: 8, host: "n1".into(), port: 29500 })));
    let agents = [TORCH, &[("TORCHELASTIC_USE_AGENT_STORE", "True")]].concat();
    assert!(matches!(found(&agents), Ok(Some(Found::Torchrun { port: 29501, .. }))));
    let Ok(Some(Found::Slurm(slurm))) = found(SLURM) else { panic!("no Slurm") };
    assert_eq!(
        (slurm.rank, slurm.ranks, &slurm.nodes[..], slurm.job, slurm.step),
        (3, 8, &["n1".into(), "n2".into()][..], 4711, 0)
    );
    assert!((20_000..32_000).contains(&slurm.port()));
}

#[test]
fn shells_and_scripts_of_slurm_are_no_ranks() {
    assert_eq!(found(&without(SLURM, "SLURM_STEP_ID")), Ok(None));
    assert_eq!(found(&with(SLURM, "SLURM_STEP_ID", "4294967291")), Ok(None), "a batch script");
    assert_eq!(found(&with(SLURM, "SLURM_STEP_ID", "4294967290")), Ok(None), "an interactive step");
    assert_eq!(found(&without(SLURM, "SLURM_PROCID")), Ok(None));
    assert_eq!(found(&[("MASTER_ADDR", "n1"), ("MASTER_PORT", "29500")]), Ok(None));
}

#[test]
fn the_first_of_launchers_that_agree_counts() {
    assert!(matches!(found(&[TORCH, SLURM, PMI, PMIX].concat()), Ok(Some(Found::Pmix { .. }))));
    assert!(matches!(found(&[TORCH, SLURM, PMI].concat()), Ok(Some(Found::Pmi1 { .. }))));
    assert!(matches!(found(&[TORCH, SLURM].concat()), Ok(Some(Found::Slurm(_)))));
}

#[test]
fn launchers_that_disagree_are_an_error_that_names_both() {
    let error = found(&[PMI, &with(TORCH, "RANK", "4")].concat()).unwrap_err();
    assert_eq!(error, DetectError::Disagreement { what: "rank", one: "PMI-1", first: 3, other: "torchrun", second: 4 });
    assert_eq!(error.to_string(), "PMI-1 and torchrun disagree about the rank: 3 and 4");
    let error = found(&[PMI, &with(SLURM, "SLURM_NTASKS", "9")].concat()).unwrap_err();
    assert_eq!(error.to_string(), "PMI-1 and Slurm disagree about the number of ranks: 8 and 9");
}

#[test]
fn one_task_of_slurm_on_each_node_may_be_another_launchers_daemon() {
    let daemons = with(&with(SLURM, "SLURM_NTASKS", "2"), "SLURM_PROCID", "1");
    assert!(matches!(found(&[TORCH, &daemons].concat()), Ok(Some(Found::Torchrun { rank: 3, .. }))));
    assert!(matches!(found(&[PMI, &daemons].concat()), Ok(Some(Found::Pmi1 { rank: 3, .. }))));
    assert!(matches!(found(&daemons), Ok(Some(Found::Slurm(_)))));
}

#[test]
fn every_missing_or_malformed_variable_is_named() {
    for group in [PMI, PMIX, TORCH] {
        for (name, _) in group.iter().filter(|(name, _)| !name.starts_with("SLURM_STEP")) {
            let error = found(&without(group, name)).unwrap_err();
            assert!(matches!(error, DetectError::HalfSet { missing, .. } if missing == *name), "{error}");
        }
    }
    for name in ["SLURM_NTASKS", "SLURM_JOB_ID"] {
        let error = found(&without(SLURM, name)).unwrap_err();
        assert!(matches!(error, DetectError::HalfSet { missing, .. } if missing == name), "{error}");
    }
    for (group, name, values) in [
        (PMI, "PMI_RANK", &["", "x", "-1", "+1", "8", "99999999999"][..]),
        (PMI, "PMI_FD", &["-1", "4294967295"]),
        (PMIX, "PMIX_RANK", &["a"]),
        (TORCH, "MASTER_PORT", &["70000", ""]),
        (SLURM, "SLURM_STEP_ID", &["a"]),
        (SLURM, "SLURM_STEP_NODELIST", &["n[1-", "n[2-1]"]),
    ] {
        for value in values {
            let error = found(&with(group, name, value)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }
    for value in [
        "",
        "v2;rank=0;ranks=1;coordinator=1.2.3.4:5;secret=stdin",
        "v1;rank=0;ranks=1",
        "v1;rank=2;ranks=1;coordinator=1.2.3.4:5;secret=stdin",
    ] {
        let error = found(&[("ONESIDED_CLUSTER", value)]).unwrap_err().to_string();
        assert!(error.contains("ONESIDED_CLUSTER"), "{error}");
    }
}

#[test]
fn lists_of_nodes_are_read_as_slurm_writes_them() {
    let names = |list| node_list(list).unwrap().join(" ");
    assert_eq!(names("n[001-003,007],gpu[1-2]x"), "n001 n002 n003 n007 gpu1x gpu2x");
    assert_eq!(names("login"), "login");
    assert_eq!(names("n[8-11]"), "n8 n9 n10 n11");
    assert_eq!(names("r[1-2]n[01-02]-ib"), "r1n01-ib r1n02-ib r2n01-ib r2n02-ib");
    for bad in [
        "",
        ",",
        "a,",
        "n[",
        "n]",
        "n[]",
        "n[1",
        "n[[1]]",
        "n[1-]",
        "n[2-1]",
        "n[a-b]",
        "a b",
        "n[0-65536]",
        "n[0-999]m[0-999]",
    ] {
        assert_eq!(node_list(bad).unwrap_err().text, bad);
    }
}

/// The ranges of a bracket: first number, how many more follow, and width.
fn ranges() -> impl Strategy<Value = Vec<(u64, u64, usize)>> {
    prop::collection::vec((0..2000_u64, 0..20_u64, 1..6_usize), 1..4)
}

proptest! {
    #[test]
    fn list_variables_are_parsed(entries in prop::collection::vec(("[a-z][a-z-]{0,4}", prop::option::of(ranges()), "[a-z]{0,3}"), 1..6)) {
        let (mut text, mut names) = (Vec::new(), Vec::new());
        for (head, ranges, tail) in entries {
            let Some(ranges) = ranges else {
                text.push(format!("{head}{tail}"));
                names.push(format!("{head}{tail}"));
                continue;
            };
            let mut parts = Vec::new();
            for (first, more, width) in ranges {
                parts.push(match more {
                    0 => format!("{first:0width$}"),
                    _ => format!("{first:0width$}-{last:0width$}", last = first + more),
                });
                // All numbers of a range have as many digits as its first one.
                let width = format!("{first:0width$}").len();
                names.extend((first..=first + more).map(|number| format!("{head}{number:0width$}{tail}")));
            }
            text.push(format!("{head}[{}]{tail}", parts.join(",")));
        }
        prop_assert_eq!(node_list(&text.join(",")), Ok(names));
    }

    #[test]
    fn no_text_makes_the_reader_panic_or_run_away(text in "[an0-9,\\[\\]-]{0,40}") {
        if let Ok(names) = node_list(&text) {
            prop_assert!(!names.is_empty() && names.len() <= 65536);
        }
    }
}
