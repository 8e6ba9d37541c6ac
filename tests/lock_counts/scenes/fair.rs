//! The paths of the fair lock.

use super::*;
use Act::*;

const R_LOCK: &str = "F1 swap, F3 add, F7 cas@own";
const R_BEHIND: &str = "F1 swap, F2 swap@peer, F3 add, F7 cas@own";
const R_UNLOCK: &str = "flush_all, G1 cas, G3 add";
const W_LOCK: &str = "F1 swap, F4 get";
const W_UNLOCK: &str = "flush_all, G1 cas";
const QUEUES: &str = "F1 swap, F2 swap@peer";
const LETS_WRITER_IN: &str = "flush_all, G3 add, G4 add, G5 cas@peer";

pub(super) fn scenes() -> Vec<Scene> {
    of(Subject::Fair, [alone(), meeting(), tries(), quitting()].concat())
}

fn alone() -> Vec<Scene> {
    vec![
        scene(
            "shared, nobody about",
            [(0, 1, Read), (1, 1, Release), (2, 1, Read), (3, 1, Release)],
            [line(0, 1, "lock", R_LOCK), line(1, 1, "unlock", R_UNLOCK), also(2, 1, R_LOCK), also(3, 1, R_UNLOCK)],
        )
        .calm(),
        scene(
            "shared, behind a reader",
            [(0, 1, Read), (1, 2, Read), (2, 1, Release), (3, 2, Release)],
            [
                also(0, 1, R_LOCK),
                line(1, 2, "lock", R_BEHIND),
                line(2, 1, "first reader leaves", "flush_all, G3 add"),
                line(3, 2, "second reader leaves", R_UNLOCK),
            ],
        )
        .calm(),
        scene(
            ALONE,
            [(0, 1, Write), (1, 1, Release), (2, 2, Write), (3, 2, Release)],
            [line(0, 1, "lock", W_LOCK), line(1, 1, "unlock", W_UNLOCK), also(2, 2, W_LOCK), also(3, 2, W_UNLOCK)],
        )
        .calm(),
    ]
}

