//! Steps of one rank between two of another. Each delay stands with the interval, looked through in steps of 20 ns, in which the path
//! is the same.

use super::*;
use Act::*;

pub(super) fn scenes() -> Vec<Scene> {
    vec![
        scene(
            LOOKS_AGAIN,
            [(0, 1, Write), (1, 2, Read), (1, 1, Release), (2, 2, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "reader", "R1 add, R3 swap, R4 get, R5 swap").printed(4, 0),
                line(1, 1, "writer", "flush_all, X2 add, X3 swap, wake cas@peer, X4 cas").printed(4, 1).because(NO_X1),
                also(2, 2, R_UNLOCK),
            ],
        )
        .delayed(1, 1, 1500), // 20 to 3100
        Scene {
            ranks: MANY,
            ..scene(
                "reader counted, writer sweeps in vain, reader wakes itself",
                [(0, 1, Write), (1, FAR, Read), (1, 1, Release), (2, FAR, Release)],
                [
                    also(0, 1, W_LOCK),
                    line(1, FAR, "reader", "R1 add, R3 swap, R4 get, R5 swap, wake cas@own").printed(4, 0),
                    line(1, 1, "writer", "flush_all, X2 add, X3 swap, X4 cas").printed(4, 0).because(NO_X1),
                    also(2, FAR, R_UNLOCK),
                ],
            )
        }
        .delayed(1, 1, 800), // 400 to 1180
        scene(
            "reader comes in between U1 and U2",
            [(0, 1, Read), (1, 3, Write), (2, 1, Release), (2, 2, Read), (3, 2, Release), (4, 3, Release)],
            [
                also(0, 1, R_LOCK),
                also(1, 3, "W2 swap, W3 put, W3 flush, W4 add"),
                line(2, 1, "reader that was the last", "flush_all, U1 add, U2 cas").printed(2, 0),
                line(2, 2, "reader that comes", R_LOCK).printed(1, 0),
                line(3, 2, "it leaves", R_LAST).printed(3, 1),
                also(4, 3, W_UNLOCK),
            ],
        )
        .delayed(2, 2, 850), // 20 to 1680
        scene(
            "reader comes in between W4 and W5",
            [(0, 1, Write), (0, 2, Read), (1, 2, Release), (2, 1, Release)],
            [
                line(0, 1, "writer, until it waits", W_LOCK).printed(4, 0),
                also(0, 2, R_LOCK),
                line(1, 2, "reader leaves", R_LAST).printed(3, 1),
                also(2, 1, W_UNLOCK),
            ],
        )
        .delayed(0, 2, 3950), // 3120 to 4780
        scene(
            "reader comes in between X6 and X7",
            [(0, 1, Write), (1, 2, Write), (2, 1, Release), (2, 3, Read), (3, 3, Release), (4, 2, Release)],
            [
                also(0, 1, W_LOCK),
                also(1, 2, W_QUEUES),
                line(2, 1, "first writer", "flush_all, X2 add, X5 put, X5 flush, X6 add, X7 cas")
                    .printed(6, 0)
                    .because(NO_X1_X3),
                also(2, 3, R_LOCK),
                line(3, 3, "reader leaves", R_LAST).printed(3, 1),
                also(4, 2, W_UNLOCK),
            ],
        )
        .delayed(2, 3, 3850), // 3020 to 4680
        Scene {
            ranks: MANY,
            ..scene(
                "successor is on its way, and finds the mark",
                [(0, 1, Write), (1, 1, Release), (1, FAR, Write), (2, FAR, Release)],
                [
                    also(0, 1, W_LOCK),
                    line(1, 1, "writer leaves", "flush_all, X2 add, X4 cas, X4 mark cas@own")
                        .printed(8, 1)
                        .because(NO_WAIT),
                    line(1, FAR, "successor", "W2 swap, W6 swap@peer, W3 put, W3 flush, W4 add, W5 cas")
                        .printed(1, 1)
                        .because("X5–X7 are its W3–W5"),
                    also(2, FAR, W_UNLOCK),
                ],
            )
        }
        .delayed(1, FAR, 700), // 140 to 1280
        scene(
            "successor is on its way, and comes before the mark",
            [(0, 1, Write), (1, 1, Release), (1, 2, Write), (2, 2, Release)],
            [
                also(0, 1, W_LOCK),
                line(
                    1,
                    1,
                    "writer hands over",
                    "flush_all, X2 add, X4 cas, X4 mark cas@own, X5 put, X5 flush, X6 add, X7 cas, X7 get, wake cas@peer",
                )
                .printed(8, 1)
                .because(NO_X1_X3),
                line(1, 2, "successor, until it waits", W_QUEUES).printed(1, 1),
                also(2, 2, W_UNLOCK),
            ],
        )
        .delayed(1, 2, 850), // 20 to 1680
    ]
}

/// Why a writer whose successor is on its way posts fewer.
const NO_WAIT: &str = "X4 does not wait for the link, so X5–X7 are the successor's; X1 and X3 as above";
