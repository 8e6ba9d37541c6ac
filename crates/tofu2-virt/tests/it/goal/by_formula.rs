//! Finishing times of patterns against formulas, in which nothing is simulated.

use super::machines;
use tofu2_virt::goal::{LogGps, Pattern};

const BYTES: [u64; 3] = [1, 64, 800];

/// The terms of all formulas, in picoseconds.
struct Terms {
    /// A message, from the start of its send to the end of its receive, both CPUs being free.
    message: u64,
    /// The CPU's part of a send.
    send: u64,
    /// From one send of a rank to the next.
    between_sends: u64,
    /// From one receive of a rank to the next.
    between_receives: u64,
    /// From the start of a send to the arrival.
    flight: u64,
    /// The CPU's part of a receive.
    receive: u64,
}

impl Terms {
    fn new(machine: &LogGps, bytes: u64) -> Terms {
        let LogGps { latency, overhead, gap, gap_per_byte, overhead_per_byte, .. } = *machine;
        let more = bytes - 1;
        let send = overhead + more * overhead_per_byte;
        let receive = overhead + more * overhead_per_byte.max(gap_per_byte);
        let interface = gap + more * gap_per_byte;
        Terms {
            message: overhead + latency + receive,
            send,
            between_sends: send.max(interface),
            between_receives: receive.max(interface),
            flight: overhead + latency,
            receive,
        }
    }
}

/// Compares replays of a pattern with a formula for the finishing time of a rank.
fn compare(pattern: Pattern, sizes: &[u32], formula: impl Fn(&Terms, u32, u32) -> u64) {
    for machine in machines() {
        for &ranks in sizes {
            for bytes in BYTES {
                let terms = Terms::new(&machine, if pattern == Pattern::LinearBarrier { 1 } else { bytes });
                let replay = pattern.schedule(ranks, bytes).unwrap().replay(&machine).unwrap();
                let expected: Vec<u64> = (0..ranks).map(|rank| formula(&terms, ranks, rank)).collect();
                assert_eq!(replay.finish_times, expected, "{} of {ranks}, {bytes} B, {machine}", pattern.name());
            }
        }
    }
}

#[test]
fn dissemination_takes_a_message_for_each_round() {
    compare(Pattern::Dissemination, &[1, 2, 3, 8, 13, 1024], |terms, ranks, _| {
        let rounds = u64::from(ranks.next_power_of_two().ilog2());
        // The interface may not be ready for the next round when the message has come.
        let round = terms.message.max(terms.between_sends);
        if rounds == 0 { 0 } else { (rounds - 1) * round + terms.message }
    });
}

#[test]
fn binomial_broadcast_takes_the_path_to_each_rank() {
    /// Returns when a rank has the data.
    fn ready(terms: &Terms, rank: u32) -> u64 {
        if rank == 0 {
            return 0;
        }
        let parent = rank - (1 << rank.ilog2());
        // The parent sends once in each round since it has the data.
        let before = rank.ilog2() - parent.checked_ilog2().map_or(0, |round| round + 1);
        ready(terms, parent) + u64::from(before) * terms.between_sends + terms.message
    }
    compare(Pattern::Binomial, &[1, 2, 3, 8, 13, 1000], |terms, ranks, rank| {
        let first_round = rank.checked_ilog2().map_or(0, |round| round + 1);
        let sends = (first_round..32).take_while(|round| u64::from(rank) + (1 << round) < ranks.into()).count() as u64;
        let sending = if sends == 0 { 0 } else { (sends - 1) * terms.between_sends + terms.send };
        ready(terms, rank) + sending
    });
}

#[test]
fn linear_barrier_takes_all_messages_one_after_another() {
    compare(Pattern::LinearBarrier, &[2, 3, 8, 13, 1000], |terms, ranks, rank| {
        let others = u64::from(ranks) - 1;
        let all_here = terms.flight + (others - 1) * terms.between_receives + terms.receive;
        match u64::from(rank) {
            0 => all_here + (others - 1) * terms.between_sends + terms.send,
            place => all_here + (place - 1) * terms.between_sends + terms.message,
        }
    });
}

#[test]
fn ring_takes_a_message_for_each_rank() {
    compare(Pattern::Ring, &[2, 3, 8, 1000], |terms, ranks, rank| match rank {
        0 => u64::from(ranks) * terms.message,
        rank => u64::from(rank) * terms.message + terms.send,
    });
}

#[test]
fn incast_takes_all_messages_one_after_another() {
    compare(Pattern::Incast, &[2, 3, 8, 1000], |terms, ranks, rank| match rank {
        0 => terms.flight + u64::from(ranks - 2) * terms.between_receives + terms.receive,
        _ => terms.send,
    });
}

/// Each message that waits would cost a step of every other one if it returned to the queue of events:
/// 2^32 steps here, minutes instead of a fraction of a second.
#[test]
fn many_messages_to_one_rank_are_not_quadratic() {
    let replay = Pattern::Incast.schedule(1 << 16, 1).unwrap().replay(&LogGps::default()).unwrap();
    assert_eq!((replay.events, replay.messages), (3 * 65_535, 65_535));
    assert_eq!(replay.end(), (4_000 + 65_534 * 1_500 + 1_500) * 1_000);
}

#[test]
fn memory_of_a_rank_is_that_of_its_operations() {
    let replay = Pattern::Dissemination.schedule(1 << 12, 1).unwrap().replay(&LogGps::default()).unwrap();
    // 24 operations of 32 bytes and 11 dependencies of 4, 12 channels of 4, 36 bytes of state, and 13
    // events of 16 at the peak.
    assert!((1_000..1_150).contains(&replay.bytes_per_rank), "{}", replay.bytes_per_rank);
}
