//! Random numbers that depend only on the seed, the campaign and the case, so that a case can be
//! replayed alone.

use fastrand::Rng;

/// Returns the generator of one case.
pub(super) fn of(seed: u64, campaign: &str, case: usize) -> Rng {
    let parts = campaign.bytes().map(u64::from).chain([case as u64]);
    parts.fold(Rng::with_seed(seed), |mut random, part| Rng::with_seed(random.u64(..) ^ part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_draws_the_same_alone() {
        let four = |seed, campaign, case| {
            let mut random = of(seed, campaign, case);
            [(); 4].map(|()| random.u64(..))
        };
        assert_eq!(four(1, "kills", 7), four(1, "kills", 7));
        for other in [four(2, "kills", 7), four(1, "signals", 7), four(1, "kills", 8)] {
            assert_ne!(four(1, "kills", 7), other);
        }
    }
}
