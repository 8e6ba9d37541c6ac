//! Programs whose network is simulated.

use crate::tools::{Linked, compiled, ended};
use process_tests::jobs::{figures, simulated};

/// Also where matrices are in fabric memory.
pub(crate) fn equal_runs_take_equal_virtual_time() {
    let Some(program) = compiled(&["tests/own/ring.c"], Linked::Shared) else { return };
    let runs = [(); 2].map(|()| ended(simulated(6, &program, &["registered"])));
    for ended in &runs {
        assert!(ended.code() == Some(0) && ended.out == "ring: 6 processes\n", "{ended}");
    }
    assert_eq!(figures(&runs[0]), figures(&runs[1]));
}