fn meeting() -> Vec<Scene> {
    vec![
        scene(
            "two readers behind a writer",
            [(0, 1, Write), (1, 2, Read), (2, 3, Read), (3, 1, Release), (4, 2, Release), (5, 3, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "first reader, until it waits", QUEUES),
                also(2, 3, QUEUES),
                line(3, 1, "writer lets it in", "flush_all, G2 add, G5 cas@peer"),
                line(3, 2, "first reader, woken", "F7 cas@own, F7 add, F7 cas@peer"),
                line(3, 3, "second reader, woken", "F7 cas@own"),
                also(4, 2, "flush_all, G3 add"),
                also(5, 3, R_UNLOCK),
            ],
        ),
        scene(
            "writer behind readers",
            [(0, 1, Read), (1, 2, Read), (2, 3, Write), (3, 2, Release), (4, 1, Release), (5, 3, Release)],
            [
                also(0, 1, R_LOCK),
                also(1, 2, R_BEHIND),
                line(2, 3, "writer, until it waits", QUEUES),
                line(3, 2, "the reader before it leaves", "flush_all, G3 add"),
                line(4, 1, "the last reader leaves", LETS_WRITER_IN),
                line(4, 3, "writer, woken", ""),
                line(5, 3, "writer leaves", W_UNLOCK),
            ],
        ),
        scene(
            "writer after readers, one of them inside",
            [(0, 1, Read), (1, 2, Read), (2, 2, Release), (3, 3, Write), (4, 1, Release), (5, 3, Release)],
            [
                also(0, 1, R_LOCK),
                also(1, 2, R_BEHIND),
                also(2, 2, R_UNLOCK),
                line(3, 3, "writer, until it waits", "F1 swap, F4 get, F5 add"),
                line(4, 1, "the reader leaves", LETS_WRITER_IN),
                also(5, 3, W_UNLOCK),
            ],
        ),
        scene(
            "writer, reader and writer behind a writer",
            [
                (0, 1, Write),
                (1, 2, Write),
                (2, 3, Read),
                (3, 4, Write),
                (4, 1, Release),
                (5, 2, Release),
                (6, 3, Release),
                (7, 4, Release),
            ],
            [
                also(0, 1, W_LOCK),
                also(1, 2, QUEUES),
                also(2, 3, QUEUES),
                also(3, 4, QUEUES),
                line(4, 1, "first writer hands over", "flush_all, G5 cas@peer"),
                line(5, 2, "second writer lets the reader in", "flush_all, G2 add, G5 cas@peer"),
                also(5, 3, "F7 cas@own"),
                line(6, 3, "the reader lets the last writer in", LETS_WRITER_IN),
                also(7, 4, W_UNLOCK),
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
                line(0, 1, "`try_read` succeeds", "F1 cas, F3 add, F7 cas@own"),
                also(1, 1, R_UNLOCK),
                line(2, 1, "`try_write` succeeds", "F1 cas, F4 get"),
                also(3, 1, W_UNLOCK),
            ],
        )
        .calm(),
        scene(
            "tries, a reader inside",
            [(0, 1, Read), (1, 2, TryWriteFails), (2, 2, TryRead), (3, 1, Release), (4, 2, Release)],
            [
                also(0, 1, R_LOCK),
                line(1, 2, "`try_write` fails", "F1 cas"),
                line(2, 2, "`try_read` succeeds", "F1 cas, look get@peer, F1 cas, F2 swap@peer, F3 add, F7 cas@own"),
                also(3, 1, "flush_all, G3 add"),
                also(4, 2, R_UNLOCK),
            ],
        )
        .calm(),
        scene(
            "tries, a reader inside that is not the last of the queue any more",
            [(0, 1, Read), (1, 2, Read), (2, 2, Release), (3, 2, TryWriteFails), (4, 1, Release)],
            [
                also(0, 1, R_LOCK),
                also(1, 2, R_BEHIND),
                also(2, 2, R_UNLOCK),
                line(3, 2, "`try_write` fails", "F1 cas, F4 get, G1 cas"),
                also(4, 1, "flush_all, G3 add"),
            ],
        )
        .calm(),
        scene(
            "tries, a writer inside",
            [(0, 1, Write), (1, 2, TryReadFails), (2, 2, TryWriteFails), (3, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "`try_read` fails", "F1 cas, look get@peer"),
                line(2, 2, "`try_write` fails", "F1 cas"),
                also(3, 1, W_UNLOCK),
            ],
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
                line(1, 2, "reader", "F1 swap, F2 swap@peer, abandon cas@own"),
                line(
                    2,
                    1,
                    "writer leaves",
                    "flush_all, G2 add, G5 cas@peer, its next get@peer, its G1 cas, its turn put@peer, its G3 add",
                ),
            ],
        ),
        scene(
            "writer behind a writer gives up",
            [(0, 1, Write), (1, 2, WriteDropped(50_000)), (2, 1, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "second writer", "F1 swap, F2 swap@peer, abandon cas@own"),
                line(
                    2,
                    1,
                    "first writer leaves",
                    "flush_all, G5 cas@peer, its next get@peer, its G1 cas, its turn put@peer",
                ),
            ],
        ),
        scene(
            "reader behind a reader that gave up",
            [(0, 1, Write), (1, 2, ReadUntil(50_000)), (2, 3, Read), (3, 1, Release), (4, 3, Release)],
            [
                also(0, 1, W_LOCK),
                also(1, 2, "F1 swap, F2 swap@peer, abandon cas@own"),
                also(2, 3, QUEUES),
                line(
                    3,
                    1,
                    "writer lets the second reader in",
                    "flush_all, G2 add, G5 cas@peer, its next get@peer, its turn put@peer, G5 cas@peer",
                ),
                also(3, 3, "F7 cas@own"),
                also(4, 3, R_UNLOCK),
            ],
        ),
    ]
}
