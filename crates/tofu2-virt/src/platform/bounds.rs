//! The largest values of constants: with them, no sum of times in a run exceeds the range of
//! virtual time, unless the program computes or sleeps until its end.

use super::{Platform, Unit};
use rdma_fabric::FabricError;

/// The largest packet header, in bytes.
const OVERHEAD: u64 = 1 << 20;

/// Returns the largest value of a constant: a second, ten microseconds per byte, a pebibyte. Counts
/// have stricter limits, which the code that uses them checks.
fn most(name: &str, unit: Unit) -> u64 {
    match unit {
        _ if name == "packet_overhead" => OVERHEAD,
        Unit::Picoseconds => 1_000_000_000_000,
        Unit::FemtosecondsPerByte => 10_000_000_000,
        Unit::Bytes => 1 << 50,
        Unit::Count | Unit::Bits | Unit::PerTenThousand => u64::MAX,
    }
}

impl Platform {
    /// Checks that no constant is larger than the model can compute with.
    ///
    /// # Errors
    /// [`FabricError::Setting`].
    pub(super) fn check_bounds(&self) -> Result<(), FabricError> {
        let too_large = self.constants.iter().find(|constant| constant.value > most(constant.name, constant.unit));
        too_large.map_or(Ok(()), |constant| {
            let (name, value, most) = (constant.name, constant.value, most(constant.name, constant.unit));
            Err(FabricError::setting("platform constant", format!("{name} is {value}, more than {most}")))
        })
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::{super::Timing, *};

    #[test]
    fn constants_that_sums_could_not_hold_are_refused() {
        for (name, most) in
            [("send_engine", 1_000_000_000_000), ("link_byte", 10_000_000_000), ("packet_overhead", 1 << 20)]
        {
            let with = |value| Platform::fx100().with(name, value).expect("a constant");
            assert_eq!(with(most).check_bounds(), Ok(()), "{name}");
            for value in [most + 1, u64::MAX] {
                let error = Timing::new(&with(value), 1).expect_err("too large").to_string();
                assert!(error.contains(&format!("{name} is {value}, more than {most}")), "{error}");
            }
        }
    }
}
