//! The file that lists the hosts of a job, and the assignment of ranks to them.

use super::error::{BadLine, HostsError};
use crate::{cluster::identity, settings::text_in};
use std::{collections::BTreeSet, net::IpAddr, ops::Range, path::Path};

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) slots: usize,
}

/// The ranks of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) host: String,
    pub(super) ranks: Range<u32>,
}

/// Reads the file and assigns ranks to its hosts, in order, as many as they have slots. Hosts
/// without ranks are left out.
pub(super) fn shares(path: &Path, ranks: usize) -> Result<Vec<Share>, HostsError> {
    let unreadable = |problem| HostsError::Unreadable { path: path.into(), problem };
    let hosts = parse(&text_in(path).map_err(unreadable)?).map_err(|(line, problem)| HostsError::Line {
        path: path.into(),
        line,
        problem,
    })?;
    allot(&hosts, ranks).map_err(|slots| HostsError::TooFewSlots { path: path.into(), slots, ranks })
}

/// Returns the hosts in a file's text, or the number, from 1, of a line that does not describe one.
fn parse(text: &str) -> Result<Vec<Host>, (usize, BadLine)> {
    let lines = text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.split('#').next().unwrap_or_default();
        let host = host_of(line).transpose()?;
        Some(host.map_err(|problem| (index + 1, problem)))
    });
    lines.collect()
}

fn host_of(line: &str) -> Result<Option<Host>, BadLine> {
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else { return Ok(None) };
    let of_names = |char: char| char.is_alphanumeric() || "-_.:@%[]".contains(char);
    if name.starts_with('-') || !name.chars().all(of_names) {
        return Err(BadLine::Name(name.to_owned()));
    }
    let slots = match words.next() {
        None => 1,
        Some(word) => {
            let number = word.strip_prefix("slots=").and_then(|number| number.parse().ok());
            number.filter(|slots| *slots >= 1).ok_or_else(|| BadLine::Slots(word.to_owned()))?
        }
    };
    match words.next() {
        Some(word) => Err(BadLine::More(word.to_owned())),
        None => Ok(Some(Host { name: name.to_owned(), slots })),
    }
}

/// Assigns ranks to hosts, in order. Returns the number of slots if there are too few.
fn allot(hosts: &[Host], ranks: usize) -> Result<Vec<Share>, usize> {
    let (mut next, mut shares) = (0, Vec::new());
    for host in hosts {
        let count = host.slots.min(ranks - next);
        if count > 0 {
            shares.push(Share { host: host.name.clone(), ranks: next as u32..(next + count) as u32 });
        }
        next += count;
    }
    if next < ranks { Err(hosts.iter().map(|host| host.slots).sum()) } else { Ok(shares) }
}

/// Reads a file's text, and assigns these ranks to its hosts: each rank has one host.
#[cfg(any(test, fuzzing))]
pub(super) fn fuzz(text: &str, ranks: usize) {
    match parse(text) {
        Ok(hosts) => match allot(&hosts, ranks) {
            Ok(shares) => {
                let ends = shares.iter().map(|share| share.ranks.end as usize);
                assert!(shares.iter().all(|share| !share.ranks.is_empty()) && ends.max() == Some(ranks));
            }
            Err(slots) => assert!(slots < ranks),
        },
        Err((line, _)) => assert!((1..=text.lines().count()).contains(&line)),
    }
}

/// Returns whether all ranks are on this machine, according to the names of the hosts.
pub(super) fn are_here(shares: &[Share]) -> bool {
    let own = identity::host();
    let hosts: BTreeSet<&str> = shares.iter().map(|share| &*share.host).collect();
    hosts.into_iter().all(|host| is_here(host, &own))
}

fn is_here(host: &str, own: &str) -> bool {
    host == "localhost" || host == own || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_hosts_with_slots() {
        let text = "# a cluster\nnode1 slots=4\n\n  node2\t# one\nme@10.0.0.3 slots=2 # last\nfe80::1%eth0\n";
        let host = |name: &str, slots| Host { name: name.into(), slots };
        let hosts = vec![host("node1", 4), host("node2", 1), host("me@10.0.0.3", 2), host("fe80::1%eth0", 1)];
        assert_eq!(parse(text), Ok(hosts));
    }

    #[test]
    fn other_lines_are_refused_with_their_number() {
        for (line, problem) in [
            ("-oProxyCommand=x", BadLine::Name("-oProxyCommand=x".into())),
            ("a;b slots=1", BadLine::Name("a;b".into())),
            ("a slots=0", BadLine::Slots("slots=0".into())),
            ("a slots=x", BadLine::Slots("slots=x".into())),
            ("a 4", BadLine::Slots("4".into())),
            ("a slots=99999999999999999999", BadLine::Slots("slots=99999999999999999999".into())),
            ("a slots=1 max=2", BadLine::More("max=2".into())),
        ] {
            assert_eq!(parse(&format!("# first\nfine slots=2\n{line}\n")), Err((3, problem)), "{line}");
        }
    }

    #[test]
    fn hosts_are_filled_in_order() {
        let hosts = parse("a slots=2\nb\nc slots=4").unwrap();
        let share = |host: &str, ranks: Range<u32>| Share { host: host.into(), ranks };
        assert_eq!(allot(&hosts, 2), Ok(vec![share("a", 0..2)]));
        assert_eq!(allot(&hosts, 5), Ok(vec![share("a", 0..2), share("b", 2..3), share("c", 3..5)]));
        assert_eq!(allot(&hosts, 8), Err(7));
        assert_eq!(allot(&[], 1), Err(0));
    }

    #[test]
    fn this_machine_has_several_names() {
        for host in ["localhost", "127.0.0.1", "127.1.2.3", "::1", "node1"] {
            assert!(is_here(host, "node1"), "{host}");
        }
        for host in ["node2", "10.0.0.1", "node", "me@localhost"] {
            assert!(!is_here(host, "node1"), "{host}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_hosts_or_an_error(text in "[ -~\t\n]{0,200}") {
            match parse(&text) {
                Ok(hosts) => for host in hosts {
                    prop_assert!(host.slots >= 1 && !host.name.starts_with('-'));
                },
                Err((line, _)) => prop_assert!((1..=text.lines().count()).contains(&line)),
            }
        }

        #[test]
        fn every_rank_has_one_host(slots in prop::collection::vec(1..9_usize, 0..6), ranks in 1..40_usize) {
            let hosts: Vec<Host> =
                slots.iter().map(|slots| Host { name: format!("h{slots}"), slots: *slots }).collect();
            let all: usize = slots.iter().sum();
            match allot(&hosts, ranks) {
                Ok(shares) => {
                    let given: Vec<u32> = shares.iter().flat_map(|share| share.ranks.clone()).collect();
                    prop_assert_eq!(given, (0..ranks as u32).collect::<Vec<_>>());
                }
                Err(slots) => prop_assert!(slots == all && all < ranks),
            }
        }
    }
}
