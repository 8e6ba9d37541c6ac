//! The paths of the writer-preference lock.

use super::*;
use Act::*;

const W_LOCK: &str = "W2 swap, W5 cas";
const R_FIRST: &str = "R1 add, U1 add, R3 swap, R4 or";
const R_NEXT: &str = "R1 add, U1 add, R3 swap";
const LETS_READERS_IN: &str = "flush_all, X2 add, X3 and, X3 swap, wake cas@peer, X4 cas";

pub(super) fn scenes() -> Vec<Scene> {
    of(
        Subject::WritersFirst,
        vec![
            scene(
                "shared, nobody about",
                [(0, 1, Read), (1, 1, Release)],
                [line(0, 1, "lock", R_LOCK), line(1, 1, "unlock", R_UNLOCK)],
            )
            .calm(),
            scene(
                ALONE,
                [(0, 1, Write), (1, 1, Release)],
                [line(0, 1, "lock", W_LOCK), line(1, 1, "unlock", W_UNLOCK)],
            )
            .calm(),
            scene(
                "two readers behind a writer",
                [(0, 1, Write), (1, 2, Read), (2, 3, Read), (3, 1, Release), (4, 2, Release), (5, 3, Release)],
                [
                    also(0, 1, W_LOCK),
                    line(1, 2, "first reader, until it waits", R_FIRST),
                    line(2, 3, "second reader, until it waits", R_NEXT),
                    line(3, 1, "writer lets them in", LETS_READERS_IN),
                    line(3, 3, "second reader, woken", "R7 cas@peer, R1 add"),
                    line(3, 2, "first reader, woken", "R1 add"),
                    also(4, 2, R_UNLOCK),
                    also(5, 3, R_UNLOCK),
                ],
            ),
            scene(
                "writer behind a reader, reader behind the writer",
                [(0, 1, Read), (1, 2, Write), (2, 3, Read), (3, 1, Release), (4, 2, Release), (5, 3, Release)],
                [
                    also(0, 1, R_LOCK),
                    line(1, 2, "writer, until it waits", "W2 swap, W5 cas, W4 add"),
                    line(2, 3, "second reader, until it waits", R_FIRST),
                    line(3, 1, "first reader leaves", "flush_all, U1 add, U2 cas, U4 cas@peer"),
                    line(3, 2, "writer, woken", ""),
                    line(4, 2, "writer lets the second reader in", LETS_READERS_IN),
                    line(4, 3, "second reader, woken", "R1 add"),
                    also(5, 3, R_UNLOCK),
                ],
            ),
            scene(
                "reader and writers behind a writer",
                [
                    (0, 1, Write),
                    (1, 4, Read),
                    (2, 2, Write),
                    (3, 3, Write),
                    (4, 1, Release),
                    (5, 2, Release),
                    (6, 3, Release),
                    (7, 4, Release),
                ],
                [
                    also(0, 1, W_LOCK),
                    also(1, 4, R_FIRST),
                    line(2, 2, "second writer, until it waits", W_QUEUES),
                    also(3, 3, W_QUEUES),
                    line(4, 1, "first writer hands over", "flush_all, wake cas@peer"),
                    line(4, 2, "second writer, woken", ""),
                    line(5, 2, "second writer hands over", "flush_all, wake cas@peer"),
                    line(6, 3, "third writer lets the reader in", LETS_READERS_IN),
                    also(6, 4, "R1 add"),
                    also(7, 4, R_UNLOCK),
                ],
            ),
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
                "tries, a writer behind a reader",
                [
                    (0, 1, Read),
                    (1, 2, TryWriteFails),
                    (2, 2, Write),
                    (3, 3, TryReadFails),
                    (4, 1, Release),
                    (5, 2, Release),
                ],
                [
                    also(0, 1, R_LOCK),
                    line(1, 2, "`try_write` before it fails", "W2 cas, W5 cas, X4 cas"),
                    also(2, 2, "W2 swap, W5 cas, W4 add"),
                    line(3, 3, "`try_read` fails", "R1 add, U1 add"),
                    also(4, 1, "flush_all, U1 add, U2 cas, U4 cas@peer"),
                    also(5, 2, W_UNLOCK),
                ],
            ),
            scene(
                GIVES_UP,
                [(0, 1, Write), (1, 2, ReadUntil(50_000)), (2, 1, Release)],
                [
                    also(0, 1, W_LOCK),
                    line(1, 2, "reader", "R1 add, U1 add, R3 swap, R4 or, abandon cas@own"),
                    line(
                        2,
                        1,
                        "writer leaves",
                        "flush_all, X2 add, X3 and, X3 swap, wake cas@peer, its next get@peer, its turn put@peer, X4 cas",
                    ),
                ],
            ),
            scene(
                "writer behind a writer gives up",
                [(0, 1, Write), (1, 2, WriteDropped(50_000)), (2, 1, Release)],
                [
                    also(0, 1, W_LOCK),
                    line(1, 2, "second writer", "W2 swap, W6 swap@peer, abandon cas@own"),
                    line(
                        2,
                        1,
                        "first writer leaves",
                        "flush_all, wake cas@peer, its next get@peer, its X2 add, its next get@peer, its X4 cas, its turn put@peer",
                    ),
                ],
            ),
        ],
    )
}
