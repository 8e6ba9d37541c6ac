//! The paths of the packed lock.

use super::*;
use Act::*;

const W_LOCK: &str = "W2 swap, W5 cas";
const R_LAST: &str = "flush_all, U1 add, U2 cas, U4 cas@peer";
const HAND_OVER: &str = "flush_all, X7 cas, wake cas@peer";

pub(super) fn scenes() -> Vec<Scene> {
    of(Subject::Packed, [meeting(), tries(), quitting()].concat())
}

fn meeting() -> Vec<Scene> {
    vec![
        scene(
            "shared, nobody about",
            [(0, 1, Read), (1, 1, Release)],
            [line(0, 1, "lock", R_LOCK), line(1, 1, "unlock", R_UNLOCK)],
        )
        .calm(),
        scene(
            ALONE,
            [(0, 1, Write), (1, 1, Release), (2, 2, Write), (3, 2, Release)],
            [line(0, 1, "lock", W_LOCK), line(1, 1, "unlock", W_UNLOCK), also(2, 2, W_LOCK), also(3, 2, W_UNLOCK)],
        )
        .calm(),
        scene(
            "reader behind a writer",
            [(0, 1, Write), (1, 2, Read), (2, 1, Release), (3, 2, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "reader, until it waits", R_QUEUES),
                line(2, 1, "writer lets it in", "flush_all, X2 add, X3 swap, wake cas@peer, X4 cas"),
                line(2, 2, "reader, woken", ""),
                also(3, 2, R_UNLOCK),
            ],
        ),
        scene(
            "writer behind readers",
            [(0, 1, Read), (0, 2, Read), (1, 3, Write), (2, 1, Release), (3, 2, Release), (4, 3, Release)],
            [
                also(0, 1, R_LOCK),
                also(0, 2, R_LOCK),
                line(1, 3, "writer, until it waits", "W2 swap, W5 cas, W4 add"),
                line(2, 1, "a reader leaves", R_UNLOCK),
                line(3, 2, "the last reader leaves", R_LAST),
                line(3, 3, "writer, woken", ""),
                line(4, 3, "writer leaves", W_UNLOCK),
            ],
        ),
        scene(
            "writers behind a writer",
            [(0, 1, Write), (1, 2, Write), (2, 3, Write), (3, 1, Release), (4, 2, Release), (5, 3, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "second writer, until it waits", W_QUEUES),
                also(2, 3, W_QUEUES),
                line(3, 1, "first writer hands over", HAND_OVER),
                line(3, 2, "second writer, woken", ""),
                line(4, 2, "second writer hands over", HAND_OVER),
                line(5, 3, "third writer leaves", W_UNLOCK),
            ],
        ),
        scene(
            "reader and writer behind a writer",
            [(0, 1, Write), (1, 2, Read), (2, 3, Write), (3, 1, Release), (4, 2, Release), (5, 3, Release)],
            [
                also(0, 1, W_LOCK),
                also(1, 2, R_QUEUES),
                also(2, 3, W_QUEUES),
                line(
                    3,
                    1,
                    "writer lets the reader in and registers the next",
                    "flush_all, X7 cas, X2 add, X3 swap, wake cas@peer, X6 add",
                ),
                line(4, 2, "the reader leaves", R_LAST),
                also(5, 3, W_UNLOCK),
            ],
        ),
    ]
}

fn tries() -> Vec<Scene> {
    vec![
        scene(
            "tries, nobody about",
            [(0, 1, TryRead), (1, 1, Release), (2, 1, TryWrite), (3, 1, Release)],
            [
                line(0, 1, "`try_read` succeeds", R_LOCK),
                also(1, 1, R_UNLOCK),
                line(2, 1, "`try_write` succeeds", "W2 cas, W5 cas"),
                also(3, 1, W_UNLOCK),
            ],
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
            [(0, 1, Read), (1, 2, TryWriteFails), (2, 1, Release)],
            [also(0, 1, R_LOCK), line(1, 2, "`try_write` fails", "W2 cas, W5 cas, X4 cas"), also(2, 1, R_UNLOCK)],
        )
        .calm(),
    ]
}

fn quitting() -> Vec<Scene> {
    vec![
        scene(
            GIVES_UP,
            [(0, 1, Write), (1, 2, ReadUntil(50_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "reader", "R1 add, R3 swap, R4 get, abandon cas@own"),
                line(
                    2,
                    1,
                    "writer leaves",
                    "flush_all, X2 add, X3 swap, wake cas@peer, its next get@peer, its turn put@peer, X4 cas, its U1 add",
                ),
            ],
        ),
        scene(
            "writer behind a writer gives up",
            [(0, 1, Write), (1, 2, WriteUntil(50_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "second writer", "W2 swap, W6 swap@peer, abandon cas@own"),
                line(
                    2,
                    1,
                    "first writer leaves",
                    "flush_all, X7 cas, wake cas@peer, its next get@peer, its X2 add, its next get@peer, its X4 cas, its turn put@peer",
                ),
            ],
        ),
        scene(
            "writer behind a reader gives up",
            [(0, 1, Read), (1, 2, WriteDropped(50_000)), (2, 1, Release)],
            [
                also(0, 1, R_LOCK),
                line(1, 2, "writer", "W2 swap, W5 cas, W4 add, abandon cas@own"),
                line(
                    2,
                    1,
                    "reader leaves",
                    "flush_all, U1 add, U2 cas, U4 cas@peer, its next get@peer, its X2 add, its next get@peer, its X4 cas, its turn put@peer",
                ),
            ],
        ),
    ]
}
