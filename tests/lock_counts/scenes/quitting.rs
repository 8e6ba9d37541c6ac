//! Tries, deadlines, and what is dropped.

use super::*;
use Act::*;

pub(super) fn scenes() -> Vec<Scene> {
    [tries(), deadlines(), dropped()].concat()
}

fn tries() -> Vec<Scene> {
    const TRY_LOCK: &str = "W2 cas, W3 put, W3 flush, W4 add, W5 cas";
    vec![
        scene(
            "`try_read`, nobody about",
            [(0, 1, TryRead), (1, 1, Release)],
            [line(0, 1, "succeeds", R_LOCK), also(1, 1, R_UNLOCK)],
        )
        .calm(),
        scene(
            "`try_write`, nobody about",
            [(0, 1, TryWrite), (1, 1, Release)],
            [line(0, 1, "succeeds", TRY_LOCK), also(1, 1, W_UNLOCK)],
        )
        .calm(),
        scene(
            "tries, a writer inside",
            [(0, 1, Write), (1, 2, TryReadFails), (2, 2, TryWriteFails), (3, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "`try_read` fails", "R1 add, U1 add"),
                line(2, 2, "`try_write` fails", "W2 cas"),
                also(3, 1, W_UNLOCK),
            ],
        )
        .calm(),
        scene(
            "tries, a reader inside",
            [(0, 1, Read), (1, 2, TryWriteFails), (2, 2, TryRead), (3, 1, Release), (4, 2, Release)],
            [
                also(0, 1, R_LOCK),
                line(1, 2, "`try_write` fails", "W2 cas, W3 put, W3 flush, W4 add, withdraw and, X4 cas"),
                line(2, 2, "`try_read` succeeds", R_LOCK),
                also(3, 1, R_UNLOCK),
                also(4, 2, R_UNLOCK),
            ],
        )
        .calm(),
        Scene {
            ranks: MANY,
            ..scene(
                "`try_write`, let in while it withdraws",
                [(0, 1, Read), (1, FAR, TryWrite), (1, 1, Release), (2, FAR, Release)],
                [
                    also(0, 1, R_LOCK),
                    line(1, FAR, "`try_write` succeeds", "W2 cas, W3 put, W3 flush, W4 add, withdraw and"),
                    line(1, 1, "reader leaves", R_LAST),
                    also(2, FAR, W_UNLOCK),
                ],
            )
        }
        .delayed(1, 1, 5500), // 5120 to 5900
    ]
}

/// What a writer that leaves does for a reader that gave up.
const FOR_READER: &str =
    "flush_all, X2 add, X3 swap, wake cas@peer, its next get@peer, its turn put@peer, X4 cas, its U1 add";
/// What a writer that leaves does for its successor that gave up.
const FOR_WRITER: &str = "flush_all, X2 add, X5 put, X5 flush, X6 add, X7 cas, X7 get, wake cas@peer, its X2 add, its next get@peer, its X4 cas, its turn put@peer";

