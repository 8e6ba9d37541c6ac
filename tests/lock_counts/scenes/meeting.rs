//! Nobody about, and those who wait for each other.

use super::*;
use Act::*;

pub(super) fn scenes() -> Vec<Scene> {
    [without_conflict(), with_data(), waiting()].concat()
}

fn without_conflict() -> Vec<Scene> {
    vec![
        scene(
            "shared, nobody about",
            [(0, 1, Read), (1, 1, Release), (2, 1, Read), (3, 1, Release)],
            [
                line(0, 1, "lock", R_LOCK).printed(1, 0),
                line(1, 1, "unlock", R_UNLOCK).printed(1, 0),
                also(2, 1, R_LOCK),
                also(3, 1, R_UNLOCK),
            ],
        )
        .calm(),
        scene(
            "shared, among readers",
            [(0, 1, Read), (1, 2, Read), (2, 1, Release), (3, 2, Release)],
            [
                also(0, 1, R_LOCK),
                line(1, 2, "lock", R_LOCK).printed(1, 0),
                line(2, 1, "unlock", R_UNLOCK).printed(1, 0),
                also(3, 2, R_UNLOCK),
            ],
        )
        .calm(),
        scene(
            ALONE,
            [(0, 1, Write), (1, 1, Release), (2, 1, Write), (3, 1, Release), (4, 2, Write), (5, 2, Release)],
            [
                line(0, 1, "lock", W_LOCK).printed(4, 0),
                line(1, 1, "unlock", W_UNLOCK).printed(4, 0).because(NO_X1_X3),
                also(2, 1, W_LOCK),
                also(3, 1, W_UNLOCK),
                also(4, 2, W_LOCK),
                also(5, 2, W_UNLOCK),
            ],
        )
        .calm(),
    ]
}

fn with_data() -> Vec<Scene> {
    vec![scene(
        "a put under way at the unlock",
        [(0, 1, Read), (1, 1, PutAndRelease), (2, 1, Write), (3, 1, PutAndRelease), (4, 2, Read), (5, 2, Release)],
        [
            also(0, 1, R_LOCK),
            line(1, 1, "shared", "data put@peer, flush_all, flush_all, U1 add"),
            also(2, 1, W_LOCK),
            line(3, 1, "exclusive", "data put@peer, flush_all, X2 add, X4 cas"),
            also(4, 2, R_LOCK),
            also(5, 2, R_UNLOCK),
        ],
    )]
}

fn waiting() -> Vec<Scene> {
    vec![
        scene(
            "reader behind a writer",
            [(0, 1, Write), (1, 2, Read), (2, 1, Release), (3, 2, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "reader, until it waits", R_QUEUES).printed(3, 0),
                line(2, 1, "writer lets it in", "flush_all, X2 add, X3 swap, wake cas@peer, X4 cas")
                    .printed(4, 1)
                    .because(NO_X1),
                line(2, 2, "reader, woken", "").printed(0, 0),
                also(3, 2, R_UNLOCK),
            ],
        ),
        scene(
            "two readers behind a writer",
            [(0, 1, Write), (1, 2, Read), (2, 3, Read), (3, 1, Release), (4, 2, Release), (5, 3, Release)],
            [
                also(0, 1, W_LOCK),
                also(1, 2, R_QUEUES),
                line(2, 3, "second reader, until it waits", R_QUEUES).printed(3, 0),
                line(3, 1, "writer lets them in", "flush_all, X2 add, X3 swap, wake cas@peer, X4 cas")
                    .printed(4, 1)
                    .because(NO_X1),
                line(3, 3, "second reader, woken", "R7 cas@peer").printed(0, 1),
                line(3, 2, "first reader, woken", "").printed(0, 0),
                also(4, 2, R_UNLOCK),
                also(5, 3, R_UNLOCK),
            ],
        ),
        scene(
            "writer behind readers",
            [(0, 1, Read), (0, 2, Read), (1, 3, Write), (2, 1, Release), (3, 2, Release), (4, 3, Release)],
            [
                also(0, 1, R_LOCK),
                also(0, 2, R_LOCK),
                line(1, 3, "writer, until it waits", "W2 swap, W3 put, W3 flush, W4 add").printed(3, 0),
                line(2, 1, "a reader leaves", R_UNLOCK).printed(1, 0),
                line(3, 2, "the last reader leaves", R_LAST).printed(3, 1),
                line(3, 3, "writer, woken", "").printed(0, 0),
                line(4, 3, "writer leaves", W_UNLOCK).printed(4, 0).because(NO_X1_X3),
            ],
        ),
        scene(
            "writers behind a writer",
            [(0, 1, Write), (1, 2, Write), (2, 3, Write), (3, 1, Release), (4, 2, Release), (5, 3, Release)],
            [
                also(0, 1, W_LOCK),
                line(1, 2, "second writer, until it waits", W_QUEUES).printed(1, 1),
                line(2, 3, "third writer, until it waits", W_QUEUES).printed(1, 1),
                line(3, 1, "first writer hands over", HAND_OVER).printed(7, 1).because(NO_X1_X3),
                line(3, 2, "second writer, woken", "").printed(0, 0),
                line(4, 2, "second writer hands over", HAND_OVER).printed(7, 1).because(NO_X1_X3),
                line(5, 3, "third writer leaves", W_UNLOCK).printed(4, 0).because(NO_X1_X3),
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
                    "flush_all, X2 add, X3 swap, wake cas@peer, X5 put, X5 flush, X6 add",
                )
                .printed(5, 1)
                .because(NO_X1),
                line(4, 2, "the reader leaves", R_LAST).printed(3, 1),
                also(5, 3, W_UNLOCK),
            ],
        ),
    ]
}
