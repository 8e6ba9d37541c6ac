//! Small schedules whose finishing times are computed by hand. LogGOPSim gives the same ones, except
//! where a comment says so.

use super::{replay, times};
use tofu2_virt::goal::ReplayError;

fn finish(text: &str, machine: &str) -> Vec<u64> {
    times(&replay(text, machine).expect("a replay"))
}

#[test]
fn a_long_message_ends_its_send_when_it_is_matched() {
    let text = "num_ranks 2
        rank 0 {
          s: send 1000b to 1 tag 0
          c: calc 100
          c requires s
        }
        rank 1 {
          c: calc 50000
          r: recv 1000b from 0 tag 0
          r requires c
        }";
    // Eager: the send takes o. The message of 4000 waits for the CPU until 50000, and takes o + 999 G.
    assert_eq!(finish(text, "S=1000"), [1_600, 50_000 + 1_500 + 5_994]);
    // The receive is posted at 50000, behind the message.
    assert_eq!(finish(text, "S=999"), [50_100, 50_000 + 1_500 + 5_994]);
}

#[test]
fn a_send_that_waits_for_its_receive_holds_no_cpu() {
    let text = "num_ranks 2
        rank 0 {
          send 10b to 1 tag 1
          calc 20
        }
        rank 1 {
          c: calc 500
          r: recv 10b from 0 tag 1
          r requires c
        }";
    // Rank 0 finishes when its message is matched: at 500, when it has also been received: 5 + 10 and 5.
    assert_eq!(finish(text, "L=10,o=5,g=1,G=0,S=1"), [500, 505]);
    assert_eq!(finish(text, "L=10,o=5,g=1,G=0,S=10"), [25, 505]);
}

#[test]
fn what_waits_for_a_start_goes_beside_what_waits_for_an_end() {
    let text = "num_ranks 2
        rank 0 {
          a: send 11b to 1 tag 0
          b: send 11b to 1 tag 1
          b irequires a
          c: calc 7
          c irequires b
        }
        rank 1 {
          x: recv 11b from 0 tag 1
          y: recv 11b from 0 tag 0
          z: calc 3
          z requires x
        }";
    // b starts at max(o, g + 10 G) = 120, c when the CPU is free: at 130. Messages arrive at 110 and
    // 220, are received in max(10 O, 10 G) + o = 30, and the interface takes 120 for each.
    assert_eq!(finish(text, "L=100,o=10,g=100,G=2,O=0"), [137, 110 + 120 + 30 + 3]);
}

#[test]
fn messages_match_in_the_order_of_posts_and_arrivals() {
    // Of the receives that match the message with tag 5, the first posted gets it, whatever it names.
    for (first, second, expected) in [
        ("from 1 tag 5", "from -1 tag -1", [100, 200]),
        ("from -1 tag -1", "from 1 tag 5", [100, 200]),
        ("from -1 tag 5", "from 1 tag 5", [100, 200]),
        ("from 1 tag -1", "from 1 tag 5", [100, 200]),
    ] {
        // The second message comes 100 later; what requires the first receive takes longer than that.
        let text = format!(
            "num_ranks 2
            rank 0 {{
              a: recv 1b {first}
              b: recv 1b {second}
              b irequires a
              c: calc 1000
              c requires a
            }}
            rank 1 {{
              s: send 1b to 0 tag 5
              t: send 1b to 0 tag 5
              t requires s
            }}"
        );
        let [arrival, later] = expected;
        // The calculation of the first keeps the second message waiting.
        assert_eq!(finish(&text, "L=99,o=1,g=100,G=0")[0], arrival + 1 + 1000 + 1, "{first}, {second}, {later}");
    }
}

#[test]
fn unexpected_messages_are_taken_by_wildcards_in_order() {
    let text = "num_ranks 3
        rank 0 {
          c: calc 1000
          any: recv 1b from -1 tag 7
          two: recv 1b from 2 tag 8
          one: recv 1b from 1 tag -1
          any requires c
          two requires c
          one requires c
          d: calc 5
          d requires one
        }
        rank 1 {
          a: send 1b to 0 tag 7
          b: send 1b to 0 tag 9
          b requires a
        }
        rank 2 {
          calc 40
          send 1b to 0 tag 8
        }";
    // All messages have arrived at 1000, when the CPU is free for them: 3 times o. Receives are then
    // immediate, so d starts behind them.
    assert_eq!(finish(text, "L=10,o=2,g=2,G=0"), [1_000 + 3 * 2 + 5, 4, 42]);
}

#[test]
fn cpus_and_interfaces_are_independent() {
    let text = "num_ranks 2
        rank 0 {
          a: calc 100
          b: calc 100 cpu 1
          s: send 1b to 1 tag 0 nic 1
          t: send 1b to 1 tag 1 cpu 1
          c: calc 10 cpu 1
          c requires a
        }
        rank 1 {
          r: recv 1b from 0 tag 0
          q: recv 1b from 0 tag 1
          e: calc 1 cpu 2
          e requires q
        }";
    // Sends start first, each on its CPU and interface: 5 each. Then a and b until 105, and c until 115
    // (LogGOPSim would let c start on its idle CPU before a has ended). Messages are received by the CPUs
    // with the numbers of their sends, at 55 + 5, and e ends at 61.
    assert_eq!(finish(text, "L=50,o=5,g=100,G=0"), [115, 61]);
}

#[test]
fn an_empty_message_takes_as_long_as_a_byte() {
    // LogGOPSim subtracts a byte's time.
    let text = |bytes| format!("num_ranks 2\nrank 0 {{\nsend {bytes}b to 1\n}}\nrank 1 {{\nrecv {bytes}b from 0\n}}");
    assert_eq!(finish(&text(0), "G=6"), finish(&text(1), "G=6"));
}

#[test]
fn decimals_of_parameters_count() {
    let text = "num_ranks 2\nrank 0 {\nsend 1001b to 1\n}\nrank 1 {\nrecv 1001b from 0\n}";
    let replay = replay(text, "L=700.5,o=0.25,G=0.08").expect("a replay");
    assert_eq!(replay.finish_times, [250, 250 + 700_500 + 250 + 80_000]);
}

#[test]
fn what_never_ends_is_an_error() {
    let unfinished = |text: &str| match replay(text, "S=100").expect_err("no end") {
        ReplayError::Unfinished { unfinished, receives, messages, rank, operation, .. } => {
            (unfinished, receives, messages, rank, operation)
        }
        other => panic!("{other}"),
    };
    // A receive without a message, and what requires it.
    let text = "num_ranks 2\nrank 0 {\ncalc 1\n}\nrank 1 {\na: recv 1b from 0\nb: calc 1\nb requires a\n}";
    assert_eq!(unfinished(text), (2, 1, 0, 1, 0));
    // Messages without a receive, the second of which would end its send; a message with another tag.
    let text =
        "num_ranks 2\nrank 0 {\ncalc 1\nsend 1b to 1\nsend 101b to 1 tag 3\n}\nrank 1 {\nrecv 1b from 0 tag 2\n}";
    assert_eq!(unfinished(text), (3, 1, 2, 0, 1));
    // A circle.
    let text = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb irequires a\n}";
    assert_eq!(unfinished(text), (2, 0, 0, 0, 0));
    let text = "num_ranks 1\nrank 0 {\na: calc 18446744073709551615\n}";
    assert!(matches!(replay(text, "S=1"), Err(ReplayError::EndOfTime)));
}