fn deadlines() -> Vec<Scene> {
    vec![
        scene(
            GIVES_UP,
            [(0, 1, Write), (1, 2, ReadUntil(50_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "reader", "R1 add, R3 swap, R4 get, abandon cas@own"),
                line(2, 1, "writer leaves", FOR_READER),
            ],
        ),
        scene(
            "reader whose rank has left all nodes behind",
            [
                (0, 1, Write),
                (1, 2, ReadUntil(20_000)),
                (1, 2, ReadUntil(40_000)),
                (1, 2, ReadUntil(60_000)),
                (1, 2, ReadUntil(80_000)),
                (2, 2, ReadRefused),
                (3, 1, Release),
            ],
            [
                also(0, 1, W_LOCK),
                also(
                    1,
                    2,
                    "R1 add, R3 swap, R4 get, abandon cas@own, R1 add, R3 swap, R4 get, abandon cas@own, \
                     R1 add, R3 swap, R4 get, abandon cas@own, R1 add, R3 swap, R4 get, abandon cas@own",
                ),
                line(2, 2, "reader, refused", "R1 add, U1 add"),
                line(
                    3,
                    1,
                    "writer leaves, for four",
                    "flush_all, X2 add, X3 swap, wake cas@peer, its next get@peer, its turn put@peer, wake cas@peer, its next get@peer, \
                     its turn put@peer, wake cas@peer, its next get@peer, its turn put@peer, wake cas@peer, its next get@peer, \
                     its turn put@peer, X4 cas, its U1 add, its U1 add, its U1 add, its U1 add",
                ),
            ],
        ),
        scene(
            "writer behind a writer gives up",
            [(0, 1, Write), (1, 2, WriteUntil(50_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "second writer", "W2 swap, W6 swap@peer, abandon cas@own"),
                line(2, 1, "first writer leaves", FOR_WRITER),
            ],
        ),
        scene(
            "writer behind a reader gives up",
            [(0, 1, Read), (1, 2, WriteUntil(50_000)), (2, 1, Release)],
            [
                also(0, 1, R_LOCK),
                line(1, 2, "writer", "W2 swap, W3 put, W3 flush, W4 add, abandon cas@own"),
                line(
                    2,
                    1,
                    "reader leaves",
                    "flush_all, U1 add, U2 cas, U3 get, U4 cas@peer, its X2 add, its next get@peer, its X4 cas, its turn put@peer",
                ),
            ],
        ),
    ]
}

fn dropped() -> Vec<Scene> {
    vec![
        scene(
            "reader dropped while it waits",
            [(0, 1, Write), (1, 2, ReadDropped(50_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "reader", "R1 add, R3 swap, R4 get, abandon cas@own"),
                line(2, 1, "writer leaves", FOR_READER),
            ],
        ),
        scene(
            "writer dropped while it waits",
            [(0, 1, Write), (1, 2, WriteDropped(50_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "second writer", "W2 swap, W6 swap@peer, abandon cas@own"),
                line(2, 1, "first writer leaves", FOR_WRITER),
            ],
        ),
        scene("reader dropped with R1 under way", [(0, 1, ReadDropped(300))], [line(0, 1, "reader", "R1 add, U1 add")]),
        scene(
            "writer dropped with W2 under way",
            [(0, 1, WriteDropped(300))],
            [line(0, 1, "writer", "W2 swap, W3 put, W3 flush, W4 add, W5 cas, X2 add, X4 cas")],
        ),
        scene(
            "reader dropped, but woken already",
            [(0, 1, Write), (1, 2, ReadForgotten(50_000, 150_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                also(1, 2, R_QUEUES),
                also(2, 1, "flush_all, X2 add, X3 swap, wake cas@peer, X4 cas"),
                line(2, 2, "reader", "U1 add"),
            ],
        ),
        scene(
            "writer dropped, but woken already",
            [(0, 1, Write), (1, 2, WriteForgotten(50_000, 150_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                also(1, 2, W_QUEUES),
                also(2, 1, HAND_OVER),
                line(2, 2, "second writer", "X2 add, X4 cas"),
            ],
        ),
        scene(
            "releases dropped half-way",
            [(0, 1, Read), (1, 1, ReleaseDropped(300)), (2, 1, Write), (3, 1, ReleaseDropped(300))],
            [
                also(0, 1, R_LOCK),
                line(1, 1, "reader", R_UNLOCK).printed(1, 0),
                also(2, 1, W_LOCK),
                line(3, 1, "writer", W_UNLOCK).printed(4, 0).because(NO_X1_X3),
            ],
        ),
        scene(
            "guards dropped",
            [(0, 1, Read), (1, 1, DropGuard), (2, 1, Write), (3, 1, DropGuard)],
            [
                also(0, 1, R_LOCK),
                line(1, 1, "reader", R_UNLOCK).printed(1, 0),
                also(2, 1, W_LOCK),
                line(3, 1, "writer", W_UNLOCK).printed(4, 0).because(NO_X1_X3),
            ],
        )
        .calm(),
    ]
}
