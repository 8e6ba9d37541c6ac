//! Entry points for fuzzing: a function for each format that a launcher or an agent reads. Each
//! panics if an invariant does not hold. The module is public only with `--cfg fuzzing`, for the
//! targets in `fuzz/`, whose seeds tests replay.

#![allow(unreachable_pub)]

use super::{
    frames::{Order, Report},
    hosts, pipes,
    plan::AgentPlan,
};

/// Frames between a launcher and an agent. The first byte selects the format.
pub fn agent_frames(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    [orders, reports, agent_output][usize::from(kind % 3)](rest);
}

/// Host files and plans of agents. The first byte selects the format.
pub fn host_files(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    [host_file, agent_plan][usize::from(kind % 2)](rest);
}

/// Orders of a launcher to an agent.
pub fn orders(bytes: &[u8]) {
    let mut rest = bytes;
    let mut read = Vec::new();
    while let Ok(Some(order)) = Order::read(&mut rest) {
        order.write(&mut read).expect("what was read can be written");
    }
    assert!(bytes.starts_with(&read));
}

/// Reports of an agent to its launcher.
pub fn reports(bytes: &[u8]) {
    let mut rest = bytes;
    let mut read = Vec::new();
    while let Ok(Some(report)) = Report::read(&mut rest) {
        let before = read.len();
        report.write(&mut read).expect("what was read can be written");
        assert_eq!(Report::read(&mut &read[before..]).expect("it was just written"), Some(report));
    }
    assert!(read.len() <= bytes.len());
}

/// An agent's standard output, including the preceding output of its shell.
pub fn agent_output(bytes: &[u8]) {
    let closed = std::cell::Cell::new(0);
    // Output of ranks would be written to standard output.
    let has_output = bytes.iter().any(|byte| b"oe".contains(byte));
    if !has_output {
        pipes::read_reports(bytes, &|event| {
            closed.set(closed.get() + usize::from(matches!(event, pipes::Event::Closed)));
        });
        assert_eq!(closed.get(), 1);
    }
}

/// A hosts file; the first bytes are the number of ranks.
pub fn host_file(bytes: &[u8]) {
    let Some(([few, many], text)) = bytes.split_first_chunk() else { return };
    let ranks = 1 + usize::from(*few) * if *many == 0 { 1 << 20 } else { 1 };
    hosts::fuzz(&String::from_utf8_lossy(text), ranks);
}

/// The variable of an agent.
pub fn agent_plan(bytes: &[u8]) {
    if let Ok(plan) = AgentPlan::from_text(&String::from_utf8_lossy(bytes)) {
        assert_eq!(AgentPlan::from_text(&plan.to_text()).ok(), Some(plan));
    }
}

#[cfg(test)]
mod tests {
    use super::{super::end::RankEnd, *};
    use fabric_conformance::seeds::replay;
    use proptest::prelude::*;

    /// A change: its position, its kind, and a byte.
    type Change = (prop::sample::Index, u8, u8);

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 0..4)
    }

    fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
        for (at, what, byte) in changes {
            let at = at.index(bytes.len() + 1);
            match what {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, *byte),
                2 => _ = bytes.splice(at..bytes.len().min(at + 4), [0xff; 4]),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|old| *old = *byte),
            }
        }
        bytes
    }

    fn frames() -> impl Strategy<Value = Vec<u8>> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..12);
        let text = || prop_oneof![Just(String::new()), Just("killed".to_owned()), Just("ünï".to_owned())];
        let end = prop_oneof![
            any::<i32>().prop_map(RankEnd::Exited),
            any::<i32>().prop_map(RankEnd::Killed),
            text().prop_map(RankEnd::Unheard),
        ];
        let reports = prop_oneof![
            bytes().prop_map(Report::Out),
            bytes().prop_map(Report::Err),
            (any::<u32>(), end).prop_map(|(rank, end)| Report::Ended(rank, end)),
            Just(Report::InputTaken),
            (any::<u32>(), bytes()).prop_map(|(rank, bytes)| Report::Record(rank, bytes)),
            text().prop_map(Report::Failed),
            Just(Report::Done),
        ];
        let orders = prop_oneof![
            text().prop_map(Order::Secret),
            bytes().prop_map(Order::Input),
            Just(Order::InputEnd),
            Just(Order::Terminate),
            Just(Order::Kill),
            Just(Order::Beat),
        ];
        let reports = prop::collection::vec(reports, 0..4).prop_map(|reports| {
            let mut bytes = Vec::new();
            reports.iter().for_each(|report| report.write(&mut bytes).unwrap());
            bytes
        });
        let orders = prop::collection::vec(orders, 0..4).prop_map(|orders| {
            let mut bytes = Vec::new();
            orders.iter().for_each(|order| order.write(&mut bytes).unwrap());
            bytes
        });
        prop_oneof![reports, orders]
    }

    #[test]
    fn seeds_of_fuzz_targets_are_withstood() {
        replay(env!("CARGO_MANIFEST_DIR"), "agent_frames", agent_frames);
        replay(env!("CARGO_MANIFEST_DIR"), "host_files", host_files);
    }

    const LINES: &[u8] = b"\x03\x01node1 slots=4\n# none\n\tme@10.0.0.3 slots=18446744073709551615 \nb\n";
    const PLAN: &[u8] =
        b"v1;ranks=4;first=0;last=3;coordinator=10.0.0.1:4000;silence=18446744073709551615;records=none";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(25_000))]
        #[test]
        fn any_frames_are_read_or_refused(frames in frames(), changes in changes()) {
            let bytes = changed(frames, &changes);
            orders(&bytes);
            reports(&bytes);
            agent_output(&bytes);
            agent_output(&[b"motd\nonesided agent v1\n", &bytes[..]].concat());
        }

        #[test]
        fn any_text_is_hosts_or_a_plan_or_refused(one in changes(), other in changes()) {
            host_file(&changed(changed(LINES.to_vec(), &one), &other));
            agent_plan(&changed(changed(PLAN.to_vec(), &one), &other));
        }
    }
}
