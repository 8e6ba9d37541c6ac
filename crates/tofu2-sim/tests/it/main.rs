//! Tests that need both providers: values and sizes that each must refuse, and jobs of one within
//! jobs of the other.

mod blocking;
mod forged_pointers;
mod sizes;

use tofu2_sim::virt::{Job, Platform};

pub(crate) fn fx100<'a>(ranks: usize) -> Job<'a> {
    checks::jobs::virtual_time(&Platform::fx100(), ranks)
}
